package pages

import (
	"encoding/json"
	"net/http"
	"net/url"
	"strings"

	"muster/api"
	"muster/jobs"
)

// orders returns the orders that pages give, by their paths.
func orders() map[string]planner {
	return map[string]planner{"/tasks/{task}/order/{word}": taskOrder}
}

// taskPath returns the request of an order about a task.
func taskPath(id, word string) string {
	path := "/v1/tasks/" + url.PathEscape(id) + "/"
	switch word {
	case "next", "stop":
		return path + "rollout/" + word
	case "open", "refuse":
		return path + "gates/" + word
	}
	return path + word
}

// taskNames has the names of the orders about tasks.
var taskNames = map[string]string{"pause": "Pause", "resume": "Resume", "cancel": "Cancel",
	"retry": "Retry those that failed", "next": "Open the next wave", "stop": "Stop",
	"open": "Open the gates", "refuse": "Refuse the gates"}

// taskWords returns the orders that make sense for a task as it is.
func taskWords(t jobs.TaskInfo, gates int) []string {
	if t.State == jobs.TaskEnded || t.Forgotten {
		if failedOf(t) > 0 && !t.Forgotten {
			return []string{"retry"}
		}
		return nil
	}
	var words []string
	if t.Paused != "" {
		words = append(words, "resume")
	} else {
		words = append(words, "pause")
	}
	if r := t.Rollout; r != nil {
		if r.Stopped == "" {
			words = append(words, "stop")
		}
		if r.Stopped != "" || !r.Last() {
			words = append(words, "next")
		}
	}
	if gates > 0 {
		words = append(words, "open", "refuse")
	}
	if t.Cancelled == "" {
		words = append(words, "cancel")
	}
	if failedOf(t) > 0 {
		words = append(words, "retry")
	}
	return words
}

// retried are the outcomes of jobs that a retry from a page does again: those that failed, and
// those that a person cancelled.
func retried() []jobs.Outcome {
	return []jobs.Outcome{jobs.Failed, jobs.Unreachable, jobs.Timeout, jobs.RolledBack, jobs.Cancelled,
		jobs.Expired}
}

// failedOf counts the jobs that a retry would do again.
func failedOf(t jobs.TaskInfo) int {
	n := 0
	for _, o := range retried() {
		n += t.Outcomes[o]
	}
	return n
}

// taskOrders returns the orders about a task for its page.
func taskOrders(h house, s jobs.TaskInfo) ([]order, []denied) {
	var gates api.GateList
	if s.Gates && s.State != jobs.TaskEnded {
		// Without an answer the orders about gates are not offered.
		_ = h.get("/v1/gates", url.Values{"task": {string(s.Task)}}, &gates)
	}
	var list []order
	paths := map[string]string{}
	for _, word := range taskWords(s, gates.Total) {
		list = append(list, order{word, taskNames[word], "/tasks/" + string(s.Task) + "/order/" + word})
		paths[word] = taskPath(string(s.Task), word)
	}
	return sift(h, list, paths)
}

// taskOrder finds out what an order about a task would hit.
func taskOrder(h house, r *http.Request) (asking, error) {
	id, word := r.PathValue("task"), r.PathValue("word")
	name, known := taskNames[word]
	if !known {
		return asking{}, refusal(http.StatusNotFound, "there is no order %q for tasks", word)
	}
	var t jobs.TaskInfo
	if err := h.get("/v1/tasks/"+url.PathEscape(id), nil, &t); err != nil {
		return asking{}, err
	}
	a := asking{word: word, title: name + ": task " + id, nav: "Tasks", back: "/tasks/" + id,
		method: http.MethodPost, path: taskPath(id, word), body: reasonOnly,
		target: target{n: t.Total - t.Outcomes.Sum(), noun: "job", shrinks: true,
			set: setOf(word, t.Task, t.Total, t.Inventory)}}
	a.hit("Task %s: %s on %s, of %s.", id, t.Runbook, clipText(t.On), operator(t))
	switch word {
	case "cancel":
		a.stops = true
		a.hit("%s that have not ended: those that wait end now, and those that run are stopped on their "+
			"hosts.", count(a.n, "job", "jobs"))
	case "pause":
		a.hit("%s that have not ended: no more of them start until somebody resumes the task, and those "+
			"that run go on.", count(a.n, "job", "jobs"))
	case "resume":
		a.hit("%s that have not ended may start again.", count(a.n, "job", "jobs"))
	case "stop":
		a.stops = true
		a.hit("%s that have not ended: no further one begins.", count(a.n, "job", "jobs"))
	case "next":
		return nextWave(a, t), nil
	case "retry":
		return retryOrder(h, a, t)
	case "open", "refuse":
		return gateOrder(h, a, t)
	}
	return a, nil
}

