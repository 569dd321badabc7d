package remote

import (
	"bytes"
	"context"
	_ "embed"
	"errors"
	"fmt"
	"strings"
	"time"

	"muster/fleet"
)

// Marker records on a member of a redundancy group which job may disturb the group (G6). Each
// job writes it first of all, on every member that can carry one, in the order of their names.
// So two jobs always meet at a marker, even if Redis has forgotten one. See marker.sh.
type Marker struct {
	Group string
	Host  string // the member that the job will disturb
	Job   string
	Token int64 // of the attempt: hosts refuse an older attempt of the same job
	Until int64 // a token: for attempts from this token on, the marker is void

	Over Marked // the marker of another job that may be replaced; zero: none may
	Off  bool   // remove the marker, if this job owns it
}

// Marked is the marker of another job, as a host reports it.
type Marked struct {
	Group, Host, Job string // "-" if it is unreadable
	Token, Until     int64

	key string
}

// Marking is the answer of a host to a Marker.
type Marking struct {
	Other    *Marked // the host keeps this one and changed nothing; nil: it has ours
	Unfenced string  // why the host cannot carry markers; empty: it can
}

//go:embed marker.sh
var markerText string

// markerScript is the text that is sent: marker.sh behind the functions of record.sh.
var markerScript = strings.TrimSuffix(recordScript, "main\n") + withoutComments(markerText)

// markerLine runs the script that comes on stdin.
const markerLine = `: muster-marker; muster=$(cat); eval "$muster"`

// markerTime bounds the script on the host, which may have to wait for its disk.
const markerTime = 15 * time.Second

// Mark writes a marker on the host, or removes it.
func (c *Conn) Mark(ctx context.Context, m Marker) (Marking, error) {
	const op = "mark"
	if err := m.check(); err != nil {
		return Marking{}, c.to.fault(op, KindInvalid, err)
	}
	if c.keeper.fence == fleet.FenceNone || c.keeper.fence == "" {
		return Marking{Unfenced: "its fence is none"}, nil
	}
	nonce := newNonce()
	result, err := c.run(ctx, op, Command{Shell: markerLine, Bound: markerTime,
		Stdin: strings.NewReader(m.text(c, nonce))})
	if err != nil {
		return Marking{}, err
	}
	said, ok := markSaid(result.Output, nonce)
	if !ok {
		return Marking{}, c.to.faultSent(op, KindMute, fmt.Errorf("it did not answer as a POSIX shell "+
			"does, so it carries no marker that can be relied on; if it has none, set fence: none; %s",
			lastWords(result.Output)))
	}
	return m.judge(c, said)
}

// check returns an error if the marker is invalid.
func (m Marker) check() error {
	for _, s := range []string{m.Group, m.Host, m.Job} {
		if s == "" || strings.IndexFunc(s, notInJob) >= 0 {
			return fmt.Errorf("marker of %q: names without blanks", s)
		}
	}
	if m.Token <= 0 || m.Token >= 1e18 || m.Until < 0 || m.Until >= 1e18 {
		return fmt.Errorf("token %d until %d: more than 0 and less than 10^18", m.Token, m.Until)
	}
	return nil
}

// text returns the script for stdin. Its values are our own, or names without blanks.
func (m Marker) text(c *Conn, nonce string) string {
	hi, lo, _ := strings.Cut(halves(m.Token), " ")
	uhi, ulo, _ := strings.Cut(halves(m.Until), " ")
	over := ""
	if m.Over.key != "" {
		over = m.Over.key + " " + halves(m.Over.Token)
	}
	if m.Over.key == "-" {
		over = "- 0 0"
	}
	var b strings.Builder
	fmt.Fprintf(&b, "nonce=%s\n", nonce) // first, because pretended hosts read it there
	for _, v := range [][2]string{{"fence", string(c.keeper.fence)},
		{"key", (&Record{Job: m.Job}).key()}, {"hi", hi}, {"lo", lo}, {"uhi", uhi}, {"ulo", ulo},
		{"place", c.cfg.RecordDir}, {"job", m.Job}, {"group", m.Group}, {"host", m.Host},
		{"over", over}, {"off", bit(m.Off)}} {
		fmt.Fprintf(&b, "%s=%s\n", v[0], quote(v[1]))
	}
	b.WriteString(markerScript)
	return b.String()
}

// markSaid finds the line of marker.sh in the output of a host and splits it into words.
func markSaid(o Output, nonce string) (note, bool) {
	for _, part := range [][]byte{o.Head, o.Tail} {
		for line := range bytes.Lines(part) {
			if text, ok := strings.CutPrefix(string(line), nonce+" "); ok && strings.HasSuffix(text, "\n") {
				return strings.Fields(text), true
			}
		}
	}
	return nil, false
}

// judge interprets the answer of a host.
func (m Marker) judge(c *Conn, said note) (Marking, error) {
	const op = "mark"
	words := said[min(1, len(said)):]
	rest := strings.Join(words[min(1, len(words)):], " ")
	switch {
	case said.word() == "marked" && !m.Off, said.word() == "left" && m.Off:
		return Marking{}, nil
	case said.word() != "no":
	case words.word() == "held":
		if other, ok := parseMarked(words[1:]); ok {
			return Marking{Other: &other}, nil
		}
	case words.word() == "plain":
		return Marking{Unfenced: "it lacks " + c.lacks(rest)}, nil
	case words.word() == "stale":
		return Marking{}, c.to.fault(op, KindStale, errors.New("the host has seen a newer attempt"))
	case words.word() == "busy" && rest != "":
		return Marking{}, c.to.fault(op, KindBusy, errors.New("a step is at work on it, and the marker "+
			"there gives way only behind that"))
	case words.word() == "busy":
		return Marking{}, c.to.fault(op, KindBusy, errors.New("somebody else is at its marker"))
	case words.word() == "lacking":
		return Marking{}, c.to.fault(op, KindRecord, fmt.Errorf("it cannot carry a marker, and "+
			"its fence is required: it lacks %s", c.lacks(rest)))
	case words.word() == "disk":
		return Marking{}, c.to.fault(op, KindRecord, fmt.Errorf("the marker could not be "+
			"written; %s", hostSaid([]byte(rest))))
	}
	return Marking{}, c.to.faultSent(op, KindMute, fmt.Errorf("it gave an unknown answer about its "+
		"marker; %s", hostSaid([]byte(rest))))
}

// parseMarked reads "KEY TOKEN-HIGH TOKEN-LOW UNTIL-HIGH UNTIL-LOW GROUP HOST JOB".
func parseMarked(words []string) (Marked, bool) {
	if len(words) != 8 {
		return Marked{}, false
	}
	var n [4]int64
	for i := range n {
		var err error
		if n[i], err = parseCount(words[i+1]); err != nil || n[i] >= 1e9 {
			return Marked{}, false
		}
	}
	return Marked{key: words[0], Token: n[0]*1e9 + n[1], Until: n[2]*1e9 + n[3],
		Group: words[5], Host: words[6], Job: words[7]}, true
}
