package server

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"muster/internal/proc"
	"muster/jobs"
	"muster/jobs/queue/hub"
)

// Elections are how servers agree who has a duty.
type Elections interface {
	Lead(ctx context.Context, duty, who string, held int64) (hub.Term, error)
	Leave(ctx context.Context, duty string, held int64) error
	Leaders(ctx context.Context) ([]jobs.Duty, error)
}

const (
	// renewEvery is how often a duty is asked for, or kept.
	renewEvery = time.Second
	// leaseMargin is how much earlier than Redis a leader believes that its lease is
	// over: clocks run at different speeds, and what is begun must be sent.
	leaseMargin = 500 * time.Millisecond
)

// elector is what one server knows of one duty. It is pure: times are those of
// the boot clock, and arguments.
type elector struct {
	held  int64         // number of the last term that was ours; 0: there was none
	until time.Duration // ours is trusted up to here; 0: we stand down
}

// leads tells whether the duty is ours at now.
func (e elector) leads(now time.Duration) bool { return now < e.until }

// heard takes the answer to a request that was sent then. The lease began at the
// earliest when the request was sent, so that is where it is counted from.
func (e *elector) heard(t hub.Term, sent time.Duration) {
	if !t.Mine {
		*e = elector{} // somebody else's term: ours will not come back
		return
	}
	e.held, e.until = t.Number, sent+hub.Lease-leaseMargin
}

// doubt is after a request without an answer: it may have failed, or its answer.
// The term may still be ours, and is taken up again if it is.
func (e *elector) doubt() { e.until = 0 }

// term is a duty that this server has.
type term struct {
	number int64
	until  atomic.Int64 // on the boot clock
	end    context.CancelFunc
	done   sync.WaitGroup
}

// trusted tells whether the duty is ours still, by a clock that goes on while the
// machine sleeps. Whoever does a thing that must not be done twice asks before it.
func (t *term) trusted() bool { return int64(proc.Boot()) < t.until.Load() }

// duty is one of those that exactly one server has at a time.
type duty struct {
	name string
	work func(ctx context.Context, t *term) // until ctx is done
}

// elect has the work of a duty done for as long as this server has it. It blocks
// until ctx is done, and then gives the duty back.
func (s *Server) elect(ctx context.Context, d duty, ticks <-chan time.Time) {
	var e elector
	var mine *term
	down := func() {
		if mine != nil {
			mine.end()
			mine.done.Wait()
			s.log.Info("duty given up", "duty", d.name, "term", mine.number)
			mine = nil
		}
	}
	defer func() {
		down()
		s.leave(ctx, d.name, e.held)
	}()
	for {
		s.campaign(ctx, d.name, &e)
		if mine != nil && (mine.number != e.held || !e.leads(proc.Boot())) {
			down()
		}
		if e.leads(proc.Boot()) && ctx.Err() == nil {
			if mine == nil {
				mine = s.begin(ctx, d, e)
			}
			mine.until.Store(int64(e.until))
		}
		select {
		case <-ctx.Done():
			return
		case <-ticks:
		case <-untilBoot(e.until):
		}
	}
}

// untilBoot is told when the boot clock shows a time; never, if that is 0.
func untilBoot(at time.Duration) <-chan time.Time {
	if at == 0 {
		return nil
	}
	return time.After(at - proc.Boot())
}

// campaign asks once. A request that takes longer than until the next one is in
// doubt.
func (s *Server) campaign(ctx context.Context, name string, e *elector) {
	sent := proc.Boot()
	asking, cancel := context.WithTimeout(ctx, renewEvery)
	defer cancel()
	t, err := s.queue.Hub.Duties.Lead(asking, name, s.who(), e.held)
	if err != nil {
		if e.leads(sent) && !errors.Is(err, context.Canceled) {
			s.log.Warn("duty in doubt", "duty", name, "term", e.held, "error", err)
		}
		e.doubt()
		return
	}
	e.heard(t, sent)
}

func (s *Server) begin(ctx context.Context, d duty, e elector) *term {
	t := &term{number: e.held}
	t.until.Store(int64(e.until))
	ctx, t.end = context.WithCancel(ctx)
	s.log.Info("duty taken", "duty", d.name, "term", t.number)
	t.done.Go(func() { d.work(ctx, t) })
	return t
}

// leave spares the others the rest of the lease.
func (s *Server) leave(ctx context.Context, name string, held int64) {
	if held == 0 {
		return
	}
	last, cancel := context.WithTimeout(context.WithoutCancel(ctx), renewEvery)
	defer cancel()
	if err := s.queue.Hub.Duties.Leave(last, name, held); err != nil {
		s.log.Debug("duty not given back: its lease ends by itself", "duty", name, "error", err)
	}
}

// who is this server, for people who look who has a duty.
func (s *Server) who() string {
	if s.cfg.Name == "" {
		return s.Addr()
	}
	return s.cfg.Name + "@" + s.Addr()
}
