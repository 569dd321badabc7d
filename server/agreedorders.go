package server

import (
	"context"

	"github.com/danielgtaylor/huma/v2"

	"muster/server/agreed"
	"muster/server/web"
)

// note says what Redis has lost of what was agreed; empty: nothing. It compares with history
// itself, because the duty that does may be two seconds behind. A history that is away, or that
// nobody keeps, stops nobody.
func (a *agreement) note(ctx context.Context) (string, error) {
	state, err := a.kept.AgreedState(ctx)
	if err != nil {
		return "", err
	}
	var asked agreed.History
	if a.history != nil {
		asked = a.history
	}
	return agreed.Compare(ctx, state.Parts, state.Lost, asked).Note, nil
}

// whole returns an error if Redis has lost something of what was agreed.
func (a *agreement) whole(ctx context.Context) error {
	note, err := a.note(ctx)
	switch {
	case err != nil:
		return web.Problem(err)
	case note == "":
		return nil
	}
	return huma.Error409Conflict("Redis has lost what was agreed (" + note + "), and nothing " +
		"starts: an order of this kind would be lost in turn when that comes back: put it back first " +
		"(`muster restore --dry-run` shows it), then give the order; `muster halt` works at any time")
}
