package sim

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"muster/jobs"
)

// This file names what must happen in a run of many seeds: what never does is not tried.

// seldom and often are the calls that are made least and most.
var seldom = []string{"back", "clear", "pause", "resume", "halt", "lift", "cancel", "roll go", "wait"}

var often = []string{"heard", "stops", "take", "sweep", "hello", "roll look", "roll open", "release"}

// reading are the calls that change nothing.
var reading = []string{"heard", "stops", "gate", "time", "timetable", "excerpts", "hold"}

// kindOf returns the purpose of a step: its first result, or to take.
func kindOf(a jobs.Step) string {
	switch {
	case len(a.Results) > 0:
		return string(a.Results[0].Kind)
	case a.Slot == "":
		return "sweep"
	}
	return "take"
}

// polling are those that mostly change nothing. Then nobody looks for mistakes behind them.
var polling = []string{"take", "sweep", "roll look", "roll open", "release"}

// wanted lists the events that must have occurred.
func wanted() (list []string) {
	calls := map[fault][]string{}
	for _, kind := range []fault{requestLost, replyLost, duplicated} {
		calls[kind] = []string{"hello", "heard", "take", "sweep", "end", "retry", "wait", "verify", "defer",
			"back", "checkpoint", "lose", "hold", "timetable", "put", "commit", "pause", "resume", "release",
			"cancel", "halt", "lift", "limit", "clear", "agree", "roll look", "roll open", "roll go"}
	}
	calls[killBehindCall] = []string{"hello", "heard", "take", "end", "retry", "wait", "verify", "defer",
		"back", "checkpoint", "timetable"}
	calls[masterBehindCall] = []string{"hello", "take", "back", "lose", "hold"}
	list = []string{"a master is back at once", "a master is back late",
		"a child goes on behind its lock", "a step runs beyond the end of its window",
		"a step is tried again", "a lost job looks again", "a host is away behind its reboot",
		"a host does not come back", "a cancelled step goes on", "a cancelled step is stopped",
		"a gate is opened", "a gate is refused", "nobody answers at a gate",
		"a go is lost, and the zone halted", "a freeze is lifted while another one stands",
		"an idle child is woken", "an idle child is gone when it is woken"}
	for _, kind := range sorted(calls) {
		for _, call := range calls[kind] {
			list = append(list, string(kind)+": "+call)
		}
	}
	return list
}

// lives are the states in which jobs must be met by orders, and how jobs must end.
func lives() (list []string) {
	states := []jobs.State{jobs.Queued, jobs.Blocked, jobs.Running, jobs.Retry, jobs.Waiting, jobs.Verify,
		jobs.Deferred, jobs.Lost}
	for _, state := range states {
		for _, order := range []string{"paused", "halted", "cancelled", "superseded"} {
			list = append(list, fmt.Sprint(order, " when ", state))
		}
	}
	for _, state := range []jobs.State{jobs.Queued, jobs.Blocked, jobs.Running, jobs.Deferred} {
		for _, order := range []string{"limit raised", "limit lowered", "cleared"} {
			list = append(list, fmt.Sprint(order, " when ", state))
		}
	}
	for _, o := range []jobs.Outcome{jobs.Succeeded, jobs.Failed, jobs.Unreachable, jobs.Timeout,
		jobs.Unknown, jobs.Cancelled, jobs.Expired, jobs.Superseded} {
		list = append(list, "ended "+string(o))
	}
	return append(list, "cancelled when paused", "superseded when paused")
}

// rare lists events that few seeds have. Only a run of many must have them all.
var rare = []string{"call delayed and doubled: back",
	"child killed behind a call: back", "reply lost after execution: back",
	"reply lost after execution: retry", "call delayed and doubled: roll go", "paused when lost",
	"cancelled when lost", "a go is lost, and the zone halted", "an idle child is gone when it is woken"}

const many = 400 // seeds

// covered fails if something never happened, and returns how often all else did.
func covered(t *testing.T, seen map[string]int) string {
	var b strings.Builder
	for _, what := range append(wanted(), lives()...) {
		if seen[what] == 0 && (*seeds >= many || !slices.Contains(rare, what)) {
			t.Errorf("%q never happened", what)
		}
	}
	for _, what := range sorted(seen) {
		fmt.Fprintf(&b, "\n%8d %s", seen[what], what)
	}
	return b.String()
}
