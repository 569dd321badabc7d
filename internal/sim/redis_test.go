package sim

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"muster/jobs"
	"muster/jobs/model"
	"muster/testkit/zonetest"
)

// server is the one Redis.
type server struct {
	*world
	zone    *model.Zone
	offset  time.Duration // of its clock
	up      bool
	run     int           // number of its start
	stalled time.Duration // it answers nothing before
	events  map[string]int
	loses   func(kept *model.Zone) // what is written next is lost
	halted  time.Duration          // since when; 0: it is not
	agreed  agreement              // what it knows of windows

	taken map[jobs.Token]time.Duration // when each attempt was given

	lost   losses
	unseen bool // its clock has jumped, and nobody has seen that yet
	limits limited
}

// losses are the attempts of which a server has lost something, for the judge.
type losses struct {
	forgotten map[jobs.Token]bool // the last take of a job, with the last writes
	takes     []span              // of which all takes are forgotten, earlier ones of a job, too
	flushed   map[jobs.Token]bool // all, in a FLUSHALL
	behind    map[jobs.Token]bool // how far it was
	blind     map[jobs.Token]bool // taken between a jump of its clock and the freeze behind it
	early     []time.Duration     // when its clock jumped ahead, by less than anybody notices
}

// A span is of tokens: those after from, up to to.
type span struct{ from, to jobs.Micros }

// forgot reports whether a server has lost that this token was given.
func (l losses) forgot(token jobs.Token) bool {
	return l.forgotten[token] || slices.ContainsFunc(l.takes, func(s span) bool {
		return jobs.Micros(token) > s.from && jobs.Micros(token) <= s.to
	})
}

func newServer(w *world) *server {
	return &server{world: w, zone: model.New(), up: true, run: 1, events: map[string]int{},
		taken: map[jobs.Token]time.Duration{},
		lost: losses{map[jobs.Token]bool{}, nil, map[jobs.Token]bool{}, map[jobs.Token]bool{},
			map[jobs.Token]bool{}, nil},
		limits: limited{map[string]map[jobs.ID]time.Duration{}, map[string][]limitAt{}}}
}

func (s *server) time() jobs.Micros { return start.Add(s.now + s.offset) }

// carry carries a call out and looks whether the zone is consistent after it.
func (s *server) carry(f call) any {
	var kept *model.Zone
	if s.loses != nil {
		kept = s.zone.Clone()
	}
	before := [2]int{s.zone.Queue.Len(), s.zone.Again.Len()}
	noted := s.zone.Flags.Jumped
	v := f.do(s.zone, s.time())
	s.unseen = s.unseen && s.zone.Flags.Jumped == noted
	if slices.Contains(reading, f.kind) || slices.Contains(polling, f.kind) &&
		len(s.zone.Events) == 0 && before == [2]int{s.zone.Queue.Len(), s.zone.Again.Len()} {
		return v
	}
	for _, e := range s.zone.Events {
		s.events[e.Name]++
		if e.Name == "take" {
			token := s.zone.Jobs[jobs.ID(e.Object)].Token
			s.taken[token] = s.now
			if s.unseen {
				s.lost.blind[token] = true
			}
		}
		if s.loses != nil && (e.Name == "take" || e.Name == "end" || e.Name == "step" || e.Name == "commit") {
			lose := s.loses
			s.loses = nil
			lose(kept)
		}
		if e.Name != "step" {
			s.say("redis: %s %s", e.Name, e.Object)
		}
	}
	s.zone.Events = nil
	for _, mistake := range zonetest.Mistakes(s.zone) {
		s.broken("I7: %s", mistake)
	}
	s.overspent()
	s.count()
	if halted := s.zone.Flags.Halted.Note != ""; halted && s.halted == 0 {
		s.halted = s.now
	} else if !halted {
		s.halted = 0
	}
	return v
}

