package queue_test

import (
	"errors"
	"testing"
	"time"

	"muster/jobs"
	"muster/testkit/queuetest"
	"muster/testkit/redistest"
	"muster/windows"
)

// Hosts may have times of their own, because their windows open at different times. A job is due,
// and expires, by that time.
func TestAJobRunsAtItsOwnTime(t *testing.T) {
	eachRedis(t, func(t *testing.T, w world) {
		q := open(t, w, "1")
		s := spec()
		s.Expire = time.Hour
		task, hosts := newTask(s, 450) // more than one chunk
		late := jobs.MicrosOf(time.Now().Add(3 * time.Hour))
		due := jobs.MicrosOf(time.Now().Add(-time.Minute))
		task.Own = map[string]jobs.Micros{"fw0000": late, "fw0001": due, "fw0449": late}
		if err := q.Submit(t.Context(), task, hosts, nil); err != nil {
			t.Fatal(err)
		}
		for _, host := range []string{"fw0000", "fw0449"} {
			j := wantState(t, q, jobs.NewID(task.ID, host), jobs.Queued, "")
			if off := j.Due.Sub(late.Time()); off < 0 || off > 4*time.Microsecond || j.Next != j.Due {
				t.Errorf("%s is due at %s, next at %s: want %s", host, j.Due, j.Next, jobs.TimeOf(late))
			}
		}
		got := map[string]jobs.Grant{}
		r := step(t, q, "1", 1)
		for r.Status == jobs.StatusJobs {
			g := one(t, r)
			got[g.Job.Host()] = g
			r = step(t, q, "1", 1, ended(g, jobs.Succeeded))
		}
		if len(got) != 448 || got["fw0000"].Job != "" || r.Status != jobs.StatusNext || r.Next < late-1 {
			t.Errorf("%d jobs ran, then %s until %s", len(got), r.Status, r.Next.Time())
		}
		if g := got["fw0001"]; g.Due != due || g.Mode != jobs.ModeFresh || g.Attempt != 1 {
			t.Errorf("its own time is %s, the grant says %+v", due, g)
		}
		if w.pass == nil {
			return
		}
		// It has not begun five hours after its submit: it expires, an hour after its own time.
		w.pass(3*time.Hour + 59*time.Minute)
		again := open(t, w, "2") // TIME has jumped
		if err := again.Tend(t.Context(), zone); err != nil {
			t.Fatal(err)
		}
		wantState(t, q, jobs.NewID(task.ID, "fw0000"), jobs.Queued, "")
		w.pass(2 * time.Minute)
		if err := again.Tend(t.Context(), zone); err != nil {
			t.Fatal(err)
		}
		wantState(t, q, jobs.NewID(task.ID, "fw0000"), jobs.Ended, jobs.Expired)
	})
}

// Workers read the agreements for their hosts, together with the time and the difference of the
// clocks.
func TestWhatIsAgreedIsRead(t *testing.T) {
	eachRedis(t, func(t *testing.T, w world) {
		q := open(t, w, "")
		everyone := []windows.Scope{{Level: windows.Customer, Name: "acme"}, {}}
		read := func(version int64, freezes int) {
			t.Helper()
			a, err := q.Agreed(t.Context())
			if err != nil || a.Version != version || a.Now == 0 || a.Skew.Abs() > time.Minute {
				t.Fatalf("got %+v, %v", a, err)
			}
			x, err := q.Excerpts(t.Context(), everyone)
			if err != nil || x.Version != version || x.Table != nil || len(x.Parts) != 2 ||
				len(x.Parts[0].Freezes) != 0 || len(x.Parts[1].Freezes) != freezes {
				t.Fatalf("got %+v, %v", x, err)
			}
		}
		read(0, 0)
		order := windows.FreezeOrder{Name: "x", Level: "everyone", From: time.Unix(1, 0)}
		table := windows.Timetable{Freezes: []windows.FreezeOrder{order}}
		set := func() {
			t.Helper()
			v, err := q.SetTimetable(t.Context(), table, jobs.Alert{Event: "freeze", Object: "x"})
			if err != nil {
				t.Fatal(err)
			}
			table.Version = v
		}
		set()
		read(1, 1)
		table.Freezes = nil
		set()
		read(2, 0)
		if _, known, err := q.Estimate(t.Context(), "firmware||"); known || err != nil {
			t.Errorf("an estimate that nobody wrote: %t, %v", known, err)
		}
	})
}

// An alert is an event of its zone, as any other.
func TestAnAlertIsAnEvent(t *testing.T) {
	eachRedis(t, func(t *testing.T, w world) {
		q := open(t, w, "")
		id := submit(t, q, spec(), 1)
		job := jobs.NewID(id, "fw0000")
		if err := q.Alert(t.Context(), zone, jobs.Alert{Event: "overtime", Object: string(job),
			Detail: map[string]any{"why": "its window has ended"}}); err != nil {
			t.Fatal(err)
		}
		list, _, err := q.Events(t.Context(), zone, "", 100, 0)
		last := list[len(list)-1]
		detail, _ := last.Detail.(map[string]any)
		if err != nil || last.Event != "overtime" || last.Object != string(job) || detail["why"] == nil {
			t.Errorf("got %+v, %v", last, errors.Join(err))
		}
	})
}

