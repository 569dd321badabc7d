package queue_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"pgregory.net/rapid"

	"muster/jobs"
	"muster/jobs/model"
	"muster/jobs/quarantine"
)

// walker makes random calls on a zone in Redis and in the model.
type walker struct {
	*twin
	tasks    []model.Put // the first chunk of each task that was put
	chunks   []model.Put // all of them
	children []*pretended
	epochs   []jobs.Micros // that were ever reported
	run, n   int
	proves   bool // all tasks prove their groups
	kept     *model.Zone
	looks    []jobs.Grant     // orders to ask a host that were handed out
	over     map[jobs.ID]bool // jobs seen as ended; forgotten after a day
	real     jobs.Micros      // the time that children measure: TIME may go back, this does not
}

// pretended is a child as the queue sees it: a slot.
type pretended struct {
	node, slot string
	last       *model.Step
	hand       map[jobs.ID]jobs.Grant
	until      map[jobs.ID]jobs.Micros // when it stops by itself
	late       []jobs.Grant            // grants of the past
	epoch      jobs.Micros             // the epoch that it knows
	sent       jobs.Micros             // when the last call was first made
}

func (c *pretended) who() string { return c.node + "/" + c.slot }

func newWalker(t *rapid.T, w *twin) *walker {
	w.reset(t)
	m := &walker{twin: w, over: map[jobs.ID]bool{}}
	for _, name := range []string{"n1/1", "n1/2", "n2/1"} {
		m.children = append(m.children, &pretended{node: name[:2], slot: name[3:],
			hand: map[jobs.ID]jobs.Grant{}, until: map[jobs.ID]jobs.Micros{}})
	}
	m.allSpeak(t)
	return m
}

// begin prepares more work than there is room for.
func (m *walker) begin(t *rapid.T) {
	m.control(t, model.Turn{Verb: "limit", Object: "site/a", Number: 1})
	m.submit(t)
	m.submit(t)
	m.take(t)
}

func (m *walker) child(t *rapid.T) *pretended { return rapid.SampledFrom(m.children).Draw(t, "child") }

// enter is a call of epoch by a newcomer, on the same server.
func (m *walker) enter(t *rapid.T) {
	w := m.twin.epoch(t, model.Hello{Run: fmt.Sprint("run", m.run)})
	if w.Epoch != 0 {
		m.epochs = append(m.epochs, w.Epoch)
	}
}

func (m *walker) task(t *rapid.T) jobs.TaskID {
	if len(m.tasks) == 0 || rapid.IntRange(0, 30).Draw(t, "strange task") == 0 {
		return "0000000000"
	}
	return rapid.SampledFrom(m.tasks).Draw(t, "task").Task
}

func (m *walker) jobID(t *rapid.T) jobs.ID {
	return jobs.NewID(m.task(t), host(rapid.IntRange(0, 5).Draw(t, "host")))
}

// submit puts a task of two chunks and mostly commits it.
func (m *walker) submit(t *rapid.T) {
	if len(m.tasks) == 6 {
		return
	}
	m.n++
	s := jobs.Spec{Runbook: "exec", Operator: "alice", Inventory: "v1", Action: json.RawMessage(`{}`),
		Timeout: rapid.SampledFrom([]time.Duration{20 * time.Second, time.Minute, 400 * time.Second}).
			Draw(t, "timeout"),
		Expire:     rapid.SampledFrom([]time.Duration{8 * time.Hour, time.Minute}).Draw(t, "expire"),
		Repeatable: rapid.Bool().Draw(t, "repeatable"),
		Terms: jobs.Terms{Priority: rapid.SampledFrom(jobs.Priorities()).Draw(t, "priority"),
			Disruptive: rapid.Bool().Draw(t, "disruptive")}}
	s.ProveGroup = m.proves || rapid.Bool().Draw(t, "proves its groups")
	s.Disruptive = m.proves || s.Disruptive
	if rapid.Bool().Draw(t, "needs") {
		s.Needs = []string{"lab"}
	}
	hosts := rapid.SliceOfNDistinct(rapid.SampledFrom([]string{"fw0", "fw1", "fw2", "fw3", "fw4", "fw5"}),
		2, 5, func(s string) string { return s }).Draw(t, "hosts")
	p := model.Put{Task: jobs.NewTaskID(m.now.Time(), uint16(m.n)), Print: "p", Hosts: hosts[:2],
		Head: &model.Head{Spec: s, Guarded: m.proves || rapid.IntRange(0, 3).Draw(t, "guarded") > 0,
			Total: len(hosts), Chunks: min(len(hosts)-1, 2),
			Quarantine: rapid.SampledFrom([]quarantine.Kind{quarantine.Plain, quarantine.Sets,
				quarantine.Check}).Draw(t, "to hosts in quarantine")}}
	if rapid.IntRange(0, 3).Draw(t, "later") == 0 {
		p.At = m.now.Add(rapid.SampledFrom([]time.Duration{-time.Hour, time.Minute}).Draw(t, "at"))
		p.Head.At = p.At
	}
	waves := m.rollout(t, p.Head)
	if len(waves) > 0 {
		p.At, p.Waves = 0, waves[:2]
	}
	own := p.At == 0 && len(waves) == 0 && rapid.IntRange(0, 2).Draw(t, "own times") == 0
	if own {
		p.Own = m.times(t, p.Hosts)
	}
	m.put(t, p)
	m.tasks = append(m.tasks, p)
	m.chunks = append(m.chunks, p)
	if len(hosts) > 2 {
		rest := model.Put{Task: p.Task, Print: "p", Chunk: 1, At: p.At, Hosts: hosts[2:]}
		if own {
			rest.Own = m.times(t, rest.Hosts)
		}
		if len(waves) > 0 {
			rest.Waves = waves[2:]
		}
		m.put(t, rest)
		m.chunks = append(m.chunks, rest)
	}
	if rapid.IntRange(0, 9).Draw(t, "commit") > 0 {
		m.shift(t, p.Task, "commit")
	}
}

