package model

import (
	"cmp"
	"fmt"
	"maps"
	"time"

	"muster/jobs"
)

// Step is a call of the script step.
type Step struct {
	jobs.Step
	Expected jobs.Micros // TIME as the caller's own clock expects it; 0: not known
	Sent     jobs.Micros // the stamp
}

// Further statuses.
const (
	Stale  = "stale"  // to a delayed copy of an old call
	Skewed = "skewed" // TIME is off by more than a minute: nothing was done
)

const looksMax = 20 // jobs that may be moved aside in one call

// A stepping is a call of the script step.
type stepping struct {
	*call
	Step
	held   map[jobs.ID]jobs.Token // jobs that the slot holds
	seen   map[jobs.ID]bool       // jobs that this call has handled
	late   []jobs.ID
	grants []jobs.Grant
	looks  int
}

// Step accepts results and hands out jobs. The status may also be Absent, Stale or Skewed. Grants
// have no host.
func (z *Zone) Step(now jobs.Micros, a Step) jobs.Reply {
	s := &stepping{call: z.begin(now), Step: a, held: map[jobs.ID]jobs.Token{},
		seen: map[jobs.ID]bool{}}
	if s.flags.Run == "" {
		return jobs.Reply{Status: Absent, Now: s.now}
	}
	if before, ok := z.Hold[a.Node][a.Slot]; ok && a.Slot != "" {
		switch {
		case before.Request != a.Request && s.old(a.Sent, before):
			return jobs.Reply{Status: Stale, Now: s.now}
		case before.Request == a.Request:
			return s.reply(before)
		}
		s.held = maps.Clone(before.Jobs)
	}
	if skew := s.raw.Sub(a.Expected); a.Expected != 0 && skew.Abs() > minute {
		return jobs.Reply{Status: Skewed, Now: s.now}
	}
	for _, r := range a.Results {
		s.result(r)
	}
	h := s.work()
	s.settleReply(&h)
	if a.Slot != "" {
		if z.Hold[a.Node] == nil {
			z.Hold[a.Node] = map[string]Hold{}
		}
		z.Hold[a.Node][a.Slot] = h
	}
	return s.reply(h)
}

// old reports whether a later call of the slot was answered. A stamp from the future does not
// count, because it comes from a clock that was wrong.
func (c *call) old(sent jobs.Micros, before Hold) bool {
	return sent < before.Sent && before.Sent < c.raw.Add(minute)
}

// work takes, or sweeps, and carries the plan out.
func (s *stepping) work() Hold {
	h := Hold{Request: s.Request, Sent: s.Sent, Status: jobs.StatusNext}
	more := false
	switch {
	case s.flags.shut(s.now):
		h.Status, h.Next = jobs.StatusFrozen, s.flags.Freeze.Until
		if s.flags.Owed != "" {
			h.Next = max(h.Next, s.now.Add(time.Second))
		}
	case s.flags.Halted.Note != "" || s.flags.Paused.Note != "":
		h.Status = jobs.StatusHalted
		if s.Want == 0 && s.Slot == "" {
			h.Next = s.watch()
		}
	case s.Want == 0 && s.Slot == "":
		more = s.sweep()
	case s.Want > 0:
		s.takeWithAsks()
		more = s.looks >= s.Want+looksMax || s.woken
	}
	if s.planned() > 0 {
		f := s.flags
		s.write(func() {
			s.Flags.High, s.Flags.Token, s.Flags.Turn, s.Flags.Waits = s.now, f.Token, f.Turn, f.Waits
		})
	}
	s.flush()
	switch {
	case len(s.grants) > 0:
		h.Status = jobs.StatusJobs
	case more:
		h.Status = jobs.StatusMore
	}
	return h
}

// settleReply adds the facts that are known only after the writes.
func (s *stepping) settleReply(h *Hold) {
	if h.Status == jobs.StatusNext {
		sets := []*Set[jobs.ID]{s.Queue, s.Again}
		if s.Asking.Any {
			sets = append(sets, s.Asking.Due)
		}
		for _, set := range sets {
			if _, at, ok := set.First(); ok && (h.Next == 0 || at < h.Next) {
				h.Next = at
			}
		}
	}
	h.Late, h.Grants, h.Jobs = s.late, s.grants, s.held
}

