package server_test

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"
	"pgregory.net/rapid"

	"muster/fleet"
	"muster/jobs"
	"muster/jobs/queue"
	"muster/jobs/queue/hub"
	"muster/scripts"
	"muster/server"
	"muster/testkit/queuetest"
	"muster/testkit/redistest"
	"muster/windows"
)

// A fate is the way in which a call ends.
type fate int

const (
	answered fate = iota
	lost          // it is not made
	mute          // it is made, and its answer is lost
	halfway       // of a submit: a part of it is made
)

var errFate = errors.New("cut off by the test")

// gate is a queue whose calls wait to be let through one by one.
type gate struct {
	*queuetest.Queue

	now     *atomic.Int64 // µs that the schedules' clock shows
	waits   chan struct{}
	through chan fate
	over    chan struct{}
}

// pass waits, then makes a call as it is let.
func (g *gate) pass(do func(fate) error) error {
	how := lost
	select {
	case g.waits <- struct{}{}:
		select {
		case how = <-g.through:
		case <-g.over:
		}
	case <-g.over:
	}
	if how == lost {
		return errFate
	}
	err := do(how)
	if how != answered {
		return errFate
	}
	return err
}

func (g *gate) Task(ctx context.Context, id jobs.TaskID) (t jobs.TaskInfo, err error) {
	err = g.pass(func(fate) error {
		t, err = g.Queue.Task(ctx, id)
		return err
	})
	return t, err
}

func (g *gate) ScheduleStamp(ctx context.Context) (stamp string, now time.Time, err error) {
	err = g.pass(func(fate) error {
		stamp, _, err = g.Queue.ScheduleStamp(ctx)
		return err
	})
	return stamp, jobs.Micros(g.now.Load()).Time(), err
}

func (g *gate) Tick(ctx context.Context, term int64, was hub.Schedule, to jobs.Ticking) (
	is hub.Schedule, err error) {
	err = g.pass(func(fate) error {
		is, err = g.Queue.Tick(ctx, term, was, to)
		return err
	})
	return is, err
}

func (g *gate) Abandon(ctx context.Context, id jobs.TaskID, of jobs.Terms, note string) (is bool,
	err error) {
	err = g.pass(func(fate) error {
		is, err = g.Queue.Abandon(ctx, id, of, note)
		return err
	})
	return is, err
}

func (g *gate) Submit(ctx context.Context, t jobs.Task, hosts map[string][]string,
	progress func(int)) error {
	return g.pass(func(how fate) error {
		ctx, cancel := context.WithCancel(ctx)
		defer cancel()
		return g.Queue.Submit(ctx, t, hosts, func(int) {
			if how == halfway {
				cancel() // the first zone is in, and that is all
			}
		})
	})
}

// leader is a server that fires, or believes that it does.
type leader struct {
	*gate
	server *server.Server
	waits  bool          // for a call to be let through; else it has stood down
	done   chan struct{} // closed when it has; nil: it has not begun
}

// step lets the call for which a leader waits through.
func (l *leader) step(how fate) {
	if l.waits {
		l.through <- how
		l.park()
	}
}

// park waits until the leader comes to its next call.
func (l *leader) park() {
	select {
	case <-l.gate.waits:
		l.waits = true
	case <-l.done:
		l.waits = false
	}
}

// A stage has the clock, the queue and the leaders of one run.
type stage struct {
	q       *queuetest.Queue
	now     atomic.Int64
	term    int64
	elected int
	leaders []*leader
}

// newStage makes servers, each with hosts of its own: making one takes long.
func newStage(t *testing.T, q *queuetest.Queue) *stage {
	t.Helper()
	c, err := scripts.NewCatalog(nil)
	if err != nil {
		t.Fatal(err)
	}
	s := &stage{q: q}
	for i := range 4 {
		g := &gate{Queue: q, now: &s.now}
		list := append(hosts(), fleet.Host{Name: fmt.Sprintf("extra%d", i), Zone: "eu",
			Address: "10.0.0.9", Port: 22, User: "root", Fence: fleet.FenceNone})
		srv, err := server.New(server.DefaultConfig(), server.Deps{Queue: stores(g), Catalog: c,
			Inventory: given(fixed(list)), Log: hclog.NewNullLogger()})
		if err == nil {
			err = srv.Stock().Reload(t.Context())
		}
		if err != nil {
			t.Fatal(err)
		}
		s.leaders = append(s.leaders, &leader{gate: g, server: srv})
	}
	return s
}

