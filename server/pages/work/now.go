package work

import (
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"time"

	"muster/api"
	"muster/jobs"
	"muster/server/pages/frame"
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
func now(h frame.House, _ *http.Request) (frame.Show, error) {
	var list api.TaskList
	if err := h.Get("/v1/tasks", url.Values{"limit": {"500"}}, &list); err != nil {
		return frame.Show{}, err
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
	return frame.Show{Title: "Now", Nav: "Now", Parts: []frame.Part{
		{ID: "wants", Live: true, Body: nowWants(n)},
		{ID: "runs", Live: true, Body: nowRuns(n.runs)},
		{ID: "due", Live: true, Body: nowDue(n)},
		{ID: "wrong", Live: true, Body: nowWrong(n)},
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

func (n *nowFacts) lookAtHealth(h frame.House) {
	health := frame.Try[api.Health](h, "/v1/health", nil)
	if health.Why != "" {
		n.want(place{"/nodes", "Nodes", true}, "%s", health.Why)
	} else if health.Is.Status != "ok" {
		n.want(place{"/nodes", "Nodes", true}, "%s", health.Is.Status)
	}
	nodes := frame.Try[api.NodeList](h, "/v1/nodes", nil)
	n.miss("nodes", nodes.Why)
	for _, one := range nodes.Is.Nodes {
		switch {
		case one.State == jobs.NodeGone:
			n.want(place{"/nodes", "Nodes", true}, "node %s is gone", one.ID)
		case one.Note != "":
			n.want(place{"/nodes", "Nodes", false}, "node %s: %s", one.ID, one.Note)
		case one.Clock.Wrong():
			n.want(place{"/nodes", "Nodes", true}, "node %s: its clock is wrong by %s", one.ID,
				frame.Took(max(one.Clock.Skew, -one.Clock.Skew)))
		}
	}
}

func (n *nowFacts) lookAtPauses(h frame.House) {
	p := frame.Try[api.PauseList](h, "/v1/pauses", url.Values{"tasks": {"true"}})
	n.miss("pauses", p.Why)
	if p.Is.Halted != "" {
		n.want(place{"/order/lift", "Lift the halt", true}, "everything is halted: %s", p.Is.Halted)
	}
	if p.Is.Lost != "" {
		n.want(place{"/queue", "Queue", true}, "%s", p.Is.Lost)
	}
	if p.Is.History != nil {
		n.want(place{"/history", "History", true}, "%s", p.Is.History.Words())
	}
	for _, zone := range frame.Sorted(p.Is.NoNode) {
		n.want(place{"/nodes", "Nodes", true}, "zone %s has no working node: %s", zone, p.Is.NoNode[zone])
	}
	for _, zone := range frame.Sorted(p.Is.Zones) {
		n.want(place{"/queue", "Queue", false}, "zone %s is paused: %s", zone, p.Is.Zones[zone])
	}
	for _, c := range frame.Sorted(p.Is.Customers) {
		n.want(place{"/queue", "Queue", false}, "customer %s is paused: %s", c, p.Is.Customers[c])
	}
	q := frame.Try[api.QueueInfo](h, "/v1/queue", nil)
	for _, z := range q.Is.Zones {
		if !z.Frozen.IsZero() {
			n.want(place{"/queue", "Queue", true}, "zone %s is frozen: %s", z.Zone, z.Why)
		}
		if z.Trouble != "" {
			n.want(place{"/queue", "Queue", true}, "zone %s: %s", z.Zone, z.Trouble)
		}
		n.waits = append(n.waits, z.Deferred.Appointments...)
	}
	g := frame.Try[api.GroupList](h, "/v1/groups", nil)
	n.miss("groups", g.Why)
	for _, one := range g.Is.Groups {
		if one.Frozen != "" {
			n.want(place{"/queue#groups", "Queue", true}, "group %s is frozen: %s", one.Name, one.Frozen)
		}
	}
}

func (n *nowFacts) lookAtWork(h frame.House) {
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
	gates := frame.Try[api.GateList](h, "/v1/gates", nil)
	n.miss("gates", gates.Why)
	byTask := map[jobs.TaskID]int{}
	for _, g := range gates.Is.Gates {
		byTask[g.Task]++
	}
	for _, id := range frame.Sorted(byTask) {
		n.want(place{"/tasks/" + string(id), string(id), false},
			"task %s: %s at a gate, until a person answers", id, frame.Count(byTask[id], "job waits",
				"jobs wait"))
	}
	lanes := frame.Try[api.LaneList](h, "/v1/lanes", nil)
	n.miss("lanes", lanes.Why)
	for _, l := range lanes.Is.Lanes {
		if l.Stuck != "" {
			n.want(place{"/lanes?key=" + url.QueryEscape(l.Key), "Lanes", true}, "lane %s stands: %s", l.Key,
				l.Stuck)
		}
	}
	held := frame.Try[api.HeldList](h, "/v1/approvals", nil)
	n.miss("approvals", held.Why)
	for _, a := range held.Is.Approvals {
		n.want(place{"/approvals/" + string(a.Task), "Look at it", false},
			"task %s (%s on %s) of %s waits for signatures", a.Task, a.Runbook,
			frame.Count(a.Hosts, "host", "hosts"), a.Operator)
	}
}

func (n *nowFacts) lookAtTimes(h frame.House) {
	s := frame.Try[api.ScheduleList](h, "/v1/schedules", nil)
	n.miss("schedules", s.Why)
	for _, one := range s.Is.Schedules {
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

func (n *nowFacts) lookAtPast(h frame.House) {
	for _, o := range []jobs.Outcome{jobs.Unknown, jobs.Failed, jobs.Timeout, jobs.RolledBack,
		jobs.Unreachable} {
		past := frame.Try[api.PastJobs](h, "/v1/history", url.Values{"outcome": {string(o)},
			"from": {dayAgo()}, "limit": {strconv.Itoa(wrongShown)}})
		if past.Why != "" {
			n.wrongIs = past.Why
			return
		}
		n.wrong = append(n.wrong, past.Is.Jobs...)
	}
	slices.SortFunc(n.wrong, func(a, b api.PastJob) int { return b.Finished.Compare(a.Finished.Time) })
	n.wrong = n.wrong[:min(wrongShown, len(n.wrong))]
}
