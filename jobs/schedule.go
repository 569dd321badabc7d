package jobs

import (
	"errors"
	"hash/fnv"
	"strconv"
	"time"

	"muster/windows"
)

// Schedule is a recurring task as Redis keeps it.
type Schedule struct {
	windows.Entry
	Version int    `json:"version"` // grows with each change of the entry
	By      string `json:"by"`      // who wrote this version; its tasks belong to this person
	Proven  bool   `json:"proven"`  // a token or the kernel has proved that
	At      Time   `json:"at"`      // when it was written
	Since   Time   `json:"since"`   // only later ticks count
	Paused  string `json:"paused,omitempty"`
}

// AskOf returns the rollout of a schedule's tasks; nil: all hosts at once.
func AskOf(r *windows.RolloutRequest) *RolloutAsk {
	if r == nil {
		return nil
	}
	return &RolloutAsk{MaxFailed: r.MaxFailed, UnreachableOK: r.UnreachableOK, Breaker: r.Breaker,
		Stages: Stages{Canary: r.Canary, Waves: r.Waves, Soak: r.Soak, Gate: r.Gate, Health: r.Health,
			HealthArgs: r.HealthArgs}}
}

// CheckRollout reports the mistakes in the rollout of a schedule, by field, before any tick.
func CheckRollout(r windows.RolloutRequest) map[string]error {
	wrong := map[string]error{}
	for _, m := range AskOf(&r).Check() {
		wrong[m.Field] = errors.Join(wrong[m.Field], m.Err)
	}
	return wrong
}

// Ticking is the progress of a schedule.
type Ticking struct {
	Last    Time   `json:"last"`    // ticks up to this one were decided
	Next    Time   `json:"next"`    // the first tick that was not
	Pending []Time `json:"pending"` // ticks to be fired whose tasks are not known to exist yet
	Term    int64  `json:"term"`    // term of the leader who wrote this
	Fired
}

// Fired is the result of the latest tick.
type Fired struct {
	Tick    Time   `json:"tick"`
	Task    TaskID `json:"task,omitempty"`   // the last task that was submitted
	Result  string `json:"result,omitempty"` // submitted, or why not
	Refused bool   `json:"refused"`          // the tick has no task
	Skipped int    `json:"skipped"`          // earlier ticks that were missed and not fired
}

// Fires reports whether a schedule has ticks at the moment.
func (s Schedule) Fires() bool { return s.Enabled && s.Paused == "" }

// Advance decides which ticks are fired at now, and reports whether that changes the Ticking. It
// depends only on its arguments, so two leaders decide alike.
func (t Ticking) Advance(s Schedule, times windows.Schedule, now time.Time) (Ticking, bool) {
	if !s.Fires() {
		changed := len(t.Pending) > 0 || !t.Next.IsZero()
		if len(t.Pending) > 0 {
			t.Fired = Fired{Tick: t.Pending[len(t.Pending)-1], Task: t.Task, Refused: true,
				Result: "the schedule is paused, or not enabled", Skipped: len(t.Pending) - 1}
		}
		t.Pending, t.Next = nil, Time{}
		return t, changed
	}
	last := t.Last.Time
	if s.Since.After(last) {
		last = s.Since.Time
	}
	if len(t.Pending) > 0 || t.Next.After(now) && t.Last.Time.Equal(last) {
		return t, false
	}
	f := times.Fire(last, now)
	next := t
	next.Last, next.Next = Time{Time: last}, Time{Time: f.Next}
	for _, at := range f.Ticks {
		next.Pending = append(next.Pending, Time{Time: at})
	}
	if n := len(f.Ticks); n > 0 {
		next.Last = next.Pending[n-1]
	}
	if next.Skipped = f.Skipped; f.Skipped > 0 && len(f.Ticks) == 0 {
		// All missed ticks are past, and the next future tick shows which was the last of them.
		next.Last = Time{Time: now}
	}
	changed := len(f.Ticks) > 0 || f.Skipped > 0 || !next.Last.Equal(t.Last.Time) ||
		!next.Next.Equal(t.Next.Time)
	return next, changed
}

// Done returns t after its first pending tick was handled.
func (t Ticking) Done(f Fired) Ticking {
	f.Skipped = t.Skipped
	t.Fired, t.Pending = f, t.Pending[1:]
	return t
}

// TickTries bounds the ids of a tick: other tasks may already have the first ones.
const TickTries = 64

// TickID returns the id of the task of a tick, the same on each server. salt counts up from 0
// while another task has the id.
func TickID(schedule string, tick time.Time, salt int) TaskID {
	h := fnv.New32a()
	h.Write([]byte(schedule + "\x00" + tick.UTC().Format(time.RFC3339) + "\x00" + strconv.Itoa(salt)))
	sum := h.Sum32()
	return NewTaskID(tick, uint16(sum^sum>>16))
}
