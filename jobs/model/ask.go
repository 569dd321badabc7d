package model

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"muster/jobs"
)

const (
	askTime  = time.Minute // time for a worker to look
	askKeep  = 10 * time.Minute
	askTakes = 3 // workers that may vanish with an order
)

// Order is an order to ask the host of a job how the job ended.
type Order struct {
	At     jobs.Micros
	Token  jobs.Token // of the worker that looks; 0: none does
	Takes  int
	Note   string
	Answer string // when and how it was answered, in a word; empty: it was not
	Words  string
}

// Ask is a call of the script ask: an order with a note, or the answer to it.
type Ask struct {
	Job     jobs.ID
	Note    string
	Reading *jobs.Reading // nil: it is an order
}

// Asked is the answer of the script ask.
type Asked struct{ Status, What string }

// Ask records an order to ask a host, or the host's answer.
func (z *Zone) Ask(now jobs.Micros, a Ask) Asked {
	c := z.begin(now)
	t, j := c.task(a.Job.Task()), c.job(a.Job)
	out := Asked{}
	switch {
	case c.flags.Run == "" || t == nil:
		return Asked{Status: Absent}
	case j.State == "":
		return Asked{"open", "queued"}
	case a.Reading == nil:
		out = c.orderAsk(a, t, j)
	default:
		out = c.readAnswer(*a.Reading, t, j)
	}
	c.flush()
	return out
}

func (c *call) orderAsk(a Ask, t *task, j Job) Asked {
	before, there := t.Asks[a.Job.Host()]
	_, waits := c.Asking.Due.Score(a.Job)
	switch {
	case j.State != jobs.Ended:
		return Asked{"open", string(j.State)}
	case j.End.Outcome != jobs.Unknown:
		return Asked{"known", string(j.End.Outcome)}
	case there && before.Answer == "" && waits:
		return Asked{Status: "already"}
	}
	c.write(func() { c.Tasks[t.id].order(a.Job, Order{At: c.now, Note: a.Note}) })
	c.write(func() { c.Asking.Any = true })
	c.write(func() { c.Asking.Due.Put(a.Job, c.now) })
	c.event("ask", a.Job)
	return Asked{Status: "ok"}
}

func (t *Task) order(id jobs.ID, o Order) {
	if t.Asks == nil {
		t.Asks = map[string]Order{}
	}
	t.Asks[id.Host()] = o
}

// answerAsk plans the answer to an order.
func (c *call) answerAsk(id jobs.ID, o Order, how jobs.Answer, words string) {
	o.Answer, o.Words = fmt.Sprint(c.now, " ", how), words
	c.do(keeping, func() { c.Tasks[id.Task()].order(id, o) })
	c.do(dropping, func() { c.Asking.Due.Remove(id) })
	c.event("asked", id)
}

func (c *call) readAnswer(r jobs.Reading, t *task, j Job) Asked {
	o, there := t.Asks[r.Job.Host()]
	switch {
	case !there || o.Answer != "" || o.Token != r.Token:
		return Asked{Status: "stale"}
	case j.State != jobs.Ended || j.End.Outcome != jobs.Unknown:
		how := cmp.Or(string(j.End.Outcome), string(j.State))
		c.answerAsk(r.Job, o, jobs.AnswerKnown, "it ended "+how)
		return Asked{"known", how}
	case r.Began != 0 && j.Token != 0 && r.Began > j.Token:
		c.answerAsk(r.Job, o, jobs.AnswerLater,
			"the host tells of an attempt that came after the one which ended unknown")
		return Asked{Status: "later"}
	}
	out := Asked{Status: "ok"}
	if r.End != nil {
		out.What = string(r.End.Outcome)
		c.settleAsk(r.Job, t, told(j, *r.End, o.Note))
	}
	if r.Over {
		c.unlock(r.Job, j, t)
	}
	c.answerAsk(r.Job, o, r.Answer, r.Words)
	return out
}

// told returns the end of a job whose outcome is known now. It keeps the time at which the job
// ended.
func told(j Job, end jobs.Result, by string) End {
	note := "settled by the record of its host, " + by
	if before := cmp.Or(end.Note, j.End.Note); before != "" {
		note = before + "; " + note
	}
	if j.End.Error != "" {
		note += "; it had ended unknown: " + j.End.Error
	}
	o := End{At: j.End.At, Outcome: end.Outcome, Class: end.Class, Error: end.Error, Note: note,
		Spent: j.End.Spent}
	if end.ExitCode != nil {
		o.Exit = fmt.Sprint(*end.ExitCode)
	}
	return o
}

