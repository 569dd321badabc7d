package plan_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"muster/jobs"
	"muster/jobs/model"
	"muster/jobs/plan"
	"muster/windows"
)

var now = time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC)

// book opens for customer acme at 02:00 UTC for so long; "" has no windows.
func book(t testing.TB, length string) *windows.Book {
	t.Helper()
	var table windows.Timetable
	if length != "" {
		table.Files = []windows.File{{Name: "w.yaml", Content: "windows:\n- {name: nightly, customer: acme, " +
			"zone: UTC, start: \"0 2 * * *\", length: " + length + ", approval: none}\n"}}
	}
	b, err := table.Book()
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func world(t testing.TB, length string, slots int, tasks ...plan.Task) plan.World {
	return plan.World{Now: now, Book: book(t, length), Slots: map[string]int{"z": slots},
		Overload: jobs.DefaultOverload(), Tasks: tasks}
}

// work is a task of n hosts.
func work(id string, n int, takes time.Duration, change ...func(i int, j *plan.Job)) plan.Task {
	t := plan.Task{ID: jobs.TaskID(id), Operator: id, Weight: 2}
	for i := range n {
		j := plan.Job{Zone: "z", Due: now, Takes: takes,
			Place: windows.Place{Host: fmt.Sprintf("%s%05d", id[:1], i), Customer: "acme"}}
		for _, c := range change {
			c(i, &j)
		}
		t.Jobs = append(t.Jobs, j)
	}
	return t
}

func windowed(t plan.Task) plan.Task {
	t.Work = windows.Work{Runbook: "firmware", Window: true}
	return t
}

func TestWhenATaskIsDone(t *testing.T) {
	t.Parallel()
	const s = time.Second
	group := func(i int, j *plan.Job) { j.Holds = []string{fmt.Sprint("group/", i/2)} }
	site := func(_ int, j *plan.Job) { j.Holds = []string{"site/x"} }
	limited := world(t, "", 10, work("a", 12, 10*s, site))
	limited.Limits = map[string]int{"site/x": 3}
	never := world(t, "", 10, work("a", 2, 10*s, site))
	never.Limits = map[string]int{"site/x": 0}
	for _, c := range []struct {
		name string
		w    plan.World
		want string // started and done after now, and hosts that are not
	}{
		{"as many as slots", world(t, "", 10, work("a", 10, 10*s)), "0s 10s 0"},
		{"in rounds", world(t, "", 10, work("a", 95, 10*s)), "0s 1m40s 0"},
		{"one of a pair at a time", world(t, "", 10, work("a", 8, 10*s, group)), "0s 20s 0"},
		{"a limit", limited, "0s 40s 0"},
		{"a limit of none", never, "never, 2: " + plan.TooFar},
		{"nobody serves the zone", world(t, "", 0, work("a", 3, s)), "never, 3: " + plan.NoSlots},
		{"later", world(t, "", 10, work("a", 1, s, func(_ int, j *plan.Job) {
			j.Due = now.Add(time.Hour)
		})), "1h0m0s 1h0m1s 0"},
		{"the same host twice", world(t, "", 10, work("a", 2, 10*s, func(_ int, j *plan.Job) {
			j.Place.Host = "x"
		})), "0s 20s 0"},
		{"one runs already", world(t, "", 1, work("a", 2, 10*s, func(i int, j *plan.Job) {
			if j.Busy = i == 0; j.Busy {
				j.Takes = 3 * s
			}
		})), "0s 13s 0"},
		{"in its window", world(t, "2h", 10, windowed(work("a", 10, time.Minute))), "14h0m0s 14h1m0s 0"},
		// Show 2 of the windows: two minutes, 20 s, 10 slots: 60 a night.
		{"some tomorrow", world(t, "2m", 10, windowed(work("a", 200, 20*s))), "14h0m0s 86h0m40s 0"},
		{"too long for it", world(t, "2m", 10, windowed(work("a", 3, time.Hour))),
			"never, 3: outside of its window: window nightly has no opening of 1h0m0s"},
		{"no window at all", world(t, "", 10, windowed(work("a", 3, s))),
			"never, 3: outside of its window: there is no window: ask the customer for one"},
		{"more than can be foreseen", world(t, "2m", 1, windowed(work("a", 70, 2*time.Minute))), "14h0m0s 1430h2m0s 10"},
	} {
		f := plan.Run(c.w)[0]
		left, why := 0, ""
		for _, j := range f.Jobs {
			if j.Never != "" {
				left++
				why = j.Never
			}
		}
		got := fmt.Sprintf("%s %s %d", f.Started.Sub(now), f.Done.Sub(now), left)
		if f.Done.IsZero() {
			got = fmt.Sprintf("never, %d: %s", left, why)
		}
		if !strings.HasPrefix(got, c.want) {
			t.Errorf("%s: %s, want %s", c.name, got, c.want)
		}
	}
}

// A small task behind a big one waits for overload.after, and not for the end of the big one.
func TestASmallTaskDoesNotWaitForABigOne(t *testing.T) {
	t.Parallel()
	big, small := work("a", 3000, time.Second), work("b", 4, time.Second)
	f := plan.Run(world(t, "", 10, big, small))
	if done := f[1].Done.Sub(now); done > 15*time.Second {
		t.Errorf("the small task is done after %s", done)
	}
	if done := f[0].Done.Sub(now); done != 301*time.Second {
		t.Errorf("the big task is done after %s, want 301 s", done)
	}
	fifo := world(t, "", 10, big, small)
	fifo.Overload.After = time.Hour
	if done := plan.Run(fifo)[1].Done.Sub(now); done != 301*time.Second {
		t.Errorf("without a fair order the small task is done after %s, want 301 s", done)
	}
}

func TestHowManySlotsWouldBeNeeded(t *testing.T) {
	t.Parallel()
	w := world(t, "2m", 10, windowed(work("a", 200, 20*time.Second)))
	if got, want := fmt.Sprint(plan.Needs(w, w.Tasks[0])), "[{z 10 34}]"; got != want {
		t.Errorf("needs %s, want %s", got, want) // 6 rounds of 20 s in 2 minutes
	}
	w.Slots["z"] = 34
	f := plan.Run(w)[0]
	if f.Done.After(f.Jobs[0].Opening.End) {
		t.Errorf("with so many slots it is done at %s", f.Done)
	}
	w.Slots["z"] = 33
	if f := plan.Run(w)[0]; !f.Done.After(f.Jobs[0].Opening.End) {
		t.Error("with one slot less it is done too")
	}
	if got := plan.Needs(w, work("b", 7, time.Second)); len(got) != 0 {
		t.Errorf("work without a window needs %v", got)
	}
}

// The model of the queue is proved equal to the scripts. The plan must agree with it in all that
// the model knows: order, hosts, groups and limits.
func TestAPlanIsWhatTheModelOfTheQueueDoes(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		slots := rapid.IntRange(1, 4).Draw(t, "slots")
		var tasks []plan.Task
		w := plan.World{Now: now, Slots: map[string]int{"z": slots}, Limits: map[string]int{"site/x": 2},
			Overload: jobs.Overload{After: 1000 * time.Hour, Cooldown: time.Hour, FairBy: jobs.FairByTask}}
		empty, err := (&windows.Timetable{}).Book()
		if err != nil {
			t.Fatal(err)
		}
		w.Book = empty
		for k := range rapid.IntRange(1, 3).Draw(t, "tasks") {
			task := plan.Task{ID: jobs.TaskID(fmt.Sprintf("0wcy00000%d", k)), Weight: 2}
			for i := range rapid.IntRange(1, 6).Draw(t, "hosts") {
				j := plan.Job{Zone: "z", Place: windows.Place{Host: fmt.Sprintf("t%dh%d", k, i)}, Due: now,
					Takes: time.Duration(rapid.IntRange(1, 5).Draw(t, "takes")) * time.Second}
				task.Jobs = append(task.Jobs, j)
			}
			tasks = append(tasks, task)
		}
		w.Tasks = tasks
		want := runModel(t, w)
		for k, f := range plan.Run(w) {
			for i, j := range f.Jobs {
				id := jobs.NewID(tasks[k].ID, tasks[k].Jobs[i].Place.Host)
				if got := j.Start.Sub(now); got != want[id] {
					t.Fatalf("%s begins after %s, by the model after %s", id, got, want[id])
				}
			}
		}
	})
}