// reply adds to the grants the data that the caller needs for them.
func (s *stepping) reply(h Hold) jobs.Reply {
	r := jobs.Reply{Status: h.Status, Now: s.now, Next: h.Next, Jobs: h.Grants, Late: h.Late}
	known := map[jobs.TaskID]bool{}
	for _, id := range s.Known {
		known[id] = true
	}
	for _, g := range h.Grants {
		id := g.Job.Task()
		if t := s.Tasks[id]; t != nil && !known[id] {
			if r.Specs == nil {
				r.Specs = map[jobs.TaskID]jobs.Spec{}
			}
			r.Specs[id] = t.Head.Spec
		}
	}
	return r
}

func (s *stepping) result(r jobs.Result) {
	j := s.job(r.Job)
	delete(s.held, r.Job)
	s.seen[r.Job] = true
	if j.Token != r.Token || (j.State != jobs.Running && j.State != jobs.Lost) {
		if j.Token != r.Token || j.State != jobs.Ended || j.End.Outcome != r.Outcome {
			s.late = append(s.late, r.Job)
			s.event("late", r.Job)
		}
		return
	}
	t := s.task(r.Job.Task())
	if r.Kind != jobs.KindEnd && t != nil {
		s.rescore(r, j, t)
		return
	}
	exit := ""
	if r.ExitCode != nil {
		exit = fmt.Sprint(*r.ExitCode)
	}
	s.finish(r.Job, j, End{Outcome: r.Outcome, Class: r.Class, Exit: exit, Error: r.Error,
		Note: r.Note, Spent: r.Spent}, doubtIf(r.KeepLock))
}

// rescore keeps a job for another attempt.
func (s *stepping) rescore(r jobs.Result, j Job, t *task) {
	// A lost job that is returned without a look may have run: it stays lost.
	unseen := r.Kind == jobs.KindBack && j.Lost
	if note := cmp.Or(t.Cancel, j.Cancel); note != "" && !unseen {
		o, d := stopped(r, j, note)
		s.finish(r.Job, j, o, d)
		return
	}
	if r.Kind == jobs.KindWait && t.Gates[gateField(r.Job, r.Step)] != "" {
		r.Delay = 0 // it was answered meanwhile
	}
	if j.State == jobs.Running {
		t.running--
	}
	untouched := j.Counts.Attempt <= 1 && j.Later == 0 && j.Step == 0 && j.Saved == ""
	if r.Kind == jobs.KindBack && untouched {
		s.untake(r.Job, j, t)
		return
	}
	at, keep, change := s.now.Add(r.Delay), r.KeepLock, func(*Job) {}
	switch r.Kind {
	case jobs.KindRetry:
		change = func(j *Job) { j.State = jobs.Retry; j.Counts.Tries++ }
		if keep && s.locked(r.Job.Host()).holds(r.Job, j.Token) {
			at = max(at, s.now.Add(s.left(r.Job.Host())+time.Millisecond))
		}
	case jobs.KindWait:
		change = func(j *Job) { j.State = jobs.Waiting }
		keep = s.keepHost(r, j, t, keep)
	case jobs.KindVerify:
		change = func(j *Job) { j.State = jobs.Verify; j.Counts.Probes++ }
		keep = s.keepHost(r, j, t, keep)
	case jobs.KindDefer:
		at, change = s.deferral(r, j, t, at)
	case jobs.KindBack:
		at, keep = s.now, j.Lost
		if j.Was != "" { // the host may be rebooting
			r.Delay = 0
			keep = s.keepHost(r, j, t, keep)
		}
		change = func(j *Job) {
			j.State = cmp.Or(j.Was, jobs.Retry)
			if j.Lost {
				j.State = jobs.Lost
			}
			j.Counts.Attempt--
		}
	}
	s.appoint(r.Job, at)
	s.change(r.Job, func(j *Job) {
		note(j, r, at)
		change(j)
		j.Was = ""
	})
	if !keep {
		step := r.Step
		if r.Kind == jobs.KindBack {
			step = j.Step
		}
		begun := !r.Release && (step > 0 || r.Saved+j.Saved != "")
		s.giveBack(r.Job, j, t, giving{begun: begun, asks: r.Kind == jobs.KindDefer && !begun ||
			r.Kind == jobs.KindBack && j.Counts.Attempt == 1})
	}
	s.event(string(r.Kind), r.Job)
}