// settleAsk replaces the end unknown by the known one.
func (c *call) settleAsk(id jobs.ID, t *task, o End) {
	c.change(id, func(kept *Job) { kept.State, kept.Was, kept.End = jobs.Ended, "", o })
	c.do(keeping, func() {
		counts := c.Tasks[t.id].Outcomes
		if counts[jobs.Unknown]--; counts[jobs.Unknown] == 0 {
			delete(counts, jobs.Unknown)
		}
		counts[o.Outcome]++
	})
	if t.Head.Guarded {
		c.ruledAsk(id, t, o.Outcome)
	}
	c.event("settle", id)
}

// ruledAsk applies the new end to the rule of the task, and to the proof of its group.
func (c *call) ruledAsk(id jobs.ID, t *task, o jobs.Outcome) {
	if r := t.rule(); r != nil && !o.Fails(r.UnreachableOK) {
		fails := slices.DeleteFunc(slices.Clone(t.Fails), func(one string) bool {
			return strings.HasSuffix(one, ":"+id.Host())
		})
		c.do(keeping, func() { c.Tasks[t.id].Fails = fails })
	}
	group := c.provesGroup(id, t)
	switch {
	case group == "" || t.Unproven[group] != id.Host()+" of its group ended unknown":
	case o.Fails(false):
		c.proveNone(id, t, o)
	default:
		c.after(func() { delete(c.Tasks[t.id].Unproven, group) })
	}
}

// takeWithAsks takes jobs if there may be orders to ask a host. In turns of a second, the orders
// come first or last.
func (s *stepping) takeWithAsks() {
	first := s.now/1_000_000%2 == 0
	if s.Asking.Any && first {
		s.takeAsks()
	}
	s.take()
	if s.Asking.Any && !first {
		s.takeAsks()
	}
}

func (s *stepping) takeAsks() {
	room := s.Want - len(s.grants)
	if room < 1 {
		return
	}
	ids := s.Asking.Due.Until(s.now, room)
	for _, id := range ids {
		s.takeAsk(id)
	}
	if len(ids) == 0 && s.Asking.Due.Len() == 0 {
		s.write(func() { s.Asking.Any = false })
	}
}

func (s *stepping) takeAsk(id jobs.ID) {
	t, j := s.task(id.Task()), s.job(id)
	o, there := Order{}, false
	if t != nil {
		o, there = t.Asks[id.Host()]
	}
	switch {
	case !there || o.Answer != "" || j.State != jobs.Ended:
		s.write(func() { s.Asking.Due.Remove(id) })
	case j.End.Outcome != jobs.Unknown:
		s.answerAsk(id, o, jobs.AnswerKnown, "it ended "+string(j.End.Outcome))
	case o.Takes >= askTakes:
		s.answerAsk(id, o, jobs.AnswerNobody,
			fmt.Sprint(o.Takes, " workers were to look, and none of them answered"))
	case o.At.Add(askKeep) < s.now:
		s.answerAsk(id, o, jobs.AnswerNobody, "no worker came to look within 10 minutes")
	default:
		s.grantAsk(id, j, o)
	}
}

func (s *stepping) grantAsk(id jobs.ID, j Job, o Order) {
	s.flags.Token = max(s.flags.Token+1, s.now)
	o.Token, o.Takes = jobs.Token(s.flags.Token), o.Takes+1
	g := jobs.Grant{Job: id, Token: o.Token, Mode: jobs.ModePeek, Attempt: j.Counts.Attempt,
		Tries: j.Counts.Tries, Probes: j.Counts.Probes, Crashes: j.Counts.Crashes, Step: j.Step,
		Saved: j.Saved, Due: j.Due, Timeout: askTime}
	if lock := s.locked(id.Host()); lock == (Lock{}) || lock.holds(id, j.Token) {
		g.Mode = jobs.ModeAsk
	}
	at := s.now.Add(askTime + 5*time.Second)
	s.write(func() { s.Asking.Due.Put(id, at) })
	s.write(func() { s.Tasks[id.Task()].order(id, o) })
	s.grants = append(s.grants, g)
}
