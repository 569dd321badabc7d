package sim

import (
	"context"
	"errors"
	"fmt"
	"time"

	"muster/fleet"
	"muster/fleet/remote"
	"muster/jobs"
	"muster/scripts"
	"muster/worker/attempt"
	"muster/worker/verdict"
)

// callMax bounds the time to connect with a host.
const callMax = 3 * time.Second

// A line is the connection of a worker with a host, as package remote makes them. Its methods run
// in goroutines of the worker; what they do to the host belongs to the goroutine of the world.
type line struct {
	*child
	h    *host
	in   inHand // the job for which it was made
	boot int    // in which the host was then
}

var errSim = errors.New("a pretended host")

func trouble(op string, h *host, kind remote.Kind, sent bool) error {
	return &remote.Error{Op: op, Host: h.name, Addr: "192.0.2.1:22", Kind: kind, Sent: sent, Err: errSim}
}

// Dial connects with a host.
func (d doors) Dial(ctx context.Context, to fleet.Host) (attempt.Conn, error) {
	c, h := d.c, d.c.hosts[to.Name]
	back := c.visit("dials "+h.name, func(v *visit) {
		in := c.at(h)
		of := c.of(in.Job, "dial")
		c.faults.point(c, killStarted, of)
		c.after(c.between(time.Millisecond, callMax), func() {
			probe := verdict.Recall(in.Saved).Probe
			if h.down > c.now && probe != nil && probe.Boot != "" {
				c.faults.met("a host is away behind its reboot")
			}
			away := c.faults.unlucky(notReached, c.staff.plans[in.Job.Task()].unreachable, of)
			if h.down > c.now || away {
				c.answer(v, trouble("connect", h, remote.KindUnreachable, false))
				return
			}
			c.answer(v, &line{c, h, in, h.boots})
		})
	}, c.givesUp(ctx, func(v *visit) { c.answer(v, trouble("connect", h, remote.KindCancelled, false)) }))
	if err, failed := back.(error); failed {
		return nil, err
	}
	return back.(*line), nil
}

// at is the last job that the child took on a host. It may have said the end of an older attempt at
// that since, so that it is not among those that it holds.
func (c *child) at(h *host) inHand { return c.took[h.name] }

// Close ends the connection.
func (*line) Close() error { return nil }

// Upload is of no task.
func (l *line) Upload(context.Context, remote.Upload) error {
	return trouble("upload", l.h, remote.KindRefused, false)
}

// Mark is asked of no host without records.
func (l *line) Mark(context.Context, remote.Marker) (remote.Marking, error) {
	return remote.Marking{}, trouble("mark", l.h, remote.KindRecord, false)
}

// ran is the end of a command.
type ran struct {
	result remote.Result
	err    error
}

// Run has the host run a command. It does that whatever becomes of the connection.
func (l *line) Run(ctx context.Context, cmd remote.Command) (remote.Result, error) {
	var e *entry
	begin := func(v *visit) {
		switch step := 0; {
		case l.h.down > l.now || l.h.boots != l.boot:
			l.end(v, "", 0, trouble("run", l.h, remote.KindUnreachable, false))
		case cmd.Shell == askBoot:
			l.after(l.latency(), func() { l.end(v, bootID(l.boot), 0, nil) })
		case scanned(cmd.Shell, isReady, &step):
			l.after(l.latency(), func() { l.probed(v) })
		case scanned(cmd.Shell, doIt, &step):
			e = l.begin(v, step, cmd.Bound)
		default:
			panic("a command that no plan has: " + cmd.Shell)
		}
	}
	left := l.givesUp(ctx, func(v *visit) { l.end(v, "", -1, trouble("run", l.h, remote.KindCancelled, true)) })
	stop := heed{" is stopped", cmd.Stop, func(v *visit) {
		l.after(l.between(0, 3*time.Second), func() { l.stopped(v, e) })
	}}
	r := l.visit("runs on "+l.h.name, begin, left, stop).(ran)
	return r.result, r.err
}

func scanned(text, form string, n *int) bool {
	_, err := fmt.Sscanf(text, form, n)
	return err == nil
}

func bootID(n int) string { return fmt.Sprintf("%08d-0000-0000-0000-000000000000\n", n) }

// end answers a command. Only the first answer counts.
func (l *line) end(v *visit, said string, code int, err error) {
	l.answer(v, ran{remote.Result{ExitCode: code, Output: remote.Output{Head: []byte(said)}}, err})
}

// probed answers the question whether the host is well.
func (l *line) probed(v *visit) {
	if l.faults.unlucky(notWell, 0.3, l.of(l.in.Job, "probe")) {
		l.end(v, "not yet\n", scripts.NotYet, nil)
		return
	}
	l.end(v, "", 0, nil)
}

// begin starts a step on the host.
func (l *line) begin(v *visit, step int, bound time.Duration) *entry {
	p := l.staff.plans[l.in.Job.Task()]
	s, memory := p.steps[step], verdict.Recall(l.in.Saved)
	runs, try := min(s.takes, bound), 0
	if step == l.in.Step {
		try = memory.Again
	}
	if s.takes > bound {
		runs += l.between(0, 5*time.Second) // it heeds no signal but the last
	}
	e := &entry{job: l.in.Job, token: l.in.Token, step: step, try: try,
		once: !p.repeatable && !s.safe(), plan: p, stage: s, from: l.now, to: l.now + runs,
		latest: l.now + bound + 5*time.Second, asked: l.in.sent,
		goes: l.in.Mode == jobs.ModeLost || memory.Probe != nil && memory.Probe.Boot != ""}
	if l.in.Mode == jobs.ModeLost {
		l.faults.met("a lost job looks again")
	}
	l.h.begin(e)
	of := l.of(l.in.Job, fmt.Sprint("step ", step))
	l.faults.point(l.child, killAtWork, of)
	if s.kind == reboot {
		l.h.in(runs, l.h.goesDown)
	}
	if after, cut := l.faults.cuts(runs, of); cut {
		l.after(after, func() { l.end(v, "", -1, trouble("run", l.h, remote.KindLost, true)) })
	}
	l.after(runs, func() {
		if !v.answered {
			l.finished(v, e, s.takes > bound, of)
		}
	})
	return e
}

// finished answers a command that has ended.
func (l *line) finished(v *visit, e *entry, cut bool, of string) {
	l.faults.point(l.child, killAfterWork, of)
	switch failed := l.faults.unlucky(stepFails, e.fails, of); {
	case cut:
		l.end(v, "", 124, trouble("run", l.h, remote.KindTimeout, true))
	case e.kind == reboot && l.chance(0.5): // its connection goes with the host
		l.end(v, "", -1, trouble("run", l.h, remote.KindLost, true))
	case failed && e.kind != reboot:
		if e.try+1 < e.tries {
			l.faults.met("a step is tried again")
		}
		l.end(v, "failed\n", scripts.NotYet, nil)
	default:
		l.end(v, "", 0, nil)
	}
}

// stopped stops a command that was cancelled, or cannot.
func (l *line) stopped(v *visit, e *entry) {
	if v.answered {
		return
	}
	if e != nil && l.faults.unlucky(goesOn, 0.3, l.of(l.in.Job, fmt.Sprint("step ", e.step))) {
		l.faults.met("a cancelled step goes on")
		l.end(v, "", -1, trouble("run", l.h, remote.KindRunning, true))
		return
	}
	if e != nil {
		l.faults.met("a cancelled step is stopped")
		e.to = min(e.to, l.now)
	}
	l.end(v, "", -1, trouble("run", l.h, remote.KindStopped, true))
}
