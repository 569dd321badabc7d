package calendar

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/hashicorp/go-hclog"

	"muster/api"
	"muster/jobs"
	"muster/server/stock"
	"muster/server/web"
	"muster/windows"
)

// Ahead is the part that the inputs of all lists of occurrences have. It is exported because the
// API library reads only exported parts.
type Ahead struct {
	Count int       `query:"count" minimum:"1" maximum:"1000" default:"10"`
	From  time.Time `query:"from" doc:"now if not given"`
}

type (
	applyInput struct {
		web.Asked
		User string `header:"X-Muster-User" doc:"operator; counts in muster demo only"`
		Body api.WindowsRequest
	}
	changedOutput    struct{ Body api.WindowsChanged }
	windowListOutput struct{ Body api.WindowList }
	windowNextInput  struct {
		Ahead
		Window string `path:"window"`
	}
	hostNextInput struct {
		Ahead
		Host string `path:"host"`
	}
	occurrencesOutput struct{ Body api.OccurrenceList }
	hostWindowsOutput struct{ Body api.HostWindows }
	hostWindowsInput  struct {
		Host    string `path:"host"`
		Runbook string `query:"runbook" doc:"name of the runbook; empty: any"`
	}
)

// Windows answers questions about windows, and applies files of them.
type Windows struct {
	Calendar *Calendar
	Stock    *stock.Store
	Log      hclog.Logger
	Now      func() time.Time
	Whole    func(context.Context) error // see web.WhileAgreed
}

// Routes registers the routes of windows.
func (s Windows) Routes(api huma.API) {
	apply := web.Operation(http.MethodPut, "/v1/windows", "Say when work may be done")
	apply.MaxBodyBytes = web.SubmitMax
	huma.Register(api, apply, web.WhileAgreed(s.Whole, s.applyWindows))
	huma.Register(api, web.Post("/v1/windows/adopt", "Sign the timetable that Redis has"),
		web.WhileAgreed(s.Whole, s.adopt))
	huma.Register(api, web.Get("/v1/windows", "Show windows, freezes and approvals"), s.windows)
	huma.Register(api, web.Post("/v1/windows/propose", "Propose an opening"),
		web.WhileAgreed(s.Whole, s.propose))
	huma.Register(api, web.Get("/v1/calendar", "Show what opens and what is frozen in a span of time"),
		s.spans)
	huma.Register(api, web.Get("/v1/windows/{window}/next", "List the next occurrences of a window"),
		s.windowNext)
	huma.Register(api, web.Get("/v1/hosts/{host}/next",
		"List the next times in which a host is open"), s.hostNext)
	huma.Register(api, web.Get("/v1/hosts/{host}/windows", "Explain which windows hold for a host"),
		s.hostWindows)
}

// applyWindows answers PUT /v1/windows.
func (s Windows) applyWindows(ctx context.Context, in *applyInput) (*changedOutput, error) {
	g, wrong := web.GiverOf(in.Body.OrderRequest, "applied", in.Caller(), in.User)
	if len(in.Body.Files) == 0 {
		wrong = append(wrong, web.Mistake("body.files",
			"no file: give one with `windows: []` to prune only"))
	}
	if len(wrong) > 0 {
		return nil, web.Refusal(wrong)
	}
	how := manner{check: in.Body.Check, anew: in.Body.All}
	var did windows.Applied
	out, err := s.Calendar.agree(ctx, how, func(t windows.Timetable, book *windows.Book) (
		windows.Timetable, jobs.Alert, error) {
		next, applied, err := t.Apply(windows.Application{Files: in.Body.Files,
			Attached: in.Body.Attached, Pruning: in.Body.Pruning})
		if err != nil {
			return t, jobs.Alert{}, web.Refusal(web.Mistakes("body.files", err))
		}
		did = applied
		if err := web.Meets(in.Body.Expected, "windows or freezes", did.Basis, t.Version); err != nil {
			return t, jobs.Alert{}, err
		}
		if t.SameTexts(next) {
			return t, jobs.Alert{}, nil
		}
		return next, event("windows-applied", "windows", g), nil
	})
	out.Left, out.Basis = did.Left, did.Basis
	if err == nil && !in.Body.Check && !out.Already {
		web.LogOrder(s.Log, "windows applied", g, "version", out.Version, "changed", len(out.Changed),
			"added", len(out.Added), "removed", len(out.Removed), "void", len(out.Void))
	}
	return &changedOutput{out}, err
}

func event(name, object string, g web.Giver) jobs.Alert {
	return jobs.Alert{Event: name, Object: object, Detail: map[string]any{"by": g.Name,
		"proven": g.Proven, "reason": g.Reason}}
}

// windows answers GET /v1/windows.
func (s Windows) windows(ctx context.Context, _ *web.Nothing) (*windowListOutput, error) {
	see := s.sightOf(ctx)
	table, book, err := s.read(ctx, see)
	if err != nil {
		return nil, err
	}
	out := api.WindowList{Version: table.Version, Windows: []api.WindowInfo{},
		Freezes:   []api.FreezeInfo{},
		Approvals: table.Approvals, Void: []string{}, Timetable: table, Hash: hashOf(table)}
	if doubt := s.Calendar.Doubt(ctx); doubt != nil {
		out.Doubt = doubt.Error()
	}
	for _, w := range book.Agreed().Windows {
		if see.of(w.For, w.Owner()) {
			out.Windows = append(out.Windows, windowInfo(s.Now(), book, w))
		}
	}
	for _, f := range book.Agreed().Freezes {
		if see.of(f.For, f.Owner()) {
			out.Freezes = append(out.Freezes, describeFreeze(s.Now(), table, f))
		}
	}
	for _, a := range book.Void() {
		out.Void = append(out.Void, a.ID)
	}
	if out.Approvals == nil {
		out.Approvals = []windows.Approval{}
	}
	if see != nil { // the texts and the number of their changes are those of the whole house
		out.Version, out.Timetable = 0, windows.Timetable{}
	}
	return &windowListOutput{out}, nil
}

