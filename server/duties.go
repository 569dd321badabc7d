package server

import (
	"context"
	"time"
)

// dutyEvery is how often a server does what must be done also where no master
// lives.
const dutyEvery = 10 * time.Second

// rarely is after how many rounds what is no hurry is done again.
const rarely = 30

// duties does the work of a server that nobody has asked for, at once and with
// every tick, until ctx is done. Every server does it: twice does no harm.
func (s *Server) duties(ctx context.Context, ticks <-chan time.Time) {
	said := ""
	for {
		trouble := ""
		if err := s.duty(ctx); err != nil {
			trouble = err.Error()
		} else {
			trouble = s.stock.complaint()
		}
		switch {
		case ctx.Err() != nil:
			return
		case trouble != "" && trouble != said:
			s.log.Warn("duties", "trouble", trouble)
		case trouble == "" && said != "":
			s.log.Info("duties", "trouble", "over")
		}
		said = trouble
		select {
		case <-ctx.Done():
			return
		case <-ticks:
		}
	}
}

// duty is one round. It goes on with the other zones when one fails.
func (s *Server) duty(ctx context.Context) error {
	s.onDuty.Lock()
	defer s.onDuty.Unlock()
	zones, err := s.queue.Zones(ctx)
	if err != nil {
		return err
	}
	var first error
	note := func(err error) {
		if first == nil {
			first = err
		}
	}
	for _, zone := range zones {
		note(s.queue.Tend(ctx, zone))
	}
	note(s.followInventory(ctx))
	s.round++
	if s.round%rarely == 1 {
		note(s.tendBlobs(ctx))
		note(s.forgetFacts(ctx))
	}
	note(s.tendFacts(ctx))
	note(s.tally(ctx))
	return first
}
