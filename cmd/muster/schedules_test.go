package main

import (
	"flag"
	"fmt"
	"strings"
	"syscall"
	"testing"
	"time"

	"muster/internal/fakefleet"
	"muster/jobs"
	"muster/jobs/queue/hub"
	"muster/testkit/queuetest"
)

var killFor = flag.Duration("schedules.for", 15*time.Second,
	"how long TestEachTickBecomesOneTask kills servers")

// servers are several servers on one Redis.
type servers struct {
	*house
	queue   *queuetest.Queue
	byPlace map[string]*process // by address
}

func newServers(t *testing.T, n int) *servers {
	t.Helper()
	_, inventory := pretend(t, fakefleet.Config{Hosts: 1})
	h := newCellar(t, inventory)
	q, err := queuetest.OpenLazy(h.redis.Config())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { q.Close() })
	s := &servers{house: h, queue: q, byPlace: map[string]*process{}}
	for range n {
		s.begin(listenOn(freeSocket(t)))
	}
	for place, p := range s.byPlace {
		p.await("server listens")
		h.url = strings.Replace(place, "unix:", "unix://", 1)
	}
	return s
}

func (s *servers) begin(place string) {
	s.byPlace[place] = s.start("server", "--config", s.file("muster.yaml"), "--listen", place)
}

// leader waits until a server fires the schedules in a term after this one.
func (s *servers) leader(after int64) (place string, term int64) {
	s.t.Helper()
	late, look := s.late(), time.NewTicker(20*time.Millisecond)
	defer look.Stop()
	for {
		list, err := s.queue.Leaders(s.t.Context())
		if err != nil {
			s.t.Fatal(err)
		}
		for _, d := range list {
			_, place, _ := strings.Cut(d.Server, "@")
			if d.Duty == hub.DutySchedules && place != "" && d.Term > after {
				return place, d.Term
			}
		}
		select {
		case <-look.C:
		case <-late:
			s.t.Fatalf("nobody fires the schedules after term %d: %v", after, list)
		}
	}
}

// upTo waits until a schedule has handled all ticks up to one.
func (s *servers) upTo(name string, tick time.Time) hub.Schedule {
	s.t.Helper()
	late, look := s.late(), time.NewTicker(100*time.Millisecond)
	defer look.Stop()
	for {
		is, err := s.queue.Schedule(s.t.Context(), name)
		if err != nil {
			s.t.Fatal(err)
		}
		if is.Ticks.Tick.After(tick) {
			return is
		}
		select {
		case <-look.C:
		case <-late:
			s.t.Fatalf("schedule %s does not come to %s: %+v", name, tick, is.Ticks)
		}
	}
}

// The leader is killed, or stopped until another server leads, and comes back at once; at the end
// ticks and tasks are the same set.
func TestEachTickBecomesOneTask(t *testing.T) {
	t.Parallel()
	s := newServers(t, 3)
	s.write("s.yaml", `schedules: [{name: beat, cron: "@every 1s", zone: UTC, missed: all, overlap: queue,
  runbook: exec, args: {cmd: "true"}, on: fw0001}]`)
	if out, code := s.muster("schedules", "apply", s.file("s.yaml")); code != 0 {
		t.Fatalf("apply: exit %d: %s", code, out)
	}
	killed, stopped := 0, 0
	for over := time.After(*killFor); over != nil; {
		place, term := s.leader(0)
		p := s.byPlace[place]
		if (killed+stopped)%3 == 2 {
			p.cmd.Process.Signal(syscall.SIGSTOP)
			s.leader(term)
			p.cmd.Process.Signal(syscall.SIGCONT)
			stopped++
		} else {
			p.kill()
			s.begin(place)
			s.leader(term)
			killed++
		}
		// The new leader leads for a while: it has begun to fire, or will soon.
		select {
		case <-over:
			over = nil
		case <-time.After(time.Duration(killed*137%900) * time.Millisecond):
		}
	}
	end := time.Now()
	is := s.upTo("beat", end)
	want := map[string]int{}
	for at := is.Since.Truncate(time.Second).Add(time.Second); !at.After(end); at = at.Add(time.Second) {
		want[jobs.Time{Time: at}.String()] = 1
	}
	tasks, err := s.queue.Tasks(t.Context(), 10_000)
	if err != nil {
		t.Fatal(err)
	}
	got, latest := map[string]int{}, time.Duration(0)
	for _, task := range tasks {
		if task.Schedule != "beat" || task.Tick.After(end) {
			continue
		}
		got[task.Tick.String()]++
		latest = max(latest, task.Submitted.Sub(task.Tick.Time))
		if task.Total != 1 || task.State != jobs.TaskQueued {
			t.Errorf("the task of tick %s: %+v", task.Tick, task)
		}
	}
	if d := differ(want, got); d != "" {
		t.Errorf("ticks and tasks differ: %s", d)
	}
	t.Logf("%d leaders killed, %d stopped; %d ticks, %d tasks, the latest %s late", killed, stopped,
		len(want), len(got), latest)
}

// differ names the differences between two counts.
func differ(want, got map[string]int) string {
	text := ""
	for k, n := range want {
		if got[k] != n {
			text += fmt.Sprintf("%s has %d tasks; ", k, got[k])
		}
	}
	for k := range got {
		if want[k] == 0 {
			text += k + " is no tick; "
		}
	}
	return text
}
