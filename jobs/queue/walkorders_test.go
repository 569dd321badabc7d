package queue_test

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"pgregory.net/rapid"

	"muster/jobs"
	"muster/jobs/model"
)

// This file has the orders of people, and the passing of time.

func (m *walker) cancel(t *rapid.T) {
	if rapid.IntRange(0, 2).Draw(t, "seldom") > 0 {
		return
	}
	e := model.Ending{Task: m.task(t), Note: "carol: no", Chunk: rapid.IntRange(0, 2).Draw(t, "chunk"),
		From: rapid.SampledFrom([]int{0, 0, 1}).Draw(t, "from"),
		Most: rapid.SampledFrom([]int{50, 50, 1}).Draw(t, "most")}
	switch rapid.IntRange(0, 3).Draw(t, "what") {
	case 0, 2:
		e.By = m.task(t)
	case 1:
		e.Hosts = []string{m.jobID(t).Host(), "fw9"}
	}
	m.end(t, e)
}

func (m *walker) pause(t *rapid.T) {
	m.shift(t, m.task(t), rapid.SampledFrom([]string{"pause", "resume", "release", "commit"}).Draw(t, "verb"))
}

// turn turns a switch of the zone. A switch that stops everything does not stay for long.
func (m *walker) turn(t *rapid.T) {
	verb := rapid.SampledFrom([]string{"limit", "clear", "thaw", "lift", "resume-zone", "halt", "pause-zone",
		"pause-customer", "resume-customer", "shift", "guard", "gate", "gate", "release", "quarantine", "unquarantine",
		"unquarantine"}).Draw(t, "verb")
	if m.zone.Flags.Halted.Note != "" && rapid.Bool().Draw(t, "lift") {
		verb = "lift"
	}
	a := model.Turn{Verb: verb, Note: "dave: " + verb, Number: int64(m.now)}
	switch verb {
	case "halt", "lift":
		a.Number = int64(rapid.IntRange(1, 20).Draw(t, "id"))
	case "pause-customer", "resume-customer":
		a.Object = rapid.SampledFrom([]string{"acme", "beta"}).Draw(t, "customer")
		a.Number = int64(rapid.IntRange(-1, 3).Draw(t, "order"))
	case "pause-zone", "resume-zone":
		a.Number = int64(rapid.IntRange(-1, 3).Draw(t, "order"))
	case "guard":
		a.Object = string(m.task(t))
	case "gate":
		a.Object, a.Number = m.gate(t)
	case "shift":
		a.Object = string(m.task(t))
		a.Number -= 1_000_000 * int64(rapid.IntRange(0, 100).Draw(t, "ago"))
	case "limit":
		a.Object = rapid.SampledFrom([]string{"site/a", "site/b", "lab"}).Draw(t, "limit")
		a.Number = int64(rapid.IntRange(-1, 2).Draw(t, "max"))
	case "release":
		a.Object, a.Number = m.lockedHost(t)
	case "quarantine", "unquarantine":
		a.Object = host(rapid.IntRange(0, 5).Draw(t, "host"))
	case "clear":
		a.Object, a.Number = fmt.Sprint("pair-", rapid.IntRange(0, 2).Draw(t, "group")), 0
		seen := strings.Fields(m.zone.Semaphores.Holders["group/"+a.Object]["frozen"])
		if len(seen) > 1 && rapid.Bool().Draw(t, "seen") {
			a.Number, _ = strconv.ParseInt(seen[1], 10, 64)
			a.Number += rapid.Int64Range(-1, 1).Draw(t, "another")
		}
	}
	m.control(t, a)
}

