package orders

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strconv"

	"github.com/redis/go-redis/v9"

	"muster/jobs"
	"muster/jobs/queue"
	"muster/jobs/queue/codec"
	"muster/jobs/queue/keys"
)

// Tasks reads tasks and their jobs.
type Tasks interface {
	Task(ctx context.Context, id jobs.TaskID) (jobs.TaskInfo, error)
	Job(ctx context.Context, id jobs.ID) (jobs.JobInfo, error)
	JobsOn(ctx context.Context, zone string, task jobs.TaskID, hosts []string) ([]jobs.JobInfo, error)
}

// Switches pauses and resumes tasks, customers and zones.
type Switches struct {
	c       *queue.Conn
	tasks   Tasks
	running running
}

// NewSwitches returns the switches behind a connection.
func NewSwitches(c *queue.Conn, tasks Tasks) *Switches {
	return &Switches{c, tasks, running{c, tasks}}
}

// Pause puts the waiting jobs of a task aside until Resume. Running jobs run to their end. note
// says who ordered it, and why. Like the orders below it is stored in the hub first: a zone that
// does not answer now receives it from TendPauses.
func (q *Switches) Pause(ctx context.Context, id jobs.TaskID, note string) (jobs.Switched, error) {
	return q.turnTask(ctx, order{what: jobs.SwitchTask, name: string(id), on: true, note: note},
		q.pauseTask)
}

// Resume makes the jobs of a paused task wait in the queue again. They expire later by the time
// that the pause lasted.
func (q *Switches) Resume(ctx context.Context, id jobs.TaskID, note string) (jobs.Switched, error) {
	return q.turnTask(ctx, order{what: jobs.SwitchTask, name: string(id), note: note},
		func(ctx context.Context, zone string, o order) (codec.Turned, error) {
			return q.bringBack(ctx, zone, id, "resume", o)
		})
}

func (q *Switches) turnTask(ctx context.Context, o order,
	do func(context.Context, string, order) (codec.Turned, error)) (jobs.Switched, error) {
	zones, err := q.c.Places.TaskZones(ctx, jobs.TaskID(o.name))
	if err != nil {
		return jobs.Switched{What: o.what, Name: o.name, Paused: o.on}, err
	}
	note := o.note
	if o, err = q.give(ctx, o); err != nil {
		return jobs.Switched{What: o.what, Name: o.name, Paused: o.on}, err
	}
	ended := 0
	out, err := q.switched(ctx, o, note, zones, func(zone string) (codec.Turned, error) {
		c, err := do(ctx, zone, o)
		if err == nil && c.Status == "ended" {
			ended++
		}
		return c, err
	})
	if err != nil || ended < len(zones) {
		return out, err
	}
	// A server has nothing to repeat.
	out.Ended, out.Already, out.Paused, out.Note = true, true, false, note
	return out, q.end(ctx, o)
}

// pauseTask puts the waiting jobs of a task in one zone aside.
func (q *Switches) pauseTask(ctx context.Context, zone string, o order) (codec.Turned, error) {
	chunks, err := q.c.Redis().HGet(ctx, keys.Zone(zone, "task:", o.name), "chunks").Int()
	if err != nil && !errors.Is(err, redis.Nil) {
		return codec.Turned{}, q.c.Say("pause", err)
	}
	all := codec.Turned{}
	for chunk := range max(chunks, 1) {
		r, err := q.c.Script(ctx, queue.Scripts.Move, zone, o.name, "pause", codec.ChunkMax,
			codec.OneLine(o.note), chunk,
			o.number())
		if err != nil {
			return all, err
		}
		c := readMove(r)
		if c.Err != nil || c.Status != "ok" {
			return c, c.Err
		}
		if chunk == 0 {
			all.Before = c.Before
		}
		all.Status = c.Status
		all.Number += c.Number
	}
	return all, nil
}

