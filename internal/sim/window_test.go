package sim

import (
	"fmt"
	"slices"
	"time"

	"muster/jobs"
	"muster/jobs/model"
	"muster/windows"
	"muster/worker/agreed"
)

const (
	customer = "acme" // of all hosts
	runbook  = "exec" // of all tasks
)

// book and bookFrozen are what is in force: a window each ten minutes that is hardly
// longer than the longest job, which stops behind its step when it is over.
var book, bookFrozen = timetable(), timetable(windows.FreezeOrder{Name: "storm",
	Level: "everyone", From: start.Time().Add(-time.Hour), Reason: "a storm", By: "carol"})

func timetable(freezes ...windows.FreezeOrder) *windows.Book {
	text := "windows:\n"
	for minute := 0; minute < 60; minute += 10 {
		text += fmt.Sprintf(`- {name: at-%d, customer: %[2]s, zone: UTC, start: "%[1]d * * * *", `+
			"length: 2m10s, cutoff: 10s, approval: none, at_end: stop_at_safe_point}\n", minute, customer)
	}
	t := windows.Timetable{Version: 1, Files: []windows.File{{Name: "w.yaml", Content: text}},
		Freezes: freezes}
	b, err := t.Book()
	if err != nil {
		panic(err)
	}
	return b
}

// parts and partsFrozen are the same, as workers read it.
var parts, partsFrozen = excerpts(book), excerpts(bookFrozen)

func excerpts(b *windows.Book) map[string]*windows.Excerpt {
	texts, err := b.Excerpts()
	if err != nil {
		panic(err)
	}
	all := map[string]*windows.Excerpt{}
	for scope, text := range texts {
		if all[scope], err = windows.ReadExcerpt(text); err != nil {
			panic(err)
		}
	}
	return all
}

func placeOf(h *host) windows.Place {
	return windows.Place{Host: h.name, Group: h.group, Customer: customer}
}

// An agreement is what Redis knows of windows.
type agreement struct {
	version int64 // 0: nothing is agreed
	stamp   int   // of the order; after lost writes two may have one version
	parts   map[string]*windows.Excerpt
}

func (a agreement) mark() string { return fmt.Sprintf("%d.%d", a.version, a.stamp) }

// left returns the expected rest of a job: its estimate, less the time for which its attempt has worked.
func (h *host) left(e *entry) time.Duration {
	began := h.now
	for _, x := range h.log {
		if x.token == e.token {
			began = min(began, x.from)
		}
	}
	return max(e.expects()-(h.now-began), 0)
}

// windowed is the promise that a step begins in its window. A job that is half way finishes, unless
// its window says otherwise: of no window that is known.
func (h *host) windowed(e *entry) string {
	halfWay := slices.ContainsFunc(h.log, func(x *entry) bool { return x.job == e.job && x.kind != looking })
	if halfWay && h.redis.agreed.version == 0 {
		return "I4 half way, and its window is forgotten"
	}
	return "I4"
}

// window judges a step of a task that needs one by the true time. The clock of Redis may
// be as far from it as workers let it.
func (h *host) window(e *entry) {
	if e.kind == looking && e.step > 0 {
		return
	}
	at := start.Add(h.now).Time()
	asked := at
	if e.kind == looking { // it was asked before the host was called; who sleeps then looks later
		asked = start.Add(e.asked).Time()
	}
	w := windows.Work{Window: true, Runbook: runbook, Override: "the freeze is judged below"}
	open := book.Openings(placeOf(h), asked.Add(-jobs.SkewMax), w, 1)
	if len(open) == 0 || open[0].Start.After(at.Add(jobs.SkewMax)) ||
		!asked.Before(open[0].Cutoff.Add(jobs.SkewMax)) ||
		asked.Add(h.left(e)).After(open[0].End.Add(jobs.SkewMax)) {
		h.suspect(h.windowed(e), "%s: %s begins step %d at %s, outside of its window, or too late for it",
			h.name, e.job, e.step, at.UTC().Format(time.TimeOnly))
	} else if at.Add(e.to - e.from).After(open[0].End) {
		h.faults.met("a step runs beyond the end of its window")
	}
	first := !slices.ContainsFunc(h.log, func(x *entry) bool { return x.job == e.job })
	if s := h.staff.frozen(); s != 0 && h.now > s+agreed.AgeMax && first && e.kind != looking {
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
		s.arranged++
		s.redis.agreed = agreement{s.redis.agreed.version + 1, s.arranged, s.wanted()}
		return nil
	}, func(any) { then() })
}

// wanted is the timetable as people want it to be now.
func (s *staff) wanted() map[string]*windows.Excerpt {
	if len(s.freezes) > 0 {
		return partsFrozen
	}
	return parts
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
