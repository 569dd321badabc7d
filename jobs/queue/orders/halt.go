package orders

import (
	"context"
	"strconv"

	"muster/jobs"
	"muster/jobs/queue"
	"muster/jobs/queue/codec"
	"muster/jobs/queue/keys"
)

// Halts stops everything, and lifts the halt.
type Halts struct {
	c        *queue.Conn
	switches *Switches
}

// NewHalts returns the halt behind a connection.
func NewHalts(c *queue.Conn, s *Switches) *Halts { return &Halts{c, s} }

// everywhere calls do for every zone that was ever used.
func (q *Halts) everywhere(ctx context.Context, out jobs.Switched, note string,
	do func(zone string) (codec.Turned, error)) (jobs.Switched, error) {
	zones, err := q.c.Zones(ctx)
	if err != nil {
		return out, err
	}
	return q.switches.switchZones(ctx, out, note, zones, do)
}

const (
	haltOn  = "on"
	haltOff = "off"
)

// Halt lets nothing start anywhere, and no running job begin a further step, until Lift. The halt
// is stored in the hub first: TendHalt halts a zone that does not answer now.
func (q *Halts) Halt(ctx context.Context, note string) (jobs.Switched, error) {
	out := jobs.Switched{What: jobs.SwitchAll, Paused: true}
	h, err := q.giveHalt(ctx, haltOn, note)
	if err != nil {
		return out, err
	}
	out.Already = h.stood
	return q.everywhere(ctx, out, h.note, func(zone string) (codec.Turned, error) {
		c, err := q.c.Turn(ctx, zone, h.turn("halt", h.note))
		c.Number = 0
		return c, err
	})
}

// Lift ends the halt and nothing else: what was paused separately stays paused. The jobs that
// waited expire later by the time that the halt lasted. A lift has an id of its own, so that a lift
// which reaches a zone late does not end a halt that was ordered after it.
func (q *Halts) Lift(ctx context.Context, note string) (jobs.Switched, error) {
	out := jobs.Switched{What: jobs.SwitchAll}
	h, err := q.giveHalt(ctx, haltOff, note)
	if err != nil {
		return out, err
	}
	out.Already = h.stood
	return q.everywhere(ctx, out, note, func(zone string) (codec.Turned, error) {
		return q.lift(ctx, zone, h, note)
	})
}

func (q *Halts) lift(ctx context.Context, zone string, h haltState, note string) (codec.Turned,
	error) {
	if err := q.switches.shiftAll(ctx, zone, "halted", h.id); err != nil {
		return codec.Turned{}, err
	}
	c, err := q.c.Turn(ctx, zone, h.turn("lift", note))
	c.Number = 0
	return c, err
}

// haltState is the last order about the halt in the hub. A later order has a greater id.
type haltState struct {
	id    int64  // of the halt, or of its lift
	state string // "" as long as there was none
	note  string
	stood bool // the hub had the same state before the order
}

// turn returns the call that applies h to a zone, or ends it there.
func (h haltState) turn(verb, note string) codec.Turn {
	return codec.Turn{Verb: verb, Note: note, Number: strconv.FormatInt(h.id, 10)}
}

func (q *Halts) halt(ctx context.Context) (haltState, error) {
	fields, err := q.c.Redis().HGetAll(ctx, keys.Hub("halt", "")).Result()
	return readHalt(fields), q.c.Say("halt", err)
}

func readHalt(fields map[string]string) haltState {
	id, _ := strconv.ParseInt(fields["id"], 10, 64)
	return haltState{id: id, state: fields["state"], note: fields["note"]}
}

// giveHalt stores an order about the halt before any zone receives it. A halt that stands already
// keeps its id and its note.
func (q *Halts) giveHalt(ctx context.Context, state, note string) (h haltState, err error) {
	now, err := q.c.Now(ctx, keys.HubZone)
	if err != nil {
		return h, err
	}
	err = q.switches.revise(ctx, keys.Hub("halt", ""),
		func(is map[string]string) (map[string]any, []string) {
			h = readHalt(is)
			stood := (h.state == haltOn) == (state == haltOn)
			if stood && state == haltOn {
				h.stood = true
				return nil, nil
			}
			h = haltState{id: max(now.UnixMicro(), h.id+1), state: state, note: codec.OneLine(note),
				stood: stood}
			return map[string]any{"id": h.id, "state": h.state, "note": h.note}, nil
		})
	return h, q.c.Say("halt", err)
}

// TendHalt applies the halt of the hub, or its end, to a zone that did not answer when it was
// ordered or that came later.
func (q *Halts) TendHalt(ctx context.Context, zone string) error {
	h, err := q.halt(ctx)
	if err != nil || h.state == "" {
		return err
	}
	if h.state == haltOn {
		_, err = q.c.Turn(ctx, zone, h.turn("halt", h.note))
		return err
	}
	halted, err := q.c.Redis().HExists(ctx, keys.Zone(zone, "zone", ""), "halted").Result()
	if err != nil || !halted {
		return q.c.Say("halt", err)
	}
	_, err = q.lift(ctx, zone, h, h.note)
	return err
}
