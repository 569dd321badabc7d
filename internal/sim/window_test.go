package sim

import (
	"fmt"
	"slices"
	"time"

	"muster/jobs"
	"muster/jobs/model"
	"muster/windows"
)

// The numbers of package worker.
const (
	agreedMax   = 2 * time.Second
	doubtDelay  = 15 * time.Second
	closedDelay = 5 * time.Minute
	callMax     = 3 * time.Second // to connect
)

// agreed and agreedFrozen are what is in force: a window each ten minutes that is hardly
// longer than the longest job, which stops behind its step when it is over.
var agreed, agreedFrozen = timetable(), timetable(windows.FreezeOrder{Name: "storm",
	Level: "everyone", From: start.Time().Add(-time.Hour), Reason: "a storm", By: "carol"})

func timetable(freezes ...windows.FreezeOrder) *windows.Book {
	text := "windows:\n"
	for minute := 0; minute < 60; minute += 10 {
		text += fmt.Sprintf(`- {name: at-%d, customer: acme, zone: UTC, start: "%[1]d * * * *", `+
			"length: 2m10s, cutoff: 10s, approval: none, at_end: stop_at_safe_point}\n", minute)
	}
	t := windows.Timetable{Version: 1, Files: []windows.File{{Name: "w.yaml", Content: text}},
		Freezes: freezes}
	b, err := t.Book()
	if err != nil {
		panic(err)
	}
	return b
}

func placeOf(h *host) windows.Place {
	return windows.Place{Host: h.name, Group: h.group, Customer: "acme"}
}

// agreement is the answer of Redis to a question for the timetable.
type agreement struct {
	book *windows.Book // nil: nothing is agreed
	now  jobs.Micros
}

// admitted asks what is agreed before the host is called, unless something of the job has
// begun, or may have.
func (a *attempt) admitted(then func()) {
	m := a.mind
	if !a.spec.window || a.grant.Mode == jobs.ModeLost || m.MayHaveRun || m.Disturbed || m.Probe != nil {
		then()
		return
	}
	a.rule(then, a.deferred)
}

// ruled asks the same before a step, as package worker does.
func (a *attempt) ruled(then func()) {
	may := recall(a.grant.Saved).MayHaveRun || a.grant.Mode == jobs.ModeLost
	if !a.spec.window || a.stage().kind == looking && !(may && a.step == 0) {
		then()
		return
	}
	a.rule(then, a.deferred)
}

// rule asks whether the step may start. If not, it says how soon that is to be asked again, or
// until when it must not.
func (a *attempt) rule(then func(), not func(soon time.Duration, until time.Time)) {
	a.asked = a.now
	f := func(_ *zone, now jobs.Micros) any { return agreement{a.redis.agreed, now} }
	a.script(call{"timetable", f}, nil, func(v any, err error) {
		r, _ := v.(agreement)
		if a.gone() {
			return
		}
		now := r.now.Add(a.now - a.asked)
		skew := start.Add(a.now).Sub(now)
		switch {
		case err != nil, a.now-a.asked > agreedMax, skew.Abs() > jobs.SkewMax:
			not(doubtDelay, time.Time{})
			return
		case r.book == nil:
			not(closedDelay, time.Time{})
			return
		}
		w := windows.Work{Window: true, Runbook: "exec", Estimate: a.spec.left(a.step)}
		if a.mind.Disturbed {
			w.Override = "it runs"
		}
		v2 := r.book.Admit(placeOf(a.hosts[a.grant.Job.Host()]), now.Time(), w)
		switch {
		case v2.OK:
			then()
		case v2.Next.IsZero():
			not(closedDelay, time.Time{})
		default:
			not(0, v2.Next)
		}
	})
}

// left returns the expected time of the steps from one on.
func (p plan) left(step int) (sum time.Duration) {
	for _, s := range p.steps[step:] {
		sum += s.expect
	}
	return sum
}

// deferred gives the job back until it may begin, or go on.
func (a *attempt) deferred(soon time.Duration, until time.Time) {
	r := a.say(jobs.KindDefer)
	r.Delay, r.Release = soon, !a.mind.Disturbed && a.mind.Probe == nil && !a.mayHaveRun()
	if !until.IsZero() {
		r.Until = jobs.MicrosOf(until)
	}
	a.over(&r)
}

// window judges a step of a task that needs one by the true time. The clock of Redis may
// be as far from it as workers let it.
func (h *host) window(e entry) {
	if e.kind == looking && e.step > 0 {
		return
	}
	at := start.Add(h.now).Time()
	asked := at
	if e.kind == looking { // it was asked before the host was called; who sleeps then looks later
		asked = start.Add(e.asked).Time()
	}
	w := windows.Work{Window: true, Runbook: "exec", Override: "the freeze is judged below"}
	open := agreed.Openings(placeOf(h), asked.Add(-jobs.SkewMax), w, 1)
	if len(open) == 0 || open[0].Start.After(at.Add(jobs.SkewMax)) ||
		!asked.Before(open[0].Cutoff.Add(jobs.SkewMax)) ||
		asked.Add(e.left(e.step)).After(open[0].End.Add(jobs.SkewMax)) {
		h.suspect("I4", "%s: %s begins step %d at %s, outside of its window, or too late for it", h.name, e.job, e.step,
			at.UTC().Format(time.TimeOnly))
	} else if at.Add(e.to - e.from).After(open[0].End) {
		h.faults.met("a step runs beyond the end of its window")
	}
	first := !slices.ContainsFunc(h.log, func(x entry) bool { return x.job == e.job })
	if s := h.staff.frozen(); s != 0 && h.now > s+agreedMax && first && e.kind != looking {
		h.suspect("I4", "%s: %s begins %s after a freeze was ordered", h.name, e.job, h.now-s)
	}
}

// agree writes the limits and the timetable down, also when Redis has lost them.
func (s *staff) agree() {
	for _, name := range sorted(limitsMost) {
		turn := model.Turn{Verb: "limit", Object: name, Number: int64(s.limits[name])}
		s.insist("limit", func(z *zone, now jobs.Micros) any { return z.Control(now, turn) },
			func(any) { s.published[name] = true })
	}
	s.arrange(func() {})
}

// freeze orders that nothing begins, and lifts that later. It stands once it is answered. Each
// has a name of its own: who lifts one leaves the others, whichever is answered first, since the
// server changes what it has read of the timetable, or nothing (SetTimetable compares).
func (s *staff) freeze(lasts time.Duration) {
	s.frozenBefore++
	name := s.frozenBefore
	s.freezes[name] = 0
	s.arrange(func() {
		s.say("staff: freeze %d stands", name)
		s.freezes[name] = s.now
		s.in(lasts, func() {
			s.say("staff: freeze %d is lifted", name)
			delete(s.freezes, name)
			if len(s.freezes) > 0 {
				s.faults.met("a freeze is lifted while another one stands")
			}
			s.arrange(func() {})
		})
	})
}

// arrange writes the timetable down as people want it.
func (s *staff) arrange(then func()) {
	s.insist("agree", func(*zone, jobs.Micros) any {
		s.redis.agreed = s.wanted()
		return nil
	}, func(any) { then() })
}

// wanted is the timetable as people want it to be now.
func (s *staff) wanted() *windows.Book {
	if len(s.freezes) > 0 {
		return agreedFrozen
	}
	return agreed
}

// frozen is since when nothing may begin, by what was answered; 0: it may.
func (s *staff) frozen() (since time.Duration) {
	for _, at := range s.freezes {
		if at != 0 && (since == 0 || at < since) {
			since = at
		}
	}
	return since
}