// restart takes the server away for a time. With kept it comes back as it was then.
func (s *server) restart(away time.Duration, kept *model.Zone) {
	s.up = false
	s.in(away, func() {
		if kept != nil {
			for id, j := range s.zone.Jobs {
				k := kept.Jobs[id]
				s.lost.forgotten[j.Token] = k == nil || k.Token != j.Token
				s.lost.behind[j.Token] = k != nil && k.Token == j.Token && k.Step < j.Step
			}
			s.lost.takes = append(s.lost.takes, span{kept.Flags.Token, s.zone.Flags.Token})
			s.zone = kept
		}
		s.up = true
		s.run++
		s.say("redis: back as run %d", s.run)
	})
}

// flush is FLUSHALL.
func (s *server) flush() {
	for _, j := range s.zone.Jobs {
		s.lost.flushed[j.Token] = true
	}
	s.zone, s.agreed = model.New(), agreement{}
}

var (
	errTimeout = errors.New("no answer in time")
	errRefused = errors.New("connection refused or broken")
)

const callTimeout = 5 * time.Second

// A client is the connection of a process to Redis, and what it knows of it: what
// jobs/queue does for its caller.
type client struct {
	*process
	node, slot string
	run        int // of the server that it is connected to; 0: not connected
	epoch      jobs.Micros
	longest    time.Duration
	held       map[jobs.ID]inHand
	took       map[string]inHand // the last job on each host
	known      clock
	looked     time.Duration
	stamp      jobs.Micros
}

type inHand struct {
	jobs.Grant
	sent  time.Duration // before it was asked for
	until time.Duration
}

func newClient(p *process, node, slot string) *client {
	return &client{process: p, node: node, slot: slot, held: map[jobs.ID]inHand{}, took: map[string]inHand{}}
}

// call is the work of a script, with its arguments, and what it is for.
type call struct {
	kind string
	do   func(z *model.Zone, now jobs.Micros) any
	over func() bool // who made it has given it up; nil: nobody does
	job  jobs.ID     // that it concerns; empty: many
}

func (f call) givenUp() bool { return f.over != nil && f.over() }

// wire sends one call. Of its answer it is told within the timeout, or of an error:
// then it is not known whether it was carried out.
func (c *client) wire(run int, f call, then func(any, error)) {
	answered := false
	finish := func(v any, err error) {
		if !answered {
			answered = true
			c.then(func() {
				if !f.givenUp() {
					then(v, err)
				}
			})
		}
	}
	c.in(callTimeout, func() { finish(nil, errTimeout) })
	of := c.of(f.job, f.kind)
	if f.givenUp() || c.faults.strikes(requestLost, f.kind, of) {
		return
	}
	s := c.redis
	var arrive func()
	arrive = func() {
		switch {
		case !s.up || s.run != run:
			c.in(c.latency(), func() { finish(nil, errRefused) })
			return
		case s.stalled > c.now:
			c.in(s.stalled-c.now, arrive)
			return
		}
		v := s.carry(f)
		c.faults.behind(c.process, f.kind, of)
		if c.faults.strikes(duplicated, f.kind, of) {
			c.in(c.between(time.Millisecond, 90*time.Second), func() {
				if s.up && s.run == run {
					s.carry(f)
				}
			})
		}
		if c.faults.strikes(replyLost, f.kind, of) {
			c.faults.haltBehind(f.kind)
			return
		}
		c.in(c.latency(), func() { finish(v, nil) })
	}
	c.in(c.latency(), arrive)
}

// of names a call by its job, the attempt and its kind, for a plot.
func (c *client) of(id jobs.ID, kind string) string {
	if c.faults.plot == nil || id == "" {
		return ""
	}
	return fmt.Sprintf("%s attempt %d %s", id, c.held[id].Attempt, kind)
}

// first is the job of the first result; empty: there is none.
func first(s jobs.Step) jobs.ID {
	if len(s.Results) == 0 {
		return ""
	}
	return s.Results[0].Job
}

