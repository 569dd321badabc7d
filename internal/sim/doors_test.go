package sim

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"muster/fleet"
	"muster/jobs"
	"muster/jobs/model"
	"muster/windows"
)

// doors are the ways of a real worker to the model of the queue. Their methods run in goroutines
// of the worker.
type doors struct{ c *child }

// A reply is the answer to a visit.
type reply[T any] struct {
	value T
	err   error
}

// ask makes a call of the queue. do begins it, in the goroutine of the world.
func ask[T any](ctx context.Context, c *runner, what string, do func(over func() bool,
	then func(T, error))) (T, error) {
	back := c.visit(what, func(v *visit) {
		do(func() bool { return v.answered }, func(value T, err error) { c.answer(v, reply[T]{value, err}) })
	}, c.givesUp(ctx, func(v *visit) { c.answer(v, reply[T]{err: context.Cause(ctx)}) }))
	r := back.(reply[T])
	return r.value, r.err
}

// script makes a call of the queue that is one script, for a zone that exists. Two calls of a process
// at one instant must differ in their kind or their object.
func script[T any](ctx context.Context, c *runner, kind, object string, do func(*zone, jobs.Micros) T) (T,
	error) {
	return ask(ctx, c, kind+" "+object, func(over func() bool, then func(T, error)) {
		f := call{kind: kind, do: func(z *zone, now jobs.Micros) any { return do(z, now) }, over: over}
		c.script(f, nil, func(v any, err error) {
			value, _ := v.(T)
			then(value, err)
		})
	})
}

// Step reports the results of jobs, and takes further ones.
func (d doors) Step(ctx context.Context, _ string, s jobs.Step) (jobs.Reply, error) {
	return ask(ctx, d.c.runner, "step", func(over func() bool, then func(jobs.Reply, error)) {
		if len(s.Results) > 0 {
			d.c.says(s.Results)
			d.c.faults.point(d.c, killReporting, d.c.of(first(s), "reports"))
		}
		d.c.step(s, over, func(r jobs.Reply, err error) { then(d.c.withHosts(r), err) })
	})
}

// says counts results that must have been said once.
func (c *child) says(results []jobs.Result) {
	for _, r := range results {
		c.world.say("worker: %s: %s %s %s", r.Job, r.Kind, r.Outcome, r.Error)
		if strings.HasPrefix(r.Error, "not back after ") || strings.HasPrefix(r.Error, "not ready after ") {
			c.faults.met("a host does not come back")
		}
		if in, ok := c.held[r.Job]; ok && in.Token == r.Token && c.now > in.until {
			c.faults.met("a child goes on behind its lock")
		}
	}
}

var errAbsent = errors.New("the zone does not exist")

// Checkpoint asks whether the next step of a job may start.
func (d doors) Checkpoint(ctx context.Context, _ string, q jobs.Checkpoint) (jobs.Verdict, error) {
	c := d.c
	return ask(ctx, c.runner, "checkpoint "+string(q.Job), func(over func() bool, then func(jobs.Verdict, error)) {
		sent := c.now
		do := func(z *zone, now jobs.Micros) any { return z.Checkpoint(now, q) }
		f := call{"checkpoint", do, over, q.Job}
		absent := func(v any) bool { return v.(jobs.Verdict) == model.Absent }
		c.script(f, absent, func(v any, err error) {
			switch {
			case err != nil:
			case absent(v):
				err = errAbsent
			case v.(jobs.Verdict) == jobs.Go:
				c.extend(q.Job, sent)
			}
			verdict, _ := v.(jobs.Verdict)
			then(verdict, err)
		})
	})
}

// extend notes that the lock of a job in hand lasts longer, counted from the time of the request.
func (c *child) extend(id jobs.ID, sent time.Duration) {
	if in, ok := c.held[id]; ok {
		in.until = max(in.until, sent+in.Timeout)
		c.held[id] = in
	}
}

