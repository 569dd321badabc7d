package server

import (
	"context"

	"github.com/danielgtaylor/huma/v2"

	"muster/history"
	"muster/server/agreed"
)

// whileAgreed refuses an order that changes what is agreed as long as Redis lacks some of that.
// A restore puts back whole parts: it would take away what was ordered meanwhile, or what was
// ordered would hide what is lost. Nothing starts in that time, so no order is urgent but a
// halt, which is no such order.
func whileAgreed[I, O any](whole func(context.Context) error,
	do func(context.Context, *I) (*O, error)) func(context.Context, *I) (*O, error) {
	return func(ctx context.Context, in *I) (*O, error) {
		if err := whole(ctx); err != nil {
			return nil, err
		}
		return do(ctx, in)
	}
}

// loss says what Redis has lost of what was agreed; empty: nothing. It compares with history
// itself, because the duty that does may be two seconds behind. A history that is away, or that
// nobody keeps, stops nobody.
func loss(ctx context.Context, q AgreedKept, h *history.Store) (string, error) {
	state, err := q.AgreedState(ctx)
	if err != nil {
		return "", err
	}
	var asked agreed.History
	if h != nil {
		asked = h
	}
	return agreed.Compare(ctx, state.Parts, state.Lost, asked).Note, nil
}

// agreedWhole returns an error if Redis has lost something of what was agreed.
func (s *Server) agreedWhole(ctx context.Context) error {
	note, err := loss(ctx, s.queue.Hub.Agreed, s.history)
	switch {
	case err != nil:
		return problem(err)
	case note == "":
		return nil
	}
	return huma.Error409Conflict("Redis has lost what was agreed (" + note + "), and nothing " +
		"starts: an order of this kind would be lost in turn when that comes back: put it back first " +
		"(`muster restore --dry-run` shows it), then give the order; `muster halt` works at any time")
}
