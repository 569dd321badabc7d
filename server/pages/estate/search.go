package estate

import (
	"cmp"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"muster/api"
	"muster/server/pages/frame"
)

// found is one result of a search.
type found struct{ kind, name, link, words string }

// foundMax bounds the hosts that a search shows.
const foundMax = 50

// search looks for hosts, tasks, runbooks and customers.
func search(h frame.House, r *http.Request) (frame.Show, error) {
	// The key that leads to the field may come along with the word.
	word := strings.TrimLeft(strings.TrimSpace(r.URL.Query().Get("q")), "/")
	var list []found
	if word != "" {
		list = append(ordersFor(h, strings.ToLower(word)), lookFor(h, strings.ToLower(word))...)
	}
	return frame.Show{Title: "Search", Nav: "", Parts: []frame.Part{{ID: "found",
		Body: foundPart(word, list)}, {ID: "palette", Body: palettePart()}}}, nil
}

// lookFor returns what has a word in its name.
func lookFor(h frame.House, word string) []found {
	var list []found
	has := func(text string) bool { return strings.Contains(strings.ToLower(text), word) }
	books := frame.Try[api.RunbookList](h, "/v1/runbooks", nil)
	for _, b := range books.Is.Runbooks {
		if has(b.Name) {
			list = append(list, found{"runbook", b.Name, "/runbooks/" + b.Name, b.Description})
		}
	}
	ticks := frame.Try[api.ScheduleList](h, "/v1/schedules", nil)
	for _, s := range ticks.Is.Schedules {
		if has(s.Name) {
			list = append(list, found{"schedule", s.Name, "/schedules/" + s.Name, s.Runbook})
		}
	}
	nodes := frame.Try[api.NodeList](h, "/v1/nodes", nil)
	for _, n := range nodes.Is.Nodes {
		if has(n.ID) {
			list = append(list, found{"node", n.ID, "/nodes", stateOf(n)})
		}
	}
	all := frame.Try[api.TaskList](h, "/v1/tasks", url.Values{"limit": {"500"}})
	for _, t := range all.Is.Tasks {
		if has(string(t.Task)) || has(t.Runbook+" "+t.Operator) && len(list) < foundMax {
			list = append(list, found{"task", string(t.Task), "/tasks/" + string(t.Task),
				t.Runbook + " on " + frame.ClipText(t.On) + " of " + t.Operator})
		}
	}
	customers, zones, groups, hosts := map[string]int{}, map[string]int{}, map[string]int{}, 0
	page := frame.Try[api.HostList](h, "/v1/hosts", nil)
	for _, one := range page.Is.Hosts {
		customers[one.Customer]++
		zones[one.Zone]++
		groups[one.Group]++
		if has(one.Name) || has(one.Address) {
			if hosts++; hosts <= foundMax {
				list = append(list, found{"host", one.Name, "/hosts/" + one.Name, one.Customer + " " +
					one.Address})
			}
		}
	}
	if hosts > foundMax {
		list = append(list, found{"host", fmt.Sprintf("and %d more hosts", hosts-foundMax), "/fleet", ""})
	}
	list = append(list, parts("customer", customers, has)...)
	list = append(list, parts("zone", zones, has)...)
	list = append(list, parts("group", groups, has)...)
	slices.SortStableFunc(list, func(a, b found) int {
		return cmp.Compare(rank[a.kind],
			rank[b.kind])
	})
	return list
}

// rank orders the kinds of things that a search finds.
var rank = map[string]int{"host": 1, "customer": 2, "zone": 3, "group": 4, "node": 5, "schedule": 6,
	"task": 7, "runbook": 8}

// parts returns the parts of the fleet of a kind whose names fit.
func parts(kind string, counts map[string]int, has func(string) bool) []found {
	var list []found
	for _, name := range frame.Sorted(counts) {
		if name != "" && has(name) && len(list) < foundMax {
			list = append(list, found{kind, name, "/fleet?on=" + url.QueryEscape(kind+"="+name),
				frame.Count(counts[name], "host", "hosts")})
		}
	}
	return list
}