// Stops returns the notes of the jobs that are cancelled.
func (d doors) Stops(ctx context.Context, _ string, ids []jobs.ID) (map[jobs.ID]string, error) {
	slices.Sort(ids)
	return script(ctx, d.c.runner, "stops", "", func(z *zone, _ jobs.Micros) map[jobs.ID]string {
		notes := map[jobs.ID]string{}
		for _, id := range ids {
			if t := z.Tasks[id.Task()]; t != nil && t.Cancel != "" {
				notes[id] = t.Cancel
			} else if j := z.Jobs[id]; j != nil && j.Cancel != "" {
				notes[id] = j.Cancel
			}
		}
		return notes
	})
}

// Agreed returns the version of the timetable that is in force, and the time.
func (d doors) Agreed(ctx context.Context) (jobs.Agreed, error) {
	return script(ctx, d.c.runner, "timetable", "", func(_ *zone, now jobs.Micros) jobs.Agreed {
		return jobs.Agreed{Version: d.c.redis.agreed.version, Mark: d.c.redis.agreed.mark(), Now: now,
			Skew: start.Add(d.c.now).Sub(now)}
	})
}

// Excerpts reads what is in force for some scopes.
func (d doors) Excerpts(ctx context.Context, scopes []windows.Scope) (jobs.Excerpts, error) {
	return script(ctx, d.c.runner, "excerpts", "", func(*zone, jobs.Micros) jobs.Excerpts {
		a := d.c.redis.agreed
		x := jobs.Excerpts{Version: a.version, Mark: a.mark()}
		for _, s := range scopes {
			part := a.parts[s.String()]
			if part == nil {
				part = &windows.Excerpt{}
			}
			x.Parts = append(x.Parts, part)
		}
		return x
	})
}

// Estimate knows nothing: the task says how long it takes.
func (doors) Estimate(context.Context, string) (jobs.Estimate, bool, error) {
	return jobs.Estimate{}, false, nil
}

// Alert tells nobody.
func (doors) Alert(context.Context, string, jobs.Alert) error { return nil }

// Gate returns the answer of a person at a gate.
func (d doors) Gate(ctx context.Context, _ string, id jobs.ID, step int) (jobs.GateAnswer, error) {
	text, err := script(ctx, d.c.runner, "gate", string(id), func(z *zone, _ jobs.Micros) string {
		if t := z.Tasks[id.Task()]; t != nil {
			return t.Gates[fmt.Sprint(step, ":", id.Host())]
		}
		return ""
	})
	return jobs.ReadGateAnswer(text), err
}

// CloseGate says that nobody has answered in time, unless somebody has.
func (d doors) CloseGate(ctx context.Context, _ string, id jobs.ID, step int) (jobs.GateAnswer, error) {
	late := jobs.GateAnswer{Word: jobs.GateLate}
	got, err := script(ctx, d.c.runner, "shut", string(id), func(z *zone, now jobs.Micros) model.Turned {
		d.c.faults.met("nobody answers at a gate")
		return z.Control(now, answerTo(id, step, late))
	})
	if err == nil && got.Status == "already" {
		return jobs.ReadGateAnswer(got.Before), nil
	}
	return late, err
}

// Reorder leaves the order of the queue as it is.
func (doors) Reorder(context.Context, string, jobs.Overload) (jobs.Reordering, error) {
	return jobs.Reordering{Again: time.Hour}, nil
}

// Speak has no listeners.
func (doors) Speak(context.Context, string, []jobs.Speech) ([]jobs.ID, error) { return nil, nil }

// Kin are the groups of the hosts. Nobody changes the inventory.
func (d doors) Kin(context.Context, string, string) (map[string][]string, error) {
	kin := map[string][]string{}
	for _, name := range sorted(d.c.hosts) {
		group := d.c.hosts[name].group
		kin[group] = append(kin[group], name)
	}
	return kin, nil
}

// Hosts are the members of a group.
func (d doors) Hosts(_ context.Context, _, _ string, names []string) (list []fleet.Host, err error) {
	for _, name := range names {
		list = append(list, d.c.hosts[name].record())
	}
	return list, nil
}

// Fate is asked by the markers of a group, and these hosts keep none.
func (doors) Fate(context.Context, string, string, jobs.ID) (jobs.Standing, error) {
	return jobs.Standing{}, nil
}