// times returns own times for hosts, of which some have none.
func (m *walker) times(t *rapid.T, hosts []string) []jobs.Micros {
	var list []jobs.Micros
	for range hosts {
		at := jobs.Micros(0)
		if d := rapid.SampledFrom([]time.Duration{0, time.Second, time.Minute}).Draw(t, "own"); d > 0 {
			at = m.now.Add(d)
		}
		list = append(list, at)
	}
	return list
}

// rollout gives a task a rule and waves; it returns the wave of each host.
func (m *walker) rollout(t *rapid.T, h *model.Head) (waves []int) {
	if m.proves || rapid.Bool().Draw(t, "without a rule") {
		return nil
	}
	r := &jobs.Rollout{Rule: jobs.Rule{UnreachableOK: rapid.Bool().Draw(t, "unreachable ok")}}
	if n := rapid.IntRange(-1, 3).Draw(t, "may fail"); n >= 0 {
		r.MaxFailed = &n
	}
	if n := rapid.IntRange(-2, 3).Draw(t, "breaker"); n > 0 {
		r.Breaker = jobs.Breaker{Failures: n, Within: 20 * time.Second}
	}
	if rapid.Bool().Draw(t, "in waves") {
		first := rapid.IntRange(1, h.Total-1).Draw(t, "first")
		r.Waves = []int{first, h.Total - first}
		for i := range h.Total {
			waves = append(waves, 1)
			if i >= first {
				waves[i] = 2
			}
		}
	}
	h.Spec.Rollout, h.Guarded = r, true
	return waves
}

// roll gives an order about a task with a rule.
func (m *walker) roll(t *rapid.T) {
	a := model.Roll{Task: m.task(t), Verb: rapid.SampledFrom([]string{"stop", "go", "go", "look", "look",
		"open", "open", "check"}).Draw(t, "verb"), Note: "erin: so", Number: 2}
	switch a.Verb {
	case "stop":
		if rapid.IntRange(0, 3).Draw(t, "seldom") > 0 {
			return
		}
	case "go":
		a.Number = rapid.IntRange(-1, 4).Draw(t, "may fail")
	case "open":
		a.Number = rapid.IntRange(1, 3).Draw(t, "wave")
	case "check":
		a.Number, a.Text = rapid.IntRange(1, 2).Draw(t, "wave"), "0000000009"
	}
	m.twin.roll(t, a)
}

// appoint gives jobs of a task new appointments, some of them for appointments that no longer
// exist.
func (m *walker) appoint(t *rapid.T) {
	if len(m.tasks) == 0 {
		return
	}
	p := rapid.SampledFrom(m.chunks).Draw(t, "task")
	a := model.Appoint{Task: p.Task}
	for _, host := range p.Hosts {
		id := jobs.NewID(p.Task, host)
		was, ok := m.zone.Again.Score(id)
		if !ok {
			was, _ = m.zone.Held[p.Task].Score(id)
		}
		if rapid.IntRange(0, 9).Draw(t, "not any more") == 0 {
			was++
		}
		later := rapid.SampledFrom([]time.Duration{-time.Minute, time.Second, time.Hour}).Draw(t, "to")
		a.Moves = append(a.Moves, jobs.Move{Host: host, Was: was, To: m.now.Add(later)})
	}
	m.twin.appoint(t, a)
}