// A node reports how far its clock is from the clock of Redis.
func TestANodeKnowsHowWrongItsClockIs(t *testing.T) {
	t.Parallel()
	m, cfg := redistest.StartMini(t)
	for _, off := range []time.Duration{0, time.Hour, -3 * time.Second} {
		m.SetTime(time.Now().Add(-off))
		q := open(t, world{cfg: cfg}, "")
		n := jobs.Node{ID: "n1", Seen: jobs.Time{Time: time.Now()}}
		if err := q.Beat(t.Context(), n); err != nil {
			t.Fatal(err)
		}
		list, err := q.Nodes(t.Context())
		if err != nil || len(list) != 1 {
			t.Fatalf("%d nodes, %v", len(list), err)
		}
		got := time.Duration(list[0].Clock.Skew * float64(time.Second))
		if (got-off).Abs() > 900*time.Millisecond || list[0].Clock.Wrong() != (off != 0) {
			t.Errorf("its clock is %s off, it says %s, wrong: %t", off, got, list[0].Clock.Wrong())
		}
	}
}

// When a window opens for many jobs of one task and a few of another, the few do not wait behind
// the many: jobs with a time of their own are not reordered later, so they are put in turns.
func TestJobsOfAWindowComeInTurns(t *testing.T) {
	t.Parallel()
	q, now, pass := timed(t)
	opens := jobs.MicrosOf(now.Add(30 * time.Second))
	own := func(hosts int, p jobs.Priority) jobs.TaskID {
		task, names := ofItsOwn(hosts, p)
		task.Own = map[string]jobs.Micros{}
		for _, name := range names[zone] {
			task.Own[name] = opens
		}
		if err := q.Submit(t.Context(), task, names, nil); err != nil {
			t.Fatal(err)
		}
		return task.ID
	}
	big, small, urgent := own(3000, ""), own(4, ""), own(8, jobs.PriorityHigh)
	if r := step(t, q, "1", 1); r.Next < opens-1 || r.Next > opens {
		t.Errorf("the first one may run at %s, the window opens at %s", r.Next.Time(), opens.Time())
	}
	pass(31 * time.Second)
	inTurns(t, q, big, small, urgent)
}

// The same for jobs that workers have deferred to the opening: all jobs of the big task were
// deferred before the first one of the small task.
func TestJobsThatAreDeferredToAWindowComeInTurns(t *testing.T) {
	t.Parallel()
	q, now, pass := timed(t)
	opens := jobs.MicrosOf(now.Add(30 * time.Second))
	deferred := func(hosts int, p jobs.Priority) jobs.TaskID {
		task, names := ofItsOwn(hosts, p)
		if err := q.Submit(t.Context(), task, names, nil); err != nil {
			t.Fatal(err)
		}
		for r := step(t, q, "1", 100); len(r.Jobs) > 0; {
			var later []jobs.Result
			for _, g := range r.Jobs {
				later = append(later, jobs.Result{Job: g.Job, Token: g.Token, Kind: jobs.KindDefer,
					Until: opens, Error: "outside of its window"})
			}
			r = step(t, q, "1", 100, later...)
		}
		return task.ID
	}
	big, small, urgent := deferred(3000, ""), deferred(4, ""), deferred(8, jobs.PriorityHigh)
	if r := step(t, q, "1", 1); r.Next != opens {
		t.Errorf("the first one may run at %s, the window opens at %s", r.Next.Time(), opens.Time())
	}
	pass(31 * time.Second)
	inTurns(t, q, big, small, urgent)
}

// ofItsOwn returns a task whose hosts no other task has.
func ofItsOwn(hosts int, p jobs.Priority) (jobs.Task, map[string][]string) {
	s := spec()
	s.Priority = p
	task, names := newTask(s, hosts)
	for i, name := range names[zone] {
		names[zone][i] = string(task.ID) + name
	}
	return task, names
}

// inTurns checks that the first jobs that are taken come in turns from a big task, one of four
// hosts, and an urgent one of eight.
func inTurns(t *testing.T, q *queuetest.Queue, big, small, urgent jobs.TaskID) {
	t.Helper()
	count, places := map[jobs.TaskID]int{}, map[jobs.TaskID][]int{}
	for n := 1; n <= 20; n++ {
		g := one(t, step(t, q, "1", 1))
		id := g.Job.Task()
		count[id]++
		places[id] = append(places[id], n)
		step(t, q, "1", 0, ended(g, jobs.Succeeded))
	}
	if count[small] != 4 || count[urgent] != 8 || count[big] != 8 {
		t.Errorf("of the first 20 %d are of the big task, %d of the small, %d of the urgent one: %v",
			count[big], count[small], count[urgent], places)
	}
	if last := places[small]; len(last) == 4 && last[3] > 16 {
		t.Errorf("the last of the small task is number %d", last[3])
	}
	t.Logf("places in the opening of the small task: %v, of the urgent one: %v", places[small],
		places[urgent])
}
