package work

import (
	"cmp"
	"encoding/base64"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/a-h/templ"

	"muster/api"
	"muster/jobs"
	"muster/server/pages/frame"
)

// runFacts has what the form and the plan of a run show.
type runFacts struct {
	book   api.RunbookDetail
	form   url.Values
	wrong  *frame.Problem // the mistakes of the form
	plan   *api.Foresight
	planIs string // why there is no plan
	would  *api.Submitted
	by     []frame.HostGroup // its hosts, by customer
	files  map[string]string
	frame.Target
	no   string // why the person may not run it; empty: it is allowed
	lost string // what the form does not have of the task that it repeats
}

// runList lets a person choose the runbook of a run.
func runList(h frame.House, r *http.Request) (frame.Show, error) {
	var list api.RunbookList
	if err := h.Get("/v1/runbooks", nil, &list); err != nil {
		return frame.Show{}, err
	}
	return frame.Show{Title: "Run", Nav: "Run", Parts: []frame.Part{
		{ID: "books", Body: runChoice(list.Runbooks, r.URL.Query().Get("on"))}}}, nil
}

// runForm shows the form of a run. Its address may have all values but secrets and files.
func runForm(p *frame.Frame, w http.ResponseWriter, r *http.Request) {
	h := p.House(w, r)
	f := runFacts{form: r.URL.Query()}
	if err := f.read(h, r.PathValue("runbook")); err != nil {
		p.Refuse(w, r, h, err)
		return
	}
	if like := f.form.Get("like"); like != "" {
		f.same(h, like)
	}
	p.Write(w, r, h, f.show())
}

// read reads the runbook, and whether the person may run anything.
func (f *runFacts) read(h frame.House, name string) error {
	if err := h.May(http.MethodPost, "/v1/tasks"); err != nil {
		f.no = err.Error()
	}
	return h.Get("/v1/runbooks/"+url.PathEscape(name), nil, &f.book)
}

// same fills the form with the request of a task, except secrets and what was cut.
func (f *runFacts) same(h frame.House, id string) {
	var t jobs.TaskInfo
	if err := h.Get("/v1/tasks/"+url.PathEscape(id), nil, &t); err != nil {
		f.wrong = frame.ProblemOf(err)
		return
	}
	f.form.Set("on", t.On)
	f.form.Set("priority", string(t.Priority))
	f.staged(t)
	if t.Ran != nil {
		for _, a := range t.Ran.Arguments {
			if !a.Secret && !a.Cut && !a.File {
				f.form.Set("arg."+a.Name, a.Value)
			}
		}
	}
}

// uploadMax bounds a form with its files.
const uploadMax = 8 << 20 // bytes

// runPost checks a form and shows its plan, or submits the plan that it was shown.
func runPost(p *frame.Frame, w http.ResponseWriter, r *http.Request) {
	h := p.House(w, r)
	r.Body = http.MaxBytesReader(w, r.Body, uploadMax)
	var f runFacts
	err := r.ParseMultipartForm(uploadMax)
	if err == nil || errors.Is(err, http.ErrNotMultipart) { // a form without files
		f.form = r.PostForm
		err = f.read(h, r.PathValue("runbook"))
	}
	if err != nil {
		p.Refuse(w, r, h, err)
		return
	}
	ask, err := f.submit(r)
	if err != nil {
		f.wrong = frame.ProblemOf(err)
		p.Write(w, r, h, f.show())
		return
	}
	if f.form.Get("edit") != "" || !f.foresee(h, ask) || f.form.Get("go") == "" {
		p.Write(w, r, h, f.show())
		return
	}
	a := frame.Asking{Target: f.Target}
	if err := a.Check(f.form); err != nil {
		f.wrong = frame.ProblemOf(err)
		p.Write(w, r, h, f.show())
		return
	}
	var made api.Submitted
	if err := h.Call(http.MethodPost, "/v1/tasks", ask, &made); err != nil {
		f.wrong = frame.ProblemOf(err)
		p.Write(w, r, h, f.show())
		return
	}
	http.Redirect(w, r, "/tasks/"+string(made.Task)+"?did=run", http.StatusSeeOther)
}

// submit makes the request of the form.
func (f *runFacts) submit(r *http.Request) (api.Submit, error) {
	get := func(name string) string { return strings.TrimSpace(f.form.Get(name)) }
	ask := api.Submit{Runbook: f.book.Name, On: get("on"), Args: map[string]string{},
		Files: map[string][]byte{}, Secrets: map[string]string{}, Priority: get("priority"),
		Manner: api.Manner{Only: get("only"), AllowedOnly: get("allowed_only") != ""},
		Timed: api.Timed{Window: get("window") != "", Expect: get("expect"),
			SkipClosed: get("skip_closed") != ""}}
	if at := get("at"); at != "" {
		// A time without its zone is UTC.
		if !strings.ContainsAny(at, "Zz+") {
			at = strings.Replace(at, " ", "T", 1) + "Z"
		}
		if err := ask.At.UnmarshalJSON([]byte(strconv.Quote(at))); err != nil {
			return ask, frame.Refusal(http.StatusUnprocessableEntity,
				"at: %q: want a time such as 2026-11-28T22:00:00Z", get("at"))
		}
	}
	ro := jobs.RolloutAsk{MaxFailed: get("max_failed"), Breaker: get("breaker"),
		Stages: jobs.Stages{Canary: get("canary"), Waves: wordsIn(get("waves")), Soak: get("soak"),
			Gate: get("gate") != ""}}
	if ro.MaxFailed+ro.Breaker+ro.Canary+ro.Soak != "" || len(ro.Waves) > 0 || ro.Gate {
		ask.Rollout = &ro
	}
	f.files = map[string]string{}
	for _, a := range f.book.Arguments {
		if err := f.argument(r, a, &ask); err != nil {
			return ask, err
		}
	}
	return ask, nil
}

