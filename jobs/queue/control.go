package queue

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/redis/go-redis/v9"

	"muster/jobs"
)

// Pause lays the waiting jobs of a task aside until Resume. What runs goes on to
// its end. note says who and why. This order, and those below, are written down in the
// hub first: a zone that cannot be asked now hears of it from Tend.
func (q *Queue) Pause(ctx context.Context, id jobs.TaskID, note string) (jobs.Switched, error) {
	return q.turnTask(ctx, order{what: jobs.SwitchTask, name: string(id), on: true, note: note},
		q.pauseTask)
}

// Resume brings the jobs of a paused task back. Their expiry moves on by as long
// as the pause lasted.
func (q *Queue) Resume(ctx context.Context, id jobs.TaskID, note string) (jobs.Switched, error) {
	return q.turnTask(ctx, order{what: jobs.SwitchTask, name: string(id), note: note},
		func(ctx context.Context, zone string, o order) (control, error) {
			return q.bringBack(ctx, zone, id, "resume", o)
		})
}

func (q *Queue) turnTask(ctx context.Context, o order,
	do func(context.Context, string, order) (control, error)) (jobs.Switched, error) {
	zones, err := q.taskZones(ctx, jobs.TaskID(o.name))
	if err != nil {
		return jobs.Switched{What: o.what, Name: o.name, Paused: o.on}, err
	}
	note := o.note
	if o, err = q.give(ctx, o); err != nil {
		return jobs.Switched{What: o.what, Name: o.name, Paused: o.on}, err
	}
	ended := 0
	out, err := q.switched(ctx, o, note, zones, func(zone string) (control, error) {
		c, err := do(ctx, zone, o)
		if err == nil && c.status == "ended" {
			ended++
		}
		return c, err
	})
	if err != nil || ended < len(zones) {
		return out, err
	}
	// There is nothing for a server to repeat.
	out.Ended, out.Paused, out.Note = true, false, note
	return out, q.end(ctx, o)
}

// pauseTask lays the waiting jobs of a task in one zone aside.
func (q *Queue) pauseTask(ctx context.Context, zone string, o order) (control, error) {
	chunks, err := q.rdb.HGet(ctx, zoneKey(zone, "task:", o.name), "chunks").Int()
	if err != nil && !errors.Is(err, redis.Nil) {
		return control{}, q.say("pause", err)
	}
	all := control{}
	for chunk := range max(chunks, 1) {
		r, err := q.script(ctx, scripts.move, zone, o.name, "pause", chunkMax, oneLine(o.note), chunk,
			o.number())
		if err != nil {
			return all, err
		}
		c := readMove(r)
		if c.err != nil || c.status != "ok" {
			return c, c.err
		}
		if chunk == 0 {
			all.before = c.before
		}
		all.status = c.status
		all.number += c.number
	}
	return all, nil
}

// bringBack calls move until nothing is left to bring back.
func (q *Queue) bringBack(ctx context.Context, zone string, id jobs.TaskID, verb string,
	o order) (control, error) {
	held, err := q.rdb.ZCard(ctx, zoneKey(zone, "held:", string(id))).Result()
	if err != nil {
		return control{}, q.say(verb, err)
	}
	all := control{}
	for call := range held/hostsMax + 2 {
		r, err := q.script(ctx, scripts.move, zone, string(id), verb, hostsMax, oneLine(o.note), "",
			o.number())
		if err != nil {
			return all, err
		}
		c := readMove(r)
		if c.err != nil {
			return c, c.err
		}
		if call == 0 {
			all.before = c.before
		}
		all.status = c.status
		if c.status != "ok" || c.number == 0 {
			break
		}
	}
	// Those of waves that are not open stay.
	stay, err := q.rdb.ZCard(ctx, zoneKey(zone, "held:", string(id))).Result()
	all.number = max(held-stay, 0)
	return all, q.say(verb, err)
}

// release brings back what lies aside of a task that nobody pauses any more.
func (q *Queue) release(ctx context.Context, zone string, id jobs.TaskID) error {
	_, err := q.bringBack(ctx, zone, id, "release", order{})
	return err
}

func readMove(r reader) control {
	c := control{status: r.text(), number: int64(r.int())}
	if len(r.v) > 0 {
		c.before = r.text()
	}
	c.err = r.err
	return c
}

// later is the answer of a zone in which an order stands that was given after this one.
const later = "later"

// control is the answer of a script to a switch.
type control struct {
	status string // ok, already, later, absent, ended …
	before string // note of what stood already, or stood before
	number int64
	err    error
}

