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
	log         []entry
}

// entry is one command. It runs to its end whatever becomes of who started it.
type entry struct {
	job        jobs.ID
	token      jobs.Token
	step       int
	once       bool // it must not be started twice for a job
	disruptive bool
	from, to   time.Duration
}

// begin starts a command, and judges whether that was right.
func (h *host) begin(e entry) {
	h.say("%s: %s step %d by %d until %s", h.name, e.job, e.step, e.token, e.to)
	h.faults.starts++
	for _, other := range h.log {
		if other.to > h.now {
			h.suspect("I1", "%s: %s step %d starts while %s runs to %s", h.name, e.job, e.step, other.job, other.to)
		}
		if e.once && other.job == e.job && other.step == e.step {
			h.suspect("I3", "%s: step %d of %s starts a second time", h.name, e.step, e.job)
		}
		if other.token > e.token {
			h.suspect("I8", "%s: token %d after %d", h.name, e.token, other.token)
		}
	}
	if s := h.redis.halted; s != 0 && h.now > s+5*time.Second {
		h.suspect("I5", "%s: %s starts %s after the halt", h.name, e.job, h.now-s)
	}
	if e.disruptive {
		h.disturb(e)
	}
	h.log = append(h.log, e)
}

func (h *host) disturb(e entry) {
	for _, name := range sorted(h.hosts) {
		other := h.hosts[name]
		if other == h || other.group != h.group {
			continue
		}
		for _, x := range other.log {
			if x.disruptive && x.to > h.now {
				h.suspect("I2", "%s: %s starts while %s disturbs %s", h.name, e.job, x.job, name)
			}
		}
		// Also between its steps a job has not left its host as it should be.
		for _, x := range other.log {
			if x.disruptive && h.staff.open(x.job) {
				h.suspect("I2 between steps", "%s: %s starts, and %s on %s has not ended", h.name, e.job, x.job, name)
			}
		}
	}
}

// excuses are the accidents under which a promise is not given: what Redis forgot,
// the hosts do not know better yet. See docs/TESTING.md.
var excuses = map[string][]fault{
	// After FLUSHALL the zone is frozen for the longest lock that anybody knows who is
	// heard of meanwhile; the command of a worker that died may run longer.
	"I1": {flushed},
	// A job whose end was forgotten counts as lost and may go on, beside the one of
	// its group that came after it.
	"I2":               {flushed, tailLost, failover},
	"I2 between steps": {flushed, tailLost, failover},
	// A job whose take was forgotten, and whose worker died, has never run.
	"I3": {tailLost, failover},
	"I5": {},
	// The last token is forgotten; a clock that went back then makes smaller ones.
	"I8": {flushed},
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

// hosts of a world: pairs.
func newHosts(w *world, n int) {
	w.hosts = map[string]*host{}
	for i := range n {
		name := fmt.Sprintf("fw%02d", i)
		w.hosts[name] = &host{world: w, name: name, group: fmt.Sprint("pair-", i/2)}
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
