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

// stops asks the queue which jobs to stop. It belongs to the goroutine of the clerk, except the
// call itself. A call without an answer is not repeated, because the next call asks the same.
type stops struct {
	asked   time.Duration // last, on the boot clock
	asking  bool
	logged  time.Duration // the last time at which its trouble was logged
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

// end cancels the call that is under way.
func (s *stops) end() {
	s.cancel()
	s.calls.Wait()
}

// stopsAt returns the time of the next question; 0: there is nothing to ask.
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

// askForStops asks in one call for all jobs in hand, if it is time to.
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

// stopCancelled stops the cancelled jobs of an answer. Their attempts end by themselves.
func (c *clerk) stopCancelled(answer stopsAnswer) {
	s := &c.lines.stops
	s.asking = false
	s.cancel()
	if answer.err != nil {
		if now := c.Clock(); s.logged == 0 || now-s.logged >= time.Minute {
			s.logged = now
			c.Log.Warn("no answer from the queue, cancelled jobs may run on",
				"zone", c.calls.zone, "error", verdict.NoAnswer(answer.err, c.cfg.Call))
		}
		return
	}
	for _, a := range c.inHand {
		note, ok := answer.notes[a.Grant().Job]
		if ok && !a.Stopped() {
			c.Log.Info("the job is cancelled and will be stopped", "task", a.Grant().Job.Task(), "job",
				a.Grant().Job, "attempt", a.Grant().Attempt, "note", note)
			a.Stop(&verdict.StopOrder{Note: note})
		}
	}
}
