package state

import (
	"context"

	"github.com/danielgtaylor/huma/v2"

	"muster/server/agreed"
	"muster/server/web"
)

// note names the agreements that Redis has lost; empty if it has all. It compares with history
// itself, because the duty that compares may be two seconds behind. It returns an empty text, too,
// while history is away, or if there is none.
func (a *Agreement) note(ctx context.Context) (string, error) {
	state, err := a.Kept.AgreedState(ctx)
	if err != nil {
		return "", err
	}
	var asked agreed.History
	if a.History != nil {
		asked = a.History
	}
	return agreed.Compare(ctx, state.Parts, state.Lost, asked).Note, nil
}

// Whole returns an error if Redis has lost something of what was agreed.
func (a *Agreement) Whole(ctx context.Context) error {
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
