package sim

import (
	"fmt"
	"time"

	"muster/jobs"
)

// The numbers of package worker.
const (
	answerTime = time.Second
	goTime     = 5 * time.Second
	boundMin   = 5 * time.Second
	poll       = 10 * time.Second
	giveUp     = 30 * time.Second
	heardEvery = 3 * time.Second
)

// A child works on jobs as package worker does.
type child struct {
	*client
	slots    int
	prefix   string
	calls    int
	work     map[jobs.Token]*attempt
	results  []jobs.Result
	under    *jobs.Step    // the call under way
	sent     time.Duration // when it was first sent
	idle     bool
	draining bool
	orphan   bool
	ended    func() // hears of its death
}

func deadline(sent, timeout time.Duration) time.Duration {
	return sent + timeout - jobs.Margin(timeout)
}

func (c *child) start(r jobs.Reply, sent time.Duration) {
	for _, g := range r.Jobs {
		c.held[g.Job] = inHand{g.Token, g.Timeout, sent + g.Timeout}
	}
	c.stayHeard()
	c.accept(r, sent)
	c.ask()
}

// stayHeard registers the child, sees within seconds that Redis was restarted, and asks
// which of its jobs are to be stopped.
func (c *child) stayHeard() {
	c.script(c.stops(), nil, func(v any, err error) {
		if err == nil {
			c.halt(v.(map[jobs.ID]string))
		}
	})
	c.after(heardEvery, c.stayHeard)
}

func (c *child) accept(r jobs.Reply, sent time.Duration) {
	c.idle = r.Status != jobs.StatusJobs && r.Status != jobs.StatusMore
	for _, g := range r.Jobs {
		a := &attempt{child: c, grant: g, spec: c.staff.plans[g.Job.Task()], sent: sent,
			end: deadline(sent, g.Timeout), progress: progress{step: g.Step, mind: recall(g.Saved)}}
		if c.draining && g.Mode != jobs.ModeLost {
			c.results = append(c.results, a.say(jobs.KindBack))
			continue
		}
		c.work[g.Token] = a
		a.run()
	}
}

// ask makes a call if there is something to say or to ask for, and ends the child
// if there is nothing left.
func (c *child) ask() {
	if c.under != nil {
		return
	}
	want := c.slots - len(c.work)
	if c.draining {
		want = 0
	}
	if len(c.results) == 0 && (want == 0 || c.idle) {
		if len(c.work) == 0 && (c.draining || c.idle) {
			c.exit()
		}
		return
	}
	c.calls++
	c.under = &jobs.Step{Node: c.node, Slot: c.slot, Request: fmt.Sprint(c.prefix, c.calls),
		Results: c.results, Want: want}
	c.results, c.sent = nil, c.now
	c.faults.point(c, killReporting)
	c.send(1)
}

func (c *child) send(try int) {
	c.step(*c.under, func(r jobs.Reply, err error) {
		if err != nil {
			if c.now-c.sent > giveUp && len(c.under.Results) == 0 && len(c.work) == 0 {
				c.exit()
				return
			}
			c.after(c.between(50*time.Millisecond, 50*time.Millisecond<<min(try, 5)), func() { c.send(try + 1) })
			return
		}
		c.under = nil
		c.accept(r, c.sent)
		c.ask()
		if len(c.work) > 0 { // with a slot free beside running jobs
			c.after(poll, func() { c.idle = false; c.ask() })
		}
	})
}

func (c *child) exit() { c.die("exit") }

// die ends the child, by itself or by kill -9.
func (c *child) die(why string) {
	if c.dead {
		return
	}
	c.world.say("child %s/%s: %s", c.node, c.slot, why)
	c.kill()
	c.ended()
}
