package estate

import (
	"net/http"
	"net/url"
	"slices"
	"strings"

	"muster/api"
	"muster/jobs"
	"muster/server/pages/frame"
)

// Content returns the pages of all else: hosts, queue, times, history, nodes, people.
func Content() frame.Content {
	c := frame.Content{
		Views: map[string]frame.View{"/fleet": theFleet, "/hosts/{host}": host, "/queue": theQueue,
			"/schedules": theSchedules, "/schedules/{schedule}": schedule,
			"/history": theHistory, "/nodes": theNodes, "/approvals": theApprovals,
			"/approvals/{task}": approval, "/audit": theAudit, "/access": theAccess, "/search": search},
		Orders:  map[string]frame.Planner{"/order/{word}": thingOrder("house")},
		Words:   map[string][]string{"/order/{word}": frame.Sorted(deeds["house"])},
		Answers: map[string]frame.Answer{"GET /fleet/map": fleetMap, "GET /fleet/count": fleetCount},
		Hints:   verbWords(),
	}
	for _, kind := range []string{"zone", "customer", "group", "host", "schedule", "node"} {
		path := "/" + kind + "s/{" + kind + "}/order/{word}"
		c.Orders[path], c.Words[path] = thingOrder(kind), frame.Sorted(deeds[kind])
	}
	return c
}

// A deed is an order about a thing that is no task.
type deed struct {
	name, path string // the path of its request, in which NAME stands for the thing
	hits       string
	reason     bool // one is needed
	stops      bool
}

// deeds has the orders about each kind of thing, by their words.
var deeds = map[string]map[string]deed{
	"house": {
		"halt": {"Halt everything", "/v1/halt",
			"Nothing starts anywhere until somebody lifts the halt, " +
				"and jobs that run stop after their step.", true, true},
		"lift": {"Lift the halt", "/v1/lift", "Jobs may start again everywhere.", true, false},
	},
	"zone": {
		"pause": {"Pause", "/v1/zones/NAME/pause",
			"No more jobs of this zone start; those that run go on.",
			false, true},
		"resume": {"Resume", "/v1/zones/NAME/resume", "Jobs of this zone may start again.", false, false},
		"thaw": {"Thaw", "/v1/zones/NAME/thaw",
			"The freeze of this zone ends before its time: jobs start " +
				"although it may not be known what happened on their hosts.", true, true},
	},
	"customer": {
		"pause": {"Pause", "/v1/customers/NAME/pause",
			"No more jobs on the hosts of this customer start; those that run go on.", false, true},
		"resume": {"Resume", "/v1/customers/NAME/resume",
			"Jobs on the hosts of this customer may start again.", false, false},
	},
	"group": {
		"clear": {"Clear", "/v1/groups/NAME/clear",
			"The group may be disturbed again. Look at its hosts " +
				"before: a job in it ended unknown.", true, true},
	},
	"host": {
		"drain": {"Drain", "/v1/hosts/drain",
			"Selections leave this host out until somebody undrains it. " +
				"Its open jobs go on.", false, false},
		"undrain": {"Undrain", "/v1/hosts/undrain", "Selections get this host again.", false, false},
		"quarantine": {"Quarantine", "/v1/hosts/quarantine", "Only checks begin on this host, until " +
			"somebody ends it or a check succeeds there. Jobs that wait go on waiting.", false, true},
		"unquarantine": {"End the quarantine", "/v1/hosts/unquarantine", "This host takes every job " +
			"again. Look at it before: what a job did there may not be known.", true, false},
		"release": {"Release the lock", "/v1/hosts/NAME/release", "The lock of a job that has ended is " +
			"taken from this host, so that others may start there.", true, true},
	},
	"node": {
		"pause": {"Pause", "/v1/nodes/NAME/pause", "The node takes nothing more, also after its " +
			"master has started anew. Jobs that it has in hand go on to their end, and other nodes of its " +
			"zones take the next ones: so a node is drained.", true, true},
		"resume": {"Resume", "/v1/nodes/NAME/resume",
			"The node takes jobs again, unless its machine lacks something.", false, false},
	},
	"schedule": {
		"pause": {"Pause", "/v1/schedules/NAME/pause", "No tick fires until somebody resumes it.",
			false, false},
		"resume": {"Resume", "/v1/schedules/NAME/resume", "Its ticks fire again.", false, false},
		"run": {"Run now", "/v1/schedules/NAME/run", "One task of this schedule, now, beside its ticks.",
			false, false},
	},
}

