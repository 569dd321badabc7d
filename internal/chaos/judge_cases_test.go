package chaos

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"muster/internal/fakefleet"
	"muster/jobs"
)

// story makes a record of lines such as
//
//	end 0 task000001:fw0001 succeeded
//	run 1.5 2.0 task000001:fw0001 1
//
// with times in seconds. run is step 1 of a job; take is a go for one.
func story(t *testing.T, tasks []*task, lines ...string) *record {
	t.Helper()
	r := newRecord(tasks)
	at := func(s float64) time.Time { return time.Unix(1_800_000_000, int64(s*1e9)) }
	for _, line := range lines {
		var from, to float64
		var id, word string
		var step int
		switch what, rest, _ := strings.Cut(line, " "); what {
		case "run":
			if n, err := fmt.Sscan(rest, &from, &to, &id, &step); n != 4 {
				t.Fatalf("%q: %v", line, err)
			}
			r.commands = append(r.commands, command{jobs.ID(id), step,
				fakefleet.Entry{Host: jobs.ID(id).Host(), Start: at(from), End: at(to)}})
		case "take":
			fmt.Sscan(rest, &from, &id)
			r.note(jobs.Happening{Event: "take", Object: id, At: jobs.Time{Time: at(from)}})
		case "end":
			fmt.Sscan(rest, &from, &id, &word)
			detail := map[string]any{}
			json.Unmarshal(fmt.Appendf(nil, `{"outcome":%q}`, word), &detail)
			r.note(jobs.Happening{Event: "end", Object: id, At: jobs.Time{Time: at(from)}, Detail: detail})
		case "halt":
			fmt.Sscan(rest, &from, &to)
			r.halts = append(r.halts, span{at(from), at(to)})
		}
	}
	// The counters are what the ends say, but for a task of which they were said.
	for _, task := range tasks {
		if task.info.Total == 0 {
			task.info = jobs.TaskInfo{Total: len(task.on), Outcomes: jobs.NewCounts()}
			for _, host := range task.on {
				for _, e := range r.ends[jobs.NewID(task.id, host)] {
					task.info.Outcomes[e.outcome]++
				}
			}
		}
	}
	return r
}

func TestTheJudgeCanSayNo(t *testing.T) {
	t.Parallel()
	asked := func(runbook string, on ...string) []*task {
		return []*task{{id: "task000001", runbook: runbook, on: on}}
	}
	const job, other = "task000001:fw0001", "task000001:fw0002"
	for _, c := range []struct {
		name  string
		tasks []*task
		lines []string
		want  string // part of what is wrong; empty: nothing
	}{
		{"all is well", asked("rough", "fw0001", "fw0002"), []string{"take 0 " + job, "run 1 2 " + job + " 1",
			"end 2 " + job + " succeeded", "take 3 " + other, "run 3 4 " + other + " 1",
			"end 4 " + other + " succeeded"}, ""},
		{"no outcome", asked("rough", "fw0001"), nil, "has ended 0 times"},
		{"two outcomes", asked("twice", "fw0001"),
			[]string{"end 1 " + job + " failed", "end 2 " + job + " succeeded"}, "has ended 2 times"},
		{"another count", []*task{{id: "task000001", runbook: "rough", on: []string{"fw0001"},
			info: jobs.TaskInfo{Total: 1, Outcomes: jobs.NewCounts()}}}, []string{"end 1 " + job + " failed"}, "counts"},
		{"a pair at once", asked("rough", "fw0001", "fw0002"), []string{"take 0 " + job, "run 1 3 " + job + " 1",
			"end 3 " + job + " succeeded", "take 2 " + other, "run 2 4 " + other + " 1",
			"end 4 " + other + " succeeded"}, "pair1: 2 at a time"},
		{"a step ran twice", asked("rough", "fw0001"), []string{"take 0 " + job, "run 1 2 " + job + " 1",
			"run 3 4 " + job + " 1", "end 5 " + job + " succeeded"}, "ran 2 times"},
		{"it may run twice", asked("twice", "fw0001"), []string{"take 0 " + job, "run 1 2 " + job + " 1",
			"run 3 4 " + job + " 1", "end 5 " + job + " succeeded"}, ""},
		{"a step is missing", asked("calm", "fw0001"), []string{"take 0 " + job, "run 1 2 " + job + " 1",
			"end 5 " + job + " succeeded"}, "1 of its 2 steps ran"},
		{"expired, and ran", asked("rough", "fw0001"), []string{"take 0 " + job, "run 1 2 " + job + " 1",
			"end 5 " + job + " expired"}, "is expired, but ran"},
		{"after its lock", asked("rough", "fw0001"), []string{"take 0 " + job, "run 60 61 " + job + " 1",
			"end 61 " + job + " failed"}, "after the lock"},
		{"in a halt", asked("rough", "fw0001"), []string{"halt 0 20", "take 10 " + job, "run 10 11 " + job + " 1",
			"end 11 " + job + " failed"}, "in a halt"},
		{"at the beginning of a halt", asked("rough", "fw0001"), []string{"halt 0 20", "take 0 " + job,
			"run 4 5 " + job + " 1", "end 5 " + job + " failed"}, ""},
		{"unknown without a fault", asked("rough", "fw0001"), []string{"end 5 " + job + " unknown"},
			"1 jobs are unknown, the faults explain 0"},
		{"nobody asked for it", nil, []string{"take 0 " + job, "run 1 2 " + job + " 1"}, "nobody had asked"},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := story(t, c.tasks, c.lines...)
			r.judge(0)
			all := strings.Join(r.wrong, "\n")
			if c.want == "" && all != "" || !strings.Contains(all, c.want) {
				t.Errorf("the judge says %q, want %q", all, c.want)
			}
		})
	}
}

func TestTheJudgeCountsLimits(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		last float64 // when the job of the first command ended, which ran for 10 s
		want string
	}{
		"five and one":                   {10, "site/zrh1: 6 at a time, at most 5"},
		"the command of a job that died": {0.5, ""},
	} {
		t.Run(name, func(t *testing.T) {
			tasks := []*task{{id: "task000001", runbook: "twice"}}
			var lines []string
			for i := range siteMax + 1 {
				host := nameOf(siteFrom + i)
				id := "task000001:" + host
				tasks[0].on = append(tasks[0].on, host)
				from, end := 1.0, 10.0
				if i == 0 {
					from, end = 0, c.last
				}
				lines = append(lines, "take 0 "+id, fmt.Sprint("run ", from, " 10 ", id, " 1"),
					fmt.Sprint("end ", end, " ", id, " succeeded"))
			}
			r := story(t, tasks, lines...)
			r.judge(0)
			if all := strings.Join(r.wrong, "\n"); c.want == "" && all != "" || !strings.Contains(all, c.want) {
				t.Errorf("the judge says %q, want %q", all, c.want)
			}
		})
	}
}
