package chaos

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"muster/jobs"
)

// invariants must hold whatever happened to muster, in the order of the table. Most hosts run
// plain commands, and nothing on them fends off a command that comes late. So the check of
// exclusion also looks at the cause of an overlap: a command that was sent in the moment in which
// its process was stopped.
var invariants = []string{
	"every job has one outcome",
	"counters are the outcomes",
	"one command on a host at a time",
	"one of a group is disturbed at a time",
	"a limit is never exceeded",
	"a step runs once, unless repeatable",
	"what succeeded has run, all of it",
	"what never ran has left nothing",
	"no step starts after its lock",
	"nothing starts in a halt",
	unknownOnly,
	recordTells,
	"the queue is sound (fsck)",
	"no process panicked",
}

const unknownOnly = "unknown only where a fault explains it"

// A take is a go for the first step for five seconds (G9), and what was sent then has
// to reach its host.
const haltGrace = 5*time.Second + 2*time.Second

func (r *record) judge(mayBeUnknown int) {
	books := map[jobs.TaskID]*task{}
	for _, t := range r.tasks {
		books[t.id] = t
	}
	byJob := map[jobs.ID][]command{}
	for _, c := range r.commands {
		byJob[c.job] = append(byJob[c.job], c)
		if books[c.job.Task()] == nil {
			r.say("%s ran on %s, and nobody had asked for it", c.job, c.Host)
		}
	}
	unknown := 0
	for _, t := range r.tasks {
		unknown += r.judgeTask(t, byJob)
	}
	r.checked.add(unknownOnly, unknown)
	r.mayBeUnknown = mayBeUnknown
	if unknown > mayBeUnknown {
		r.say("%d jobs are unknown, the faults explain %d", unknown, mayBeUnknown)
	}
	r.judgeHosts(books)
	r.judgeStarts()
}

// judgeTask looks at one task; it returns how many of its jobs are unknown without
// having been cancelled.
func (r *record) judgeTask(t *task, byJob map[jobs.ID][]command) (unknown int) {
	got := jobs.NewCounts()
	for _, host := range t.on {
		id := jobs.NewID(t.id, host)
		ends := r.ends[id]
		r.checked.add("every job has one outcome", 1)
		if len(ends) != 1 {
			r.say("job %s has ended %d times: %+v", id, len(ends), ends)
			continue
		}
		got[ends[0].outcome]++
		r.outcomes.add(string(ends[0].outcome), 1)
		if ends[0].outcome == jobs.Unknown && !strings.Contains(ends[0].err, "cancel") {
			unknown++
		}
		r.judgeJob(t, ends[0], id, byJob[id])
	}
	r.checked.add("counters are the outcomes", 1)
	if t.info.Total != len(t.on) || !maps.Equal(got, t.info.Outcomes) {
		r.say("task %s of %d hosts counts %v of %d, its jobs ended %v", t.id, len(t.on), t.info.Outcomes,
			t.info.Total, got)
	}
	return unknown
}

// judgeJob looks at how often the steps of a job ran.
func (r *record) judgeJob(t *task, e end, id jobs.ID, ran []command) {
	steps := map[string]int{"calm": 2, "image": 2, "twice": 1, "rough": 1, "once": 2,
		"brought": 2}[t.runbook]
	times := map[int]int{}
	for _, c := range ran {
		times[c.step]++
	}
	if t.runbook != "twice" {
		r.checked.add("a step runs once, unless repeatable", 1)
		for step, n := range times {
			if n > 1 {
				r.say("step %d of %s (%s, %s) ran %d times", step, id, t.runbook, e.outcome, n)
			}
		}
	}
	if t.runbook == "once" {
		r.judgeFenced(e, id, ran)
	}
	switch e.outcome {
	case jobs.Succeeded:
		r.checked.add("what succeeded has run, all of it", 1)
		if len(times) != steps {
			r.say("%s (%s) succeeded, and %d of its %d steps ran", id, t.runbook, len(times), steps)
		}
	case jobs.Unreachable, jobs.Expired, jobs.Superseded, jobs.Skipped:
		r.checked.add("what never ran has left nothing", 1)
		if len(ran) > 0 {
			r.say("%s is %s, but ran %d commands", id, e.outcome, len(ran))
		}
	}
}

