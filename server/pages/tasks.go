package pages

import (
	"encoding/base64"
	"encoding/json"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"unicode/utf8"

	"muster/api"
	"muster/internal/diff"
	"muster/internal/wording"
	"muster/jobs"
)

// tasks lists the newest tasks.
func tasks(h house, r *http.Request) (show, error) {
	q := url.Values{"limit": {"100"}}
	mine := r.URL.Query().Get("mine") == "true"
	if mine {
		q.Set("mine", "true")
	}
	var list api.TaskList
	if err := h.get("/v1/tasks", q, &list); err != nil {
		return show{}, err
	}
	return show{title: "Tasks", nav: "Tasks", top: tasksTop(mine), parts: []part{
		{id: "tasks", live: true, hold: true, body: taskTable(list.Tasks)}}}, nil
}

// taskFacts has what the page of a task shows.
type taskFacts struct {
	api.Summary
	jobs    api.JobList
	why     string // the summary is not known, or hidden
	q       url.Values
	can     []order
	cannot  []denied
	state   string // of the jobs that are shown; empty: any
	outcome string
}

// excerpt bounds the output of a group on the page of a task.
const excerpt = "1500" // bytes

// rowsShown is the number of rows of a long table on a page.
const rowsShown = "100"

// task shows a task.
func task(h house, r *http.Request) (show, error) {
	id, q := r.PathValue("task"), r.URL.Query()
	path := "/v1/tasks/" + url.PathEscape(id)
	f := taskFacts{q: q, state: q.Get("state"), outcome: q.Get("outcome")}
	if err := h.get(path+"/summary", url.Values{"excerpt": {excerpt}}, &f.Summary); err != nil {
		return show{}, err
	}
	ask := url.Values{"limit": {rowsShown}}
	for _, name := range []string{"state", "outcome", "cursor"} {
		if v := q.Get(name); v != "" {
			ask.Set(name, v)
		}
	}
	if err := h.get(path+"/jobs", ask, &f.jobs); err != nil {
		f.why = err.Error()
	}
	f.can, f.cannot = taskOrders(h, f.Task)
	t := f.Task
	return show{title: t.Runbook + " on " + wording.ClipTo(t.On, 120), nav: "Tasks",
		parts: []part{
			{id: "state", live: true, body: taskState(f)},
			{id: "orders", live: true, body: taskOrderPart(f)},
			{id: "waves", live: true, body: taskWaves(t)},
			{id: "waits", live: true, body: taskWaits(f)},
			{id: "map", body: taskMapPart(t)},
			{id: "folded", live: true, body: taskFolded(f)},
			{id: "jobs", live: true, hold: true, body: taskJobs(f)},
			{id: "asked", body: taskAsked(t)},
		}}, nil
}

// outputOf returns the output of a group as text.
func outputOf(b []byte) string { return strings.ToValidUTF8(string(b), "\uFFFD") }

// A diffLine is a line of the difference of two outputs.
type diffLine struct{ kind, text string }

// diffMax bounds the lines of a difference.
const diffMax = 40

// against returns the difference of a group's output from that of the largest group; none: there is
// nothing to compare.
func against(groups []api.Alike, i int) []diffLine {
	if i == 0 || len(groups[0].Output) == 0 || len(groups[i].Output) == 0 {
		return nil
	}
	var out []diffLine
	for _, hunk := range diff.Texts(groups[0].Output, groups[i].Output, 1) {
		for _, l := range hunk.Lines {
			kind := map[diff.Op]string{diff.Insert: "add", diff.Delete: "del"}[l.Op]
			out = append(out, diffLine{kind, string(rune(l.Op)) + " " + outputOf([]byte(l.Text))})
			if len(out) == diffMax {
				return out
			}
		}
	}
	return out
}

// waveSlices returns the waves of a rollout as parts of a bar.
func waveSlices(r *jobs.RolloutInfo) []slice {
	var list []counted
	for i, n := range r.Waves {
		kind := "waiting"
		if i+1 < r.Wave || i+1 == r.Wave && !r.Over.IsZero() {
			kind = "succeeded"
		} else if i+1 == r.Wave {
			kind = "running"
		}
		list = append(list, counted{kind, n})
	}
	return slicesOf(list)
}

// budget returns the failures of a rollout beside those that are allowed.
func budget(r *jobs.RolloutInfo) string {
	text := count(r.Failed, "job has failed", "jobs have failed")
	if r.MaxFailed == nil {
		return text + ", and any number may"
	}
	return text + ", and " + strconv.Itoa(*r.MaxFailed) + " may"
}

// waveWords describes the waves for whoever does not see the picture.
func waveWords(r *jobs.RolloutInfo) string {
	var sizes []string
	for _, n := range r.Waves {
		sizes = append(sizes, strconv.Itoa(n))
	}
	return "wave " + strconv.Itoa(r.Wave) + " of " + strconv.Itoa(len(r.Waves)) + "; hosts of each: " +
		strings.Join(sizes, ", ")
}

// clipList shortens a folded list of hosts.
func clipList(folded string) string { return wording.ClipList(folded) }

// A cell kind is one of the kinds of cells of a map.
type cellKind struct {
	Name string `json:"name"`
	Fill string `json:"fill"`           // a colour of the style sheet, or # with a number
	Mark string `json:"mark,omitempty"` // its shape; empty: a full cell
}

// A cellMap has a cell for each host, in the order of their names.
type cellMap struct {
	Names []string   `json:"names"`
	Cells string     `json:"cells"` // in base64, a byte each: the index of its kind
	Kinds []cellKind `json:"kinds"`
	Link  string     `json:"link"` // the name follows
}