// putAgain repeats a chunk, or claims that it comes from another submit.
func (m *walker) putAgain(t *rapid.T) {
	if len(m.tasks) == 0 {
		return
	}
	p := rapid.SampledFrom(m.chunks).Draw(t, "chunk")
	switch rapid.IntRange(0, 5).Draw(t, "how") {
	case 0:
		p.Print = "another"
	case 1:
		p.Task, p.Chunk, p.Head = "0000000000", 1, nil
	}
	m.put(t, p)
}

func (m *walker) shift(t *rapid.T, id jobs.TaskID, verb string) {
	limit := rapid.SampledFrom([]int{1, 2, 500}).Draw(t, "limit")
	order := int64(rapid.IntRange(-1, 3).Draw(t, "order"))
	for range 7 {
		moved := m.move(t, model.Move{Task: id, Verb: verb, Limit: limit, Note: "bob: " + verb,
			Chunk: rapid.IntRange(0, 1).Draw(t, "chunk"), Order: order})
		if moved.Status != "ok" || moved.Jobs == 0 || rapid.IntRange(0, 4).Draw(t, "die") == 0 {
			return
		}
	}
}

// request makes a call of a child. Its own clock mostly agrees with TIME.
func (m *walker) request(t *rapid.T, c *pretended, want int) model.Step {
	m.n++
	s := model.Step{Sent: m.now + jobs.Micros(m.n), Step: jobs.Step{Node: c.node, Slot: c.slot,
		Request: fmt.Sprint("r", m.n), Want: want}}
	if len(m.tasks) > 0 && rapid.Bool().Draw(t, "known") {
		s.Known = []jobs.TaskID{m.tasks[0].Task}
	}
	switch rapid.IntRange(0, 40).Draw(t, "expected") {
	case 0:
		s.Expected = m.now.Add(-2 * time.Minute)
	case 1:
		s.Expected = m.now.Add(2 * time.Minute)
	case 2, 3:
		s.Expected = m.now.Add(time.Second)
	}
	return s
}

// send makes a call and stores its result.
func (m *walker) send(t *rapid.T, c *pretended, s model.Step) jobs.Reply {
	repeated := c.last != nil && c.last.Request == s.Request
	if !repeated {
		c.sent = m.real
	}
	r, ok := m.step(t, s)
	c.last = &s
	if !ok || r.Status == model.Absent || r.Status == model.Stale || r.Status == model.Skewed {
		return r
	}
	for _, g := range r.Jobs {
		if g.Mode.Looks() {
			m.looks = append(m.looks, g)
			continue
		}
		if !repeated {
			m.alone(t, c, g)
			m.within(t, g)
		}
		c.hand[g.Job] = g
		c.until[g.Job] = c.sent.Add(g.Timeout - jobs.Margin(g.Timeout))
		if g.Mode == jobs.ModeLost {
			c.until[g.Job] = c.sent // its worker does nothing on the host
		}
	}
	return r
}

// alone fails the test if another child may act on the host of a job that is handed out.
func (m *walker) alone(t *rapid.T, to *pretended, g jobs.Grant) {
	if g.Mode == jobs.ModeLost {
		return // its worker asks first
	}
	for _, c := range m.children {
		for id := range c.hand {
			if id.Host() == g.Job.Host() && c.until[id] > m.real {
				t.Fatalf("%s gets %s while %s has %s until %s\n%s", to.who(), g.Job, c.who(), id, c.until[id],
					strings.Join(m.calls, "\n"))
			}
		}
	}
}

// within fails the test if more jobs of a task have failed or begun than may fail, when one more
// begins.
func (m *walker) within(t *rapid.T, g jobs.Grant) {
	task := m.zone.Tasks[g.Job.Task()]
	if g.Mode != jobs.ModeFresh || task == nil || task.Head.Spec.Rollout == nil ||
		task.Rolling.Allowed < 0 {
		return
	}
	bad := 0
	for o, n := range task.Outcomes {
		if o.Fails(task.Head.Spec.Rollout.UnreachableOK) {
			bad += n
		}
	}
	begun := len(m.zone.Semaphores.Holders["rule:"+string(g.Job.Task())])
	if bad+begun > task.Rolling.Allowed+1 {
		t.Fatalf("%s begins: %d failed and %d have begun, of %d that may fail\n%s", g.Job, bad, begun,
			task.Rolling.Allowed, strings.Join(m.calls, "\n"))
	}
}