// runModel lets the model of the queue do the same work, and returns when each job begins.
func runModel(t *rapid.T, w plan.World) map[jobs.ID]time.Duration {
	z := model.New()
	z.Epoch(jobs.MicrosOf(now.Add(-time.Hour)), model.Hello{Run: "r"})
	began, takes := map[jobs.ID]time.Duration{}, map[jobs.ID]time.Duration{}
	for _, task := range w.Tasks {
		var hosts []string
		for _, j := range task.Jobs {
			hosts = append(hosts, j.Place.Host)
			takes[jobs.NewID(task.ID, j.Place.Host)] = j.Takes
		}
		head := model.Head{Total: len(hosts), At: jobs.MicrosOf(now),
			Spec: jobs.Spec{Timeout: time.Hour, Expire: 100 * time.Hour}}
		status, _ := z.Put(jobs.MicrosOf(now), model.Put{Task: task.ID, Hosts: hosts,
			At: jobs.MicrosOf(now), Head: &head})
		if status != "ok" {
			t.Fatalf("put: %s", status)
		}
		z.Move(jobs.MicrosOf(now), model.Move{Task: task.ID, Verb: "commit", Limit: 500})
	}
	type running struct {
		end   time.Time
		grant *jobs.Grant
	}
	all := make([]running, w.Slots["z"])
	for i := range all {
		all[i].end = now
	}
	for n := 0; ; n++ {
		if n > 10_000 {
			t.Fatal("the model does not come to its end")
		}
		first := slices.MinFunc(all, func(a, b running) int { return a.end.Compare(b.end) })
		slot := slices.IndexFunc(all, func(r running) bool { return r == first })
		at := all[slot].end
		if at.After(now.Add(time.Hour)) {
			return began
		}
		step := jobs.Step{Node: "n", Slot: fmt.Sprint(slot), Request: fmt.Sprint(n), Want: 1}
		if g := all[slot].grant; g != nil {
			step.Results = []jobs.Result{{Job: g.Job, Token: g.Token, Kind: jobs.KindEnd, Outcome: jobs.Succeeded}}
		}
		reply := z.Step(jobs.MicrosOf(at), model.Step{Step: step, Sent: jobs.MicrosOf(at).Add(time.Duration(n))})
		all[slot].grant = nil
		if len(reply.Jobs) == 0 {
			all[slot].end = now.Add(2 * time.Hour) // nothing is left for it
			continue
		}
		g := reply.Jobs[0]
		began[g.Job] = at.Sub(now)
		all[slot] = running{at.Add(takes[g.Job]), &g}
	}
}

