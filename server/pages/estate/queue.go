package estate

import (
	"cmp"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"muster/api"
	"muster/jobs"
	"muster/jobs/front"
	"muster/server/pages/frame"
)

// queueFacts has what the page of the queue shows.
type queueFacts struct {
	zones  []zoneFacts
	pauses frame.Asked[api.PauseList]
	limits frame.Asked[api.LimitList]
	groups frame.Asked[api.GroupList]
	past   frame.Asked[api.DepthList]
	deep   []string // zones whose depth is not shown
	can    []frame.Order
	cannot []frame.Denied
}

// zoneFacts has the queue of a zone with its orders.
type zoneFacts struct {
	of     api.Zone
	front  []frame.Slice
	who    map[jobs.TaskID]int // the colour of each task
	can    []frame.Order
	cannot []frame.Denied
}

// theQueue shows the queues of the zones.
func theQueue(h frame.House, r *http.Request) (frame.Show, error) {
	var info api.QueueInfo
	if err := h.Get("/v1/queue", nil, &info); err != nil {
		return frame.Show{}, err
	}
	f := queueFacts{pauses: frame.Try[api.PauseList](h, "/v1/pauses", url.Values{"tasks": {"true"}}),
		limits: frame.Try[api.LimitList](h, "/v1/limits", nil), groups: frame.Try[api.GroupList](h,
			"/v1/groups", nil)}
	for _, z := range info.Zones {
		one := zoneFacts{of: z, who: map[jobs.TaskID]int{}}
		for i, s := range z.Shares {
			one.who[s.Task] = i % 8
		}
		one.front = frontOf(z.Shares, one.who)
		list := []frame.Order{{Word: "pause", Name: "Pause", Link: "/zones/" + z.Zone + "/order/pause"}}
		if z.Paused != "" {
			list[0] = frame.Order{Word: "resume", Name: "Resume", Link: "/zones/" + z.Zone + "/order/resume"}
		}
		if !z.Frozen.IsZero() {
			list = append(list, frame.Order{Word: "thaw", Name: "Thaw", Link: "/zones/" + z.Zone +
				"/order/thaw"})
		}
		one.can, one.cannot = frame.Sift(h, list, zonePaths(z.Zone))
		f.zones = append(f.zones, one)
	}
	slices.SortFunc(f.zones, func(a, b zoneFacts) int { return cmp.Compare(b.of.Due, a.of.Due) })
	f.lookBack(h, r.URL.Query().Get("depth"))
	list := []frame.Order{{Word: "halt", Name: "Halt everything", Link: "/order/halt"}}
	if f.pauses.Is.Halted != "" {
		list[0] = frame.Order{Word: "lift", Name: "Lift the halt", Link: "/order/lift"}
	}
	f.can, f.cannot = frame.Sift(h, list, map[string]string{"halt": "/v1/halt", "lift": "/v1/lift"})
	return frame.Show{Title: "Queue", Nav: "Queue", Parts: []frame.Part{
		{ID: "orders", Live: true, Body: queueOrders(f)},
		{ID: "zones", Live: true, Body: queueZones(f)},
		{ID: "depth", Live: true, Body: queueDepths(f)},
		{ID: "limits", Live: true, Body: queueLimits(f)},
		{ID: "groups", Live: true, Body: queueGroups(f)},
	}}, nil
}

// zonePaths returns the requests of the orders about a zone.
func zonePaths(zone string) map[string]string {
	path := "/v1/zones/" + url.PathEscape(zone) + "/"
	return map[string]string{"pause": path + "pause", "resume": path + "resume", "thaw": path + "thaw"}
}

// frontPlaces is the number of places at the front of a queue that a picture shows.
const frontPlaces = 100

// frontOf returns the front of a queue, if its tasks take turns by their weights as a reordering
// gives them: a cell for each place.
func frontOf(shares []jobs.Share, who map[jobs.TaskID]int) []frame.Slice {
	var out []frame.Slice
	for i, id := range front.Of(shares, frontPlaces) {
		out = append(out, frame.Slice{Kind: fmt.Sprint(who[id]), From: float64(i) * 10, Width: 9})
	}
	return out
}

// frontWords says in words what the picture of the front shows.
func (z zoneFacts) frontWords() string {
	return front.Words(z.of.Shares, front.Of(z.of.Shares, frontPlaces))
}

// lateness says how late the oldest job of a zone is.
func (z zoneFacts) lateness() string {
	if z.of.Overdue <= 0 {
		return "nothing is late"
	}
	return "the oldest is " + frame.Took(z.of.Overdue) + " late"
}

// standing lists what keeps all of a zone from starting.
func (z zoneFacts) standing() []string {
	var out []string
	for _, s := range [][2]string{{"Halted", z.of.Halted}, {"Paused", z.of.Paused},
		{"No node", z.of.NoNode},
		{"Trouble", z.of.Trouble}} {
		if s[1] != "" {
			out = append(out, s[0]+": "+s[1])
		}
	}
	if !z.of.Frozen.IsZero() {
		out = append(out, "Frozen since "+z.of.Frozen.UTC().Format(frame.TextForm)+": "+z.of.Why)
	}
	return out
}

// holdersOf returns the jobs that hold a limit, shortened.
func holdersOf(list []jobs.ID) string {
	var out []string
	for _, id := range list[:min(5, len(list))] {
		out = append(out, string(id))
	}
	text := strings.Join(out, ", ")
	if len(list) > 5 {
		text += fmt.Sprintf(" and %d more", len(list)-5)
	}
	return text
}
