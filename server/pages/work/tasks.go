package work

import (
	"encoding/base64"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"muster/server/pages/frame"
	"muster/server/web"

	"muster/api"
	"muster/internal/diff"
	"muster/internal/wording"
	"muster/jobs"
)

// tasks lists the newest tasks.
func tasks(h frame.House, r *http.Request) (frame.Show, error) {
	q := url.Values{"limit": {"100"}}
	mine := r.URL.Query().Get("mine") == "true"
	if mine {
		q.Set("mine", "true")
	}
	var list api.TaskList
	if err := h.Get("/v1/tasks", q, &list); err != nil {
		return frame.Show{}, err
	}
	return frame.Show{Title: "Tasks", Nav: "Tasks", Top: tasksTop(mine), Parts: []frame.Part{
		{ID: "tasks", Live: true, Hold: true, Body: frame.TaskTable(list.Tasks)}}}, nil
}

// taskFacts has what the page of a task shows.
type taskFacts struct {
	api.Summary
	jobs    api.JobList
	why     string // the summary is not known, or hidden
	q       url.Values
	can     []frame.Order
	cannot  []frame.Denied
	state   string // of the jobs that are shown; empty: any
	outcome string
}

// excerpt bounds the output of a group on the page of a task.
const excerpt = "1500" // bytes

// rowsShown is the number of rows of a long table on a page.
const rowsShown = "100"

// task shows a task.
func task(h frame.House, r *http.Request) (frame.Show, error) {
	id, q := r.PathValue("task"), r.URL.Query()
	path := "/v1/tasks/" + url.PathEscape(id)
	f := taskFacts{q: q, state: q.Get("state"), outcome: q.Get("outcome")}
	if h.Light {
		err := h.Get(path, nil, &f.Task)
		return frame.Show{Light: true, Turn: turnOf(f.Task), Parts: []frame.Part{
			{ID: "state", Live: true, Body: taskState(f)},
			{ID: "waves", Live: true, Body: taskWaves(f.Task)}}}, err
	}
	if err := h.Get(path+"/summary", url.Values{"excerpt": {excerpt}}, &f.Summary); err != nil {
		return frame.Show{}, err
	}
	ask := url.Values{"limit": {rowsShown}}
	for _, name := range []string{"state", "outcome", "cursor"} {
		if v := q.Get(name); v != "" {
			ask.Set(name, v)
		}
	}
	if err := h.Get(path+"/jobs", ask, &f.jobs); err != nil {
		f.why = err.Error()
	}
	f.can, f.cannot = taskOrders(h, f.Task)
	t := f.Task
	return frame.Show{Title: t.Runbook + " on " + wording.ClipTo(t.On, 60), Nav: "Tasks", Light: true,
		Turn: turnOf(t),
		Parts: []frame.Part{
			{ID: "state", Live: true, Body: taskState(f)},
			{ID: "orders", Live: true, Body: taskOrderPart(f)},
			{ID: "waves", Live: true, Body: taskWaves(t)},
			{ID: "waits", Live: true, Body: taskWaits(f)},
			{ID: "map", Body: taskMapPart(t)},
			{ID: "folded", Live: true, Body: taskFolded(f)},
			{ID: "jobs", Live: true, Hold: true, Body: taskJobs(f)},
			{ID: "asked", Body: taskAsked(t)},
		}}, nil
}