// recall is the answer of history after a loss; the answer is not always true.
func (m *walker) recall(t *rapid.T) {
	if rapid.IntRange(0, 3).Draw(t, "seldom") > 0 && m.zone.Flags.Owed == "" {
		return
	}
	a := model.Recall{Verb: rapid.SampledFrom([]string{"keep", "jobs", "jobs", "jobs", "done"}).Draw(t, "verb"),
		Owed: m.zone.Flags.Owed, Task: m.task(t)}
	if a.Verb == "keep" {
		a.Owed = rapid.SampledFrom([]string{"", "the stream is shorter"}).Draw(t, "why")
	}
	if a.Verb == "jobs" {
		for _, i := range rapid.Permutation([]int{0, 1, 2, 3, 4, 5}).Draw(t, "hosts")[:rapid.IntRange(1, 4).Draw(t, "jobs")] {
			p := model.Past{Host: host(i), Attempt: rapid.IntRange(0, 3).Draw(t, "attempt"),
				Node: "n1/7", Began: rapid.SampledFrom([]jobs.Micros{0, 1_750_000_000_000_000}).Draw(t, "began")}
			if rapid.Bool().Draw(t, "ended") {
				p.End = model.End{At: m.now - 5, Outcome: rapid.SampledFrom(jobs.Outcomes()).Draw(t, "outcome"),
					Exit: rapid.SampledFrom([]string{"", "3"}).Draw(t, "exit"), Error: "it failed", Note: "a note"}
			}
			a.Jobs = append(a.Jobs, p)
			if rapid.IntRange(0, 3).Draw(t, "unheard") == 0 {
				a.Unheard = append(a.Unheard, jobs.NewID(a.Task, p.Host))
			}
		}
	}
	m.twin.recall(t, a)
	m.believeEnds(a)
	// Otherwise nothing starts for the rest of the walk.
	if m.zone.Flags.Owed != "" && rapid.Bool().Draw(t, "done") {
		m.twin.recall(t, model.Recall{Verb: "done", Owed: m.zone.Flags.Owed})
	}
}

// believeEnds takes jobs from the children that history has reported as ended: such a job is over
// on its host, even if Redis had forgotten that and its child had it in hand.
func (m *walker) believeEnds(a model.Recall) {
	for _, p := range a.Jobs {
		id := jobs.NewID(a.Task, p.Host)
		if j := m.zone.Jobs[id]; p.End.Outcome == "" || j == nil || j.State != jobs.Ended {
			continue
		}
		for _, c := range m.children {
			if _, has := c.hand[id]; has {
				c.until[id] = m.real
			}
		}
	}
}

// lockedHost returns a host and the token of its lock, or a slightly different one.
func (m *walker) lockedHost(t *rapid.T) (host string, token int64) {
	hosts := append(slices.Sorted(maps.Keys(m.zone.Locks)), "fw9999")
	host = rapid.SampledFrom(hosts).Draw(t, "locked")
	return host, int64(m.zone.Locks[host].Token) + rapid.SampledFrom([]int64{0, 0, 0, 1}).Draw(t, "other")
}

// pass lets time pass, or TIME jump.
func (m *walker) pass(t *rapid.T) {
	d := rapid.SampledFrom([]time.Duration{time.Second, 10 * time.Second, 10 * time.Second, 30 * time.Second,
		70 * time.Second, -time.Second, -5 * time.Minute, 0}).Draw(t, "d")
	if d == 0 {
		d = rapid.SampledFrom([]time.Duration{time.Hour, 10 * time.Minute, 25 * time.Hour}).Draw(t, "long")
	}
	m.now, m.real = m.now.Add(d), m.real.Add(max(d, time.Second))
}

// reorder walks through the queue as a server that reorders it; other calls come between.
func (m *walker) reorder(t *rapid.T) {
	m.n++
	a := model.Walk{Token: fmt.Sprint("w", m.n), Lasts: 10 * time.Second}
	status, oldest, changes := m.lock(t, a)
	if status != "go" {
		return
	}
	a.At = max(m.now, m.zone.Flags.High)
	m.page(t, a, 0, 2)
	m.page(t, a, 2, 9)
	c := model.Chunk{Walk: a, Oldest: oldest, Size: rapid.IntRange(1, 4).Draw(t, "size")}
	var scores []any
	place, moved, how := oldest, 0, "done"
	for range 10 {
		r, rest := m.chunk(t, c, scores)
		moved, c.Left = moved+r.Moved, c.Left+r.Left
		if r.Status != "ok" || len(r.Rest) == 0 {
			how = "met"
			break
		}
		c.Old, scores, c.New = r.Rest, rest, nil
		for range r.Rest {
			place--
			c.New = append(c.New, place)
		}
		switch rapid.IntRange(0, 7).Draw(t, "meanwhile") {
		case 0:
			m.take(t)
		case 1:
			m.cancel(t)
		case 2:
			m.pass(t)
		case 3:
			return // it died
		}
	}
	m.done(t, model.Done{Walk: a, Moved: moved, Cooldown: 10 * time.Second, Who: "n1", How: how,
		Changes: changes})
}

func (m *walker) sweep(t *rapid.T) {
	rank := rapid.SampledFrom([]string{"", "0", "1", "3"}).Draw(t, "rank")
	m.step(t, model.Step{Step: jobs.Step{Request: rank}, Sent: m.now})
}
