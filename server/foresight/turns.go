package foresight

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"muster/internal/wording"
	"muster/jobs"
	"muster/jobs/lane"
	forecast "muster/jobs/plan"
	"muster/server/draft"
)

// turnLag is the mean time in which a server notices that the turn of a task has come: it looks
// once a second.
const turnLag = time.Second / 2

// The reasons for tasks whose turn in their lane never comes in a plan.
const (
	behindFailed = "a task before it in its lane failed, and a person decides: see `muster lanes`"
	behindHalted = "a task before it in its lane is paused, stopped or away, and is taken to stay so"
)

// Lanes reads which tasks are in which lane, in their order.
type Lanes interface {
	LaneKeys(ctx context.Context) ([]string, error)
	Lane(ctx context.Context, key string) ([]lane.Entry, error)
}

// lineups are the lanes with the tasks that a plan takes to run, in their order. A task that is
// replaced by a newer one, or is not put whole yet, is in none.
type lineups struct {
	lanes    [][]lane.Entry
	replaced []jobs.TaskID        // by newer tasks of mode latest
	halted   map[jobs.TaskID]bool // a person has paused or stopped them, or they cannot be read
	failed   map[jobs.TaskID]bool // they have ended, and not all of their hosts succeeded
}

// newID stands for the task that is asked for, which has no id yet.
const newID jobs.TaskID = ""

// lineUp reads the lanes. The task that is asked for is the last of its lane.
func (f *Forecaster) lineUp(ctx context.Context, asked draft.Lane) (*lineups, error) {
	l := &lineups{halted: map[jobs.TaskID]bool{}, failed: map[jobs.TaskID]bool{}}
	keys, err := f.Lanes.LaneKeys(ctx)
	if err != nil {
		return nil, err
	}
	own := lane.Of(asked.Customer, asked.Key)
	if asked.Key != "" && !slices.Contains(keys, own) {
		keys = append(keys, own)
	}
	for _, key := range keys {
		list, err := f.Lanes.Lane(ctx, key)
		if err != nil {
			return nil, err
		}
		if asked.Key != "" && key == own {
			mode, most, err := lane.ParseMode(asked.Mode)
			if err != nil {
				return nil, err // the draft was checked
			}
			list = append(list, lane.Entry{Task: newID, Mode: mode, Most: most, Put: true})
		}
		l.add(list)
	}
	return l, nil
}

// add adds the tasks of a lane.
func (l *lineups) add(list []lane.Entry) {
	newest := -1
	for i, e := range list {
		if e.Mode == lane.Latest && e.Put && !e.Begun && !e.Over {
			newest = i
		}
	}
	var kept []lane.Entry
	for i, e := range list {
		switch {
		case e.Begun:
			kept = append(kept, e)
		case e.Over, e.Mode == lane.Latest && i < newest:
			l.replaced = append(l.replaced, e.Task)
		case e.Put:
			kept = append(kept, e)
		}
	}
	l.lanes = append(l.lanes, kept)
}

// has reports whether a task is in a lane: it waits for its turn, or has just begun.
func (l *lineups) has(id jobs.TaskID) bool {
	return slices.ContainsFunc(l.lanes, func(list []lane.Entry) bool {
		return slices.ContainsFunc(list, func(e lane.Entry) bool { return e.Task == id })
	})
}

// turns gives the tasks of a forecast their places in their lanes.
func (l *lineups) turns(tasks []forecast.Task) {
	at := map[jobs.TaskID]int{}
	for i, t := range tasks {
		at[t.ID] = i
	}
	for _, list := range l.lanes {
		var ahead line
		for i, e := range list {
			k, known := at[e.Task]
			if known && !e.Begun {
				// Those that began from behind it came back late, and it waits for them, too.
				tasks[k].Turn = l.with(ahead, list[i+1:], at).turn(e)
			}
			ahead = l.plus(ahead, e, at)
		}
	}
}

// A line is what is before a task in its lane.
type line struct {
	tasks  []int // of the forecast
	halted int   // tasks that a person has paused or stopped
	failed bool  // a task that a person has to let pass
	never  string
}

// plus returns a line with one more task at its end.
func (l *lineups) plus(ahead line, e lane.Entry, at map[jobs.TaskID]int) line {
	if e.Mode == lane.Gate && !e.Begun && ahead.failed {
		ahead.never = behindFailed
	}
	k, known := at[e.Task]
	switch {
	case e.Failed, l.failed[e.Task]:
		ahead.failed = true
	case l.halted[e.Task]:
		ahead.halted++
	case known:
		ahead.tasks = append(slices.Clone(ahead.tasks), k)
	}
	return ahead
}

// with returns a line with those of some more tasks that have begun.
func (l *lineups) with(ahead line, list []lane.Entry, at map[jobs.TaskID]int) line {
	for _, e := range list {
		if e.Begun && !e.Failed {
			ahead = l.plus(ahead, e, at)
		}
	}
	return ahead
}

// turn returns the place of a task behind the line.
func (l line) turn(e lane.Entry) forecast.Turn {
	t := forecast.Turn{Behind: l.tasks, Most: e.Most - l.halted, Lag: turnLag, Never: l.never}
	switch {
	case t.Never != "":
	case e.Mode == lane.Gate && l.failed:
		t.Never = behindFailed
	case t.Most < 1:
		t.Never = behindHalted
	}
	return t
}

// words says what a plan takes for granted about lanes, as far as the caller sees their tasks.
func (l *lineups) words(seen map[jobs.TaskID]bool) (notes []string) {
	var replaced, checked []string
	for _, id := range l.replaced {
		if seen[id] {
			replaced = append(replaced, string(id))
		}
	}
	for _, list := range l.lanes {
		for _, e := range list {
			if e.Mode == lane.Pipeline && !e.Begun && (e.Task == newID || seen[e.Task]) {
				checked = append(checked, string(e.Task))
			}
		}
	}
	if len(replaced) > 0 {
		notes = append(notes, fmt.Sprintf("a newer task of mode latest replaces tasks in its lane: %s",
			wording.ClipList(strings.Join(replaced, ", "))))
	}
	if len(checked) > 0 {
		notes = append(notes, "checks of tasks of mode pipeline are taken to succeed, and to need no "+
			"time")
	}
	return notes
}