// note records a result that is not an end.
func note(j *Job, r jobs.Result, at jobs.Micros) {
	j.Due = at
	if r.Kind != jobs.KindBack { // an untouched job stays where it was
		j.Step = r.Step
	}
	if r.Saved != "" {
		j.Saved = r.Saved
	}
	if r.Spent != "" {
		j.Spent = r.Spent
	}
	j.Why = ""
	if r.Kind != jobs.KindBack {
		j.Why = r.Error
	}
}

// deferral returns when a deferred job is due again, and the change of its record. A job that
// never began has not started; a job with a finished step keeps its attempt. Without a time it is
// due at soon, and expires as before.
func (s *stepping) deferral(r jobs.Result, j Job, t *task, soon jobs.Micros) (jobs.Micros,
	func(*Job)) {
	at := soon
	if r.Until != 0 {
		at = r.Until
		if j.Counts.Attempt == 1 && r.Step == 0 {
			at = at.Add(s.nextTurn(t, at))
		}
	}
	return at, func(j *Job) {
		j.State = jobs.Deferred
		if r.Until != 0 {
			j.Later = max(at.Sub(t.Due), 0)
		}
		if j.Counts.Attempt > 1 || r.Step == 0 {
			j.Counts.Attempt--
		}
		if j.Counts.Attempt == 0 {
			j.Started = 0
		}
	}
}

// nextTurn returns the offset of the next job of a task that is deferred to an instant before it
// began, so that these jobs keep their order.
func (c *call) nextTurn(t *task, at jobs.Micros) time.Duration {
	n := t.Turns[at]
	set := func(t *Task) {
		t.Turns = maps.Clone(t.Turns)
		if t.Turns == nil {
			t.Turns = map[jobs.Micros]int{}
		}
		t.Turns[at] = n + 1
	}
	set(&t.Task)
	kept := c.Tasks[t.id]
	c.write(func() { set(kept) })
	width := jobs.PriorityHigh.Weight() / t.Head.Spec.Priority.Weight()
	return min(time.Duration(n*width)*time.Microsecond, time.Second-time.Microsecond)
}

// keepHost locks the host of a job up to its appointment and for one attempt more.
func (s *stepping) keepHost(r jobs.Result, j Job, t *task, keep bool) bool {
	if r.Kind == jobs.KindWait && r.Release {
		return keep
	}
	host := r.Job.Host()
	l := Lock{Token: j.Token, Job: r.Job}
	if now := s.locked(host); now == (Lock{}) || now.holds(r.Job, j.Token) {
		s.lock(writing, l, r.Delay+t.Head.Spec.Timeout)
		s.locks[host] = l
	}
	return true
}

// untake restores a job of which no step ran, as if it had not been taken.
func (s *stepping) untake(id jobs.ID, j Job, t *task) {
	s.write(func() { s.Queue.Put(id, j.Due) })
	s.after(func() { delete(s.Jobs, id) })
	s.drop(id)
	s.giveBack(id, j, t, giving{asks: true})
	s.event("back", id)
}

// giving says how a job releases its resources.
type giving struct {
	begun bool // its host is in the middle of a disruptive change
	asks  bool // it asks its rule again before it continues
}

func (c *call) giveBack(id jobs.ID, j Job, t *task, how giving) {
	if t.Head.Guarded {
		c.release(id, t, how)
	}
	c.unlock(id, j, t)
}

// stopped returns the end of a job that was cancelled, and whose worker wanted to continue it
// later.
func stopped(r jobs.Result, j Job, note string) (End, doubt) {
	if r.Saved != "" {
		j.Saved = r.Saved
	}
	if r.Kind == jobs.KindVerify {
		j.State = jobs.Verify
	}
	if r.Kind == jobs.KindBack {
		j.State = cmp.Or(j.Was, j.State)
	}
	if r.Kind != jobs.KindBack {
		j.Step = r.Step
	}
	o, d := cancelled(j, note)
	o.Spent = r.Spent
	if r.KeepLock {
		o.Outcome, d = jobs.Unknown, acting
	}
	return o, d
}
