package worker

import (
	"context"
	"sync"
	"time"

	"muster/jobs"
	"muster/worker/attempt"
	"muster/worker/verdict"
)

// stopsEvery is the time between two questions which jobs are to be stopped, and the age of a job
// at the first one: a job that is shorter costs no question. With the time that stopping takes, a
// worker obeys the cancel of an operator within five seconds.
const stopsEvery = attempt.OrdersEvery

// stops is the question which jobs are to be stopped. It belongs to the clerk, but
// for the call itself. A call without an answer is not repeated: the next one asks
// the same.
type stops struct {
	asked   time.Duration // last, on the boot clock
	asking  bool
	told    time.Duration // when its trouble was last logged
	answers chan stopsAnswer
	calls   sync.WaitGroup
	cancel  context.CancelFunc // of the call
}

type stopsAnswer struct {
	notes map[jobs.ID]string
	err   error
}

func newStops() stops {
	return stops{answers: make(chan stopsAnswer, 1), cancel: func() {}}
}

// end gives up the call that is under way.
func (s *stops) end() {
	s.cancel()
	s.calls.Wait()
}

// stopsAt is when to ask next; 0: there is nothing to ask.
func (c *clerk) stopsAt() time.Duration {
	s := &c.lines.stops
	if s.asking || c.mode == stopping {
		return 0
	}
	oldest := time.Duration(0)
	for _, a := range c.inHand {
		if !a.Stopped() && (oldest == 0 || a.Began() < oldest) {
			oldest = a.Began()
		}
	}
	if oldest == 0 {
		return 0
	}
	return max(oldest, s.asked) + stopsEvery
}

// askForStops asks if it is time to: in one call, of all that is in hand.
func (c *clerk) askForStops(ctx context.Context) {
	at := c.stopsAt()
	if at == 0 || c.Clock() < at {
		return
	}
	s := &c.lines.stops
	s.asked, s.asking = c.Clock(), true
	var ids []jobs.ID
	for _, a := range c.inHand {
		ids = append(ids, a.Grant().Job)
	}
	ctx, s.cancel = context.WithTimeout(ctx, c.cfg.Call)
	s.calls.Go(func() {
		notes, err := c.Queue.Stops(ctx, c.calls.zone, ids)
		s.answers <- stopsAnswer{notes, err} // there is room: one call at a time
	})
}

// halt stops what is to be stopped. The attempts go on to their end by themselves.
func (c *clerk) halt(answer stopsAnswer) {
	s := &c.lines.stops
	s.asking = false
	s.cancel()
	if answer.err != nil {
		if now := c.Clock(); s.told == 0 || now-s.told >= time.Minute {
			s.told = now
			c.Log.Warn("no answer from the queue, it is not known which jobs are cancelled",
				"zone", c.calls.zone, "error", verdict.NoAnswer(answer.err, c.cfg.Call))
		}
		return
	}
	for _, a := range c.inHand {
		note, ok := answer.notes[a.Grant().Job]
		if ok && !a.Stopped() {
			c.Log.Info("the job is cancelled and will be stopped", "job", a.Grant().Job, "note", note)
			a.Stop(&verdict.StopOrder{Note: note})
		}
	}
}
