package remote

import (
	"cmp"
	"context"
	"crypto/sha256"
	_ "embed"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"muster/fleet"
)

// Record makes a command a step of a job for which the host itself keeps a record, if its
// fence allows that: a file which says that the step began, and later how it ended. With it
// the host refuses a second start and outdated attempts, and the step continues even if the
// connection ends. See record.sh.
type Record struct {
	Job   string // job and number identify a step
	Step  int
	Token int64 // of this attempt: the host refuses older ones than it has seen
	Since int64 // no attempt of the job has an older token

	// Again says that an earlier attempt may have started the step. The host then starts it only
	// if it can prove that it never began; otherwise the error has KindUntold.
	Again bool

	// Twice allows the host to run the step again if nobody knows how it went before.
	Twice bool

	// Marked says that the job has marked its redundancy group, see Marker. If another job has
	// done so since, the host does not start the step; the error has KindStale.
	Marked bool

	// Look starts nothing. If the step never began, the error has KindNever, and the host will
	// not let an older attempt start it any more.
	Look bool

	// Glance looks without waiting: if the step still runs, the error has KindWork. Peek also
	// writes nothing, so an older attempt can still start the step. Both require Look.
	Glance, Peek bool
}

//go:embed record.sh
var recordText string

//go:embed put.sh
var putText string

// The text that is sent. The shell acts only when it reads the last line.
var (
	recordScript = withoutComments(recordText)
	putScript    = strings.TrimSuffix(recordScript, mainLine) + withoutComments(putText) + mainLine
)

const mainLine = "main\n"

// recordLine runs the script from stdin in sh instead of the login shell. Every login shell
// accepts it: csh, fish, a restricted shell.
const recordLine = `sh -c ': muster-record; IFS= read -r record; eval "$record"'`

// recordDirDefault is the folder in which hosts keep records, unless Config gives another.
const recordDirDefault = "/var/lib/muster"

// withoutComments removes comments and indentation, which no shell needs.
func withoutComments(script string) string {
	var b strings.Builder
	for line := range strings.Lines(script) {
		line = strings.TrimLeft(line, "\t")
		if line != "\n" && !strings.HasPrefix(line, "#") {
			b.WriteString(line)
		}
	}
	return b.String()
}

// The verbs of record.sh.
const (
	verbRun  = "run"
	verbPut  = "put"
	verbAsk  = "ask"
	verbLook = "look"
	verbPeek = "peek"
	verbStop = "stop"
)

// A request is the input of record.sh.
type request struct {
	verb  string
	fence fleet.Fence
	dir   string
	cmd   Command
}

// reader returns the stdin of the shell: the script, the request, the command's own stdin.
func (q request) reader(nonce string) io.Reader {
	r := q.cmd.Record
	text := q.cmd.Shell
	if text[0] == '-' || text[0] == '+' {
		text = " " + text // otherwise sh would take it for options
	}
	var b strings.Builder
	b.WriteString("nonce=" + nonce + "; IFS= read -r request; IFS= read -r place; IFS= read -r job; " +
		"IFS= read -r text; record=$(" + q.loader() + "); eval \"$record\"\n")
	fmt.Fprintf(&b, "%s %s %s %d %s %s %s %s %d %s\n", q.verb, q.fence, r.key(), r.Step,
		halves(r.Token), halves(r.Since), bit(r.Again), bit(r.Twice), seconds(q.cmd.Bound),
		bit(r.Marked))
	fmt.Fprintf(&b, "%s\n%s\n%s\n", q.dir, r.Job, escape(text))
	if q.verb == verbPut {
		b.WriteString(putScript)
	} else {
		b.WriteString(recordScript)
	}
	if q.cmd.Stdin == nil {
		return strings.NewReader(b.String())
	}
	b.WriteString(nonce + "\n")
	return io.MultiReader(strings.NewReader(b.String()), q.cmd.Stdin)
}

// loader returns the shell code that reads the script. If the command has its own input, the
// loader must not read ahead into it, so it reads byte by byte, which costs 4 ms.
func (q request) loader() string {
	if q.cmd.Stdin == nil {
		return "cat"
	}
	return `while IFS= read -r l && [ "$l" != "$nonce" ]; do printf '%s\n' "$l"; done`
}

// check returns an error if the record or its command is invalid.
func (r *Record) check(cmd Command) error {
	switch {
	case r.Job == "" || strings.IndexFunc(r.Job, notInJob) >= 0:
		return fmt.Errorf("job %q: a name without blanks", r.Job)
	case r.Step < 0 || r.Step > 1e6:
		return fmt.Errorf("step %d: 0 to 1000000", r.Step)
	case r.Token <= 0 || r.Token >= 1e18 || r.Since < 0 || r.Since >= 1e18:
		return fmt.Errorf("token %d since %d: more than 0 and less than 10^18", r.Token, r.Since)
	case len(cmd.Shell) > lineMax:
		return fmt.Errorf("the command has %d bytes, the most is %d: upload it as a file or send "+
			"it on stdin", len(cmd.Shell), lineMax)
	}
	return nil
}