func TestEveryJobOfAPlanHasAFate(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		lengths := []string{"2m", "1h"}
		w := plan.World{Now: now, Slots: map[string]int{"z": rapid.IntRange(1, 5).Draw(t, "slots")},
			Limits: map[string]int{"l1": rapid.IntRange(0, 3).Draw(t, "limit")}, Overload: jobs.DefaultOverload()}
		table := windows.Timetable{Files: []windows.File{{Name: "w.yaml",
			Content: "windows:\n- {name: nightly, customer: acme, zone: UTC, start: \"0 2 * * *\", length: " +
				rapid.SampledFrom(lengths).Draw(t, "length") + ", approval: none}\n"}}}
		var err error
		if w.Book, err = table.Book(); err != nil {
			t.Fatal(err)
		}
		for k := range rapid.IntRange(1, 3).Draw(t, "tasks") {
			task := work(string(rune('a'+k)), rapid.IntRange(0, 30).Draw(t, "hosts"), time.Minute)
			task.Work.Window = rapid.Bool().Draw(t, "window")
			for i := range task.Jobs {
				j := &task.Jobs[i]
				j.Takes = time.Duration(rapid.IntRange(0, 200).Draw(t, "takes")) * time.Second
				j.Place.Host = fmt.Sprint("h", rapid.IntRange(0, 20).Draw(t, "host"))
				j.Holds = rapid.SampledFrom([][]string{nil, {"g1"}, {"l1"}, {"g1", "l1"}, {"g2", "l1"}}).Draw(t, "holds")
			}
			w.Tasks = append(w.Tasks, task)
		}
		checkFates(t, w, plan.Run(w))
	})
}

// checkFates checks that the predictions of a plan are possible.
func checkFates(t *rapid.T, w plan.World, list []plan.Forecast) {
	type span struct{ start, end time.Time }
	holds := map[string][]span{}
	for k, f := range list {
		for i, j := range f.Jobs {
			job := w.Tasks[k].Jobs[i]
			if j.Never != "" {
				continue
			}
			if j.Start.Before(now) || j.End.Sub(j.Start) != job.Takes {
				t.Fatalf("%v runs from %s to %s", job, j.Start, j.End)
			}
			if o := j.Opening; w.Tasks[k].Work.Window && (j.Start.Before(o.Start) || j.End.After(o.End)) {
				t.Fatalf("%v runs from %s to %s, outside of %v", job, j.Start, j.End, o)
			}
			for _, name := range append([]string{"slot", "host/" + job.Place.Host}, job.Holds...) {
				holds[name] = append(holds[name], span{j.Start, j.End})
			}
		}
	}
	for name, spans := range holds {
		most := 1
		if n, ok := w.Limits[name]; ok {
			most = n
		}
		if name == "slot" {
			most = w.Slots["z"]
		}
		for _, s := range spans {
			n := 0
			for _, o := range spans {
				if !o.start.After(s.start) && o.end.After(s.start) {
					n++
				}
			}
			if n > most {
				t.Fatalf("%d hold %s at %s, at most %d may", n, name, s.start, most)
			}
		}
	}
}

func BenchmarkPlan100k(b *testing.B) {
	for name, w := range map[string]plan.World{
		"plain":    world(b, "", 200, work("a", 99_000, 20*time.Second), work("b", 1000, 20*time.Second)),
		"windowed": world(b, "2h", 200, windowed(work("a", 100_000, 20*time.Second))),
		"tight":    world(b, "10m", 100, windowed(work("a", 100_000, 20*time.Second))),
		"groups": world(b, "2h", 200, windowed(work("a", 100_000, 20*time.Second, func(i int, j *plan.Job) {
			j.Holds = []string{fmt.Sprint("group/", i/2)}
		}))),
	} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				plan.Run(w)
				plan.Needs(w, w.Tasks[0])
			}
		})
	}
}
