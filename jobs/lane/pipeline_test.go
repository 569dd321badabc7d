package lane

import (
	"fmt"
	"strings"
	"testing"

	"muster/jobs"
)

func TestWhatIsNextInAPipeline(t *testing.T) {
	t.Parallel()
	const a, c = "a serial begun ", ", b pipeline living"
	for _, one := range []struct {
		lane   string
		tried  Tried // of b
		fate   Fate  // of its check
		want   string
		reason string
	}{
		{a + "living" + c, Tried{}, Absent, "check b behind a", "it waits for task a"},
		{a + "living" + c, Tried{"x", "a"}, Living, "", "its check meanwhile is task x"},
		{a + "living" + c, Tried{"x", "a"}, Good, "", "it waits for task a"},
		{a + "living" + c, Tried{"x", "a"}, Bad, "", "it waits for task a"},
		{a + "good" + c, Tried{"x", "a"}, Good, "forget a, check b behind  instead of x", "begins in a moment"},
		{a + "bad" + c, Tried{"x", "a"}, Living, "forget a, check b behind  instead of x", "begins in a moment"},
		{"b pipeline living", Tried{"y", ""}, Living, "", "its check is task y"},
		{"b pipeline living", Tried{"y", ""}, Absent, "check b again behind ", "its check is task y"},
		{"b pipeline living", Tried{"y", ""}, Good, "begin b", "its check is task y"},
		{"b pipeline living", Tried{"y", ""}, Bad, "drop b", "its check is task y"},
		{a + "stopped" + c, Tried{"x", "a"}, Living, "remove a", "it waits for task a"},
		{a + "stopped, b serial living", Tried{}, Absent, "", "it waits for task a"},
		{"b pipeline living, d serial begun living", Tried{"y", ""}, Good, "check b behind d instead of y",
			"its check is task y"},
		{"b pipeline living, d serial begun living", Tried{"y", "d"}, Good, "", "its check begins in a moment"},
		{"a serial coming absent" + c, Tried{"x", "a"}, Good, "", "it waits for task a"},
	} {
		list, fates := of(t, one.lane)
		for i := range list {
			if list[i].Task == "b" {
				list[i].Tried = one.tried
			}
		}
		fates[one.tried.Check] = one.fate
		n := Decide(list, fates, noon)
		var said []string
		add := func(word string, ids []jobs.TaskID) {
			if len(ids) > 0 {
				said = append(said, word+" "+strings.Trim(fmt.Sprint(ids), "[]"))
			}
		}
		add("begin", n.Begin)
		add("forget", n.Forget)
		for _, c := range n.Check {
			text := "check " + string(c.Task)
			if c.Again {
				text += " again"
			}
			if text += " behind " + c.Behind; c.Old != "" {
				text += " instead of " + string(c.Old)
			}
			said = append(said, text)
		}
		add("drop", n.Drop)
		add("remove", n.Remove)
		if got := strings.Join(said, ", "); got != one.want {
			t.Errorf("%s %v %s:\ngot  %s\nwant %s", one.lane, one.tried, one.fate, got, one.want)
		}
		why := Why(list, n, "b", func(jobs.TaskID) bool { return true })
		if !strings.Contains(why, one.reason) {
			t.Errorf("%s %v: it waits because %q, want %q", one.lane, one.tried, why, one.reason)
		}
	}
}

// Only the rule of a task counts as a failure: a person who stopped it may let it go on.
func TestARuleStopsAPersonPauses(t *testing.T) {
	t.Parallel()
	e := Entry{Task: "a", Put: true, Begun: true}
	for note, want := range map[string]Fate{"max-failed 0 of 3: 1 failed: fw1": Stopped,
		"breaker 2 2/1m: 2 failed in 9 s: fw1": Stopped, "stopped by alice: wait": Living} {
		info := jobs.TaskInfo{State: jobs.TaskStopped, Total: 3}
		info.Rollout = &jobs.RolloutInfo{Stopped: note}
		if got := FateOf(e, info); got != want {
			t.Errorf("%s: %s, want %s", note, got, want)
		}
		info.Running = 1
		if got := FateOf(e, info); got != Living {
			t.Errorf("%s, and a job runs: %s", note, got)
		}
	}
}

// A task of which the Redis of a zone is away has not ended, whatever the other zones say.
func TestATaskThatCannotBeReadKeepsItsPlace(t *testing.T) {
	t.Parallel()
	for _, e := range []Entry{{Task: "a", Put: true}, {Task: "a", Put: true, Begun: true}} {
		for _, info := range []jobs.TaskInfo{{State: jobs.TaskAway}, {State: jobs.TaskAway, Total: 3,
			Outcomes: jobs.Counts{jobs.Failed: 3}}} {
			if got := FateOf(e, info); got != Living {
				t.Errorf("%+v, %+v: %s", e, info, got)
			}
		}
	}
}