// turnOf returns what of a task changes its orders and all else that its page shows.
func turnOf(t jobs.TaskInfo) string {
	turn := string(t.State) + "\n" + t.Cancelled + "\n" + t.Paused
	if t.Rollout != nil {
		turn += "\n" + t.Rollout.Stopped + "\n" + strconv.Itoa(t.Rollout.Wave)
	}
	return turn
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
func waveSlices(t jobs.TaskInfo) []frame.Slice {
	r := t.Rollout
	var list []frame.Counted
	for i, n := range r.Waves {
		kind := "waiting"
		if i+1 < r.Wave || i+1 == r.Wave && (!r.Over.IsZero() || t.State == jobs.TaskEnded) {
			kind = "succeeded"
		} else if i+1 == r.Wave {
			kind = "running"
		}
		list = append(list, frame.Counted{Kind: kind, N: n})
	}
	return frame.SlicesOf(list)
}

// budget returns the failures of a rollout beside those that are allowed.
func budget(r *jobs.RolloutInfo) string {
	text := frame.Count(r.Failed, "job has failed", "jobs have failed")
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

// jobKinds are the kinds of cells of a task, in the order of their indexes.
func jobKinds() []frame.CellKind {
	out := []frame.CellKind{{Name: "waits", Fill: "line", Mark: ""}, {Name: "running", Fill: "work",
		Mark: "half"}}
	for _, o := range jobs.Outcomes() {
		out = append(out, frame.OutcomeKind(o))
	}
	return out
}

// mapAge bounds the age of the cells of a map that an open page asks for again: many may look at
// the map of one task, which costs a look at each job. The script waits for longer after news.
const mapAge = 1500 * time.Millisecond

// taskMap answers with the cells of a task.
func taskMap(p *frame.Frame, w http.ResponseWriter, r *http.Request) {
	h, id := p.House(w, r), r.PathValue("task")
	known := r.URL.Query().Get("known")
	if known != "" {
		h.Ctx = web.WithSince(h.Ctx, time.Now().Add(-mapAge))
	}
	m := frame.CellMap{Names: []string{}, Kinds: jobKinds(), Link: "/jobs/" + id + ":"}
	index := map[string]byte{}
	for i, o := range jobs.Outcomes() {
		index[string(o)] = byte(i + 2)
	}
	var cells []byte
	for cursor := ""; len(cells) < frame.CellsMax; {
		var page api.JobList
		q := url.Values{}
		if cursor != "" {
			q.Set("cursor", cursor)
		}
		if err := h.Get("/v1/tasks/"+url.PathEscape(id)+"/jobs", q, &page); err != nil {
			frame.WriteJSON(w, frame.ProblemOf(err).Status, map[string]string{"error": err.Error()})
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
	m.Set = frame.SetOf(m.Names)
	if known == m.Set {
		m.Names, m.Same = nil, true
	}
	frame.WriteJSON(w, http.StatusOK, m)
}

// logShown bounds the output that the page of a job has at once.
const logShown = 64 << 10 // bytes

// jobFacts has what the page of a job shows.
type jobFacts struct {
	j      api.JobDetail
	course frame.Asked[api.Course]
	log    string
	logWhy string
	from   int64 // the first byte that is shown
	next   int64
	ended  bool
	task   string
	find   logFind // of ?find=; its word is empty: nothing is looked for
}

// job shows a job with a part of its log.
func job(h frame.House, r *http.Request) (frame.Show, error) {
	id := r.PathValue("job")
	path := "/v1/jobs/" + url.PathEscape(id)
	f := jobFacts{task: string(jobs.ID(id).Task())}
	if err := h.Get(path, nil, &f.j); err != nil {
		return frame.Show{}, err
	}
	f.course = frame.Try[api.Course](h, path+"/course", nil)
	from, err := strconv.ParseInt(r.URL.Query().Get("from"), 10, 64)
	if err != nil || from < 0 || r.URL.Query().Get("find") != "" {
		from = 0
	}
	f.from = from
	a, err := h.Raw(h.Ctx, http.MethodGet, path+"/output?from="+strconv.FormatInt(from, 10), nil)
	if err != nil {
		f.logWhy = err.Error()
	} else {
		b := a.Body.Bytes()
		f.ended = a.Head.Get(api.HeaderEnded) == "true"
		f.find = findIn(outputOf(b), strings.TrimSpace(r.URL.Query().Get("find")))
		if len(b) > logShown {
			b = b[:logShown]
			for i := 0; i < utf8.UTFMax && len(b) > 0 && !utf8.Valid(b[len(b)-1:]); i++ {
				b = b[:len(b)-1] // a letter is not cut in two
			}
			f.ended = false
		}
		f.log, f.next = outputOf(b), from+int64(len(b))
	}
	return frame.Show{Title: "Job " + id, Nav: "Tasks", Parts: []frame.Part{
		{ID: "state", Live: true, Body: jobState(f)},
		{ID: "timeline", Live: true, Body: jobTimeline(f)},
		{ID: "look", Body: logSearch(f)},
		{ID: "log", Live: true, Body: jobLog(f)},
	}}, nil
}

// rawLog answers with the whole output of a job as a file.
func rawLog(p *frame.Frame, w http.ResponseWriter, r *http.Request) {
	h, id := p.House(w, r), r.PathValue("job")
	a, err := h.Raw(r.Context(), http.MethodGet, "/v1/jobs/"+url.PathEscape(id)+"/output", nil)
	if err != nil {
		p.Refuse(w, r, h, err)
		return
	}
	head := w.Header()
	head.Set("Content-Type", "application/octet-stream")
	head.Set("Content-Disposition", `attachment; filename="job.log"`)
	// A browser that does not read the file has gone.
	_, _ = w.Write(a.Body.Bytes())
}

// timeSlices returns the uses of a job's time as parts of a bar.
func timeSlices(t jobs.Times) ([]frame.Slice, []frame.Counted) {
	kinds := map[jobs.Use]string{jobs.Acting: "running", jobs.Verifying: "succeeded",
		jobs.Connecting: "unknown", jobs.InWindow: "unreachable", jobs.AtGate: "cancelled",
		jobs.Queueing: "waiting", jobs.Pausing: "cancelled"}
	var list, named []frame.Counted
	for _, u := range jobs.Uses() {
		ms := int(1000 * t[u])
		list = append(list, frame.Counted{Kind: kinds[u], N: ms})
		named = append(named, frame.Counted{Kind: string(u), N: ms})
	}
	return frame.SlicesOf(list), named
}
