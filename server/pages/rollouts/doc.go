// Package rollouts has the pages of work that goes out step by step: tasks with waves or a rule,
// chains of tasks, and lanes, with the orders about chains and lanes.
//
// Floor 6: may import server/pages/frame and what is below it.
package rollouts

import (
	"net/http"
	"net/url"

	"muster/api"
	"muster/jobs"
	"muster/server/pages/frame"
)

// Content returns the pages.
func Content() frame.Content {
	const order = "/chains/{chain}/order/{word}"
	return frame.Content{
		Views: map[string]frame.View{"/rollouts": theRollouts, "/chains/{chain}": chain,
			"/lanes": theLanes},
		Orders: map[string]frame.Planner{order: chainOrder,
			"/tasks/{task}/order/continue": continueOrder},
		Words: map[string][]string{order: frame.Sorted(chainWords)},
	}
}

// theRollouts lists what has not ended.
func theRollouts(h frame.House, _ *http.Request) (frame.Show, error) {
	var list api.TaskList
	if err := h.Get("/v1/rollouts", nil, &list); err != nil {
		return frame.Show{}, err
	}
	chains := frame.Try[api.ChainList](h, "/v1/chains", nil)
	return frame.Show{Title: "Rollouts and chains", Nav: "Rollouts", Parts: []frame.Part{
		{ID: "rollouts", Live: true, Body: rolloutTable(list.Tasks)},
		{ID: "chains", Live: true, Body: chainTable(chains)}}}, nil
}

// chainFacts has what the page of a chain shows.
type chainFacts struct {
	of     jobs.ChainInfo
	can    []frame.Order
	cannot []frame.Denied
}

// chain shows a chain: its tasks, and what became of its hosts.
func chain(h frame.House, r *http.Request) (frame.Show, error) {
	id := r.PathValue("chain")
	path := "/v1/chains/" + url.PathEscape(id)
	var f chainFacts
	if err := h.Get(path, nil, &f.of); err != nil {
		return frame.Show{}, err
	}
	var list []frame.Order
	paths := map[string]string{}
	for _, word := range wordsFor(f.of) {
		list = append(list, frame.Order{Word: word, Name: chainWords[word],
			Link: "/chains/" + id + "/order/" + word})
		paths[word] = path + "/" + word
	}
	f.can, f.cannot = frame.Sift(h, list, paths)
	return frame.Show{Title: "Chain " + id, Nav: "Rollouts", Parts: []frame.Part{
		{ID: "state", Live: true, Body: chainState(f.of)},
		{ID: "orders", Live: true, Body: frame.OrderPart(f.can, f.cannot)},
		{ID: "tasks", Live: true, Body: chainTasks(f.of)},
		{ID: "fates", Live: true, Body: chainFates(f.of)}}}, nil
}

// chainWords has the names of the orders about chains.
var chainWords = map[string]string{"next": "Let it go on", "undo": "Take all of it back"}

// wordsFor returns the orders that make sense for a chain as it is.
func wordsFor(c jobs.ChainInfo) []string {
	var words []string
	if c.State == jobs.ChainStopped && c.Broken == "" {
		words = append(words, "next")
	}
	last := len(c.Tasks) - 1
	if last >= 0 && c.Tasks[last].Phase == jobs.PhaseUndo && c.Broken == "" && c.Undo == "" &&
		c.State != jobs.ChainEnded {
		words = append(words, "undo")
	}
	return words
}

// chainOrder finds out what an order about a chain would hit.
func chainOrder(h frame.House, r *http.Request) (frame.Asking, error) {
	id, word := r.PathValue("chain"), r.PathValue("word")
	name, known := chainWords[word]
	if !known {
		return frame.Asking{}, frame.Refusal(http.StatusNotFound, "there is no order %q for chains",
			word)
	}
	path := "/v1/chains/" + url.PathEscape(id)
	var c jobs.ChainInfo
	if err := h.Get(path, nil, &c); err != nil {
		return frame.Asking{}, err
	}
	a := frame.Asking{Word: word, Title: name + ": chain " + id, Nav: "Rollouts",
		Method: http.MethodPost, Path: path + "/" + word, Body: frame.ReasonOnly,
		Back:   "/chains/" + url.PathEscape(id),
		Reason: word == "undo", Stops: word == "undo",
		Target: frame.Target{N: c.Total, Noun: "host",
			Set: frame.SetOf(word, c.Chain, c.State, c.Why, c.Total, c.Fates)}}
	a.Hit("Chain %s: %s on %s, of %s, with %s.", id, c.Runbook, frame.ClipText(c.On), c.Operator,
		frame.Count(c.Total, "host", "hosts"))
	a.Hit("%s.", stateOf(c))
	if word == "next" {
		a.Hit("The next task of the chain begins, although the chain has stopped.")
	} else {
		a.Hit("Jobs that have not begun are cancelled, and the runbook that takes the change back runs " +
			"on the hosts on which it began.")
	}
	for _, fate := range jobs.Fates() {
		if hosts := c.Fates[fate]; hosts != "" {
			a.Hit("%s now: %s", fate, frame.ClipList(hosts))
		}
	}
	return a, nil
}

// stateOf says how a chain is.
func stateOf(c jobs.ChainInfo) string {
	text := "It is " + string(c.State)
	if c.Why != "" {
		text += ": " + c.Why
	}
	return text
}