func (m *walker) take(t *rapid.T) {
	c := m.child(t)
	m.send(t, c, m.request(t, c, rapid.IntRange(0, 4).Draw(t, "want")))
}

// results ends some of what a child has, each in a random way, and mostly takes.
func (m *walker) results(t *rapid.T) {
	c := m.child(t)
	s := m.request(t, c, rapid.IntRange(0, 3).Draw(t, "want"))
	for _, id := range slices.Sorted(maps.Keys(c.hand)) {
		if rapid.IntRange(0, 3).Draw(t, "ends") > 0 {
			s.Results = append(s.Results, m.result(t, c.hand[id]))
			c.late = append(c.late, c.hand[id])
			delete(c.hand, id)
		}
	}
	if len(c.late) > 0 && rapid.IntRange(0, 9).Draw(t, "late") == 0 {
		g := rapid.SampledFrom(c.late).Draw(t, "which")
		if !slices.ContainsFunc(s.Results, func(r jobs.Result) bool { return r.Job == g.Job }) {
			s.Results = append(s.Results, m.result(t, g))
		}
	}
	m.send(t, c, s)
}

func (m *walker) result(t *rapid.T, g jobs.Grant) jobs.Result {
	kind := rapid.SampledFrom([]jobs.Kind{jobs.KindEnd, jobs.KindRetry, jobs.KindWait,
		jobs.KindVerify, jobs.KindDefer, jobs.KindBack}).Draw(t, "kind")
	r := jobs.Result{Job: g.Job, Token: g.Token, Kind: kind, Step: g.Step, Saved: g.Saved,
		Delay:   rapid.SampledFrom([]time.Duration{0, 7 * time.Second, 40 * time.Second}).Draw(t, "delay"),
		Release: rapid.Bool().Draw(t, "release"), KeepLock: rapid.IntRange(0, 3).Draw(t, "keep") == 0,
		Said: jobs.Said{Spent: rapid.SampledFrom([]string{"", "q5c17r230@1760000000000000v", "w7"}).
			Draw(t, "spent")}}
	switch kind {
	case jobs.KindEnd:
		r.Outcome = rapid.SampledFrom(append(jobs.Outcomes(), jobs.Unknown, jobs.Unknown)).Draw(t, "outcome")
		if r.Outcome == jobs.Failed {
			code := 3
			r.ExitCode, r.Class, r.Error = &code, jobs.ClassUser, "exit 3"
			r.Note = "attached"
		}
	case jobs.KindDefer:
		r.Until, r.Error = m.now.Add(30*time.Second), "outside its window"
		if rapid.Bool().Draw(t, "nobody knows") {
			r.Until = 0
		}
	case jobs.KindRetry, jobs.KindWait:
		r.Step, r.Error = rapid.IntRange(0, 2).Draw(t, "at step"), "no answer"
		if rapid.IntRange(0, 3).Draw(t, "remember") == 0 {
			r.Saved = rapid.SampledFrom([]string{`{"may_have_run":true}`, `{"failed":{"step":1}}`,
				`{"again":1}`, `{"failed":{"step":1,"keep":true}}`, `{"failed":{"step":1},"disturbed":true}`}).Draw(t, "what")
		}
	}
	if g.Mode == jobs.ModeLost && kind != jobs.KindEnd && kind != jobs.KindRetry {
		r.Kind = jobs.KindBack
	}
	return r
}

// repeat makes the last call of a child once more; or an older copy of it arrives.
func (m *walker) repeat(t *rapid.T) {
	c := m.child(t)
	if c.last == nil {
		return
	}
	s := *c.last
	if rapid.IntRange(0, 3).Draw(t, "copy") == 0 {
		s.Request, s.Sent = "old", s.Sent-1
		m.step(t, s)
		return
	}
	m.send(t, c, s)
}