// elect ends the term of whoever has it, and begins one of the next server. The
// earlier leaders know nothing of that, but for the one whose turn it is again.
func (s *stage) elect(t *rapid.T) *leader {
	ctx := context.Background()
	if err := s.q.Leave(ctx, hub.DutySchedules, s.term); err != nil {
		t.Fatal(err)
	}
	won, err := s.q.Lead(ctx, hub.DutySchedules, "x", 0)
	if err != nil || !won.Mine {
		t.Fatalf("election: %+v, %v", won, err)
	}
	s.term, s.elected = won.Number, s.elected+1
	l := s.leaders[s.elected%len(s.leaders)]
	l.die()
	l.gate.waits, l.through = make(chan struct{}), make(chan fate)
	l.over, l.done = make(chan struct{}), make(chan struct{})
	firing := server.NewSchedules(l.server, won.Number)
	go func() {
		defer close(l.done)
		for {
			select {
			case <-l.over:
				return
			default:
			}
			if _, err := firing.RunOnce(ctx); errors.Is(err, queue.ErrDeposed) {
				return
			}
		}
	}()
	l.park()
	return l
}

// die ends a leader at the call where it is.
func (l *leader) die() {
	if l.done != nil {
		close(l.over)
		<-l.done
		l.done, l.waits = nil, false
	}
}

var stages atomic.Int64

// Leaders are replaced, know nothing of it and go on, die at any call, lose answers
// and submit halves, each with other hosts: each tick becomes one task.
func TestUnderManyLeadersEachTickBecomesOneTask(t *testing.T) {
	t.Parallel()
	for name, cfg := range map[string]func() queue.Config{
		"miniredis":    func() queue.Config { _, cfg := redistest.StartMini(t); return cfg },
		"redis-server": func() queue.Config { return redistest.StartServer(t).Config() },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			q, err := queuetest.Open(t.Context(), cfg())
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { q.Close() })
			s := newStage(t, q)
			rapid.Check(t, func(t *rapid.T) { play(t, s) })
		})
	}
}

func play(t *rapid.T, s *stage) {
	ctx := context.Background()
	n := stages.Add(1)
	begin := time.Unix(1_800_000_000+1000*n, 0).UTC()
	s.now.Store(begin.UnixMicro())
	def := jobs.Schedule{By: "alice", Since: jobs.Time{Time: begin}, Entry: windows.Entry{
		Name: fmt.Sprintf("s%d", n), Cron: "@every 1s", Zone: "UTC", Enabled: true,
		Missed: windows.MissedAll, Overlap: windows.OverlapQueue,
		Request: windows.Request{Runbook: "exec", On: "all", Args: map[string]string{"cmd": "true"}}}}
	if err := s.q.ChangeSchedule(ctx, hub.Schedule{}, def); err != nil {
		t.Fatal(err)
	}
	defer func() {
		for _, l := range s.leaders {
			l.die()
		}
		if is, err := s.q.Schedule(ctx, def.Name); err == nil {
			_ = s.q.RemoveSchedule(ctx, is) // the next play has no use for it
		}
		_ = s.q.Leave(ctx, hub.DutySchedules, s.term)
	}()
	s.elect(t)
	for range rapid.IntRange(5, 60).Draw(t, "acts") {
		switch rapid.IntRange(0, 9).Draw(t, "act") {
		case 0:
			s.elect(t)
		case 1:
			s.now.Add(rapid.Int64Range(0, 2_500_000).Draw(t, "µs"))
		default:
			l := rapid.SampledFrom(s.leaders).Draw(t, "leader")
			l.step(rapid.SampledFrom([]fate{answered, answered, answered, lost, mute, halfway}).Draw(t, "fate"))
		}
	}
	last := s.elect(t)
	want := int(s.now.Load()/1_000_000 - begin.Unix())
	for calls := 0; ; calls++ {
		is, err := s.q.Schedule(ctx, def.Name)
		if err != nil || calls > 500 {
			t.Fatalf("it does not come to an end: %+v, %v", is, err)
		}
		if len(is.Ticks.Pending) == 0 && is.Ticks.Next.UnixMicro() > s.now.Load() {
			break
		}
		last.step(answered)
	}
	// Those who believe that they lead have their say, too.
	for _, l := range s.leaders {
		for range 10 {
			l.step(answered)
		}
	}
	s.judge(t, def.Name, begin, want)
}

// judge counts the tasks of a schedule that are whole.
func (s *stage) judge(t *rapid.T, name string, begin time.Time, want int) {
	tasks, err := s.q.Tasks(context.Background(), 60)
	if err != nil {
		t.Fatal(err)
	}
	got := map[int64]int{}
	for _, task := range tasks {
		if task.Schedule != name || task.State == jobs.TaskSubmitting || task.CancelledInSubmit {
			continue
		}
		got[task.Tick.Unix()]++
		if task.State != jobs.TaskQueued || task.Total != 5 {
			t.Errorf("the task of a tick is %+v", task)
		}
	}
	for at := begin.Unix() + 1; at <= begin.Unix()+int64(want); at++ {
		if got[at] != 1 {
			t.Errorf("tick %d has %d tasks", at-begin.Unix(), got[at])
		}
	}
	if len(got) != want {
		t.Errorf("%d ticks have tasks, want %d", len(got), want)
	}
}
