package entries

import (
	"context"

	"muster/internal/manifest"
	"muster/triggers"
)

// Triggers has the triggers that were applied.
type Triggers struct{ *Follower }

// Applied returns the triggers in force; the same pointer means that they have not changed.
func (t Triggers) Applied(ctx context.Context) (*triggers.Applied, error) {
	v, err := t.Now(ctx)
	if v == nil || err != nil {
		return nil, err
	}
	return keep(t.Follower, v, manifest.Trigger, func() *triggers.Applied {
		list, err := t.Of(v, manifest.Trigger)
		out := &triggers.Applied{}
		for _, e := range list {
			if one, is := e.Value.(triggers.Trigger); is {
				out.List = append(out.List, one)
			}
		}
		if err != nil {
			out.Trouble = err.Error()
		}
		return out
	}), nil
}