func (m *walker) checkpoint(t *rapid.T) {
	c := m.child(t)
	ids := slices.Sorted(maps.Keys(c.hand))
	if len(ids) == 0 {
		return
	}
	g := c.hand[rapid.SampledFrom(ids).Draw(t, "job")]
	q := jobs.Checkpoint{Job: g.Job, Token: g.Token, Step: rapid.IntRange(0, 3).Draw(t, "step"),
		Saved: rapid.SampledFrom([]string{"", "{}"}).Draw(t, "saved")}
	if rapid.IntRange(0, 9).Draw(t, "strange") == 0 {
		q.Token--
	}
	if m.twin.checkpoint(t, q) == jobs.Go {
		c.until[g.Job] = m.real.Add(g.Timeout - jobs.Margin(g.Timeout))
	}
}

// die is the death of a child; sometimes it is reported late.
func (m *walker) die(t *rapid.T) {
	c := m.child(t)
	m.n++
	l := model.Loss{Loss: jobs.Loss{Node: c.node, Slot: c.slot, Why: "killed by signal 9"},
		Sent: m.now + jobs.Micros(m.n)}
	if rapid.IntRange(0, 9).Draw(t, "late") == 0 {
		l.Sent = m.now.Add(-time.Hour)
	}
	m.lose(t, l)
	clear(c.hand)
	c.last, c.epoch = nil, 0
	m.speak(t, c)
}

// connect is the first call of a connection, by a child or by another caller.
func (m *walker) connect(t *rapid.T) {
	if rapid.IntRange(0, 3).Draw(t, "a child") > 0 {
		m.speak(t, m.child(t))
		return
	}
	h := model.Hello{Run: fmt.Sprint("run", m.run), Longest: time.Minute, Since: m.now,
		Knew: rapid.SampledFrom(append([]jobs.Micros{0}, m.epochs...)).Draw(t, "knew")}
	if rapid.IntRange(0, 4).Draw(t, "jumped") == 0 {
		h.Jumped = rapid.SampledFrom([]time.Duration{70 * time.Second, -time.Hour}).Draw(t, "by")
	}
	if w := m.twin.epoch(t, h); w.Epoch != 0 {
		m.epochs = append(m.epochs, w.Epoch)
	}
}

// speak reports the jobs that a child has in hand.
func (m *walker) speak(t *rapid.T, c *pretended) {
	h := model.Hello{Run: fmt.Sprint("run", m.run), Who: c.who(), Longest: time.Minute, Knew: c.epoch}
	switch rapid.IntRange(0, 4).Draw(t, "stamp") {
	case 0: // the caller knows no clock
	case 1: // a copy that the network delayed
		h.Sent = m.now.Add(-time.Hour)
	default:
		h.Sent = m.now + jobs.Micros(m.n)
	}
	for _, id := range slices.Sorted(maps.Keys(c.hand)) {
		left := c.until[id].Sub(m.real) + jobs.Margin(c.hand[id].Timeout)
		h.Jobs = append(h.Jobs, model.InHand{Job: id, Token: c.hand[id].Token,
			Left: max(left, time.Millisecond)})
	}
	w := m.twin.epoch(t, h)
	if w.Epoch == 0 { // broken off
		w = m.twin.epoch(t, h)
	}
	c.epoch, m.epochs = w.Epoch, append(m.epochs, w.Epoch)
}

// restart changes to another server, or to one that has lost the zone.
func (m *walker) restart(t *rapid.T) {
	if rapid.IntRange(0, 3).Draw(t, "seldom") > 0 {
		return
	}
	m.run++
	if rapid.Bool().Draw(t, "zone lost") {
		m.rdb.Del(tctx(t), "muster:{default}:zone")
		m.zone.Flags = model.Flags{}
		m.zone.Asking.Any = false // a field of the zone, too
		was := m.zone.Reordering
		m.zone.Reordering = model.Reordering{Open: was.Open, Lock: was.Lock, Until: was.Until,
			Ends: model.NoEnds()}
		clear(m.zone.Customers)
		clear(m.zone.Children)
	}
	m.allSpeak(t)
}

// remember copies the zone for forget, which loses all later writes.
func (m *walker) remember(t *rapid.T) {
	m.copy(t, "muster:{default}:", "kept:")
	m.kept = m.zone.Clone()
}

func (m *walker) forget(t *rapid.T) {
	if m.kept == nil || rapid.IntRange(0, 3).Draw(t, "seldom") > 0 {
		return
	}
	m.copy(t, "kept:", "muster:{default}:")
	m.zone, m.kept = m.kept, nil
	m.run++
	m.allSpeak(t)
}

func (m *walker) allSpeak(t *rapid.T) {
	for _, c := range m.children {
		m.speak(t, c)
	}
}
