// Package lane decides which task of a lane begins next. A lane is a key that tasks share whose
// work must be in order, such as changes of one policy. Tasks of other lanes are not concerned.
//
// Floor 2: may import jobs and what is below.
package lane

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"muster/jobs"
)

// Mode says how a task waits for the tasks before it in its lane.
type Mode string

// The modes of a task.
const (
	Serial   Mode = "serial"   // until all before it have ended
	Latest   Mode = "latest"   // likewise; and it ends those that wait before it, superseded
	Parallel Mode = "parallel" // until fewer than so many of those before it are left
	Gate     Mode = "gate"     // until all before it have succeeded; else a person decides
	Pipeline Mode = "pipeline" // until all before it have ended, and then its check has succeeded
)

// Modes lists all modes as people write them, for help and errors.
const Modes = "serial, latest, gate, pipeline or parallel=N"

// MostMax bounds the tasks of a lane that run at a time.
const MostMax = 100

// ParseMode reads serial, latest, gate, pipeline or parallel=N. An empty text means serial.
func ParseMode(text string) (m Mode, most int, err error) {
	name, number, numbered := strings.Cut(text, "=")
	switch m = Mode(name); {
	case text == "":
		return Serial, 1, nil
	case !numbered && (m == Serial || m == Latest || m == Gate || m == Pipeline):
		return m, 1, nil
	case m != Parallel || !numbered:
		return "", 0, fmt.Errorf("%q is no mode of a lane: want %s", text, Modes)
	}
	most, err = strconv.Atoi(number)
	if err != nil || most < 1 || most > MostMax {
		return "", 0, fmt.Errorf("%q: want parallel=N, with N from 1 to %d", text, MostMax)
	}
	return m, most, nil
}

// Of returns the stored key of a lane: each customer has its own lanes. Names have no colon.
func Of(customer, key string) string { return customer + ":" + key }

// Plain returns the key of a stored one as people write it.
func Plain(stored string) string {
	_, key, _ := strings.Cut(stored, ":")
	return key
}

// Customer returns the customer of a stored key; empty: the lane is the house's.
func Customer(stored string) string {
	customer, _, _ := strings.Cut(stored, ":")
	return customer
}

// An Entry is a task in its lane, as Redis keeps it.
type Entry struct {
	Task    jobs.TaskID `json:"task"`
	Mode    Mode        `json:"mode"`
	Most    int         `json:"most"`             // tasks at a time, for mode parallel; else 1
	Since   jobs.Micros `json:"since"`            // its place: when it entered
	Put     bool        `json:"put,omitempty"`    // all its jobs are in the queue, and wait
	Begun   bool        `json:"begun,omitempty"`  // a server has let it begin
	Failed  bool        `json:"failed,omitempty"` // it has ended, and not all its hosts succeeded
	Over    bool        `json:"over,omitempty"`   // a newer one takes its place: it never begins
	Runbook string      `json:"runbook"`
	By      string      `json:"by"` // the operator
	Tried
}

// Words returns the mode as people write it.
func (e Entry) Words() string {
	if e.Mode == Parallel {
		return fmt.Sprintf("%s=%d", Parallel, e.Most)
	}
	return string(e.Mode)
}

// Sort puts entries in their order: by their time, and by their id if that is the same.
func Sort(list []Entry) {
	slices.SortFunc(list, func(a, b Entry) int {
		return cmp.Or(cmp.Compare(a.Since, b.Since), cmp.Compare(a.Task, b.Task))
	})
}

// Fate says how a task of a lane ended, or that it has not.
type Fate string

// The fates of a task.
const (
	Living Fate = "living" // it waits or runs, or is being submitted
	// Stopped: its rule has stopped it, none of its jobs runs or is between two attempts, and a
	// person could let it go on.
	Stopped Fate = "stopped"
	Good    Fate = "good"   // it has ended, and all its hosts succeeded
	Bad     Fate = "bad"    // it has ended otherwise after it began
	Absent  Fate = "absent" // it never began and never will: cancelled, expired, unknown
)

// FateOf returns the fate of a task by what the queue says of it.
func FateOf(e Entry, t jobs.TaskInfo) Fate {
	switch {
	case t.State == jobs.TaskAway:
		return Living // nobody knows more at the moment
	case t.CancelledInSubmit, t.State != jobs.TaskEnded && t.Total == 0 && e.Put:
		return Absent
	case e.Begun && t.State == jobs.TaskStopped && t.Running == 0 && byRule(t) &&
		t.Rollout.Begun == 0:
		return Stopped
	case t.State != jobs.TaskEnded:
		return Living
	case t.Total == 0 && e.Begun:
		return Bad // nobody knows what became of it
	case t.Total == 0:
		return Absent
	case t.Outcomes[jobs.Succeeded] == t.Total:
		return Good
	case !e.Begun:
		return Absent
	}
	return Bad
}

