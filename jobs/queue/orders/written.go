package orders

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"muster/jobs"
	"muster/jobs/queue"
	"muster/jobs/queue/codec"
	"muster/jobs/queue/keys"
)

// orderKeep is the time for which the end of a pause is remembered: a paused zone may be away for
// so long and still learn that the pause has ended.
const orderKeep = 30 * 24 * time.Hour

// order is a pause or its end as the hub stores it, for zones that do not answer now or come later.
// A later order has a greater id.
type order struct {
	what jobs.Switch
	name string // of the task, customer or zone
	id   int64
	on   bool // true pauses, false resumes
	note string
	// stood: the hub had such an order already. It counts where no zone is known that could say so.
	stood bool
}

// number returns the id in the form of the scripts.
func (o order) number() string { return strconv.FormatInt(o.id, 10) }

// turn returns the call that applies o to a zone.
func (o order) turn(verb, object string) codec.Turn {
	return codec.Turn{Verb: verb, Object: object, Note: o.note, Number: o.number()}
}

func (o order) field() string { return string(o.what) + " " + o.name }

func (o order) text() string {
	state := haltOff
	if o.on {
		state = haltOn
	}
	return fmt.Sprintf("%d %s %s", o.id, state, o.note)
}

// give stores an order before any zone receives it. A pause that stands already keeps its id and
// its note.
func (q *Switches) give(ctx context.Context, o order) (order, error) {
	now, err := q.c.Now(ctx, keys.HubZone)
	if err != nil {
		return o, err
	}
	o.note = codec.OneLine(o.note)
	var given order
	err = q.revise(ctx, keys.Hub("pauses", ""), func(is map[string]string) (map[string]any, []string) {
		before, known := readOrder(o.field(), is[o.field()])
		if known && before.on && o.on {
			given, given.stood = before, true
			return nil, nil
		}
		given, given.stood = o, before.on == o.on
		given.id = max(now.UnixMicro(), before.id+1)
		return map[string]any{o.field(): given.text()}, nil
	})
	return given, q.c.Say("pause", err)
}

// end ends a pause that no zone needs any more, if it is the last order. The order stays, marked as
// ended: without it a copy of the orders could not tell a pause that was removed from one that
// Redis has lost.
func (q *Switches) end(ctx context.Context, o order) error {
	if !o.on {
		return nil
	}
	return q.c.Say("pause", q.revise(ctx, keys.Hub("pauses", ""),
		func(is map[string]string) (map[string]any, []string) {
			if last, ok := readOrder(o.field(), is[o.field()]); !ok || last.id != o.id {
				return nil, nil
			}
			o.id, o.on = o.id+1, false
			return map[string]any{o.field(): o.text()}, nil
		}))
}

func readOrder(field, text string) (o order, ok bool) {
	what, name, _ := strings.Cut(field, " ")
	words := strings.SplitN(text, " ", 3)
	id, err := strconv.ParseInt(words[0], 10, 64)
	if err != nil || len(words) != 3 {
		return order{}, false
	}
	return order{what: jobs.Switch(what), name: name, id: id, on: words[1] == haltOn,
		note: words[2]}, true
}

// readOrders reads all orders in the hub.
func readOrders(fields map[string]string) []order {
	var out []order
	for field, text := range fields {
		if o, ok := readOrder(field, text); ok {
			out = append(out, o)
		}
	}
	return out
}

// switched carries out an order that was stored. If no zone has confirmed it, switched returns an
// error, which says that the order stands all the same.
func (q *Switches) switched(ctx context.Context, o order, note string, zones []string,
	do func(zone string) (codec.Turned, error)) (jobs.Switched, error) {
	if o.stood && o.on {
		note = o.note // the zones receive the note of the order that stands
	}
	out := jobs.Switched{What: o.what, Name: o.name, Paused: o.on, Already: o.stood}
	out, err := q.switchZones(ctx, out, note, zones, do)
	if err != nil && len(out.Zones) == 0 && len(out.Missing) > 0 {
		err = fmt.Errorf("no zone has confirmed it; it is written down, and a server repeats it until "+
			"they do: %w", err)
	}
	return out, err
}

