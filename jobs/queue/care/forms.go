package care

import (
	"context"
	"errors"

	"github.com/redis/go-redis/v9"

	"muster/jobs/queue"
	"muster/jobs/queue/codec"
	"muster/jobs/queue/form"
	"muster/jobs/queue/keys"
)

// Forms declares in Redis which form its data has.
type Forms struct{ c *queue.Conn }

// NewForms returns the forms behind a connection.
func NewForms(c *queue.Conn) Forms { return Forms{c} }

// Check returns an error that wraps a *form.Error for each of the zones that a newer muster has
// written.
func (f Forms) Check(ctx context.Context, zones []string) error {
	_, err := f.look(ctx, placesOf(zones))
	return err
}

// Declare says in the hub and in each zone that this version of muster writes there, in its form. A
// server calls it at its start and from time to time, because zones are added. It wraps a
// *form.Error if a newer muster has written anywhere; then it changes nothing.
func (f Forms) Declare(ctx context.Context, version string) error {
	zones, err := f.c.Zones(ctx)
	if err != nil {
		return err
	}
	places := append(placesOf(zones), hubPlace)
	behind, err := f.look(ctx, places)
	if err != nil {
		return err
	}
	_, err = f.c.Redis().Pipelined(ctx, func(p redis.Pipeliner) error {
		for _, key := range behind {
			p.HSet(ctx, key, form.Field, form.Least, form.FieldBy, version)
		}
		return nil
	})
	return f.c.Say("form", err)
}

// A place has a form of its own.
type place struct{ name, key string }

// hubPlace is the place of what belongs to no zone.
var hubPlace = place{"the hub", keys.Hub("form", "")}

func placesOf(zones []string) (list []place) {
	for _, zone := range zones {
		list = append(list, place{"zone " + zone, keys.Zone(zone, "zone", "")})
	}
	return list
}

// look returns the keys of the places that no muster of this form or a later one has written. Its
// error wraps a *form.Error for each place that a newer muster has written.
func (f Forms) look(ctx context.Context, places []place) (behind []string, err error) {
	var newer []error
	for _, p := range places {
		v, err := f.c.Redis().HMGet(ctx, p.key, form.Field, form.FieldBy).Result()
		switch {
		case queue.Away(err):
			continue // nobody can write there, and the next look comes soon
		case err != nil:
			return nil, f.c.Say("form", err)
		}
		field, by := codec.TextOf(v, 0), codec.TextOf(v, 1)
		if err := form.Check(p.name, field, by); err != nil {
			newer = append(newer, err)
		} else if form.Behind(field, by) {
			behind = append(behind, p.key)
		}
	}
	return behind, errors.Join(newer...)
}