// jobKinds are the kinds of cells of a task, in the order of their indexes.
func jobKinds() []cellKind {
	out := []cellKind{{"waits", "line", ""}, {"running", "work", "half"}}
	fills := map[jobs.Outcome]cellKind{jobs.Succeeded: {Fill: "good"}, jobs.Failed: {Fill: "bad",
		Mark: "cross"}, jobs.Timeout: {Fill: "bad", Mark: "half"}, jobs.Unreachable: {Fill: "warn",
		Mark: "dot"}, jobs.RolledBack: {Fill: "warn", Mark: "half"}, jobs.Unknown: {Fill: "odd",
		Mark: "cross"}}
	for _, o := range jobs.Outcomes() {
		k, known := fills[o]
		if !known {
			k = cellKind{Fill: "none", Mark: "dot"}
		}
		k.Name = plainName(string(o))
		out = append(out, k)
	}
	return out
}

// cellsMax bounds the cells of a map.
const cellsMax = 60000

// taskMap answers with the cells of a task.
func (p *Pages) taskMap(w http.ResponseWriter, r *http.Request) {
	h, id := p.house(w, r), r.PathValue("task")
	m := cellMap{Names: []string{}, Kinds: jobKinds(), Link: "/jobs/" + id + ":"}
	index := map[string]byte{}
	for i, o := range jobs.Outcomes() {
		index[string(o)] = byte(i + 2)
	}
	var cells []byte
	for cursor := ""; len(cells) < cellsMax; {
		var page api.JobList
		q := url.Values{}
		if cursor != "" {
			q.Set("cursor", cursor)
		}
		if err := h.get("/v1/tasks/"+url.PathEscape(id)+"/jobs", q, &page); err != nil {
			writeJSON(w, problemOf(err).Status, map[string]string{"error": err.Error()})
			return
		}
		for _, j := range page.Jobs {
			m.Names = append(m.Names, j.Host)
			switch {
			case j.State == jobs.Ended:
				cells = append(cells, index[string(j.Outcome)])
			case j.State == jobs.Running:
				cells = append(cells, 1)
			default:
				cells = append(cells, 0)
			}
		}
		if cursor = page.Next; cursor == "" {
			break
		}
	}
	m.Cells = base64.StdEncoding.EncodeToString(cells)
	writeJSON(w, http.StatusOK, m)
}

// writeJSON writes an answer for a script of the pages.
func writeJSON(w http.ResponseWriter, status int, v any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	// A browser that does not read its answer has gone.
	_ = json.NewEncoder(w).Encode(v)
}

// logShown bounds the output that the page of a job has at once.
const logShown = 64 << 10 // bytes

// jobFacts has what the page of a job shows.
type jobFacts struct {
	j      api.JobDetail
	course asked[api.Course]
	log    string
	logWhy string
	from   int64 // the first byte that is shown
	next   int64
	ended  bool
	task   string
}

// job shows a job with a part of its log.
func job(h house, r *http.Request) (show, error) {
	id := r.PathValue("job")
	path := "/v1/jobs/" + url.PathEscape(id)
	f := jobFacts{task: string(jobs.ID(id).Task())}
	if err := h.get(path, nil, &f.j); err != nil {
		return show{}, err
	}
	f.course = try[api.Course](h, path+"/course", nil)
	from, err := strconv.ParseInt(r.URL.Query().Get("from"), 10, 64)
	if err != nil || from < 0 {
		from = 0
	}
	f.from = from
	a, err := h.raw(h.ctx, http.MethodGet, path+"/output?from="+strconv.FormatInt(from, 10), nil)
	if err != nil {
		f.logWhy = err.Error()
	} else {
		b := a.body.Bytes()
		f.ended = a.header.Get(api.HeaderEnded) == "true"
		if len(b) > logShown {
			b = b[:logShown]
			for i := 0; i < utf8.UTFMax && len(b) > 0 && !utf8.Valid(b[len(b)-1:]); i++ {
				b = b[:len(b)-1] // a letter is not cut in two
			}
			f.ended = false
		}
		f.log, f.next = outputOf(b), from+int64(len(b))
	}
	return show{title: "Job " + id, nav: "Tasks", parts: []part{
		{id: "state", live: true, body: jobState(f)},
		{id: "timeline", live: true, body: jobTimeline(f)},
		{id: "log", live: true, body: jobLog(f)},
	}}, nil
}

// rawLog answers with the whole output of a job as a file.
func (p *Pages) rawLog(w http.ResponseWriter, r *http.Request) {
	h, id := p.house(w, r), r.PathValue("job")
	a, err := h.raw(r.Context(), http.MethodGet, "/v1/jobs/"+url.PathEscape(id)+"/output", nil)
	if err != nil {
		p.refuse(w, r, h, err)
		return
	}
	head := w.Header()
	head.Set("Content-Type", "application/octet-stream")
	head.Set("Content-Disposition", `attachment; filename="job.log"`)
	// A browser that does not read the file has gone.
	_, _ = w.Write(a.body.Bytes())
}

// timeSlices returns the uses of a job's time as parts of a bar.
func timeSlices(t jobs.Times) ([]slice, []counted) {
	kinds := map[jobs.Use]string{jobs.Acting: "running", jobs.Verifying: "succeeded",
		jobs.Connecting: "unknown", jobs.InWindow: "unreachable", jobs.AtGate: "cancelled",
		jobs.Queueing: "waiting", jobs.Pausing: "cancelled"}
	var list, named []counted
	for _, u := range jobs.Uses() {
		ms := int(1000 * t[u])
		list = append(list, counted{kinds[u], ms})
		named = append(named, counted{string(u), ms})
	}
	return slicesOf(list), named
}