// bringBack calls move until all jobs that may return to the queue have returned.
func (q *Switches) bringBack(ctx context.Context, zone string, id jobs.TaskID, verb string,
	o order) (codec.Turned, error) {
	held, err := q.c.Redis().ZCard(ctx, keys.Zone(zone, "held:", string(id))).Result()
	if err != nil {
		return codec.Turned{}, q.c.Say(verb, err)
	}
	all := codec.Turned{}
	for call := range held/codec.HostsMax + 2 {
		r, err := q.c.Script(ctx, queue.Scripts.Move, zone, string(id), verb, codec.HostsMax,
			codec.OneLine(o.note), "",
			o.number())
		if err != nil {
			return all, err
		}
		c := readMove(r)
		if c.Err != nil {
			return c, c.Err
		}
		if call == 0 {
			all.Before = c.Before
		}
		all.Status = c.Status
		if c.Status != "ok" || c.Number == 0 {
			break
		}
	}
	// Jobs of waves that are not open stay aside.
	stay, err := q.c.Redis().ZCard(ctx, keys.Zone(zone, "held:", string(id))).Result()
	all.Number = max(held-stay, 0)
	return all, q.c.Say(verb, err)
}

// Release returns jobs to the queue that are still aside although nobody pauses their task any
// more.
func (q *Switches) Release(ctx context.Context, zone string, id jobs.TaskID) error {
	_, err := q.bringBack(ctx, zone, id, "release", order{})
	return err
}

func readMove(r codec.Reader) codec.Turned {
	c := codec.Turned{Status: r.Text(), Number: int64(r.Int())}
	if len(r.Left) > 0 {
		c.Before = r.Text()
	}
	c.Err = r.Err
	return c
}

// later is the answer of a zone that has a newer order than this one.
const later = "later"

// switchZones calls do in several zones and sums up the answers. A zone that does not answer is
// named in Missing, and is no error as long as another one answered. The caller sets
// out.Already if the hub had the same order before. It stays set only if all zones had the order,
// too. Without a zone, as after a FLUSHALL, the hub alone decides.
func (q *Switches) switchZones(ctx context.Context, out jobs.Switched, note string, zones []string,
	do func(zone string) (codec.Turned, error)) (jobs.Switched, error) {
	var errs []error
	already, overtaken := 0, false
	out.Note = note
	out.Zones, out.Missing = []string{}, []string{}
	for _, zone := range zones {
		c, err := do(zone)
		if err != nil {
			out.Missing = append(out.Missing, zone)
			errs = append(errs, fmt.Errorf("zone %s: %w", zone, err))
			continue
		}
		out.Zones = append(out.Zones, zone)
		if c.Status == later {
			overtaken, out.Note = true, cmp.Or(c.Before, out.Note)
			continue
		}
		out.Moved += int(c.Number)
		stood := c.Status != "ok" || (c.Before != "") == out.Paused
		if stood {
			already++
		}
		if stood && c.Before != "" && !overtaken {
			out.Note = c.Before
		}
	}
	out.Already = out.Already && already == len(out.Zones) && len(errs) == 0
	if len(errs) > 0 && len(out.Zones) == 0 {
		return out, errors.Join(errs...)
	}
	if overtaken {
		out.Overtaken, out.Paused = true, !out.Paused
	}
	return out, q.running.countRunning(ctx, &out)
}

// PauseCustomer lets no job on a host of the customer start, until ResumeCustomer. Running jobs run
// to their end.
func (q *Switches) PauseCustomer(ctx context.Context, customer, note string) (jobs.Switched,
	error) {
	return q.turnCustomer(ctx, order{what: jobs.SwitchCustomer, name: customer, on: true, note: note},
		func(ctx context.Context, zone string, o order) (codec.Turned, error) {
			c, err := q.c.Turn(ctx, zone, o.turn("pause-customer", customer))
			c.Number = 0
			return c, err
		})
}

// ResumeCustomer returns the jobs to the queue that were put aside with the customer.
func (q *Switches) ResumeCustomer(ctx context.Context, customer, note string) (jobs.Switched,
	error) {
	return q.turnCustomer(ctx, order{what: jobs.SwitchCustomer, name: customer, note: note},
		q.resumeCustomer)
}

func (q *Switches) turnCustomer(ctx context.Context, o order,
	do func(context.Context, string, order) (codec.Turned, error)) (jobs.Switched, error) {
	zones, err := q.c.Zones(ctx)
	note := o.note
	if err == nil {
		o, err = q.give(ctx, o)
	}
	if err != nil {
		return jobs.Switched{What: o.what, Name: o.name, Paused: o.on}, err
	}
	return q.switched(ctx, o, note, zones, func(zone string) (codec.Turned, error) {
		return do(ctx, zone, o)
	})
}