// PutWithin is the time in which a submit puts all its jobs. Afterwards nobody waits for it; its
// place stays until its parts expire.
const PutWithin = 5 * time.Minute

// kept is the time for which a place of a task stays that was never put.
const kept = 25 * time.Hour

// Next lists the next actions of a server in a lane.
type Next struct {
	Begin     []jobs.TaskID // these may begin
	Supersede []jobs.TaskID // newer tasks of mode latest take their place
	Newest    jobs.TaskID   // the task that takes it
	Forget    []jobs.TaskID // the lane has no more to do with these
	Failed    []jobs.TaskID // these failed, and tasks of mode gate wait behind them
	Piped
}

// Decide decides what is next in a lane. list is sorted; fates has those of its tasks, and a task
// without one is absent. It depends only on its arguments, so that two servers decide alike.
func Decide(list []Entry, fates map[jobs.TaskID]Fate, now time.Time) Next {
	var n Next
	n.Newest = newest(list, fates)
	behind := 0 // that run: those in front of them came back late
	for _, e := range list {
		if e.Begun && !e.Failed && alive(fates[e.Task]) {
			behind++
		}
	}
	left, failed, waits := 0, 0, false // of those before; none overtakes one that waits
	var ahead []jobs.TaskID
	for i, e := range list {
		age := now.Sub(e.Since.Time())
		switch fate := fates[e.Task]; {
		case e.Failed || fate == Bad:
			if gated(list[i+1:], fates) {
				n.Failed = append(n.Failed, e.Task)
				failed++
			} else {
				n.Forget = append(n.Forget, e.Task)
			}
			continue
		case !e.Put && age < PutWithin && fate != Good:
			waits = true // it is being submitted
		case !e.Put && age < kept && fate != Good && !e.Begun:
			continue // its submit may still be repeated: it keeps its place, and nobody waits
		case !alive(fate):
			n.Forget = append(n.Forget, e.Task)
			continue
		case e.Begun:
			behind--
			n.remove(e, fate, list[i+1:], fates)
		case e.Over, e.Mode == Latest && e.Task != n.Newest:
			n.Supersede = append(n.Supersede, e.Task)
			continue
		case e.Mode == Pipeline:
			waits = n.pipe(e, fates, place{slices.Concat(ahead, begun(list[i+1:], fates)),
				waits || left+behind > 0}) || waits
		case !waits && left+behind < e.Most && (e.Mode != Gate || failed == 0):
			n.Begin = append(n.Begin, e.Task)
		default:
			waits = true
		}
		left++
		ahead = append(ahead, e.Task)
	}
	return n
}

// newest returns the newest task of mode latest that waits; empty: none waits.
func newest(list []Entry, fates map[jobs.TaskID]Fate) jobs.TaskID {
	for _, e := range slices.Backward(list) {
		if e.Mode == Latest && e.Put && !e.Begun && !e.Over && fates[e.Task] == Living {
			return e.Task
		}
	}
	return ""
}

// gated reports whether a task of mode gate waits among entries.
func gated(list []Entry, fates map[jobs.TaskID]Fate) bool {
	return slices.ContainsFunc(list, func(e Entry) bool {
		return e.Mode == Gate && !e.Begun && (!e.Put || fates[e.Task] == Living)
	})
}

// Why says why a task of a lane has not begun, and who can do something; empty: it has begun, or
// is not in the list. It names only tasks that the reader sees.
func Why(list []Entry, next Next, id jobs.TaskID, seen func(jobs.TaskID) bool) string {
	at := slices.IndexFunc(list, func(e Entry) bool { return e.Task == id })
	if at < 0 || list[at].Begun {
		return ""
	}
	if list[at].Mode == Gate && len(next.Failed) > 0 {
		if failed := next.Failed[0]; seen(failed) {
			return fmt.Sprintf("task %s failed before it, so a person decides: `muster lanes continue %s` "+
				"lets it begin without that one, `muster cancel %s` ends it", failed, failed, id)
		}
		return "a task before it failed, and a person who sees that one must let the lane continue"
	}
	ahead := slices.DeleteFunc(slices.Clone(list[:at]), func(e Entry) bool {
		return e.Failed || slices.Contains(next.Forget, e.Task)
	})
	check := whyPiped(list[at], len(ahead) == 0)
	if len(ahead) == 0 {
		return cmp.Or(check, "it begins in a moment")
	}
	more := ""
	if len(ahead) > 1 {
		more = fmt.Sprintf(" and %d more", len(ahead)-1)
	}
	if !seen(ahead[0].Task) {
		return "it waits for a task before it" + check
	}
	return fmt.Sprintf("it waits for task %s of %s%s%s", ahead[0].Task, ahead[0].By, more, check)
}
