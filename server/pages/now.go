package pages

import (
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"muster/api"
	"muster/jobs"
)

// A want is something that needs a person.
type want struct {
	words string
	place
}

// nowFacts has what the first page shows.
type nowFacts struct {
	wants   []want
	unknown []string // questions without an answer, with the reason
	runs    []jobs.TaskInfo
	due     []api.ScheduleInfo
	waits   []jobs.Appointment
	wrong   []api.PastJob
	wrongIs string // why it is not known what went wrong
}

// wrongShown bounds the jobs that went wrong on the first page; History has the others.
const wrongShown = 20

// now shows what needs a person, what runs, what is due, and what went wrong.
func now(h house, _ *http.Request) (show, error) {
	var list api.TaskList
	if err := h.get("/v1/tasks", url.Values{"limit": {"500"}}, &list); err != nil {
		return show{}, err
	}
	n := nowFacts{}
	for _, t := range list.Tasks {
		if t.State != jobs.TaskEnded {
			n.runs = append(n.runs, t)
		}
	}
	n.lookAtHealth(h)
	n.lookAtPauses(h)
	n.lookAtWork(h)
	n.lookAtTimes(h)
	n.lookAtPast(h)
	return show{title: "Now", nav: "Now", parts: []part{
		{id: "wants", live: true, body: nowWants(n)},
		{id: "runs", live: true, body: nowRuns(n.runs)},
		{id: "due", live: true, body: nowDue(n)},
		{id: "wrong", live: true, body: nowWrong(n)},
	}}, nil
}

// A place is a page on which a person can act.
type place struct {
	link, act string
	bad       bool
}

// want adds something that needs a person.
func (n *nowFacts) want(at place, format string, args ...any) {
	n.wants = append(n.wants, want{fmt.Sprintf(format, args...), at})
}

// miss notes a question that was not answered.
func (n *nowFacts) miss(noun, why string) {
	if why != "" {
		n.unknown = append(n.unknown, noun+": "+why)
	}
}

func (n *nowFacts) lookAtHealth(h house) {
	health := try[api.Health](h, "/v1/health", nil)
	if health.why != "" {
		n.want(place{"/nodes", "Nodes", true}, "%s", health.why)
	} else if health.is.Status != "ok" {
		n.want(place{"/nodes", "Nodes", true}, "%s", health.is.Status)
	}
	nodes := try[api.NodeList](h, "/v1/nodes", nil)
	n.miss("nodes", nodes.why)
	for _, one := range nodes.is.Nodes {
		switch {
		case one.State == jobs.NodeGone:
			n.want(place{"/nodes", "Nodes", true}, "node %s is gone", one.ID)
		case one.Note != "":
			n.want(place{"/nodes", "Nodes", false}, "node %s: %s", one.ID, one.Note)
		case one.Clock.Wrong():
			n.want(place{"/nodes", "Nodes", true}, "node %s: its clock is wrong by %s", one.ID,
				took(max(one.Clock.Skew, -one.Clock.Skew)))
		}
	}
}

func (n *nowFacts) lookAtPauses(h house) {
	p := try[api.PauseList](h, "/v1/pauses", url.Values{"tasks": {"true"}})
	n.miss("pauses", p.why)
	if p.is.Halted != "" {
		n.want(place{"/order/lift", "Lift the halt", true}, "everything is halted: %s", p.is.Halted)
	}
	if p.is.Lost != "" {
		n.want(place{"/queue", "Queue", true}, "%s", p.is.Lost)
	}
	if p.is.History != nil {
		n.want(place{"/history", "History", true}, "%s", p.is.History.Words())
	}
	for _, zone := range sorted(p.is.NoNode) {
		n.want(place{"/nodes", "Nodes", true}, "zone %s has no working node: %s", zone, p.is.NoNode[zone])
	}
	for _, zone := range sorted(p.is.Zones) {
		n.want(place{"/queue", "Queue", false}, "zone %s is paused: %s", zone, p.is.Zones[zone])
	}
	for _, c := range sorted(p.is.Customers) {
		n.want(place{"/queue", "Queue", false}, "customer %s is paused: %s", c, p.is.Customers[c])
	}
	q := try[api.QueueInfo](h, "/v1/queue", nil)
	for _, z := range q.is.Zones {
		if !z.Frozen.IsZero() {
			n.want(place{"/queue", "Queue", true}, "zone %s is frozen: %s", z.Zone, z.Why)
		}
		if z.Trouble != "" {
			n.want(place{"/queue", "Queue", true}, "zone %s: %s", z.Zone, z.Trouble)
		}
		n.waits = append(n.waits, z.Deferred.Appointments...)
	}
	g := try[api.GroupList](h, "/v1/groups", nil)
	n.miss("groups", g.why)
	for _, one := range g.is.Groups {
		if one.Frozen != "" {
			n.want(place{"/queue#groups", "Queue", true}, "group %s is frozen: %s", one.Name, one.Frozen)
		}
	}
}

