package model_test

import (
	"strings"
	"testing"
	"time"

	"muster/jobs"
	"muster/jobs/model"
	"muster/testkit/zonetest"
)

const start = jobs.Micros(1_760_000_000_000_000)

// busy is a zone with two tasks on two hosts, of which one job runs and one waits.
func busy(t *testing.T) *model.Zone {
	z := model.New()
	z.Epoch(start, model.Hello{Run: "r"})
	for _, id := range []jobs.TaskID{"0bjya00001", "0bjya00002"} {
		spec := jobs.Spec{Timeout: time.Minute, Expire: time.Hour, Needs: []string{"lab"}}
		z.Put(start, model.Put{Task: id, Print: "p", Hosts: []string{"fw0", "fw1"},
			Head: &model.Head{Spec: spec, Total: 2, Chunks: 1, Guarded: true}})
		z.Move(start, model.Move{Task: id, Verb: "commit", Limit: 500})
	}
	z.Control(start, model.Turn{Verb: "limit", Object: "lab", Number: 1})
	r := z.Step(start, model.Step{Step: jobs.Step{Node: "n1", Slot: "1", Request: "1", Want: 2}})
	if len(r.Jobs) != 1 || r.Jobs[0].Job != "0bjya00001:fw0" || len(zonetest.Mistakes(z)) > 0 {
		t.Fatalf("handed out %v, %v", r.Jobs, zonetest.Mistakes(z))
	}
	return z
}

func TestMistakesAreFound(t *testing.T) {
	t.Parallel()
	const id = "0bjya00001:fw0" // runs
	for name, c := range map[string]struct {
		spoil func(*model.Zone)
		want  string
	}{
		"twice":       {func(z *model.Zone) { z.Queue.Put(id, 1) }, "is in [queue again]"},
		"nowhere":     {func(z *model.Zone) { z.Again.Remove(id) }, "has 1 jobs that wait or run, and counts 2"},
		"wrong place": {func(z *model.Zone) { z.Again.Remove(id); z.Queue.Put(id, 1) }, "is running, and in queue"},
		"ended":       {func(z *model.Zone) { z.Jobs[id].State = jobs.Ended }, "is ended, and in again"},
		"no task":     {func(z *model.Zone) { delete(z.Tasks, "0bjya00002") }, "its task is not there"},
		"running":     {func(z *model.Zone) { z.Tasks["0bjya00001"].Running = 2 }, "has 1 jobs that run, and counts 2"},
		"outcomes":    {func(z *model.Zone) { z.Tasks["0bjya00001"].Outcomes[jobs.Failed] = 1 }, "counts 1 outcomes"},
		"holder":      {func(z *model.Zone) { z.Semaphores.Holders["lab"]["0bjya00002:fw1"] = "1" }, "does not run"},
		"index":       {func(z *model.Zone) { delete(z.Semaphores.Index, "lab") }, "held are [lab], listed are []"},
	} {
		z := busy(t)
		c.spoil(z)
		if got := strings.Join(zonetest.Mistakes(z), "; "); !strings.Contains(got, c.want) {
			t.Errorf("%s: found %q, want %q", name, got, c.want)
		}
	}
}

func TestACloneSharesNothing(t *testing.T) {
	t.Parallel()
	z := busy(t)
	c := z.Clone()
	now := start.Add(10 * time.Second)
	c.Control(now, model.Turn{Verb: "halt", Note: "x", Number: 1})
	c.Lose(now, model.Loss{Loss: jobs.Loss{Node: "n1", Slot: "1", Why: "x"}, Sent: now})
	c.End(now, model.Ending{Task: "0bjya00002", Note: "x"})
	j := z.Jobs["0bjya00001:fw0"]
	if j.State != jobs.Running || z.Tasks["0bjya00002"].Cancel != "" || z.Flags.Halted.Note != "" ||
		z.Hold["n1"]["1"].Request != "1" || len(zonetest.Mistakes(z)) > 0 {
		t.Errorf("a change of the clone changed the zone: %+v, %v", j, zonetest.Mistakes(z))
	}
}
