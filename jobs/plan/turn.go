package plan

import (
	"slices"
	"time"
)

// BehindNever is the reason for jobs of a task whose turn in its lane never comes.
const BehindNever = "a task before it in its lane is never done"

// A Turn is the place of a task that waits in a lane. The zero value is none: the task has begun,
// or begins at once.
type Turn struct {
	Behind []int         // the tasks before it, by their index in the world
	Most   int           // its turn comes when fewer than so many of them are left
	Lag    time.Duration // from then until a server lets it begin
	Never  string        // why its turn never comes; empty: it comes
}

// waits reports whether a task waits for its turn.
func (t Turn) waits() bool { return len(t.Behind) > 0 || t.Never != "" }

// turn returns when the turn of a task comes, if that is known. None overtakes a task that waits.
func (p *progress) turn(t Turn, out []Forecast) (at time.Time, ok bool) {
	if t.Never != "" {
		return at, false
	}
	at = p.Now
	var ends []time.Time
	for _, task := range t.Behind {
		if p.opened[task] == 0 {
			return at, false
		}
		at = later(at, p.begun[task])
		if p.opened[task] >= p.Tasks[task].waves() && !out[task].stuck() {
			ends = append(ends, out[task].Done)
		}
	}
	must := len(t.Behind) - max(t.Most, 1) + 1 // so many of them must have ended
	if must > len(ends) {
		return at, false
	}
	if must > 0 {
		slices.SortFunc(ends, time.Time.Compare)
		at = later(at, ends[must-1])
	}
	return at.Add(t.Lag), true
}
