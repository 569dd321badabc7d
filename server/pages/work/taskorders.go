package work

import (
	"encoding/json"
	"net/http"
	"net/url"
	"strings"

	"muster/server/pages/frame"

	"muster/api"
	"muster/jobs"
)

// Content returns the pages of work: tasks, jobs, runs and runbooks.
func Content() frame.Content {
	return frame.Content{
		Views: map[string]frame.View{"/{$}": now, "/tasks": tasks, "/tasks/{task}": task,
			"/jobs/{job}": job,
			"/run":        runList, "/runbooks": theRunbooks, "/runbooks/{runbook}": runbook},
		Orders: map[string]frame.Planner{"/tasks/{task}/order/{word}": taskOrder},
		Words:  map[string][]string{"/tasks/{task}/order/{word}": frame.Sorted(taskNames)},
		Answers: map[string]frame.Answer{"GET /tasks/{task}/map": taskMap, "GET /jobs/{job}/raw": rawLog,
			"GET /run/{runbook}": runForm, "POST /run/{runbook}": runPost},
	}
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
func taskOrders(h frame.House, s jobs.TaskInfo) ([]frame.Order, []frame.Denied) {
	var gates api.GateList
	if s.Gates && s.State != jobs.TaskEnded {
		// Without an answer the orders about gates are not offered.
		_ = h.Get("/v1/gates", url.Values{"task": {string(s.Task)}}, &gates)
	}
	var list []frame.Order
	paths := map[string]string{}
	for _, word := range taskWords(s, gates.Total) {
		list = append(list, frame.Order{Word: word, Name: taskNames[word], Link: "/tasks/" +
			string(s.Task) + "/order/" + word})
		paths[word] = taskPath(string(s.Task), word)
	}
	return frame.Sift(h, list, paths)
}

// taskOrder finds out what an order about a task would hit.
func taskOrder(h frame.House, r *http.Request) (frame.Asking, error) {
	id, word := r.PathValue("task"), r.PathValue("word")
	name, known := taskNames[word]
	if !known {
		return frame.Asking{}, frame.Refusal(http.StatusNotFound, "there is no order %q for tasks", word)
	}
	var t jobs.TaskInfo
	if err := h.Get("/v1/tasks/"+url.PathEscape(id), nil, &t); err != nil {
		return frame.Asking{}, err
	}
	a := frame.Asking{Word: word, Title: name + ": task " + id, Nav: "Tasks", Back: "/tasks/" + id,
		Method: http.MethodPost, Path: taskPath(id, word), Body: frame.ReasonOnly,
		Target: frame.Target{N: t.Total - t.Outcomes.Sum(), Noun: "job", Shrinks: true,
			Set: frame.SetOf(word, t.Task, t.Total, t.Inventory)}}
	a.Hit("Task %s: %s on %s, of %s.", id, t.Runbook, frame.ClipText(t.On), frame.Operator(t))
	switch word {
	case "cancel":
		a.Stops = true
		a.Hit("%s that have not ended: those that wait end now, and those that run are stopped on their "+
			"hosts.", frame.Count(a.N, "job", "jobs"))
	case "pause":
		a.Hit("%s that have not ended: no more of them start until somebody resumes the task, and those "+
			"that run go on.", frame.Count(a.N, "job", "jobs"))
	case "resume":
		a.Hit("%s that have not ended may start again.", frame.Count(a.N, "job", "jobs"))
	case "stop":
		a.Stops = true
		a.Hit("%s that have not ended: no further one begins.", frame.Count(a.N, "job", "jobs"))
	case "next":
		return nextWave(a, t), nil
	case "retry":
		return retryOrder(h, a, t)
	case "open", "refuse":
		return gateOrder(h, a, t)
	}
	return a, nil
}

// nextWave completes the order to open the next wave, or to let a stopped task go on.
func nextWave(a frame.Asking, t jobs.TaskInfo) frame.Asking {
	r := t.Rollout
	if r == nil {
		a.Hit("The task has neither waves nor a rule.")
		return a
	}
	a.Shrinks, a.Set = false, frame.SetOf("next", t.Task, r.Wave, r.Waves, r.Stopped, r.MaxFailed)
	wave := 0
	if r.Stopped != "" || r.Last() {
		a.Hit("The task goes on: %s.", r.Stopped)
		a.Hit("%s.", budget(r))
		a.N, a.Shrinks = t.Total-t.Outcomes.Sum(), true
	} else {
		wave = r.Wave + 1
		a.N = r.Waves[r.Wave]
		a.Hit("Wave %d of %d begins: %s.", wave, len(r.Waves), frame.Count(a.N, "host", "hosts"))
		a.Hit("%s.", budget(r))
		if early := t.Early(); early != "" {
			a.Hit("%s", early)
		}
	}
	a.Body = func(form url.Values) any {
		return api.NextRequest{OrderRequest: frame.ReasonOnly(form).(api.OrderRequest), Wave: wave,
			MaxFailed: strings.TrimSpace(form.Get("max_failed"))}
	}
	a.More = frame.MaxFailedField()
	return a
}

// retryOrder completes the order to do jobs again, by what the API says it would do.
func retryOrder(h frame.House, a frame.Asking, t jobs.TaskInfo) (frame.Asking, error) {
	ask := api.RetryRequest{Outcomes: retried(), SkipMissing: true, DryRun: true}
	var would api.Retried
	if err := h.Call(http.MethodPost, a.Path, ask, &would); err != nil {
		return frame.Asking{}, err
	}
	a.N, a.Shrinks, a.Noun = would.Total, false, "host"
	a.Set = frame.SetOf("retry", t.Task, would.Hosts)
	if would.Already {
		a.N = 0
		a.Hit("Nothing: all these jobs are, or were, done again by earlier retries.")
	} else {
		a.Hit("A new task for %s: %s.", frame.Count(would.Total, "host", "hosts"),
			frame.ClipList(would.Hosts))
	}
	if would.Open > 0 {
		a.Hit("%s not ended, and are left out.",
			frame.Count(would.Open, "job of the task has", "jobs of the task have"))
	}
	for _, e := range would.Earlier {
		a.Hit("Task %s of %s does %s of them again already.", e.Task, e.Operator,
			frame.Count(e.Count, "host", "hosts"))
	}
	if would.Skipped != "" {
		a.Hit("Gone from the inventory, and left out: %s.", frame.ClipList(would.Skipped))
	}
	a.Body = func(form url.Values) any {
		ask.DryRun, ask.OrderRequest = false, frame.ReasonOnly(form).(api.OrderRequest)
		return ask
	}
	back := a.Back
	a.Done = func(got *frame.Reply) string {
		var made api.Retried
		if json.Unmarshal(got.Body.Bytes(), &made) != nil || made.Task == "" {
			return back
		}
		return "/tasks/" + string(made.Task)
	}
	return a, nil
}

// gateOrder completes the order to open or refuse the gates at which jobs wait: exactly those that
// the page shows.
func gateOrder(h frame.House, a frame.Asking, t jobs.TaskInfo) (frame.Asking, error) {
	var list api.GateList
	if err := h.Get("/v1/gates", url.Values{"task": {string(t.Task)}}, &list); err != nil {
		return frame.Asking{}, err
	}
	var ids []jobs.ID
	var hosts []string
	for _, g := range list.Gates {
		ids, hosts = append(ids, g.Job), append(hosts, g.Host)
	}
	a.N, a.Shrinks, a.Set = len(ids), false, frame.SetOf(a.Word, ids)
	a.Stops = a.Word == "refuse"
	a.Hit("%s at a gate: %s.", frame.Count(len(ids), "job", "jobs"), frame.Folded(hosts))
	if list.Total > len(ids) {
		a.Hit("%d more stand at a gate; give the order again for them.", list.Total-len(ids))
	}
	for _, g := range list.Gates[:min(3, len(list.Gates))] {
		a.Hit("%s asks at “%s”: %s", g.Host, g.Name, frame.ClipText(g.Question))
	}
	a.Body = func(form url.Values) any {
		return api.GateRequest{OrderRequest: frame.ReasonOnly(form).(api.OrderRequest), Jobs: ids}
	}
	return a, nil
}
