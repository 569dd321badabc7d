package trust

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"muster/internal/serverkey"
)

// Times is a statement of the servers that a timetable is in force: windows, freezes, approvals. A
// timetable is large, and workers read excerpts of it, one for each scope (a host, a customer). So
// the statement has hashes only: of the whole text, and of shares of excerpts, which are lists of
// scopes with the hash of the excerpt of each. A scope that its share lacks has no excerpt.
type Times struct {
	Form         int    `json:"times"` // 1
	Installation string `json:"installation"`
	Version      int64  `json:"version"` // of the timetable; 0: there never was one
	Stamp        string `json:"stamp"`

	// Since is the time at which the timetable came into force. A statement with an earlier time
	// was replaced. Versions are no help: a Redis that has lost its data begins anew with 1.
	Since time.Time `json:"since"`
	// At is the time at which a server last said that the timetable is in force.
	At time.Time `json:"at"`

	Table  string   `json:"table"`  // hash of the whole text; empty: there is none
	Shares []string `json:"shares"` // hashes of the shares; none: the timetable has no excerpts
}

const (
	timesForm = 1

	// TimesMax bounds the bytes of a statement.
	TimesMax = 1 << 20

	// TimesAhead is the time by which a statement may be ahead of the clock that judges it: clocks
	// differ.
	TimesAhead = 2 * time.Minute
)

// State returns the statement about a timetable and its excerpts, by [windows.Scope.String], and
// the shares that belong to it. It takes version, stamp and times of t. No text: there is no
// timetable; no excerpts: there are none yet.
func (t Times) State(text []byte, excerpts map[string][]byte) (stated Times, shares []string) {
	t.Form, t.Since, t.At = timesForm, t.Since.UTC(), t.At.UTC()
	t.Table, t.Shares = "", nil
	if text != nil {
		t.Table = hash(text)
	}
	if excerpts == nil {
		return t, nil
	}
	parts := make([]strings.Builder, max(1, int(math.Sqrt(float64(len(excerpts))))))
	for _, scope := range slices.Sorted(maps.Keys(excerpts)) {
		fmt.Fprintf(&parts[shareOf(scope, len(parts))], "%s %s\n", hash(excerpts[scope]), scope)
	}
	for i := range parts {
		shares = append(shares, parts[i].String())
		t.Shares = append(t.Shares, hash([]byte(shares[i])))
	}
	return t, shares
}

// Sign returns the bytes of a statement, signed in the name of the servers.
func (t Times) Sign(k serverkey.Keys) (statement []byte, signature string, err error) {
	t.Installation = k.Installation()
	if statement, err = json.Marshal(t); err != nil {
		return nil, "", err
	}
	signature, err = SignAs(k, NamespaceTimes, statement)
	return statement, signature, err
}

// ErrUnstated is the error of a timetable about which no server has said anything.
var ErrUnstated = errors.New("no server has signed it: an earlier version of muster wrote it, or " +
	"somebody else")

// ReadTimes reads a statement, if a server of the installation has signed it.
func ReadTimes(statement []byte, signature, installation string, by Signers) (*Times, error) {
	if len(statement) == 0 || signature == "" {
		return nil, ErrUnstated
	}
	if len(statement) > TimesMax {
		return nil, fmt.Errorf("its statement has %d bytes: at most %d", len(statement), TimesMax)
	}
	if err := by.server(signature, NamespaceTimes, statement); err != nil {
		return nil, fmt.Errorf("it is not what a server has signed: %w", err)
	}
	var t Times
	d := json.NewDecoder(bytes.NewReader(statement))
	d.DisallowUnknownFields() // a later muster may mean a limit by it
	if err := d.Decode(&t); err != nil || d.More() || t.Form != timesForm {
		return nil, errors.New("its statement is of a form that this muster does not know: update it")
	}
	if t.Installation != installation {
		return nil, fmt.Errorf("it is of another installation, %q", t.Installation)
	}
	return &t, nil
}

// Of returns an error unless the statement names this version and stamp; none: Redis has no
// timetable.
func (t *Times) Of(version, stamp string) error {
	if t.Version == 0 && version == "" || version == strconv.FormatInt(t.Version, 10) &&
		t.Stamp == stamp {
		return nil
	}
	return fmt.Errorf("a server has signed version %d, and Redis has %s", t.Version,
		numbered(version))
}

func numbered(version string) string {
	if version == "" {
		return "none"
	}
	n, err := strconv.ParseInt(version, 10, 64)
	if err != nil {
		return "something else"
	}
	return fmt.Sprintf("another one, version %d", n)
}

// Whole returns an error unless a text is that of the timetable; nil: there is none.
func (t *Times) Whole(text []byte) error {
	is := ""
	if text != nil {
		is = hash(text)
	}
	if is != t.Table {
		return errors.New("its text is not the one that a server has signed")
	}
	return nil
}

// Newest returns an error if the statement was replaced by another one, which came into force at a
// time that somebody remembers.
func (t *Times) Newest(since time.Time) error {
	if t.Since.Before(since) {
		return fmt.Errorf("it is an earlier one, of %s: another one has been in force since %s",
			t.Since.Format(time.RFC3339), since.UTC().Format(time.RFC3339))
	}
	return nil
}

// Fresh returns an error if the last server that said so did that longer ago than most: meanwhile
// another timetable may have come into force.
func (t *Times) Fresh(now time.Time, most time.Duration) error {
	switch age := now.Sub(t.At); {
	case age > most:
		return fmt.Errorf("servers last said %s ago that it is in force, by the clocks of this node and "+
			"of Redis: at most %s; see that a server runs, and that these clocks are right",
			age.Round(time.Second), most)
	case age < -TimesAhead:
		return fmt.Errorf("a server says at %s that it is in force, and the clocks of this node and of "+
			"Redis say %s: set the wrong one right", t.At.Format(time.RFC3339),
			now.UTC().Format(time.RFC3339))
	}
	return nil
}

// After returns the time from which the next timetable is in force: now, but later than the one
// before, whose server may have had another clock.
func (t *Times) After(now time.Time) time.Time {
	now = now.Truncate(time.Microsecond)
	if !t.Since.Before(now) && t.Since.Sub(now) < TimesAhead {
		return t.Since.Add(time.Microsecond)
	}
	return now
}

// ShareOf returns the number of the share that lists a scope. It returns false if there are no
// excerpts.
func (t *Times) ShareOf(scope string) (int, bool) {
	if len(t.Shares) == 0 {
		return 0, false
	}
	return shareOf(scope, len(t.Shares)), true
}

// Share reads a share: the hashes of its excerpts, by scope. It refuses one that no server signed.
func (t *Times) Share(n int, text string) (map[string]string, error) {
	if n < 0 || n >= len(t.Shares) || hash([]byte(text)) != t.Shares[n] {
		return nil, errors.New("the list of its excerpts is not the one that a server has signed")
	}
	out := map[string]string{}
	for line := range strings.Lines(text) {
		sum, scope, _ := strings.Cut(strings.TrimSuffix(line, "\n"), " ")
		out[scope] = sum
	}
	return out, nil
}

// ExcerptHolds returns an error unless an excerpt is that of a scope in its share; nil: the scope
// has none.
func ExcerptHolds(share map[string]string, scope string, text []byte) error {
	is := ""
	if text != nil {
		is = hash(text)
	}
	if is != share[scope] {
		return fmt.Errorf("what it says of %s is not what a server has signed", scope)
	}
	return nil
}
