package sim

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"muster/jobs"
)

// A host writes down what was started on it. It knows nothing of the queue.
type host struct {
	*world
	name, group string
	limits      []string // that its jobs count against
	log         []*entry
	boots       int
	down        time.Duration // until then nobody reaches it
}

// entry is one command. It runs to its end whatever becomes of who started it.
type entry struct {
	job      jobs.ID
	token    jobs.Token
	step     int
	try      int           // of the step
	once     bool          // it must not be started twice for a job
	boot     int           // of the host
	plan                   // of its task
	stage                  // of its runbook
	asked    time.Duration // when the job was asked for
	goes     bool          // on, whether its task is paused or not
	from, to time.Duration
	latest   time.Duration // when it has been killed in any case
}

func (e *entry) disturbs() bool { return e.disruptive && e.kind != looking }

// harmless tells of a command beside another one that a killed worker left it behind, and it
// only looks, or is a reboot of the same job.
func (h *host) harmless(left, e *entry) bool {
	j := h.redis.zone.Jobs[left.job]
	lost := j == nil || j.Token != left.token || j.State != jobs.Running
	return lost && (left.kind == looking || left.kind == reboot && left.job == e.job)
}

// begin starts a command, and judges whether that was right.
func (h *host) begin(e *entry) {
	h.say("%s: %s step %d by %d until %s", h.name, e.job, e.step, e.token, e.to)
	h.faults.starts++
	for _, other := range h.log {
		if other.to > h.now && !h.harmless(other, e) {
			h.suspect(h.alone(other, e), "%s: %s step %d starts while %s runs to %s", h.name, e.job, e.step, other.job,
				other.to)
		}
		same := other.job == e.job && other.step == e.step && other.try == e.try
		if same && (e.once || e.kind == reboot && other.boot != h.boots) {
			h.suspect(h.once(other), "%s: step %d of %s starts a second time", h.name, e.step, e.job)
		}
		if other.token > e.token {
			h.suspect("I8", "%s: token %d after %d", h.name, e.token, other.token)
		}
	}
	if s := h.redis.halted; s != 0 && h.now > s+5*time.Second {
		h.suspect("I5", "%s: %s starts %s after the halt", h.name, e.job, h.now-s)
	}
	if e.disturbs() {
		h.disturb(e)
	}
	if e.window {
		h.window(e)
	}
	h.limit(e)
	h.underLock(e)
	h.behindGates(e)
	h.obeys(e)
	e.boot = h.boots
	h.log = append(h.log, e)
}

// alone is the promise that no other command runs on the host.
func (h *host) alone(other, e *entry) string {
	switch s := h.redis; {
	case s.lost.forgot(other.token):
		return "I1 beside a take that was forgotten"
	case s.lost.behind[other.token]:
		return "I1 beside a go that was forgotten"
	case s.lost.blind[e.token]:
		return "I1 before a jump of the clock was seen"
	case slices.ContainsFunc(s.lost.early, func(at time.Duration) bool { return at >= other.from && at <= h.now }):
		return "I1 across a jump of the clock of less than a minute"
	}
	return "I1"
}

// once is the promise that a step does not start a second time behind another start.
func (h *host) once(other *entry) string {
	if h.redis.lost.flushed[other.token] {
		return "I3 behind a take that was flushed"
	}
	return "I3"
}

func (h *host) disturb(e *entry) {
	for _, name := range sorted(h.hosts) {
		other := h.hosts[name]
		if other == h || other.group != h.group {
			continue
		}
		for _, x := range other.log {
			if x.disturbs() && x.to > h.now {
				h.suspect("I2", "%s: %s starts while %s disturbs %s", h.name, e.job, x.job, name)
			}
		}
		// Also between its steps a job has not left its host as it should be.
		for _, x := range other.log {
			if x.disturbs() && h.staff.open(x.job) {
				h.suspect("I2 between steps", "%s: %s starts, and %s on %s has not ended", h.name, e.job, x.job, name)
			}
		}
	}
}