// switchZones does one thing in several zones and sums the answers up. A zone
// that cannot be asked is named in Missing, and is no error as long as one
// other answered.
func (q *Queue) switchZones(ctx context.Context, out jobs.Switched, note string, zones []string,
	do func(zone string) (control, error)) (jobs.Switched, error) {
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
		if c.status == later {
			overtaken, out.Note = true, cmp.Or(c.before, out.Note)
			continue
		}
		out.Moved += int(c.number)
		stood := c.status != "ok" || (c.before != "") == out.Paused
		if stood {
			already++
		}
		if stood && c.before != "" && !overtaken {
			out.Note = c.before
		}
	}
	out.Already = already == len(out.Zones) && len(errs) == 0
	if len(errs) > 0 && len(out.Zones) == 0 {
		return out, errors.Join(errs...)
	}
	if overtaken {
		out.Overtaken, out.Paused = true, !out.Paused
	}
	return out, q.countRunning(ctx, &out)
}

// turn is one turn of a switch; see control.lua.
type turn struct{ verb, object, note, number string }

// control calls the script of the switches of a zone.
func (q *Queue) control(ctx context.Context, zone string, t turn) (control, error) {
	r, err := q.script(ctx, scripts.control, zone, t.verb, t.object, oneLine(t.note), t.number)
	if err != nil {
		return control{}, err
	}
	c := control{status: r.text(), before: r.text()}
	c.number = int64(r.micros())
	if r.err != nil {
		return c, fmt.Errorf("%s in zone %s: %w", t.verb, zone, r.err)
	}
	if c.status == absent {
		return c, fmt.Errorf("%s in zone %s: %s: %w", t.verb, zone, t.object, ErrNotFound)
	}
	return c, nil
}

// PauseCustomer lets no job on a host of the customer start, until
// ResumeCustomer. What runs goes on to its end.
func (q *Queue) PauseCustomer(ctx context.Context, customer, note string) (jobs.Switched, error) {
	return q.turnCustomer(ctx, order{what: jobs.SwitchCustomer, name: customer, on: true, note: note},
		func(ctx context.Context, zone string, o order) (control, error) {
			c, err := q.control(ctx, zone, o.turn("pause-customer", customer))
			c.number = 0
			return c, err
		})
}

// ResumeCustomer brings back what was laid aside with the customer.
func (q *Queue) ResumeCustomer(ctx context.Context, customer, note string) (jobs.Switched, error) {
	return q.turnCustomer(ctx, order{what: jobs.SwitchCustomer, name: customer, note: note},
		q.resumeCustomer)
}

func (q *Queue) turnCustomer(ctx context.Context, o order,
	do func(context.Context, string, order) (control, error)) (jobs.Switched, error) {
	zones, err := q.Zones(ctx)
	note := o.note
	if err == nil {
		o, err = q.give(ctx, o)
	}
	if err != nil {
		return jobs.Switched{What: o.what, Name: o.name, Paused: o.on}, err
	}
	return q.switched(ctx, o, note, zones, func(zone string) (control, error) {
		return do(ctx, zone, o)
	})
}

func (q *Queue) resumeCustomer(ctx context.Context, zone string, o order) (control, error) {
	c, err := q.control(ctx, zone, o.turn("resume-customer", o.name))
	if err != nil {
		return c, err
	}
	since := c.number
	c.number = 0
	parked, err := q.rdb.SMembers(ctx, zoneKey(zone, "parked", "")).Result()
	if err != nil {
		return c, q.say("resume", err)
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
		c.number += back.number
	}
	return c, nil
}

// shift lets the jobs of a task expire later by as long as a pause lasted.
func (q *Queue) shift(ctx context.Context, zone, task string, since int64) error {
	number := strconv.FormatInt(since, 10)
	_, err := q.control(ctx, zone, turn{verb: "shift", object: task, number: number})
	if errors.Is(err, ErrNotFound) {
		return nil // it ended more than a day ago
	}
	return err
}

// everywhere does one thing in every zone that was ever used.
func (q *Queue) everywhere(ctx context.Context, out jobs.Switched, note string,
	do func(zone string) (control, error)) (jobs.Switched, error) {
	zones, err := q.Zones(ctx)
	if err != nil {
		return out, err
	}
	return q.switchZones(ctx, out, note, zones, do)
}

// PauseZone lets nothing start in a zone until ResumeZone. What runs goes on.
func (q *Queue) PauseZone(ctx context.Context, zone, note string) (jobs.Switched, error) {
	return q.turnZone(ctx, order{what: jobs.SwitchZone, name: zone, on: true, note: note},
		func(ctx context.Context, zone string, o order) (control, error) {
			c, err := q.control(ctx, zone, o.turn("pause-zone", ""))
			c.number = 0
			return c, err
		})
}

