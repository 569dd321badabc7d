package jobs

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"muster/internal/wording"
)

// Use is one of the things on which a job spends its time, from when it was first due on. Each is
// counted separately, so that one can tell work from waiting.
type Use string

// The uses of time.
const (
	Queueing   Use = "queued"     // due, and kept only by the queue, a lock, a limit or a pause
	InWindow   Use = "window"     // deferred to a window, or beyond a freeze
	AtGate     Use = "gate"       // waiting for a person at a gate
	Pausing    Use = "waiting"    // a wait of its runbook, or the pause before a retry
	Connecting Use = "connecting" // from the first TCP packet until the session was ready
	Acting     Use = "running"    // its commands ran
	Verifying  Use = "verifying"  // probes of the host, and the time between them
)

// uses lists all uses with their letters in a ledger, in the order in which they are shown.
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

// Times holds how long a job spent on each use, in seconds; a use that is not there took no time.
type Times map[Use]float64

// Of returns how long a job spent on some uses together.
func (t Times) Of(some ...Use) time.Duration {
	sum := 0.0
	for _, u := range some {
		sum += t[u]
	}
	return time.Duration(sum * float64(time.Second)).Round(time.Microsecond)
}

// Ledger records the time of a job while it lasts.
type Ledger struct {
	Spent map[Use]time.Duration
	Until Micros // the time up to here is counted; 0: none is yet
	For   Use    // the use of the time from there until the job is due again
}

// Add adds d to the time of u.
func (l *Ledger) Add(u Use, d time.Duration) {
	if d <= 0 {
		return
	}
	if l.Spent == nil {
		l.Spent = map[Use]time.Duration{}
	}
	l.Spent[u] += d
}

// Waited counts the time of a job that waited until an instant: up to the time at which it was due
// for the use that it waited for, and from then on for a worker.
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

// Times returns the sums.
func (l *Ledger) Times() Times {
	out := Times{}
	for u, d := range l.Spent {
		if u != "" {
			out[u] = d.Round(time.Microsecond).Seconds()
		}
	}
	return out
}

// String returns the stored form: a letter and µs for each use, then @ with the time up to which
// all is counted and the letter of the next use. It is empty if nothing was counted.
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

// ParseLedger reads the stored form.
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
