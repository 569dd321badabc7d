package entries

import (
	"context"

	"muster/internal/manifest"
	"muster/notify"
	"muster/server/herald"
)

// Notices has the rules of notifications that were applied.
type Notices struct{ *Follower }

// Applied returns the rules in force; the same pointer means that they have not changed.
func (n Notices) Applied() (*herald.Applied, error) {
	v, err := n.Now(context.Background())
	if v == nil || err != nil {
		return nil, err
	}
	return keep(n.Follower, v, manifest.Notify, func() *herald.Applied {
		list, err := n.Of(v, manifest.Notify)
		out := &herald.Applied{}
		for _, e := range list {
			if one, is := e.Value.(notify.Rule); is {
				out.List = append(out.List, one)
			}
		}
		if err != nil {
			out.Trouble = err.Error()
		}
		return out
	}), nil
}
