package sim

import (
	"fmt"
	"time"

	"muster/jobs"
)

// A node is a machine with a master and its children. The content of its slots outlives the
// master.
type node struct {
	*world
	name   string
	slots  []*slot
	master *master
	boots  int
}

// slot is the file of a slot: the take that is under way, and who has its lock.
type slot struct {
	name  string
	take  string // request id; no child has seen what it brought
	child *child
}

func newNode(w *world, name string, slots int) *node {
	n := &node{world: w, name: name}
	for i := range slots {
		n.slots = append(n.slots, &slot{name: fmt.Sprint(i + 1)})
	}
	n.boot()
	return n
}

// A master keeps children alive, as package master does.
type master struct {
	*client
	node  *node
	busy  map[*slot]bool // a call of the slot is under way, or its child lives
	known bool           // what an earlier master left has been told
	calls int
	due   time.Duration
	most  int // jobs a child has at a time
}

func (n *node) boot() {
	n.boots++
	m := &master{client: newClient(&process{world: n.world}, "", ""), node: n, busy: map[*slot]bool{},
		most: 1 + n.rnd.IntN(2)}
	n.master = m
	m.kills, m.dies = masterBehindCall, func() {
		if !m.dead {
			n.die(n.faults.away())
		}
	}
	for _, s := range n.slots {
		switch {
		case s.child != nil && !s.child.dead:
			m.busy[s] = true
			s.child.ended = func() { m.then(func() { m.lose(s, "vanished after its master") }) }
		case s.take != "":
			m.busy[s] = true
			m.undo(s)
		}
	}
	m.recover()
	m.tick()
}

// recover finds what slots have without a process.
func (m *master) recover() {
	f := func(z *zone, _ jobs.Micros) any {
		var names []string
		for _, name := range sorted(z.Hold[m.node.name]) {
			if len(z.Hold[m.node.name][name].Jobs) > 0 {
				names = append(names, name)
			}
		}
		return names
	}
	m.script(call{kind: "hold", do: f}, nil, func(v any, err error) {
		if err != nil {
			m.after(time.Second, m.recover)
			return
		}
		for _, name := range v.([]string) {
			for _, s := range m.node.slots {
				if s.name == name && !m.busy[s] {
					m.busy[s] = true
					m.lose(s, "vanished while no master ran")
				}
			}
		}
		m.known = true
	})
}

// tick looks for work.
func (m *master) tick() {
	m.after(time.Second, m.tick)
	if !m.known || m.due > m.now {
		return
	}
	for _, s := range m.node.slots {
		if !m.busy[s] {
			m.busy[s] = true
			m.take(s)
			return
		}
	}
}

func (m *master) request() string {
	m.calls++
	return fmt.Sprintf("%s.%d.%d", m.node.name, m.node.boots, m.calls)
}

func (m *master) take(s *slot) {
	step := jobs.Step{Node: m.node.name, Slot: s.name, Request: m.request(), Want: m.most}
	s.take = step.Request
	sent := m.now
	m.faults.masterPoint(m.node, masterBeforeTake)
	m.insist(step, func(r jobs.Reply) {
		m.due = m.now
		if r.Status != jobs.StatusJobs && r.Status != jobs.StatusMore {
			m.due = m.now + poll
			if r.Next != 0 {
				m.due = m.now + min(max(r.Next.Sub(r.Now), 0), poll)
			}
		}
		if len(r.Jobs) == 0 {
			s.take = ""
			m.release(s)
			return
		}
		m.faults.masterPoint(m.node, masterBeforeChild)
		m.after(m.between(time.Millisecond, 20*time.Millisecond), func() { m.begin(s, r, sent) })
	})
}

// insist repeats a step until it is answered.
func (m *master) insist(step jobs.Step, then func(jobs.Reply)) {
	m.step(step, nil, func(r jobs.Reply, err error) {
		if err != nil {
			m.after(m.between(100*time.Millisecond, 2*time.Second), func() { m.insist(step, then) })
			return
		}
		then(r)
	})
}

// begin starts a child for jobs that were taken.
func (m *master) begin(s *slot, r jobs.Reply, sent time.Duration) {
	s.take = "" // before a child can know of the jobs
	c := newChild(m, s)
	s.child = c
	c.deadline = deadlineOf(r, sent)
	c.ended = func() {
		m.then(func() {
			if c.ready {
				m.lose(s, "killed")
				return
			}
			m.giveBack(s, r)
		})
	}
	c.reports = func(r jobs.Report) { m.then(func() { c.reported(r) }) }
	m.overdue(s, c)
	c.start(r, sent)
}

// overdue kills a child that is past its deadline.
func (m *master) overdue(s *slot, c *child) {
	if c.dead || s.child != c {
		return
	}
	if c.deadline > 0 && m.now > c.deadline+time.Second {
		c.die("past its deadline")
		return
	}
	m.after(time.Second, func() { m.overdue(s, c) })
}

// undo gives back what an earlier master took for a slot and gave to nobody.
func (m *master) undo(s *slot) {
	step := jobs.Step{Node: m.node.name, Slot: s.name, Request: s.take, Want: m.most}
	m.insist(step, func(r jobs.Reply) { m.giveBack(s, r) })
}

// giveBack returns jobs that no child has seen.
func (m *master) giveBack(s *slot, r jobs.Reply) {
	back := jobs.Step{Node: m.node.name, Slot: s.name, Request: m.request()}
	for _, g := range r.Jobs {
		back.Results = append(back.Results, jobs.Result{Job: g.Job, Token: g.Token, Kind: jobs.KindBack})
	}
	m.insist(back, func(jobs.Reply) {
		s.take = ""
		m.release(s)
	})
}

func (m *master) lose(s *slot, why string) {
	l := jobs.Loss{Node: m.node.name, Slot: s.name, Why: why}
	m.client.lose(l, func(err error) {
		if err != nil {
			m.after(m.between(100*time.Millisecond, 2*time.Second), func() { m.lose(s, why) })
			return
		}
		m.release(s)
	})
}

func (m *master) release(s *slot) {
	s.child = nil
	delete(m.busy, s)
}

// die is kill -9 of the master. Its children see it, end what they have and exit.
func (n *node) die(back time.Duration) {
	if n.master.dead {
		return
	}
	n.say("master %s: killed", n.name)
	n.master.kill()
	for _, s := range n.slots {
		if c := s.child; c != nil && !c.dead {
			c.ended, c.reports = func() {}, func(jobs.Report) {}
			c.then(c.drain)
		}
	}
	n.in(back, n.boot)
}

// sleep stops all processes of the machine, for longer than locks last. They wake up in random
// order.
func (n *node) sleep(d time.Duration) {
	stop := func(p *process) { p.stop(d + n.between(0, 50*time.Millisecond)) }
	stop(n.master.process)
	for _, s := range n.slots {
		if s.child != nil {
			stop(s.child.process)
		}
	}
}

// crash is the end of the whole machine.
func (n *node) crash(back time.Duration) {
	if n.master.dead {
		return
	}
	n.say("node %s: crashed", n.name)
	n.master.kill()
	for _, s := range n.slots {
		if s.child != nil && !s.child.dead {
			s.child.ended = func() {}
			s.child.die("its node crashed")
		}
	}
	n.in(back, n.boot)
}