func (w *world) latency() time.Duration {
	return w.between(50*time.Microsecond, 2*time.Millisecond)
}

// hello is the first call of a connection, with a jump of TIME if one is known.
func (c *client) hello(jump time.Duration, then func(error)) {
	run, sent := c.redis.run, c.now
	h := model.Hello{Run: fmt.Sprint("run", run), Knew: c.epoch, Longest: c.longest}
	if c.node != "" {
		h.Who = c.node + "/" + c.slot
	}
	if c.known.known {
		h.Sent = c.next()
	}
	for _, in := range c.held {
		if !c.known.known {
			h.Sent = max(h.Sent, jobs.Micros(in.Token)) // TIME when it was taken for this child
		}
	}
	if jump != 0 {
		h.Jumped, h.Since = jump, c.known.at(c.looked).Add(jump)
	}
	for _, id := range sorted(c.held) {
		in := c.held[id]
		h.Jobs = append(h.Jobs, model.InHand{Job: id, Token: in.Token,
			Left: max(in.until-sent, time.Millisecond)})
	}
	f := call{kind: "hello", do: func(z *model.Zone, now jobs.Micros) any { return z.Epoch(now, h) }}
	c.wire(run, f, func(v any, err error) {
		if err != nil {
			c.run = 0
			then(err)
			return
		}
		a := v.(model.Welcome)
		again := c.known.jump(look(a.Now, sent, c.now))
		if again.Abs() > time.Minute && jump == 0 {
			c.hello(again, then)
			return
		}
		c.run, c.epoch, c.longest = run, a.Epoch, max(c.longest, a.Longest)
		c.see(a.Now, sent)
		then(nil)
	})
}

func (c *client) see(now jobs.Micros, sent time.Duration) {
	c.known, c.looked = c.known.with(look(now, sent, c.now)), c.now
}

// hold notes a job that this process has from now on.
func (c *client) hold(g jobs.Grant, sent time.Duration) {
	c.held[g.Job] = inHand{g, sent, sent + g.Timeout}
	c.took[g.Job.Host()] = c.held[g.Job]
}

// inherit notes the epoch that a master knew before it took the jobs of this child.
func (c *client) inherit(epoch string) {
	at, err := jobs.ParseMicros(epoch)
	if err != nil {
		panic(err)
	}
	c.epoch = at
}

// script makes a call, after hello if that is needed. absent reports whether the zone did not
// exist.
func (c *client) script(f call, absent func(any) bool, then func(any, error)) {
	again := false
	var try func()
	send := func() {
		c.wire(c.run, f, func(v any, err error) {
			switch {
			case err != nil:
				c.run = 0
				then(nil, err)
			case absent != nil && absent(v) && !again:
				again = true
				c.run = 0
				try()
			default:
				then(v, nil)
			}
		})
	}
	try = func() {
		if c.run != 0 && c.run == c.redis.run {
			send()
			return
		}
		c.hello(0, func(err error) {
			if err != nil {
				then(nil, err)
				return
			}
			send()
		})
	}
	try()
}

// step is one try of the call step. It ends without an answer once over says so; nil: it never does.
func (c *client) step(a jobs.Step, over func() bool, then func(jobs.Reply, error)) {
	for _, r := range a.Results {
		if r.Kind == jobs.KindBack {
			delete(c.held, r.Job)
		}
	}
	sent, epoch := c.now, c.epoch
	c.stamped(func(stamp jobs.Micros) call {
		m := model.Step{Step: a, Expected: stamp, Sent: stamp}
		do := func(z *model.Zone, now jobs.Micros) any { return z.Step(now, m) }
		return call{kindOf(a), do, over, first(a)}
	}, func(v any) string { return string(v.(jobs.Reply).Status) }, func(v any, err error) {
		if err != nil {
			then(jobs.Reply{}, err)
			return
		}
		r := v.(jobs.Reply)
		if r.Epoch = ""; epoch != 0 {
			r.Epoch = epoch.String()
		}
		c.see(r.Now, c.now)
		for _, g := range r.Jobs {
			c.longest = max(c.longest, g.Timeout)
		}
		if a.Slot == c.slot {
			for _, result := range a.Results {
				delete(c.held, result.Job)
			}
			for _, g := range r.Jobs {
				c.hold(g, sent)
			}
		}
		if r.Status == jobs.StatusFrozen && c.redis.zone.Flags.Epoch != c.epoch {
			c.hello(0, func(error) { then(r, nil) }) // what it knows lengthens the freeze
			return
		}
		then(r, nil)
	})
}

