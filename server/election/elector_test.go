package election

import (
	"testing"
	"time"

	"pgregory.net/rapid"

	"muster/jobs/queue/hub"
)

// lease is a duty as Redis keeps it, with its own clock.
type lease struct {
	number, last int64
	until        time.Duration
}

func (l *lease) lead(now time.Duration, held int64) hub.Term {
	if now >= l.until {
		l.number = 0
	}
	if l.number != 0 && l.number != held {
		return hub.Term{Number: l.number}
	}
	if l.number == 0 {
		l.last++
		l.number = l.last
	}
	l.until = now + hub.Lease
	return hub.Term{Number: l.number, Mine: true}
}

// asked is a request that is under way.
type asked struct {
	server    int
	held      int64
	sent      time.Duration
	delivered bool
	answer    hub.Term
}

// Requests and answers take any time or are lost, servers stop for any time and
// lose patience: there are never two who believe that they lead.
func TestNeverTwoLead(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		var electors [3]elector
		var asking [3]*asked // that a server waits for
		var all []*asked
		var duty lease
		now := time.Duration(0)
		pick := func(which func(*asked) bool) *asked {
			var list []*asked
			for _, r := range all {
				if which(r) {
					list = append(list, r)
				}
			}
			if len(list) == 0 {
				t.Skip("there is none")
			}
			return rapid.SampledFrom(list).Draw(t, "request")
		}
		t.Repeat(map[string]func(*rapid.T){
			"send": func(t *rapid.T) {
				i := rapid.IntRange(0, len(electors)-1).Draw(t, "server")
				if asking[i] == nil {
					asking[i] = &asked{server: i, held: electors[i].held, sent: now}
					all = append(all, asking[i])
				}
			},
			"deliver": func(*rapid.T) {
				r := pick(func(r *asked) bool { return !r.delivered })
				r.delivered, r.answer = true, duty.lead(now, r.held)
			},
			"answer": func(*rapid.T) {
				r := pick(func(r *asked) bool { return r.delivered && asking[r.server] == r })
				electors[r.server].heard(r.answer, r.sent)
				asking[r.server] = nil
			},
			"lose patience": func(*rapid.T) {
				r := pick(func(r *asked) bool { return asking[r.server] == r })
				electors[r.server].doubt()
				asking[r.server] = nil
			},
			"pass": func(t *rapid.T) {
				now += time.Duration(rapid.IntRange(1, 40).Draw(t, "tenths")) * time.Second / 10
			},
			"": func(t *rapid.T) {
				leaders := 0
				for _, e := range electors {
					if e.leads(now) {
						leaders++
					}
				}
				if leaders > 1 {
					t.Fatalf("%d lead at %s: %+v", leaders, now, electors)
				}
			},
		})
	})
}

func TestElector(t *testing.T) {
	t.Parallel()
	const s = time.Second
	mine, other := hub.Term{Number: 7, Mine: true}, hub.Term{Number: 8}
	var e elector
	if e.leads(0) {
		t.Error("one that never asked leads")
	}
	e.heard(mine, 10*s)
	trust := 10*s + hub.Lease - leaseMargin
	if !e.leads(10*s) || !e.leads(trust-1) || e.leads(trust) || e.held != 7 {
		t.Errorf("after its request of 10s: %+v", e)
	}
	e.doubt()
	if e.leads(10*s) || e.held != 7 {
		t.Errorf("in doubt: %+v", e)
	}
	e.heard(mine, 11*s)
	if !e.leads(12 * s) {
		t.Errorf("when the doubt is over: %+v", e)
	}
	e.heard(other, 12*s)
	if e.leads(12*s) || e.held != 0 {
		t.Errorf("when another leads: %+v", e)
	}
	e.heard(hub.Term{Number: 9, Mine: true}, 5*s)
	if e.leads(12 * s) {
		t.Errorf("an answer that came too late makes it lead: %+v", e)
	}
}
