package sim

import (
	"slices"
	"time"

	"muster/jobs/model"
)

// A fault is a kind of accident, or something that an operator does.
type fault string

// The faults.
const (
	requestLost       fault = "request lost"
	replyLost         fault = "reply lost after execution"
	duplicated        fault = "call delayed and doubled"
	killStarted       fault = "child killed before its first step"
	killAtWork        fault = "child killed while a step runs"
	killAfterWork     fault = "child killed with a result in hand"
	killReporting     fault = "child killed while it reports"
	killBehindCall    fault = "child killed behind a call"
	masterBeforeTake  fault = "master killed with a take under way"
	masterBeforeChild fault = "master killed before its child starts"
	masterBehindCall  fault = "master killed behind a call"
	masterAnytime     fault = "master killed"
	nodeDead          fault = "node crashed"
	nodeAsleep        fault = "node asleep beyond its locks"
	childStopped      fault = "child stopped beyond its deadline"
	masterStopped     fault = "master stopped for a while"
	redisRestart      fault = "redis restarted"
	redisStall        fault = "redis stalled"
	tailLost          fault = "redis restarted without its last writes"
	failover          fault = "failover with lost writes and another clock"
	flushed           fault = "redis flushed"
	clockJump         fault = "clock of redis jumped"
	pausing           fault = "task paused"
	cancelling        fault = "task or job cancelled"
	halting           fault = "zone halted"
	limiting          fault = "limit changed"
	freezing          fault = "freeze of all windows ordered"
	lineCut           fault = "connection lost under a command"
)

// The misfortunes of a plan, which are no faults.
const (
	notReached fault = "host not reached"
	stepFails  fault = "step fails"
	notWell    fault = "host not ready"
	goesOn     fault = "step cannot be stopped"
)

// allFaults is every kind: one that is never fired by a run of many seeds fails it.
func allFaults() []fault {
	return []fault{requestLost, replyLost, duplicated, killStarted, killAtWork, killAfterWork,
		killReporting, killBehindCall, masterBeforeTake, masterBeforeChild, masterBehindCall,
		masterAnytime, nodeDead, nodeAsleep, childStopped, masterStopped, redisRestart, redisStall,
		tailLost, failover, flushed, clockJump, pausing, cancelling, halting, limiting, freezing, lineCut}
}

// faults of one seed: a random part of them, each with its own chance.
type faults struct {
	w       *world
	on      map[fault]float64
	quiet   bool
	fired   map[fault]int
	seen    map[string]int
	excused map[string]int
	starts  int
	plot    *plot // says which faults there are; nil: chance does
}

func drawFaults(w *world) {
	f := &w.faults
	f.w, f.on, f.fired, f.excused = w, map[fault]float64{}, map[fault]int{}, map[string]int{}
	f.seen = map[string]int{}
	for _, kind := range allFaults() {
		if w.chance(0.3) {
			f.on[kind] = w.rnd.Float64()
		}
	}
	// Faults that lose data are in few seeds, because most seeds must not be able to excuse anything
	// by them.
	for _, kind := range []fault{tailLost, failover, flushed, clockJump} {
		if w.chance(0.5) {
			delete(f.on, kind)
		}
	}
}

// strikes reports whether a fault of a call happens now. Rare calls meet faults more often.
func (f *faults) strikes(kind fault, call, of string) bool {
	if f.plot != nil {
		_, strikes := f.plot.strikes(kind, of)
		return strikes
	}
	p := 0.15
	switch {
	case slices.Contains(often, call):
		p = 0.02
	case call == "back" && kind == killBehindCall:
		p = 1
	case slices.Contains(seldom, call):
		p = 0.5
	}
	if f.quiet || !f.w.chance(p*f.on[kind]) {
		return false
	}
	f.note(kind)
	f.met(string(kind) + ": " + call)
	return true
}

// met counts what must happen in a run of many seeds.
func (f *faults) met(what string) { f.seen[what]++ }

func (f *faults) note(kind fault) {
	f.fired[kind]++
	f.w.say("fault: %s", kind)
}

// list returns the faults that happened, in the order of allFaults.
func (f *faults) list() (out []string) {
	for _, kind := range allFaults() {
		if f.fired[kind] > 0 {
			out = append(out, string(kind))
		}
	}
	return out
}

// point may kill a child at a point of its protocol, or a little later.
func (f *faults) point(c *child, kind fault, of string) {
	after := time.Duration(0)
	if strikes := false; f.plot != nil {
		if after, strikes = f.plot.strikes(kind, of); !strikes {
			return
		}
	} else if f.quiet || !f.w.chance(0.15*f.on[kind]) {
		return
	} else {
		after = f.w.between(0, 5*time.Millisecond)
	}
	f.w.in(after, func() {
		if !c.dead {
			f.note(kind)
			c.die("killed by signal 9")
		}
	})
}

func (f *faults) masterPoint(n *node, kind fault) {
	if f.plot != nil || f.quiet || !f.w.chance(0.15*f.on[kind]) {
		return
	}
	m := n.master
	f.w.in(f.w.between(0, 2*time.Millisecond), func() {
		if !m.dead {
			f.note(kind)
			n.die(f.away())
		}
	})
}