func (c *client) lose(l jobs.Loss, over func() bool, then func(error)) {
	c.stamped(func(stamp jobs.Micros) call {
		m := model.Loss{Loss: l, Sent: stamp}
		return call{kind: "lose", over: over, do: func(z *model.Zone, now jobs.Micros) any {
			if _, stale := z.Lose(now, m); stale {
				return model.Stale
			}
			return ""
		}}
	}, func(v any) string { return v.(string) }, func(_ any, err error) { then(err) })
}

// next returns a stamp: the estimate of TIME, later than all stamps before, unless the clock was put
// back.
func (c *client) next() jobs.Micros {
	stamp := c.known.at(c.now)
	if c.stamp < stamp.Add(time.Minute) {
		stamp = max(stamp, c.stamp+1)
	}
	c.stamp = stamp
	return stamp
}

// stamped makes a call that must not be carried out late. One that finds TIME far
// from the stamp does nothing and says so; then TIME is read again.
func (c *client) stamped(f func(jobs.Micros) call, status func(any) string, then func(any, error)) {
	tries := 0
	var try func()
	try = func() {
		stamp := c.next()
		absent := func(v any) bool { return status(v) == model.Absent }
		c.script(f(stamp), absent, func(v any, err error) {
			if tries++; err != nil || (status(v) != model.Stale && status(v) != model.Skewed) {
				then(v, err)
				return
			}
			if tries > 100 {
				then(nil, errors.New("a later call of this slot was answered"))
				return
			}
			if status(v) == model.Stale && tries > 1 {
				try()
				return
			}
			c.reread(func(err error) {
				if err != nil {
					then(nil, err)
					return
				}
				try()
			})
		})
	}
	if c.known.known {
		try()
		return
	}
	c.hello(0, func(err error) {
		if err != nil {
			then(nil, err)
			return
		}
		try()
	})
}

func (c *client) reread(then func(error)) {
	sent := c.now
	f := call{kind: "time", do: func(_ *model.Zone, now jobs.Micros) any { return now }}
	c.script(f, nil, func(v any, err error) {
		if err != nil {
			then(err)
			return
		}
		seen := look(v.(jobs.Micros), sent, c.now)
		if jump := c.known.jump(seen); jump.Abs() > time.Minute {
			c.hello(jump, then)
			return
		}
		c.known, c.looked = seen, c.now
		then(nil)
	})
}

// A clock is what is known of TIME less the boot clock: a range. See clock.go of
// jobs/queue.
type clock struct {
	lo, hi jobs.Micros
	known  bool
}

func look(now jobs.Micros, sent, came time.Duration) clock {
	return clock{now.Add(-came), now.Add(-sent), true}
}

func (c clock) jump(next clock) time.Duration {
	switch {
	case !c.known:
		return 0
	case next.lo > c.hi:
		return next.lo.Sub(c.hi)
	case next.hi < c.lo:
		return next.hi.Sub(c.lo)
	}
	return 0
}

func (c clock) with(next clock) clock {
	if !c.known || c.jump(next) != 0 {
		return next
	}
	return clock{max(c.lo, next.lo), min(c.hi, next.hi), true}
}

func (c clock) at(boot time.Duration) jobs.Micros { return c.lo.Add(boot) }
