package jobs

import (
	"errors"
	"hash/fnv"
	"strconv"
	"time"

	"muster/windows"
)

// Schedule is a recurring task as it is kept.
type Schedule struct {
	windows.Entry
	Version int    `json:"version"` // grows with each change of the entry
	By      string `json:"by"`      // who made it so; its tasks are theirs
	Proven  bool   `json:"proven"`  // a token or the kernel says so
	At      Time   `json:"at"`      // when
	Since   Time   `json:"since"`   // ticks count that are later than this
	Paused  string `json:"paused,omitempty"`
}

// AskOf is how the tasks of a schedule are to go out; nil: all at once.
func AskOf(r *windows.RolloutRequest) *RolloutAsk {
	if r == nil {
		return nil
	}
	return &RolloutAsk{MaxFailed: r.MaxFailed, UnreachableOK: r.UnreachableOK, Breaker: r.Breaker,
		Stages: Stages{Canary: r.Canary, Waves: r.Waves, Soak: r.Soak, Gate: r.Gate, Health: r.Health,
			HealthArgs: r.HealthArgs}}
}

// CheckRollout names what is wrong with the rollout of a schedule, by field, before there
// is a tick.
func CheckRollout(r windows.RolloutRequest) map[string]error {
	wrong := map[string]error{}
	for _, m := range AskOf(&r).Check() {
		wrong[m.Field] = errors.Join(wrong[m.Field], m.Err)
	}
	return wrong
}

// Ticking is how far a schedule has come.
type Ticking struct {
	Last    Time   `json:"last"`    // ticks up to this one were decided upon
	Next    Time   `json:"next"`    // the first that was not
	Pending []Time `json:"pending"` // decided to be fired, and not known to be tasks yet
	Term    int64  `json:"term"`    // of the leader who wrote this
	Fired
}

// Fired is what became of the latest tick.
type Fired struct {
	Tick    Time   `json:"tick"`
	Task    TaskID `json:"task,omitempty"`   // the last one that was submitted
	Result  string `json:"result,omitempty"` // submitted, or why not
	Refused bool   `json:"refused"`          // the tick has no task
	Skipped int    `json:"skipped"`          // ticks before it that nobody made up for
}

// Fires tells whether a schedule has ticks at the moment.
func (s Schedule) Fires() bool { return s.Enabled && s.Paused == "" }

// Advance decides which ticks are to be fired at now, and says whether that changes
// anything. It is a function of its arguments: two leaders decide alike.
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
		// All that was missed is past: the last of it is found by the next one ahead.
		next.Last = Time{Time: now}
	}
	changed := len(f.Ticks) > 0 || f.Skipped > 0 || !next.Last.Equal(t.Last.Time) ||
		!next.Next.Equal(t.Next.Time)
	return next, changed
}

// Done is t after its first pending tick was dealt with.
func (t Ticking) Done(f Fired) Ticking {
	f.Skipped = t.Skipped
	t.Fired, t.Pending = f, t.Pending[1:]
	return t
}

// TickTries is how many ids a tick can have: another task may have the first ones.
const TickTries = 64

// TickID is the id of the task of a tick, the same for whoever makes it. salt counts
// up from 0 while the id is another task's.
func TickID(schedule string, tick time.Time, salt int) TaskID {
	h := fnv.New32a()
	h.Write([]byte(schedule + "\x00" + tick.UTC().Format(time.RFC3339) + "\x00" + strconv.Itoa(salt)))
	sum := h.Sum32()
	return NewTaskID(tick, uint16(sum^sum>>16))
}