// reasonOnly is the body of an order that has a reason at most.
func reasonOnly(form url.Values) any {
	return api.OrderRequest{Reason: strings.TrimSpace(form.Get("reason"))}
}

// nextWave completes the order to open the next wave, or to let a stopped task go on.
func nextWave(a asking, t jobs.TaskInfo) asking {
	r := t.Rollout
	if r == nil {
		a.hit("The task has neither waves nor a rule.")
		return a
	}
	a.shrinks, a.set = false, setOf("next", t.Task, r.Wave, r.Waves, r.Stopped, r.MaxFailed)
	wave := 0
	if r.Stopped != "" || r.Last() {
		a.hit("The task goes on: %s.", r.Stopped)
		a.hit("%s.", budget(r))
		a.n, a.shrinks = t.Total-t.Outcomes.Sum(), true
	} else {
		wave = r.Wave + 1
		a.n = r.Waves[r.Wave]
		a.hit("Wave %d of %d begins: %s.", wave, len(r.Waves), count(a.n, "host", "hosts"))
		a.hit("%s.", budget(r))
		if early := t.Early(); early != "" {
			a.hit("%s", early)
		}
	}
	a.body = func(form url.Values) any {
		return api.NextRequest{OrderRequest: reasonOnly(form).(api.OrderRequest), Wave: wave,
			MaxFailed: strings.TrimSpace(form.Get("max_failed"))}
	}
	a.more = maxFailedField()
	return a
}

// retryOrder completes the order to do jobs again, by what the API says it would do.
func retryOrder(h house, a asking, t jobs.TaskInfo) (asking, error) {
	ask := api.RetryRequest{Outcomes: retried(), SkipMissing: true, DryRun: true}
	var would api.Retried
	if err := h.call(http.MethodPost, a.path, ask, &would); err != nil {
		return asking{}, err
	}
	a.n, a.shrinks, a.noun = would.Total, false, "host"
	a.set = setOf("retry", t.Task, would.Hosts)
	if would.Already {
		a.n = 0
		a.hit("Nothing: all these jobs are, or were, done again by earlier retries.")
	} else {
		a.hit("A new task for %s: %s.", count(would.Total, "host", "hosts"), clipList(would.Hosts))
	}
	if would.Open > 0 {
		a.hit("%s not ended, and are left out.",
			count(would.Open, "job of the task has", "jobs of the task have"))
	}
	for _, e := range would.Earlier {
		a.hit("Task %s of %s does %s of them again already.", e.Task, e.Operator,
			count(e.Count, "host", "hosts"))
	}
	if would.Skipped != "" {
		a.hit("Gone from the inventory, and left out: %s.", clipList(would.Skipped))
	}
	a.body = func(form url.Values) any {
		ask.DryRun, ask.OrderRequest = false, reasonOnly(form).(api.OrderRequest)
		return ask
	}
	back := a.back
	a.done = func(got *answer) string {
		var made api.Retried
		if json.Unmarshal(got.body.Bytes(), &made) != nil || made.Task == "" {
			return back
		}
		return "/tasks/" + string(made.Task)
	}
	return a, nil
}

// gateOrder completes the order to open or refuse the gates at which jobs wait: exactly those that
// the page shows.
func gateOrder(h house, a asking, t jobs.TaskInfo) (asking, error) {
	var list api.GateList
	if err := h.get("/v1/gates", url.Values{"task": {string(t.Task)}}, &list); err != nil {
		return asking{}, err
	}
	var ids []jobs.ID
	var hosts []string
	for _, g := range list.Gates {
		ids, hosts = append(ids, g.Job), append(hosts, g.Host)
	}
	a.n, a.shrinks, a.set = len(ids), false, setOf(a.word, ids)
	a.stops = a.word == "refuse"
	a.hit("%s at a gate: %s.", count(len(ids), "job", "jobs"), folded(hosts))
	if list.Total > len(ids) {
		a.hit("%d more stand at a gate; give the order again for them.", list.Total-len(ids))
	}
	for _, g := range list.Gates[:min(3, len(list.Gates))] {
		a.hit("%s asks at “%s”: %s", g.Host, g.Name, clipText(g.Question))
	}
	a.body = func(form url.Values) any {
		return api.GateRequest{OrderRequest: reasonOnly(form).(api.OrderRequest), Jobs: ids}
	}
	return a, nil
}