func (q *Switches) resumeCustomer(ctx context.Context, zone string, o order) (codec.Turned, error) {
	c, err := q.c.Turn(ctx, zone, o.turn("resume-customer", o.name))
	if err != nil {
		return c, err
	}
	since := c.Number
	c.Number = 0
	parked, err := q.c.Redis().SMembers(ctx, keys.Zone(zone, "parked", "")).Result()
	if err != nil {
		return c, q.c.Say("resume", err)
	}
	for _, id := range parked {
		if since > 0 {
			if err := q.shift(ctx, zone, id, since); err != nil {
				return c, err
			}
		}
		back, err := q.bringBack(ctx, zone, jobs.TaskID(id), "release", o)
		if err != nil {
			return c, err
		}
		c.Number += back.Number
	}
	return c, nil
}

// shift postpones the expiry of a task's jobs by the time that a pause lasted.
func (q *Switches) shift(ctx context.Context, zone, task string, since int64) error {
	number := strconv.FormatInt(since, 10)
	_, err := q.c.Turn(ctx, zone, codec.Turn{Verb: "shift", Object: task, Number: number})
	if errors.Is(err, queue.ErrNotFound) {
		return nil // it ended more than a day ago
	}
	return err
}

// PauseZone lets nothing start in a zone until ResumeZone. Running jobs run to their end.
func (q *Switches) PauseZone(ctx context.Context, zone, note string) (jobs.Switched, error) {
	return q.turnZone(ctx, order{what: jobs.SwitchZone, name: zone, on: true, note: note},
		func(ctx context.Context, zone string, o order) (codec.Turned, error) {
			c, err := q.c.Turn(ctx, zone, o.turn("pause-zone", ""))
			c.Number = 0
			return c, err
		})
}

// ResumeZone lets jobs start again in a zone. They expire later by the time that the pause lasted.
func (q *Switches) ResumeZone(ctx context.Context, zone, note string) (jobs.Switched, error) {
	return q.turnZone(ctx, order{what: jobs.SwitchZone, name: zone, note: note}, q.resumeZone)
}

func (q *Switches) turnZone(ctx context.Context, o order,
	do func(context.Context, string, order) (codec.Turned, error)) (jobs.Switched, error) {
	err := q.c.Places.KnowZone(ctx, o.name)
	note := o.note
	if err == nil {
		o, err = q.give(ctx, o)
	}
	if err != nil {
		return jobs.Switched{What: o.what, Name: o.name, Paused: o.on}, err
	}
	return q.switched(ctx, o, note, []string{o.name}, func(zone string) (codec.Turned, error) {
		return do(ctx, zone, o)
	})
}

func (q *Switches) resumeZone(ctx context.Context, zone string, o order) (codec.Turned, error) {
	if err := q.shiftAll(ctx, zone, "paused", o.id); err != nil {
		return codec.Turned{}, err
	}
	c, err := q.c.Turn(ctx, zone, o.turn("resume-zone", ""))
	c.Number = 0
	return c, err
}

// shiftAll postpones the expiry of all open tasks of a zone, before a pause or halt of the zone
// ends. flag names the pause or halt, order the order that ends it: a pause that was ordered later
// stays, and is counted as a whole when it ends.
func (q *Switches) shiftAll(ctx context.Context, zone, flag string, order int64) error {
	v, err := q.c.Redis().HMGet(ctx, keys.Zone(zone, "zone", ""), flag+"At", flag+"Id").Result()
	if err != nil {
		return q.c.Say("resume", err)
	}
	since, _ := strconv.ParseInt(codec.TextOf(v, 0), 10, 64)
	if id, _ := strconv.ParseInt(codec.TextOf(v, 1), 10, 64); since == 0 || id > order {
		return nil
	}
	number := strconv.FormatInt(since, 10)
	// Tasks that end meanwhile leave the list, so the pages overlap; shifting twice does no harm.
	for from := int64(0); ; from += codec.ChunkMax / 2 {
		ids, err := q.c.Redis().ZRange(ctx, keys.Zone(zone, "open", ""), from,
			from+codec.ChunkMax-1).Result()
		if err != nil || len(ids) == 0 {
			return q.c.Say("resume", err)
		}
		// The first call makes sure that Redis has the script.
		if err := q.shift(ctx, zone, ids[0], since); err != nil {
			return err
		}
		err = q.c.Pipeline(ctx, zone, queue.Calls{Script: queue.Scripts.Control, N: len(ids),
			Args: func(i int) []any { return []any{"shift", ids[i], "", number} }})
		if err != nil {
			return err
		}
	}
}
