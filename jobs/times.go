package jobs

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"muster/internal/wording"
)

// Use is what the time of a job went to, from when it was first due on. Each is counted
// for itself, so that what a job did can be told from what it waited for.
type Use string

// The uses of time.
const (
	Queueing   Use = "queued"     // due, and kept by the queue, a lock, a limit or a pause only
	InWindow   Use = "window"     // deferred to a window, or beyond a freeze
	AtGate     Use = "gate"       // a person was asked to let it go on
	Pausing    Use = "waiting"    // a wait of its runbook, or the pause before another try
	Connecting Use = "connecting" // from the first TCP packet until the session was ready
	Acting     Use = "running"    // its commands ran
	Verifying  Use = "verifying"  // looks whether the host is well, and the time between them
)

// uses are all of them with their letters in a ledger, in the order in which they are shown.
var uses = []struct {
	use    Use
	letter byte
}{{Queueing, 'q'}, {InWindow, 'w'}, {AtGate, 'g'}, {Pausing, 'p'}, {Connecting, 'c'}, {Acting, 'r'},
	{Verifying, 'v'}}

// Uses lists all uses of time, in the order in which they are shown.
func Uses() []Use {
	out := make([]Use, len(uses))
	for i, u := range uses {
		out[i] = u.use
	}
	return out
}

// Times is how long a job spent on what, in seconds; what is not there took no time.
type Times map[Use]float64

// Of is how long a job spent on all of some uses.
func (t Times) Of(some ...Use) time.Duration {
	sum := 0.0
	for _, u := range some {
		sum += t[u]
	}
	return time.Duration(sum * float64(time.Second)).Round(time.Microsecond)
}

// Ledger is what is kept of a job's time while it lasts.
type Ledger struct {
	Spent map[Use]time.Duration
	Until Micros // the time up to here is counted; 0: none is yet
	For   Use    // what the time goes to from there to when the job is due again
}

// Add counts some time.
func (l *Ledger) Add(u Use, d time.Duration) {
	if d <= 0 {
		return
	}
	if l.Spent == nil {
		l.Spent = map[Use]time.Duration{}
	}
	l.Spent[u] += d
}

// Waited counts the time of a job that waited until an instant: up to when it was due for
// what it was to wait for, and from there on for a worker.
func (l *Ledger) Waited(due, until Micros) {
	from := l.Until
	if from == 0 {
		from = due
	}
	end := min(max(due, from), until)
	l.Add(l.For, end.Sub(from))
	l.Add(Queueing, until.Sub(max(end, from)))
	l.Until, l.For = max(from, until), ""
}

// Times are the sums.
func (l *Ledger) Times() Times {
	out := Times{}
	for u, d := range l.Spent {
		if u != "" {
			out[u] = d.Round(time.Microsecond).Seconds()
		}
	}
	return out
}

// String is the form that is kept: a letter and µs for each use, and behind @ up to when
// all is counted, and what follows goes to. Empty if nothing was counted.
func (l *Ledger) String() string {
	var b strings.Builder
	for _, u := range uses {
		if us := l.Spent[u.use].Microseconds(); us > 0 {
			fmt.Fprintf(&b, "%c%d", u.letter, us)
		}
	}
	if l.Until != 0 {
		b.WriteString("@" + l.Until.String())
		for _, u := range uses {
			if u.use == l.For {
				b.WriteByte(u.letter)
			}
		}
	}
	return b.String()
}

// ParseLedger reads the form that is kept.
func ParseLedger(text string) (Ledger, error) {
	var l Ledger
	wrong := fmt.Errorf("times %q: want letters, each with microseconds", wording.Clip(text))
	sums, rest, marked := strings.Cut(text, "@")
	for sums != "" {
		u, ok := useOf(sums[0])
		digits := len(sums[1:]) - len(strings.TrimLeft(sums[1:], "0123456789"))
		us, err := strconv.ParseInt(sums[1:1+digits], 10, 64)
		if !ok || err != nil {
			return Ledger{}, wrong
		}
		l.Add(u, time.Duration(us)*time.Microsecond)
		sums = sums[1+digits:]
	}
	if !marked {
		return l, nil
	}
	if n := len(rest) - 1; n > 0 {
		if u, ok := useOf(rest[n]); ok {
			l.For, rest = u, rest[:n]
		}
	}
	us, err := strconv.ParseInt(rest, 10, 64)
	if err != nil || us <= 0 {
		return Ledger{}, wrong
	}
	l.Until = Micros(us)
	return l, nil
}

func useOf(letter byte) (Use, bool) {
	for _, u := range uses {
		if u.letter == letter {
			return u.use, true
		}
	}
	return "", false
}
