package lane

import (
	"fmt"
	"slices"
	"strings"

	"muster/jobs"
)

// This file has the mode pipeline. A task of it is checked as soon as it has its place, in the hope
// that those before it succeed, and again whenever one of those has come to its end: behind a
// success on the result of that one, behind a failure without it. It begins when nothing is before
// it, and a check that began behind all of that has succeeded; if that check does not succeed, the
// task is cancelled, and those behind it are checked without it.

// Tried is the last check of a task of mode pipeline.
type Tried struct {
	Check  jobs.TaskID `json:"check,omitempty"`
	Behind string      `json:"behind,omitempty"` // the tasks before it when that began
}

// Piped lists the next actions about tasks of mode pipeline.
type Piped struct {
	Check  []Check       // these need a check
	Drop   []jobs.TaskID // their last check did not succeed: they never begin
	Remove []jobs.TaskID // their rules have stopped them, and the lane goes on without their rest
}

// Check says that a task needs a check.
type Check struct {
	Task   jobs.TaskID
	Behind string      // the tasks before it
	Old    jobs.TaskID // an earlier one, which means nothing any more
	Again  bool        // it has its id, and is to be submitted with that
}

// place is the place of a task: which are before it, and whether something keeps it there.
type place struct {
	ahead []jobs.TaskID
	kept  bool
}

// alive reports whether a task may still do something.
func alive(f Fate) bool { return f == Living || f == Stopped }

// byRule reports whether the rule of a task has stopped it, in the words of rule.lua. A person who
// did may let it go on.
func byRule(t jobs.TaskInfo) bool {
	return t.Rollout != nil && (strings.HasPrefix(t.Rollout.Stopped, "max-failed ") ||
		strings.HasPrefix(t.Rollout.Stopped, "breaker "))
}

// begun returns those of the entries behind a task that have begun and not ended: the task was away
// while they did, and waits for them.
func begun(behind []Entry, fates map[jobs.TaskID]Fate) (list []jobs.TaskID) {
	for _, e := range behind {
		if e.Begun && !e.Failed && alive(fates[e.Task]) {
			list = append(list, e.Task)
		}
	}
	return list
}

// pipe decides what is next for a task that waits. It reports whether those behind it must wait.
func (n *Next) pipe(e Entry, fates map[jobs.TaskID]Fate, at place) (waits bool) {
	names := make([]string, len(at.ahead))
	for i, id := range at.ahead {
		names[i] = string(id)
	}
	behind := strings.Join(names, " ")
	switch fate := fates[e.Check]; {
	case e.Check == "" || e.Behind != behind:
		n.Check = append(n.Check, Check{Task: e.Task, Behind: behind, Old: e.Check})
	case fate == Absent || fate == "":
		n.Check = append(n.Check, Check{Task: e.Task, Behind: behind, Again: true})
	case at.kept || alive(fate):
	case fate == Good:
		n.Begin = append(n.Begin, e.Task)
		return false
	default:
		n.Drop = append(n.Drop, e.Task)
	}
	return true
}

// remove takes the rest of a stopped task out of the way of tasks of mode pipeline.
func (p *Piped) remove(e Entry, fate Fate, behind []Entry, fates map[jobs.TaskID]Fate) {
	if fate == Stopped && slices.ContainsFunc(behind, func(o Entry) bool {
		return o.Mode == Pipeline && o.Put && !o.Begun && fates[o.Task] == Living
	}) {
		p.Remove = append(p.Remove, e.Task)
	}
}

// whyPiped says how far the check of a task is; empty: it needs none.
func whyPiped(e Entry, first bool) string {
	switch {
	case e.Mode != Pipeline:
		return ""
	case !first && e.Check != "":
		return fmt.Sprintf("; its check meanwhile is task %s", e.Check)
	case !first:
		return ""
	case e.Check == "" || e.Behind != "":
		return "its check begins in a moment"
	}
	return fmt.Sprintf("its check is task %s: it begins when that has succeeded, and is cancelled "+
		"when it has not", e.Check)
}