// windowNext answers GET /v1/windows/{window}/next.
func (s Windows) windowNext(ctx context.Context, in *windowNextInput) (*occurrencesOutput, error) {
	see := s.sightOf(ctx)
	_, book, err := s.read(ctx, see)
	if err != nil {
		return nil, err
	}
	w, ok := book.Window(in.Window)
	if !ok || !see.of(w.For, w.Owner()) {
		return nil, noWindow(in.Window)
	}
	return &occurrencesOutput{api.OccurrenceList{Occurrences: s.ahead(book, []windows.Window{w},
		nil, in.Ahead)}}, nil
}

func noWindow(name string) error {
	return huma.Error404NotFound(fmt.Sprintf("there is no window %q; `muster windows ls` lists them",
		web.Clip(name)))
}

// hostNext answers GET /v1/hosts/{host}/next.
func (s Windows) hostNext(ctx context.Context, in *hostNextInput) (*occurrencesOutput, error) {
	_, book, err := s.read(ctx, s.sightOf(ctx))
	if err != nil {
		return nil, err
	}
	place, err := placeOf(s.Stock, in.Host)
	if err != nil {
		return nil, err
	}
	list := s.ahead(book, book.Explain(place).Windows, &place, in.Ahead)
	return &occurrencesOutput{api.OccurrenceList{Occurrences: list}}, nil
}

// ahead are the next occurrences of some windows, in their order.
func (s Windows) ahead(book *windows.Book, of []windows.Window, at *windows.Place,
	in Ahead) []api.Occurrence {
	from := in.From
	if from.IsZero() {
		from = s.Now()
	}
	list := []api.Occurrence{}
	for _, w := range of {
		n := 0
		occurrences := book.Occurrences(w.Name, from)
		if at != nil {
			occurrences = book.OccurrencesAt(*at, w.Name, from)
		}
		for o := range occurrences {
			if n++; n > in.Count || o.Start.After(from.Add(occurrencesWithin)) {
				break
			}
			one := describeOccurrence(w, o)
			if at != nil {
				if f, _, frozen := book.Frozen(*at, o.Start); frozen {
					one.Frozen = f.Name
				}
			}
			list = append(list, one)
		}
	}
	slices.SortStableFunc(list, func(a, b api.Occurrence) int {
		return a.Start.Compare(
			b.Start.Time)
	})
	return list[:min(len(list), in.Count)]
}

// occurrencesWithin bounds the time ahead in which ahead looks for occurrences.
const occurrencesWithin = 10 * 366 * 24 * time.Hour

// hostWindows answers GET /v1/hosts/{host}/windows.
func (s Windows) hostWindows(ctx context.Context, in *hostWindowsInput) (*hostWindowsOutput,
	error) {
	table, book, err := s.read(ctx, s.sightOf(ctx))
	if err != nil {
		return nil, err
	}
	place, err := placeOf(s.Stock, in.Host)
	if err != nil {
		return nil, err
	}
	e := book.Explain(place)
	out := api.HostWindows{Host: in.Host, Level: e.Level.String(), Windows: []api.WindowInfo{},
		Hidden: []api.WindowInfo{}, Others: []api.WindowInfo{}, Freezes: []api.FreezeInfo{}}
	for _, w := range e.Windows {
		out.Windows = append(out.Windows, windowInfo(s.Now(), book, w))
	}
	for _, w := range e.Hidden {
		out.Hidden = append(out.Hidden, windowInfo(s.Now(), book, w))
	}
	for _, w := range e.Others {
		if !web.ViewOf(ctx).Whole() {
			break // they are of other customers
		}
		out.Others = append(out.Others, windowInfo(s.Now(), book, w))
	}
	for _, f := range e.Freezes {
		out.Freezes = append(out.Freezes, describeFreeze(s.Now(), table, f))
	}
	now, work := s.Now(), windows.Work{Window: true, Runbook: in.Runbook}
	v := book.Admit(place, now, work)
	out.Now = api.HostVerdict{Open: v.OK, Next: jobs.Time{Time: v.Next}, Why: v.Why}
	if v.OK {
		// Further ahead than that nobody has looked.
		if o, _ := book.OpeningAt(place, now, work); !o.End.After(now.Add(windows.Horizon)) {
			out.Now.Until = jobs.Time{Time: o.End}
		}
	}
	return &hostWindowsOutput{out}, nil
}

// placeOf returns the place of a host of the inventory.
func placeOf(hosts *stock.Store, host string) (windows.Place, error) {
	st, err := hosts.Get()
	if err != nil {
		return windows.Place{}, web.Away(err.Error())
	}
	h, ok := st.Host(host)
	if !ok {
		return windows.Place{}, huma.Error404NotFound(fmt.Sprintf(
			"there is no host %q in the inventory; `muster hosts` lists them", web.Clip(host)))
	}
	return jobs.Place(h), nil
}