// wordsIn returns the words of a list with commas or spaces.
func wordsIn(text string) []string {
	return strings.FieldsFunc(text, func(c rune) bool { return c == ',' || c == ' ' })
}

// argument puts an argument of the form into the request. The plan carries files on in the page.
func (f *runFacts) argument(r *http.Request, a api.RunbookArg, ask *api.Submit) error {
	name := "arg." + a.Name
	switch a.Type {
	case "secret":
		if v := f.form.Get(name); v != "" {
			ask.Secrets[a.Name] = v
		}
	case "file":
		text := []byte(f.form.Get(name))
		if kept := f.form.Get("file." + a.Name); kept != "" {
			b, err := base64.StdEncoding.DecodeString(kept)
			if err != nil {
				return frame.Refusal(http.StatusUnprocessableEntity, "%s: the file did not come whole", a.Name)
			}
			text = b
		}
		if up, _, err := r.FormFile("up." + a.Name); err == nil {
			defer up.Close()
			if text, err = io.ReadAll(up); err != nil {
				return err
			}
		}
		if len(text) > 0 {
			ask.Files[a.Name] = text
			f.files[a.Name] = base64.StdEncoding.EncodeToString(text)
		}
	default:
		if v := f.form.Get(name); v != "" {
			ask.Args[a.Name] = v
		}
	}
	return nil
}

// foresee asks what the request would do, and reports whether it can be done.
func (f *runFacts) foresee(h frame.House, ask api.Submit) bool {
	dry := ask
	dry.DryRun = true
	var would api.Submitted
	if err := h.Call(http.MethodPost, "/v1/tasks", dry, &would); err != nil {
		f.wrong = frame.ProblemOf(err)
		return false
	}
	f.would = &would
	f.Target = frame.Target{N: would.Total, Noun: "host", Set: frame.SetOf(f.book.Hash, would.Hosts,
		requestOf(ask))}
	var plan api.Foresight
	if err := h.Call(http.MethodPost, "/v1/plan", ask, &plan); err != nil {
		f.planIs = err.Error()
	} else {
		f.plan = &plan
	}
	f.customers(h, would.Hosts)
	return true
}

// requestOf returns a text that is the same for the same request, whatever its secrets are.
func requestOf(ask api.Submit) string {
	ask.Secrets = nil
	b, err := json.Marshal(ask)
	if err != nil {
		return err.Error()
	}
	return string(b)
}

// customers groups the hosts of the plan by customer.
func (f *runFacts) customers(h frame.House, on string) {
	groups := map[string]*frame.HostGroup{}
	for cursor := ""; on != ""; {
		page, err := frame.HostPage(h, on, cursor, frame.HostsAtOnce)
		if err != nil {
			return // the plan names the hosts in any case
		}
		for _, one := range page.Hosts {
			if groups[one.Customer] == nil {
				groups[one.Customer] = &frame.HostGroup{Name: one.Customer}
			}
			groups[one.Customer].Count++
			groups[one.Customer].Names = append(groups[one.Customer].Names, one.Name)
		}
		if cursor = page.Next; cursor == "" {
			break
		}
	}
	for _, name := range frame.Sorted(groups) {
		g := groups[name]
		g.Hosts = frame.Folded(g.Names)
		f.by = append(f.by, *g)
	}
	slices.SortStableFunc(f.by, func(a, b frame.HostGroup) int { return b.Count - a.Count })
}

// show returns the page: the form, or the plan.
func (f *runFacts) show() frame.Show {
	s := frame.Show{Title: "Run " + f.book.Name, Nav: "Run"}
	if f.wrong != nil {
		s.Status = f.wrong.Status
	}
	if f.would != nil {
		s.Title = "Plan: " + f.book.Name + " on " + frame.Count(f.would.Total, "host", "hosts")
		s.Parts = []frame.Part{{ID: "plan", Body: runPlan(f)}}
		return s
	}
	s.Parts = []frame.Part{{ID: "form", Body: runFields(f)}}
	return s
}

// value returns the value of an argument for its field.
func (f *runFacts) value(a api.RunbookArg) string {
	if a.Type == "secret" {
		return "" // it goes back to no browser
	}
	return cmp.Or(f.form.Get("arg."+a.Name), a.Default)
}

