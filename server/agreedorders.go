package server

import (
	"context"

	"github.com/danielgtaylor/huma/v2"
)

// whileAgreed refuses an order that changes what is agreed as long as Redis lacks some of that.
// A restore puts back whole parts: it would take away what was ordered meanwhile, or what was
// ordered would hide what is lost. Nothing starts in that time, so no order is urgent but a
// halt, which is no such order.
func whileAgreed[I, O any](s *Server, do func(context.Context, *I) (*O, error)) func(
	context.Context, *I) (*O, error) {
	return func(ctx context.Context, in *I) (*O, error) {
		if err := s.agreedWhole(ctx); err != nil {
			return nil, err
		}
		return do(ctx, in)
	}
}

// agreedWhole is an error if Redis has lost something of what was agreed. It compares with history
// itself, because the duty that does may be two seconds behind. A history that is away, or that
// nobody keeps, stops nobody.
func (s *Server) agreedWhole(ctx context.Context) error {
	state, err := s.queue.AgreedState(ctx)
	if err != nil {
		return problem(err)
	}
	note := state.Lost.Note
	if note == "" && s.history != nil {
		kept, err := s.history.Agreed(ctx)
		if err != nil {
			return nil
		}
		if gone := lostParts(kept, state.Parts); len(gone) > 0 {
			note = lossWords(kept, gone)
		}
	}
	if note == "" && state.Lost.Since.IsZero() {
		return nil
	}
	return huma.Error409Conflict("Redis has lost what was agreed (" + note + "), and nothing " +
		"starts: an order of this kind would be lost in turn when that comes back: put it back first " +
		"(`muster restore --dry-run` shows it), then give the order; `muster halt` works at any time")
}