// away is for how long a master is not there: it is started again at once, or late.
func (f *faults) away() time.Duration {
	if f.w.chance(0.5) {
		f.met("a master is back at once")
		return f.w.between(0, 100*time.Millisecond)
	}
	f.met("a master is back late")
	return f.w.between(time.Second, time.Minute)
}

// behind may kill who made a call, about when its answer comes.
func (f *faults) behind(p *process, call, of string) {
	if p.dies == nil || !f.strikes(p.kills, call, of) {
		return
	}
	f.w.in(f.w.between(0, 3*time.Millisecond), p.dies)
}

// cuts reports whether and when the connection under a command is lost before that ends.
func (f *faults) cuts(runs time.Duration, of string) (after time.Duration, cuts bool) {
	switch {
	case f.plot != nil:
		if after, cuts = f.plot.strikes(lineCut, of); !cuts {
			return 0, false
		}
	case f.quiet || runs == 0 || !f.w.chance(0.15*f.on[lineCut]):
		return 0, false
	default:
		after = f.w.between(0, runs)
	}
	f.note(lineCut)
	return after, true
}

// unlucky reports whether something happens that has a chance in a plan.
func (f *faults) unlucky(kind fault, chance float64, of string) bool {
	if f.plot != nil {
		_, strikes := f.plot.strikes(kind, of)
		return strikes
	}
	return f.w.chance(chance)
}

// haltBehind may halt the zone right behind a question whose answer was lost: who repeats it
// is told to stop, and the queue has taken note of what did not begin.
func (f *faults) haltBehind(call string) {
	if f.plot == nil && call == "checkpoint" && f.w.chance(0.3) {
		f.met("a go is lost, and the zone halted")
		f.w.staff.halt()
	}
}

// act returns the next action of an operator; empty: none.
func (f *faults) act() fault {
	for _, kind := range []fault{pausing, cancelling, halting, limiting, freezing} {
		if !f.quiet && f.w.chance(f.on[kind]) {
			f.note(kind)
			return kind
		}
	}
	return ""
}

// accidents plans those that come by themselves.
func (f *faults) accidents() {
	w := f.w
	for _, kind := range allFaults() {
		do := w.accident(kind)
		if do == nil || f.on[kind] == 0 {
			continue
		}
		for range 1 + w.rnd.IntN(3) {
			w.in(w.between(5*time.Second, busy), func() {
				f.note(kind)
				do()
			})
		}
	}
}

// accident returns the effect of a fault on the world; nil for faults that have a place of their
// own.
func (w *world) accident(kind fault) func() {
	n := w.nodes[w.rnd.IntN(len(w.nodes))]
	s := w.redis
	switch kind {
	case masterAnytime:
		return func() { n.die(w.faults.away()) }
	case nodeDead:
		return func() { n.crash(w.between(5*time.Second, 5*time.Minute)) }
	case nodeAsleep:
		return func() { n.sleep(w.between(30*time.Second, 4*time.Minute)) }
	case masterStopped:
		return func() { n.master.stop(w.between(time.Second, 2*time.Minute)) }
	case childStopped:
		return func() { w.stopChild() }
	case redisRestart:
		return func() { s.restart(w.between(100*time.Millisecond, 10*time.Second), nil) }
	case redisStall:
		return func() { s.stalled = w.now + w.between(time.Second, 20*time.Second) }
	case tailLost:
		return func() {
			s.loses = func(kept *model.Zone) {
				w.in(w.between(0, time.Second), func() {
					s.restart(w.between(100*time.Millisecond, 5*time.Second), kept)
				})
			}
		}
	case failover:
		return func() {
			s.loses = func(kept *model.Zone) {
				w.in(w.between(0, time.Second), func() {
					if !w.faults.quiet { // else nobody would put this clock right
						s.offset += w.between(-3*time.Second, 3*time.Second)
					}
					s.restart(w.between(time.Second, 15*time.Second), kept)
				})
			}
		}
	case flushed:
		return func() {
			s.flush()
			w.in(w.between(time.Second, 5*time.Minute), w.staff.agree)
		}
	case clockJump:
		return func() {
			d := w.between(20*time.Second, time.Hour)
			if w.chance(0.5) {
				d = -d
			}
			s.offset += d
			s.unseen = d > time.Minute // no lock ends when it goes back
			if d > 0 && !s.unseen {
				s.lost.early = append(s.lost.early, w.now)
			}
			w.say("redis: its clock jumps by %s", d)
		}
	}
	return nil
}

// stopChild stops a child that has a job, for longer than its lock.
func (w *world) stopChild() {
	for _, n := range w.nodes {
		for _, c := range n.living() {
			if len(c.held) > 0 {
				c.process.stop(w.between(time.Second, 4*time.Minute))
				return
			}
		}
	}
}

// forgetful reports whether Redis has forgotten something.
func (f *faults) forgetful() bool { return f.fired[tailLost]+f.fired[failover]+f.fired[flushed] > 0 }