func notInJob(r rune) bool { return r <= ' ' || r > '~' }

// key returns a word for the names of the job's files that is safe for any job name.
func (r *Record) key() string { return fmt.Sprintf("%x", sha256.Sum256([]byte(r.Job)))[:20] }

// halves formats a token as two numbers of nine digits.
func halves(token int64) string { return fmt.Sprintf("%09d %09d", token/1e9, token%1e9) }

func bit(b bool) string {
	if b {
		return "1"
	}
	return "0"
}

// verb returns the verb of record.sh for a command, or "" to run it without a record.
func (c *Conn) verb(cmd Command) string {
	switch r := cmd.Record; {
	case cmd.verb != "":
		return cmd.verb
	case r == nil || c.keeper.fence == fleet.FenceNone || c.keeper.fence == "":
		return ""
	case r.Look && r.Peek:
		return verbPeek
	case r.Look && r.Glance:
		return verbLook
	case r.Look:
		return verbAsk
	}
	return verbRun
}

// cannotTell returns KindUntold if the command may have run already on a host without records.
func (c *Conn) cannotTell(op string, cmd Command) error {
	r := cmd.Record
	if r == nil || !r.Look && (!r.Again || r.Twice) || c.verb(cmd) != "" {
		return nil
	}
	return c.to.fault(op, KindUntold, errors.New("it keeps no record of what was started "+
		"(fence: none)"))
}

// attach connects again to learn the result of a step whose connection was lost. It returns
// what is known then, which is at worst the first result.
func (c *Conn) attach(ctx context.Context, cmd Command, lost Result, why error) (Result, error) {
	var e *Error
	if !errors.As(why, &e) || e.Kind != KindLost || c.verb(cmd) == "" || lost.Unfenced != "" ||
		cmd.Stdin != nil || ctx.Err() != nil || isClosed(cmd.Stop) {
		return lost, why
	}
	other, err := c.again(ctx)
	if err != nil {
		return lost, why
	}
	defer other.Close()
	again := *cmd.Record
	again.Again = true
	cmd.Record, cmd.Attached, cmd.Began = &again, nil, nil
	if cmd.Live != nil {
		cmd.Live = &later{to: cmd.Live, known: lost.Output.Size()}
	}
	result, err := other.run(ctx, "run", cmd)
	if errors.As(err, &e) && !e.Sent {
		return lost, why // nothing new was learned
	}
	result.Took += lost.Took
	result.Attached = lost.Attached // this very attempt began it
	return result, err
}

// later passes on only the bytes behind those that are already known.
type later struct {
	to    io.Writer
	known int64
}

// Write passes on the new part of p.
func (l *later) Write(p []byte) (int, error) {
	known := min(l.known, int64(len(p)))
	l.known -= known
	if rest := p[known:]; len(rest) > 0 {
		_, _ = l.to.Write(rest) // its errors are its own
	}
	return len(p), nil
}

// Skip counts lost bytes; some of them may be known already.
func (l *later) Skip(n int64) {
	known := min(l.known, n)
	l.known -= known
	if to, ok := l.to.(Skipper); ok && n > known {
		to.Skip(n - known)
	}
}

// recorded interprets the notes of record.sh. plain means that there was no record, or that
// its end was not seen; then the end of the session decides.
func (s *session) recorded(op string, cmd Command, halted error, result Result) (
	r Result, plain bool, err error,
) {
	n, to := s.notes, s.conn.to
	greeted, fenced := n.state()
	if greeted && !fenced {
		result.Unfenced = s.conn.lacks(n.lack)
	}
	if !isClosed(n.over) {
		if !greeted && s.hasEnded() && s.known {
			return result, false, to.faultSent(op, KindMute, fmt.Errorf("it did not answer as a POSIX "+
				"shell does, so it is not known what it made of the command; if it has none, set "+
				"fence: none; %s", lastWords(result.Output)))
		}
		return result, true, nil
	}
	result.Attached, result.Lost = n.attached, whyLost(n.lost)
	switch n.last.word() {
	case "no":
		return result, false, n.last.refusal(op, s.conn)
	case "stopped":
		result.Output = Output{Head: []byte(strings.Join(n.last[1:], " "))}
		return result, false, nil
	}
	end, ok := parseEnd(n.last[1:])
	if !ok {
		return result, false, to.faultSent(op, KindGone, &doubtError{errors.New(n.last.lastSeen()),
			"the step began, nothing of it is alive, and it is not known how it ended: ", ""})
	}
	result.ExitCode, result.Open = end.code, end.open
	return result, false, end.fault(s, op, cmd, halted)
}

