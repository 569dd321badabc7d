package election

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hashicorp/go-hclog"

	"muster/internal/proc"
	"muster/jobs/queue/hub"
)

// Votes let servers agree who has a duty.
type Votes interface {
	Lead(ctx context.Context, duty, who string, held int64) (hub.Term, error)
	Leave(ctx context.Context, duty string, held int64) error
}

// renewEvery is the time between two requests for a duty, or to renew its lease.
const renewEvery = time.Second

// A Duty is work that exactly one server does at a time.
type Duty struct {
	Name string
	// Work does it until ctx is done, which is when the term ends.
	Work func(ctx context.Context, t *Term) error
}

// A Term is the time for which this server has a duty.
type Term struct {
	number int64
	until  atomic.Int64 // on the boot clock
	end    context.CancelFunc
	done   sync.WaitGroup
}

// Number returns the number of the term: each leader of a duty has a higher one.
func (t *Term) Number() int64 { return t.number }

// Trusted reports whether the duty is still ours, by a clock that also runs while the machine
// sleeps. Ask it before anything that two servers must not both do.
func (t *Term) Trusted() bool { return int64(proc.Boot()) < t.until.Load() }

// A Candidate is a server that stands for duties.
type Candidate struct {
	Votes Votes
	Who   func() string // name of this server, for people who ask which one has a duty
	Log   hclog.Logger
}

// Stand does the work of a duty for as long as this server has it. It blocks until ctx is
// done, and then gives the duty back.
func (c Candidate) Stand(ctx context.Context, d Duty) {
	ticks := time.NewTicker(renewEvery)
	defer ticks.Stop()
	var e elector
	var mine *Term
	down := func() {
		if mine != nil {
			mine.end()
			mine.done.Wait()
			c.Log.Info("duty given up", "duty", d.Name, "term", mine.number)
			mine = nil
		}
	}
	defer func() {
		down()
		c.leave(ctx, d.Name, e.held)
	}()
	for {
		c.campaign(ctx, d.Name, &e)
		if mine != nil && (mine.number != e.held || !e.leads(proc.Boot())) {
			down()
		}
		if e.leads(proc.Boot()) && ctx.Err() == nil {
			if mine == nil {
				mine = c.begin(ctx, d, e)
			}
			mine.until.Store(int64(e.until))
		}
		select {
		case <-ctx.Done():
			return
		case <-ticks.C:
		case <-untilBoot(e.until):
		}
	}
}

// untilBoot returns a channel that fires when the boot clock shows a time; nil, if that is 0.
func untilBoot(at time.Duration) <-chan time.Time {
	if at == 0 {
		return nil
	}
	return time.After(at - proc.Boot())
}

// campaign asks for the duty once. A request that takes longer than the time to the next one
// is in doubt.
func (c Candidate) campaign(ctx context.Context, name string, e *elector) {
	sent := proc.Boot()
	asking, cancel := context.WithTimeout(ctx, renewEvery)
	defer cancel()
	t, err := c.Votes.Lead(asking, name, c.Who(), e.held)
	if err != nil {
		if e.leads(sent) && !errors.Is(err, context.Canceled) {
			c.Log.Warn("duty in doubt", "duty", name, "term", e.held, "error", err)
		}
		e.doubt()
		return
	}
	e.heard(t, sent)
}

// begin starts the work of a term.
func (c Candidate) begin(ctx context.Context, d Duty, e elector) *Term {
	t := &Term{number: e.held}
	t.until.Store(int64(e.until))
	ctx, t.end = context.WithCancel(ctx)
	c.Log.Info("duty taken", "duty", d.Name, "term", t.number)
	t.done.Go(func() {
		if err := d.Work(ctx, t); err != nil {
			c.Log.Debug("the work of a duty ended before its term", "duty", d.Name, "error", err)
		}
	})
	return t
}

// leave spares the other servers the rest of the lease.
func (c Candidate) leave(ctx context.Context, name string, held int64) {
	if held == 0 {
		return
	}
	last, cancel := context.WithTimeout(context.WithoutCancel(ctx), renewEvery)
	defer cancel()
	if err := c.Votes.Leave(last, name, held); err != nil {
		c.Log.Debug("duty not given back: its lease ends by itself", "duty", name, "error", err)
	}
}
