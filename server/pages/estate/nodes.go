package estate

import (
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"muster/api"
	"muster/jobs"
	"muster/server/pages/frame"
)

// nodeFacts has the nodes with what the person may order about them.
type nodeFacts struct {
	nodes []jobs.Node
	no    map[string]string // by node: why the person may not give the order; empty: they may
}

// theNodes lists nodes and duties.
func theNodes(h frame.House, _ *http.Request) (frame.Show, error) {
	var list api.NodeList
	if err := h.Get("/v1/nodes", nil, &list); err != nil {
		return frame.Show{}, err
	}
	health := frame.Try[api.Health](h, "/v1/health", nil)
	f := nodeFacts{nodes: list.Nodes, no: map[string]string{}}
	for _, n := range list.Nodes {
		if err := h.May(http.MethodPost, nodePath(n.ID, nodeWord(n))); err != nil {
			f.no[n.ID] = err.Error()
		}
	}
	return frame.Show{Title: "Nodes", Nav: "Nodes", Parts: []frame.Part{
		{ID: "health", Live: true, Body: healthPart(health)},
		{ID: "nodes", Live: true, Body: nodeTable(f)},
		{ID: "duties", Live: true, Body: dutyTable(list.Duties)}}}, nil
}

// clockOf describes the clock of a node.
func clockOf(n jobs.Node) string {
	text := fmt.Sprintf("%+.3f s", n.Clock.Skew)
	if n.Clock.Loose != "" {
		text += "; " + n.Clock.Loose
	}
	return text
}

// busy counts the jobs in the hands of a node.
func busy(n jobs.Node) int {
	k := 0
	for _, c := range n.Children {
		if c.Job != "" {
			k += max(1, len(c.Jobs))
		}
	}
	return k
}

// nodePath returns the request of an order about a node.
func nodePath(node, word string) string {
	return "/v1/nodes/" + url.PathEscape(node) + "/" + word
}

// nodeWord returns the order that makes sense for a node as it is.
func nodeWord(n jobs.Node) string {
	if n.Paused != nil {
		return "resume"
	}
	return "pause"
}

// stateOf says how a node is: what it does of itself, or what was ordered.
func stateOf(n jobs.Node) string {
	if n.Paused != nil && n.State != jobs.NodeGone {
		return "paused, " + n.State
	}
	return n.State
}

// lessOf lists why a node takes less work than it could, or none.
func lessOf(n jobs.Node) []string {
	var out []string
	if n.Paused != nil {
		out = append(out, "Paused at "+n.Paused.At.UTC().Format(frame.TextForm)+" by "+n.Paused.Note)
	}
	if n.Doubt != "" {
		out = append(out, "It begins no job: "+n.Doubt)
	}
	if g := n.Governor; g != nil {
		words := fmt.Sprintf("Its machine bears %s", frame.Count(g.Children, "child", "children"))
		if g.Starved {
			words = "Its machine lacks something, so it takes nothing"
		}
		out = append(out, words+": "+strings.Join(g.Why, "; "))
	}
	if len(n.Standby) > 0 {
		out = append(out, "It only stands in for the zones "+strings.Join(n.Standby, ", "))
	}
	if n.Note != "" {
		out = append(out, n.Note)
	}
	return out
}

// nodeState says in words how a node is, for the page of an order about it.
func nodeState(h frame.House, name string) ([]string, error) {
	var list api.NodeList
	if err := h.Get("/v1/nodes", nil, &list); err != nil {
		return nil, err
	}
	i := slices.IndexFunc(list.Nodes, func(n jobs.Node) bool { return n.ID == name })
	if i < 0 {
		return []string{"No node of this name is known now: an order about it is refused, unless it " +
			"was paused before."}, nil
	}
	n := list.Nodes[i]
	out := []string{"Its zones: " + strings.Join(n.Zones, ", ")}
	if n.Paused != nil {
		out = append(out, "Paused now: "+n.Paused.Note)
	}
	var alone []string
	for _, zone := range n.Zones {
		if !slices.ContainsFunc(list.Nodes, func(o jobs.Node) bool {
			return o.ID != name && o.State == "running" && o.Paused == nil && slices.Contains(o.Zones, zone)
		}) {
			alone = append(alone, zone)
		}
	}
	if len(alone) > 0 {
		out = append(out, "No other node that runs has the zones "+strings.Join(alone, ", ")+
			": while this one is paused, nothing starts there")
	}
	return out, nil
}

// sameWords returns each of the reasons once.
func sameWords(no map[string]string) []string {
	var out []string
	for _, name := range frame.Sorted(no) {
		if !slices.Contains(out, no[name]) {
			out = append(out, no[name])
		}
	}
	return out
}
