package stock

import (
	"context"
	"errors"

	"muster/fleet"
	"muster/jobs"
	"muster/jobs/quarantine"
	"muster/server/web"
)

// A Moment is a look at the hosts that resolves several selectors. It is for one goroutine.
type Moment struct {
	of      *Looker
	view    *web.View
	all     *Stock
	drained map[string]jobs.Drain
	away    map[string]quarantine.Mark
	scenes  map[string]Scene // by selector
}

// Moment looks which hosts get no work. It has the hosts that the caller sees, whose view is in the
// context. An error comes from Redis.
func (l *Looker) Moment(ctx context.Context) (*Moment, error) {
	m := &Moment{of: l, view: web.ViewOf(ctx), all: l.store.Now(), scenes: map[string]Scene{}}
	var err error
	if m.drained, err = l.drains.Drained(ctx); err == nil {
		m.away, err = l.drains.Quarantined(ctx)
	}
	return m, err
}

// Scene returns the scene for a selector, as [Looker.Scene] does.
func (m *Moment) Scene(ctx context.Context, on string) (Scene, error) {
	if known, is := m.scenes[on]; is {
		return known, nil
	}
	l := m.of
	st, err := l.withFacts(ctx, l.parts.seen(m.view, m.all), on)
	if err != nil {
		return Scene{}, err
	}
	v := Scene{All: m.all, Drained: m.drained, aside: l.setAside(st, m.drained, m.away),
		earlier: map[fleet.Earlier][]string{}, picks: map[string]fleet.Picked{}}
	v.Stock = l.withDrains(st, v.join())
	sel, err := fleet.ParseSelector(on)
	if err == nil {
		err = m.earlier(ctx, sel, &v)
	} else {
		err = nil // PickFor and Choose report it
	}
	if err == nil {
		m.scenes[on] = v
	}
	return v, err
}

// earlier finds the hosts of earlier tasks that a selector names.
func (m *Moment) earlier(ctx context.Context, sel fleet.Selector, v *Scene) error {
	for _, e := range sel.Earlier() {
		names, err := m.of.earlier(ctx, m.view, e)
		var bad *earlierError
		switch {
		case errors.As(err, &bad):
			v.wrong = append(v.wrong, bad)
		case err != nil:
			return err
		}
		v.earlier[e] = names
	}
	return nil
}