// TendPauses applies the orders of the hub to a zone that did not answer when they were given, or
// came later.
func (q *Switches) TendPauses(ctx context.Context, zone string) error {
	fields, err := q.c.Redis().HGetAll(ctx, keys.Hub("pauses", "")).Result()
	if err != nil || len(fields) == 0 {
		return q.c.Say("pauses", err)
	}
	now, err := q.c.Now(ctx, keys.HubZone)
	if err != nil {
		return err
	}
	f, err := q.c.Redis().HMGet(ctx, keys.Zone(zone, "zone", ""), "paused", "pausedId",
		"customers").Result()
	if err != nil {
		return q.c.Say("pauses", err)
	}
	customers := codec.ReadCustomers(codec.TextOf(f, 2))
	var errs []error
	for _, o := range readOrders(fields) {
		switch o.what {
		case jobs.SwitchZone:
			if o.name == zone {
				errs = append(errs, q.tendZone(ctx, o,
					codec.ReadSwitch(codec.TextOf(f, 0), codec.TextOf(f, 1))))
			}
		case jobs.SwitchCustomer:
			errs = append(errs, q.tendCustomer(ctx, zone, o, customers[o.name]))
		case jobs.SwitchTask:
			errs = append(errs, q.tendTask(ctx, zone, o))
		}
		errs = append(errs, q.retireOrder(ctx, o, now.Sub(time.UnixMicro(o.id))))
	}
	return errors.Join(errs...)
}

// differs reports whether a zone still has to carry out o. The end of a pause does not concern a
// pause that was ordered after it.
func (o order) differs(s codec.Standing) bool {
	return o.on != s.Paused && (o.on || s.Id <= o.id)
}

func (q *Switches) tendZone(ctx context.Context, o order, s codec.Standing) error {
	if !o.differs(s) {
		return nil
	}
	return q.carry(ctx, o, func() error {
		_, err := q.c.Turn(ctx, o.name, o.turn("pause-zone", ""))
		return err
	}, func(end order) error {
		_, err := q.resumeZone(ctx, o.name, end)
		return err
	})
}

func (q *Switches) tendCustomer(ctx context.Context, zone string, o order, s codec.Standing) error {
	if !o.differs(s) {
		return nil
	}
	return q.carry(ctx, o, func() error {
		_, err := q.c.Turn(ctx, zone, o.turn("pause-customer", o.name))
		return err
	}, func(end order) error {
		_, err := q.resumeCustomer(ctx, zone, end)
		return err
	})
}

func (q *Switches) tendTask(ctx context.Context, zone string, o order) error {
	v, err := q.c.Redis().HMGet(ctx, keys.Zone(zone, "task:", o.name), "total", "ended", "pausedNote",
		"pausedId").Result()
	if err != nil {
		return q.c.Say("pauses", err)
	}
	if v[0] == nil || v[1] != nil || !o.differs(codec.ReadSwitch(codec.TextOf(v, 2),
		codec.TextOf(v, 3))) {
		return nil
	}
	return q.carry(ctx, o, func() error {
		_, err := q.pauseTask(ctx, zone, o)
		return err
	}, func(end order) error {
		_, err := q.bringBack(ctx, zone, jobs.TaskID(o.name), "resume", end)
		return err
	})
}

// carry carries out o in a zone: it calls pause or resume. The hub may receive the end of a pause
// after a duty has read the pause; the zone has carried out the end by then, and would stay paused
// until the duty's next look. So carry reads the order once more after a pause.
func (q *Switches) carry(ctx context.Context, o order, pause func() error,
	resume func(end order) error) error {
	if !o.on {
		return resume(o)
	}
	if err := pause(); err != nil {
		return err
	}
	text, err := q.c.Redis().HGet(ctx, keys.Hub("pauses", ""), o.field()).Result()
	if err != nil && !errors.Is(err, redis.Nil) {
		return q.c.Say("pauses", err)
	}
	if last, ok := readOrder(o.field(), text); ok && !last.on {
		return resume(last)
	}
	return nil
}

// retireOrder ends the pause of a task that ended long ago, and forgets pauses that ended long
// before.
func (q *Switches) retireOrder(ctx context.Context, o order, age time.Duration) error {
	switch {
	case !o.on && age > orderKeep:
		return q.c.Say("pauses", q.revise(ctx, keys.Hub("pauses", ""),
			func(is map[string]string) (map[string]any, []string) {
				if last, _ := readOrder(o.field(), is[o.field()]); last.id != o.id {
					return nil, nil
				}
				return nil, []string{o.field()}
			}))
	case o.on && o.what == jobs.SwitchTask && age > 24*time.Hour:
		t, err := q.tasks.Task(ctx, jobs.TaskID(o.name))
		switch {
		case err != nil && !errors.Is(err, queue.ErrNotFound):
			return err
		case err != nil || t.State == jobs.TaskEnded:
			return q.end(ctx, o)
		}
	}
	return nil
}