// thingPages has the page of each kind of thing, in which NAME stands for the thing.
var thingPages = map[string]string{"house": "/queue", "zone": "/queue", "customer": "/queue",
	"group": "/queue", "host": "/hosts/NAME", "schedule": "/schedules/NAME", "node": "/nodes"}

// thingOrder returns the Planner of the orders about a kind of thing.
func thingOrder(kind string) frame.Planner {
	return func(h frame.House, r *http.Request) (frame.Asking, error) {
		name, word := r.PathValue(kind), r.PathValue("word")
		d, known := deeds[kind][word]
		if !known {
			return frame.Asking{}, frame.Refusal(http.StatusNotFound, "there is no order %q for a %s", word,
				kind)
		}
		a := frame.Asking{Word: word, Title: d.name, Nav: "Queue", Body: frame.ReasonOnly,
			Method: http.MethodPost,
			Path:   strings.ReplaceAll(d.path, "NAME", url.PathEscape(name)),
			Back:   strings.ReplaceAll(thingPages[kind], "NAME", url.PathEscape(name)),
			Reason: d.reason, Stops: d.stops, Target: frame.Target{N: 1, Noun: kind}}
		if kind != "house" {
			a.Title += ": " + kind + " " + name
		}
		if kind == "node" {
			a.Nav = "Nodes"
		}
		a.Hit("%s", d.hits)
		state, err := thingState(h, kind, name)
		if err != nil {
			return frame.Asking{}, err
		}
		for _, one := range state {
			a.Hit("%s", one)
		}
		a.Set = frame.SetOf(kind, name, word, state)
		if kind == "host" && word != "release" {
			a.Body = func(form url.Values) any {
				return api.DrainRequest{OrderRequest: frame.ReasonOnly(form).(api.OrderRequest), On: name}
			}
		}
		if kind == "schedule" && word == "run" {
			a.Body = func(url.Values) any { return api.RunSchedule{} }
		}
		return a, nil
	}
}

// thingState says in words how a thing is: an order that was made for another state is refused.
func thingState(h frame.House, kind, name string) ([]string, error) {
	var out []string
	say := func(words, text string) {
		if text != "" {
			out = append(out, words+": "+text)
		}
	}
	switch kind {
	case "house", "customer", "zone":
		var p api.PauseList
		if err := h.Get("/v1/pauses", nil, &p); err != nil {
			return nil, err
		}
		say("Halted now", p.Halted)
		say("This customer is paused now", p.Customers[name])
		if kind == "zone" {
			say("This zone is paused now", p.Zones[name])
		}
	case "group":
		var list api.GroupList
		if err := h.Get("/v1/groups", nil, &list); err != nil {
			return nil, err
		}
		i := slices.IndexFunc(list.Groups, func(g jobs.Group) bool { return g.Name == name })
		if i < 0 {
			return []string{"The group is neither in use nor frozen."}, nil
		}
		say("Frozen", list.Groups[i].Frozen)
		say("Its job", string(list.Groups[i].Job))
	case "host":
		var i api.HostInfo
		if err := h.Get("/v1/hosts/"+url.PathEscape(name), nil, &i); err != nil {
			return nil, err
		}
		say("Locked by", string(i.Lock))
		if i.Drained != nil {
			say("Drained", i.Drained.Note)
		}
	case "node":
		return nodeState(h, name)
	case "schedule":
		var s api.ScheduleInfo
		if err := h.Get("/v1/schedules/"+url.PathEscape(name), nil, &s); err != nil {
			return nil, err
		}
		say("Paused", s.Paused)
		say("It runs", s.Runbook+" on "+s.On)
	}
	return out, nil
}