// fault returns the error of a step that ended, or nil.
func (e end) fault(s *session, op string, cmd Command, halted error) error {
	to := s.conn.to
	switch {
	case KindOf(halted) == KindRunning:
		return halted
	case len(e.left) > 0:
		return to.faultSent(op, KindRunning, fmt.Errorf("it ran over its bound of %s, and did not end "+
			"when it was killed: process %s", cmd.Bound, stopped{left: e.left}.processes()))
	case e.how == "timeout":
		return to.faultSent(op, KindTimeout, overBound(cmd.Bound))
	case e.how == "stopped":
		return to.faultSent(op, KindStopped, errStopped)
	}
	return nil
}

// abandoned reports whether record.sh itself vanished; then the step continues without it.
func (s *session) abandoned() bool {
	if s.notes == nil || isClosed(s.notes.over) || isClosed(s.mark.found) {
		return false
	}
	_, fenced := s.notes.state()
	return fenced
}

// noted returns a channel that is closed after the last note; nil without record.sh.
func (s *session) noted() <-chan struct{} {
	if s.notes == nil {
		return nil
	}
	return s.notes.over
}

// mayRun reports whether an earlier attempt may have started the command already. To be
// stopped, it must be found first.
func (cmd Command) mayRun() bool {
	return cmd.Record != nil && cmd.Record.Again && cmd.verb != verbPut
}

// looks reports whether the command is only a question and never starts anything.
func (cmd Command) looks() bool { return cmd.Record != nil && cmd.Record.Look }

var errStopped = errors.New("the command was stopped on the host")

func (n note) lastSeen() string {
	if len(n) > 1 && n[1] == "rebooted" {
		return "the host was rebooted since"
	}
	return "it was killed on the host"
}

// refusal returns the error for the reason why the host refused.
func (n note) refusal(op string, c *Conn) error {
	to, words := c.to, n[1:]
	word, rest := "", ""
	if len(words) > 0 {
		word, rest = words[0], strings.Join(words[1:], " ")
	}
	switch word {
	case "stale":
		return to.fault(op, KindStale, errors.New("the host has seen a newer attempt, nothing was "+
			"started"))
	case "marked":
		return to.fault(op, KindStale, fmt.Errorf("the host carries the marker of job %s by now, which "+
			"may be disturbing another member of its group: nothing was started",
			cmp.Or(Name(rest), "-")))
	case "busy":
		wait, who := busyWith(words[1:])
		return &Error{Op: op, Host: to.name, Addr: to.addr, Kind: KindBusy, Wait: wait,
			Err: fmt.Errorf("a step of %s is at work on the host", who)}
	case "work":
		wait, _ := busyWith(append(slices.Clip(words[1:]), "-"))
		return &Error{Op: op, Host: to.name, Addr: to.addr, Kind: KindWork, Wait: wait,
			Err: errors.New("the step is at work on the host")}
	case "untold":
		return to.fault(op, KindUntold, errors.New("the host has no record of it"))
	case "never":
		return to.fault(op, KindNever, errors.New("the step never began"))
	case "lacking":
		return to.fault(op, KindRecord, fmt.Errorf("it cannot keep a record of what it does, and its "+
			"fence is required: it lacks %s", c.lacks(rest)))
	case "disk":
		return to.fault(op, KindRecord, fmt.Errorf("no record could be written, nothing was started; "+
			"%s", hostSaid([]byte(rest))))
	}
	return to.faultSent(op, KindMute, fmt.Errorf("the host gave an unknown answer; %s",
		hostSaid([]byte(strings.Join(words, " ")))))
}

// lacks describes in words what record.sh has found missing.
func (c *Conn) lacks(what string) string {
	folder := fmt.Sprintf("a folder that only %s can write (%s, or one in its home)", c.keeper.user,
		c.cfg.RecordDir)
	return strings.Replace(Missing(what), "folder", folder, 1)
}

// busyMax bounds the time that a host may claim another step needs.
const busyMax = 24 * time.Hour

func busyWith(words []string) (wait time.Duration, who string) {
	who = "somebody"
	if len(words) == 2 {
		if n, err := parseCount(words[0]); err == nil {
			wait = min(time.Duration(n)*time.Second, busyMax)
		}
		who = Name(words[1])
	}
	return wait, who
}

// whyLost explains why output was lost, from the word of record.sh.
func whyLost(word string) string {
	switch word {
	case "":
		return ""
	case "full":
		return "the disk of the host was full"
	case "quota":
		return "the disk quota on the host was used up"
	}
	return "the host could not write it to its disk"
}

// An end is the end of a step according to its record.
type end struct {
	how  string // exit, timeout, stopped
	code int
	open bool
	left []string
}

func parseEnd(words []string) (end, bool) {
	if len(words) < 3 {
		return end{}, false
	}
	code, err := parseCount(words[1])
	e := end{how: words[0], code: int(code), open: words[2] != "0", left: words[3:]}
	for _, p := range e.left {
		if processID(p) == 0 {
			return end{}, false
		}
	}
	known := e.how == "exit" || e.how == "timeout" || e.how == "stopped"
	return e, known && err == nil && code <= 255
}