func (n *nowFacts) lookAtWork(h house) {
	for _, t := range n.runs {
		name := fmt.Sprintf("task %s (%s)", t.Task, t.Runbook)
		at := place{"/tasks/" + string(t.Task), string(t.Task), false}
		if r := t.Rollout; r != nil && r.Stopped != "" {
			n.want(place{at.link, at.act, true}, "%s is stopped: %s", name, r.Stopped)
		} else if r != nil && r.Gate && !r.Last() && !r.Over.IsZero() && !r.Pass {
			n.want(at, "%s: wave %d has ended, and a person opens the next one", name, r.Wave)
		}
		if t.Paused != "" {
			n.want(at, "%s is paused: %s", name, t.Paused)
		}
	}
	gates := try[api.GateList](h, "/v1/gates", nil)
	n.miss("gates", gates.why)
	byTask := map[jobs.TaskID]int{}
	for _, g := range gates.is.Gates {
		byTask[g.Task]++
	}
	for _, id := range sorted(byTask) {
		n.want(place{"/tasks/" + string(id), string(id), false},
			"task %s: %s at a gate, until a person answers", id, count(byTask[id], "job waits", "jobs wait"))
	}
	held := try[api.HeldList](h, "/v1/approvals", nil)
	n.miss("approvals", held.why)
	for _, a := range held.is.Approvals {
		n.want(place{"/approvals/" + string(a.Task), "Look at it", false},
			"task %s (%s on %s) of %s waits for signatures", a.Task, a.Runbook,
			count(a.Hosts, "host", "hosts"), a.Operator)
	}
}

func (n *nowFacts) lookAtTimes(h house) {
	s := try[api.ScheduleList](h, "/v1/schedules", nil)
	n.miss("schedules", s.why)
	for _, one := range s.is.Schedules {
		if one.Ticks.Refused {
			n.want(place{"/schedules", "Schedules", false},
				"schedule %s: its last tick has no task: %s", one.Name, one.Ticks.Result)
		}
		if !one.Next.IsZero() {
			n.due = append(n.due, one)
		}
	}
	slices.SortFunc(n.due, func(a, b api.ScheduleInfo) int { return a.Next.Compare(b.Next.Time) })
	n.due = n.due[:min(10, len(n.due))]
}

// dayAgo returns the minute a day before now: so a page that is looked at each second changes once
// a minute.
func dayAgo() string {
	return time.Now().UTC().Add(-24 * time.Hour).Truncate(time.Minute).Format(time.RFC3339)
}

func (n *nowFacts) lookAtPast(h house) {
	for _, o := range []jobs.Outcome{jobs.Unknown, jobs.Failed, jobs.Timeout, jobs.RolledBack,
		jobs.Unreachable} {
		past := try[api.PastJobs](h, "/v1/history", url.Values{"outcome": {string(o)},
			"from": {dayAgo()}, "limit": {strconv.Itoa(wrongShown)}})
		if past.why != "" {
			n.wrongIs = past.why
			return
		}
		n.wrong = append(n.wrong, past.is.Jobs...)
	}
	slices.SortFunc(n.wrong, func(a, b api.PastJob) int { return b.Finished.Compare(a.Finished.Time) })
	n.wrong = n.wrong[:min(wrongShown, len(n.wrong))]
}

// sorted returns the keys of a map in order.
func sorted[K ~string, V any](m map[K]V) []K {
	out := make([]K, 0, len(m))
	for k := range m {
		out = append(out, k)
	}
	slices.Sort(out)
	return out
}

// count returns a number with its noun.
func count(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return strconv.Itoa(n) + " " + many
}

// firstLine returns the first line of a text.
func firstLine(text string) string {
	line, _, _ := strings.Cut(text, "\n")
	return line
}