// A use is how long something was held.
type use struct {
	span
	by string
}

// judgeHosts looks at who was at work beside whom.
func (r *record) judgeHosts(books map[jobs.TaskID]*task) {
	for _, o := range r.overlaps {
		r.say("two commands at once on %s: %+v and %+v", o.Host, o.First, o.Second)
	}
	r.checked.add("one command on a host at a time", len(r.commands))

	groups, limits := map[string][]use{}, map[string][]use{}
	for _, c := range r.commands {
		t := books[c.job.Task()]
		if t == nil {
			continue
		}
		i := indexOf(c.Host)
		whole := use{span{c.Start, c.End}, fmt.Sprintf("%s-%d", c.job, c.step)}
		if t.runbook == "rough" && i < pairHosts {
			groups[groupOf(i)] = append(groups[groupOf(i)], whole)
		}
		// A limit counts jobs. Where a job ended before its command, because its worker
		// was killed, the command is an orphan that no limit counts.
		counted := whole
		if ends := r.ends[c.job]; len(ends) > 0 && ends[0].at.Before(c.End) {
			counted.to = ends[0].at
		}
		if i >= siteFrom && i < siteTo {
			limits["site/zrh1"] = append(limits["site/zrh1"], counted)
		}
		if t.runbook == "image" {
			limits["mirror/images"] = append(limits["mirror/images"], counted)
		}
	}
	for name, uses := range groups {
		r.judgeUse("one of a group is disturbed at a time", name, uses, 1)
	}
	r.judgeUse("a limit is never exceeded", "site/zrh1", limits["site/zrh1"], siteMax)
	r.judgeUse("a limit is never exceeded", "mirror/images", limits["mirror/images"], imagesMax)
}

func (r *record) judgeUse(invariant, name string, uses []use, most int) {
	r.checked.add(invariant, len(uses))
	if together := crowd(uses); len(together) > most {
		r.say("%s: %d at a time, at most %d: %v", name, len(together), most, together)
	}
}

// crowd is the largest set of uses that overlap in one instant.
func crowd(uses []use) (largest []string) {
	uses = slices.Clone(uses)
	slices.SortFunc(uses, func(a, b use) int { return a.from.Compare(b.from) })
	var inside []use
	for _, u := range uses {
		if !u.from.Before(u.to) {
			continue
		}
		inside = slices.DeleteFunc(inside, func(o use) bool { return !o.to.After(u.from) })
		inside = append(inside, u)
		if len(inside) > len(largest) {
			largest = largest[:0]
			for _, o := range inside {
				largest = append(largest, fmt.Sprintf("%s %s-%s", o.by, clock(o.from), clock(o.to)))
			}
		}
	}
	return largest
}

// judgeStarts looks at when commands began.
func (r *record) judgeStarts() {
	for _, c := range r.commands {
		var last time.Time
		for _, at := range r.starts[c.job] {
			if !at.After(c.Start) {
				last = at
			}
		}
		r.checked.add("no step starts after its lock", 1)
		if over := c.Start.Sub(last.Add(lockTime)); over > 0 {
			r.say("step %d of %s started %s after the lock of its attempt had ended (taken %s)", c.step, c.job,
				over, clock(last))
		}
		r.judgeHalts(c)
	}
}

func (r *record) judgeHalts(c command) {
	for _, h := range r.halts {
		from := h.from.Add(haltGrace)
		if !from.Before(h.to) {
			continue
		}
		r.checked.add("nothing starts in a halt", 1)
		if c.Start.After(from) && c.Start.Before(h.to) {
			r.say("step %d of %s started at %s, in a halt from %s to %s", c.step, c.job, clock(c.Start),
				clock(h.from), clock(h.to))
		}
	}
}