// limit counts the commands that run on all hosts against a limit. A command of a worker that was
// killed does not count, because its job is lost.
func (h *host) limit(e *entry) {
	for _, name := range sorted(limitsMost) {
		if !h.counts(e, name) {
			continue
		}
		var at []string
		since := h.redis.countsSince(name, e.job)
		for _, other := range sorted(h.hosts) {
			o := h.hosts[other]
			for _, x := range o.log {
				if j := h.redis.zone.Jobs[x.job]; x.to > h.now && o.counts(x, name) && j != nil &&
					j.State == jobs.Running && j.Token == x.token {
					at = append(at, string(x.job))
					since = min(since, h.redis.countsSince(name, x.job))
				}
			}
		}
		if most := h.redis.mostSince(name, since); len(at) >= most {
			h.suspect("I10", "%s: %s starts, and %s count against %s, %d at most", h.name, e.job,
				strings.Join(at, ", "), name, most)
		}
	}
}

func (h *host) counts(e *entry, limit string) bool {
	return slices.Contains(e.needs, limit) || slices.Contains(h.limits, limit)
}

// excuses are the accidents under which a promise is not given: what Redis forgot,
// the hosts do not know better yet. See docs/TESTING.md.
var excuses = map[string][]fault{
	// After FLUSHALL the zone is frozen for the longest lock that anybody knows who is
	// heard of meanwhile; the command of a worker that died may run longer.
	"I1": {flushed},
	// Nobody can say again what a worker had that died: its job has never run, see I3.
	"I1 beside a take that was forgotten": {tailLost, failover},
	// Nor does its child say again how far a job is; if it dies then, the next one goes on from
	// the step before.
	"I1 beside a go that was forgotten": {tailLost, failover},
	// Locks end at once when the clock jumps ahead, and a master or child that was started
	// just then knows no other time: it may take what runs, until somebody older calls.
	"I1 before a jump of the clock was seen": {clockJump},
	// Locks end by the clock of Redis. A jump of less than a minute is none to anybody, and ends them early.
	"I1 across a jump of the clock of less than a minute": {clockJump},
	// A job whose end was forgotten counts as lost and may go on, beside the one of
	// its group that came after it.
	"I2":               {flushed, tailLost, failover},
	"I2 between steps": {flushed, tailLost, failover},
	// A job whose take was forgotten, and whose worker died, has never run.
	"I3": {tailLost, failover},
	// A submit that was not answered is repeated, and Redis knows nothing any more of what the
	// first one began.
	"I3 behind a take that was flushed": {flushed},
	// A job that is half way finishes: nobody knows its window, which may say otherwise.
	"I4 half way, and its window is forgotten": {flushed},
	"I4": {},
	"I5": {},
	// The last token is forgotten; a clock that went back then makes smaller ones.
	"I8":  {flushed},
	"I15": {},
	// The lock is forgotten, or ends by a clock that is another.
	"I12": {flushed, tailLost, failover, clockJump},
	// The order is forgotten, or the end.
	"I13": {flushed, tailLost, failover},
	"I14": {flushed, tailLost, failover},
	// Redis forgets the holders of a limit.
	"I10": {flushed, tailLost, failover},
}

// suspect is a broken promise, unless what happened before excuses it.
func (h *host) suspect(promise, format string, args ...any) {
	text := promise + ": " + fmt.Sprintf(format, args...)
	for _, f := range excuses[promise] {
		if h.faults.fired[f] > 0 {
			h.say("excused by %q: %s", f, text)
			h.faults.excused[promise+" by "+string(f)]++
			return
		}
	}
	h.broken("%s (after %s)", text, strings.Join(h.faults.list(), ", "))
}

// goesDown is a host that was told to reboot: it goes down, and comes back, or does not for long.
func (h *host) goesDown() {
	h.boots++
	h.down = h.now + h.between(5*time.Second, 2*time.Minute)
	if h.chance(0.1) {
		h.down += 5 * time.Minute
	}
}

// limitsMost are the limits: that of runbooks which name it, and that of a site.
var limitsMost = map[string]int{"lab": 2, "site/a": 1}

// hosts of a world: pairs, of which some are on a site with a limit.
func newHosts(w *world, n int) {
	w.hosts = map[string]*host{}
	site := w.chance(0.5)
	for i := range n {
		h := &host{world: w, name: fmt.Sprintf("fw%02d", i), group: fmt.Sprint("pair-", i/2)}
		if site && i%3 == 0 {
			h.limits = []string{"site/a"}
		}
		w.hosts[h.name] = h
	}
}

func sorted[K ~string, V any](m map[K]V) []K {
	keys := make([]K, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}
