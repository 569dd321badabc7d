package apply

import (
	"context"
	"math/rand/v2"
	"slices"

	"muster/internal/manifest"
	"muster/server/calendar"
	"muster/server/schedules"
)

// New returns the resource that applies schedules, and the windows and freezes of a calendar.
func New(s Store, repeated schedules.Resource, c *calendar.Calendar) Resource {
	return Resource{Store: s, Kinds: []Kind{Schedules{repeated}, Times{c, c.Stock}}, Log: repeated.Log,
		Now: c.Now, Chance: func() uint16 { return uint16(rand.Uint32()) }, Whole: repeated.Whole}
}

// With returns the resource with some more kinds.
func (r Resource) With(kinds ...Kind) Resource {
	r.Kinds = append(slices.Clone(r.Kinds), kinds...)
	return r
}

// Owners says which entries come from an origin.
type Owners struct{ Store Store }

// Owned returns why some entries must not be changed by others than an apply: they come from an
// origin.
func (o Owners) Owned(ctx context.Context, kind string, names ...string) ([]string, error) {
	if o.Store == nil {
		return nil, nil
	}
	var ids []string
	for _, name := range names {
		ids = append(ids, manifest.ID(kind, name))
	}
	origins, err := o.Store.OriginOf(ctx, ids...)
	var why []string
	for i, name := range names {
		if origin := origins[ids[i]]; origin != "" {
			why = append(why, manifest.Elsewhere(kind, name, origin))
		}
	}
	return why, err
}