// rulesOf returns what a value of an argument must be, in words.
func rulesOf(a api.RunbookArg) string {
	out := []string{a.Type}
	if a.Required {
		out = append(out, "needed")
	}
	if a.Pattern != "" {
		out = append(out, "pattern "+a.Pattern)
	}
	if a.Min != nil {
		out = append(out, "at least "+strconv.FormatInt(*a.Min, 10))
	}
	if a.Max != nil {
		out = append(out, "at most "+strconv.FormatInt(*a.Max, 10))
	}
	if a.MaxLength > 0 {
		out = append(out, "at most "+strconv.Itoa(a.MaxLength)+" characters")
	}
	return strings.Join(out, ", ")
}

// carried returns the fields of the form that the plan sends again.
func (f *runFacts) carried() [][2]string {
	var out [][2]string
	for _, name := range frame.Sorted(f.form) {
		secret := slices.ContainsFunc(f.book.Arguments, func(a api.RunbookArg) bool {
			return a.Type == "secret" && "arg."+a.Name == name
		})
		known := strings.HasPrefix(name, "arg.") || slices.Contains(runNames, name)
		if v := f.form.Get(name); known && !secret && v != "" {
			out = append(out, [2]string{name, v})
		}
	}
	for _, name := range frame.Sorted(f.files) {
		out = append(out, [2]string{"file." + name, f.files[name]})
	}
	return out
}

// runNames are the fields of a run beside its arguments.
var runNames = []string{"on", "priority", "only", "allowed_only", "window", "expect", "skip_closed",
	"at", "max_failed", "breaker", "canary", "waves", "soak", "gate"}

// secrets returns the secret arguments, which a person types again to run a plan.
func (f *runFacts) secrets() []api.RunbookArg {
	return slices.DeleteFunc(slices.Clone(f.book.Arguments), func(a api.RunbookArg) bool {
		return a.Type != "secret"
	})
}

// notes lists what a person should know before the run.
func (f *runFacts) notes() []string {
	var out []string
	say := func(words, text string) {
		if text != "" {
			out = append(out, words+": "+frame.ClipList(text))
		}
	}
	w := f.would
	say("Left out, drained", w.Drained)
	say("Left out, without a known opening", w.Closed)
	say("Left out, gone from the inventory", w.Gone)
	say("These keep no record of attempts: if a worker is lost there, its step ends unknown",
		w.Unfenced)
	if len(w.Unmarked) > 0 {
		say("Groups without a marker", strings.Join(w.Unmarked, ","))
	}
	out = append(out, w.Frozen...)
	if f.plan != nil {
		for _, l := range f.plan.Left {
			out = append(out, frame.Count(l.Count, "host", "hosts")+" would not run it: "+l.Why+": "+
				frame.ClipList(l.Hosts))
		}
		out = append(out, f.plan.Notes...)
	}
	return out
}

// A field is a field of a form with its words.
type field struct{ name, label, hint string }

// runOptions are the fields of a run about time, waves and failures.
var runOptions = []field{{"canary", "Canary", "a number of hosts that go first"},
	{"waves", "Waves", "hosts begun with each wave: 1, 10%, 100%"},
	{"soak", "Soak", "the pause after each wave, such as 5m"},
	{"max_failed", "Budget of failures", "N or P%: it stops when more have failed"},
	{"breaker", "Breaker", "N/T, such as 3/10m: it stops when N fail within T"},
	{"at", "Not before", "UTC, such as 2026-11-28T22:00:00Z; empty: at once"},
	{"expect", "Expected time of a job", "such as 20m, if nothing earlier gives it"}}

// runChecks are the boxes of a run that are ticked or not.
var runChecks = []field{{"gate", "a person opens each wave after the first", ""},
	{"window", "only in approved windows", ""},
	{"skip_closed", "leave out hosts without a known opening", ""},
	{"allowed_only", "leave out hosts on which I may not run it", ""}}

// hasRollout reports whether the form has something in its part that is folded.
func (f *runFacts) hasRollout() bool {
	return slices.ContainsFunc(runNames[2:], func(name string) bool { return f.form.Get(name) != "" })
}

// planFacts lists the times of the plan.
func (f *runFacts) planFacts() []frame.Fact {
	p := f.plan
	never := ""
	if p.Never > 0 {
		never = frame.Count(p.Never, "host", "hosts")
	}
	return []frame.Fact{frame.Timed("Begins", p.Begins), frame.Timed("Half are done", p.Half),
		frame.Timed("Done", p.Done),
		{Name: "Would not run on", Value: never}}
}

// argNames lists the names of arguments; those that are needed have a star.
func argNames(list []api.RunbookArg) string {
	var out []string
	for _, a := range list {
		name := a.Name
		if a.Required {
			name += "*"
		}
		out = append(out, name)
	}
	return strings.Join(out, ", ")
}

// limitOf returns the bounds of a field that a browser checks at once; the server checks them all.
func limitOf(a api.RunbookArg) templ.Attributes {
	out := templ.Attributes{}
	if a.MaxLength > 0 {
		out["maxlength"] = strconv.Itoa(a.MaxLength)
	}
	if a.Type == "int" {
		out["inputmode"] = "numeric"
	}
	return out
}