// ResumeZone lets jobs start again in a zone. Their expiry moves on by as long
// as the pause lasted.
func (q *Queue) ResumeZone(ctx context.Context, zone, note string) (jobs.Switched, error) {
	return q.turnZone(ctx, order{what: jobs.SwitchZone, name: zone, note: note}, q.resumeZone)
}

func (q *Queue) turnZone(ctx context.Context, o order,
	do func(context.Context, string, order) (control, error)) (jobs.Switched, error) {
	err := q.knowZone(ctx, o.name)
	note := o.note
	if err == nil {
		o, err = q.give(ctx, o)
	}
	if err != nil {
		return jobs.Switched{What: o.what, Name: o.name, Paused: o.on}, err
	}
	return q.switched(ctx, o, note, []string{o.name}, func(zone string) (control, error) {
		return do(ctx, zone, o)
	})
}

func (q *Queue) resumeZone(ctx context.Context, zone string, o order) (control, error) {
	if err := q.shiftAll(ctx, zone, "paused", o.id); err != nil {
		return control{}, err
	}
	c, err := q.control(ctx, zone, o.turn("resume-zone", ""))
	c.number = 0
	return c, err
}

func (q *Queue) knowZone(ctx context.Context, zone string) error {
	zones, err := q.Zones(ctx)
	if err == nil && !slices.Contains(zones, zone) {
		err = fmt.Errorf("zone %s: %w", zone, ErrNotFound)
	}
	return err
}

// shiftAll lets the jobs of all open tasks of a zone expire later, before a pause or
// halt of the zone ends. flag is the one that stands for it, order the one that ends it: a
// pause that was ordered later goes on, and is counted as a whole when it ends.
func (q *Queue) shiftAll(ctx context.Context, zone, flag string, order int64) error {
	v, err := q.rdb.HMGet(ctx, zoneKey(zone, "zone", ""), flag+"At", flag+"Id").Result()
	if err != nil {
		return q.say("resume", err)
	}
	since, _ := strconv.ParseInt(textOf(v, 0), 10, 64)
	if id, _ := strconv.ParseInt(textOf(v, 1), 10, 64); since == 0 || id > order {
		return nil
	}
	number := strconv.FormatInt(since, 10)
	// Tasks that end meanwhile leave the list, so pages overlap; twice does no harm.
	for from := int64(0); ; from += chunkMax / 2 {
		ids, err := q.rdb.ZRange(ctx, zoneKey(zone, "open", ""), from, from+chunkMax-1).Result()
		if err != nil || len(ids) == 0 {
			return q.say("resume", err)
		}
		// The first one makes sure that the script is known.
		if err := q.shift(ctx, zone, ids[0], since); err != nil {
			return err
		}
		err = q.pipeline(ctx, zone, calls{script: scripts.control, n: len(ids),
			args: func(i int) []any { return []any{"shift", ids[i], "", number} }})
		if err != nil {
			return err
		}
	}
}

// Stops tells which of the jobs are to be stopped: job to who and why. One round
// trip, for workers with jobs in hand. It also says anew what is in hand if the
// zone was forgotten meanwhile.
func (q *Queue) Stops(ctx context.Context, zone string, ids []jobs.ID) (map[jobs.ID]string, error) {
	found := make([]*redis.SliceCmd, len(ids))
	var epoch *redis.StringCmd
	_, err := q.rdb.Pipelined(ctx, func(p redis.Pipeliner) error {
		epoch = p.HGet(ctx, zoneKey(zone, "zone", ""), "epoch")
		for i, id := range ids {
			found[i] = p.HMGet(ctx, zoneKey(zone, "task:", string(id.Task())), "cancel",
				recordField(id.Host()))
		}
		return nil
	})
	if err != nil && !errors.Is(err, redis.Nil) {
		return nil, q.say("stops", err)
	}
	if err := q.follow(ctx, zone, epoch.Val()); err != nil {
		return nil, err
	}
	out := map[jobs.ID]string{}
	for i, id := range ids {
		whole, _ := found[i].Val()[0].(string)
		text, _ := found[i].Val()[1].(string)
		r, err := readRecord(text)
		if err != nil {
			return nil, fmt.Errorf("job %s: %w", id, err)
		}
		notes := slices.DeleteFunc([]string{whole, r.cancel}, func(s string) bool { return s == "" })
		if len(notes) > 0 {
			out[id] = strings.Join(notes, "; ")
		}
	}
	return out, nil
}
