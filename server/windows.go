package server

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"muster/api"
	"muster/jobs"
	"muster/jobs/queue"
	"muster/server/waits"
	"muster/windows"
)

// Times is when work may be done, as it is kept in the hub. SetTimetable wraps
// queue.ErrChanged if somebody was faster.
type Times interface {
	Timetable(ctx context.Context) (windows.Timetable, error)
	TimetableVersion(ctx context.Context) (int64, error)
	SetTimetable(ctx context.Context, t windows.Timetable, e jobs.Alert) (int64, error)

	// PutExcerpts makes what workers read of it, if that was not done.
	PutExcerpts(ctx context.Context) (bool, error)

	// SayZones tells other servers of this one's time zone data, and returns theirs.
	SayZones(ctx context.Context, server, data string) (map[string]string, error)
}

// times are agreed, and waited for.
type times struct {
	shelf shelf
	why   *waits.Reader
}

// newWaits gives the reader of reasons what it works with.
func newWaits(s *Server) *waits.Reader {
	q := s.queue
	return &waits.Reader{Explaining: q.Read.Jobs, Deferring: q.Read.Waits, Tasks: q.Read.Tasks,
		Jobs: q.Read.Jobs, Estimates: q.Hub.Estimates, Stock: s.stock, Now: s.clock,
		Book: func(ctx context.Context) (*windows.Book, error) {
			_, book, err := s.book(ctx)
			return book, err
		}}
}

// shelf keeps the book that was read last.
type shelf struct {
	mu    sync.Mutex
	table windows.Timetable
	book  *windows.Book // nil: none was read yet
}

// errUnread is of a timetable that was kept and cannot be read.
var errUnread = errors.New("the timetable in Redis cannot be read; apply the files anew, all of " +
	"them: `muster windows apply FILE … --prune-all`")

// book is what is agreed now.
func (s *Server) book(ctx context.Context) (windows.Timetable, *windows.Book, error) {
	table, book, err := s.kept(ctx)
	if errors.Is(err, errUnread) {
		err = huma.Error500InternalServerError(err.Error())
	}
	return table, book, err
}

// kept is what is agreed now; errUnread is wrapped, and the timetable is there, if only its
// texts cannot be read.
func (s *Server) kept(ctx context.Context) (windows.Timetable, *windows.Book, error) {
	s.times.shelf.mu.Lock()
	defer s.times.shelf.mu.Unlock()
	version, err := s.queue.Hub.Times.TimetableVersion(ctx)
	if err != nil {
		return windows.Timetable{}, nil, problem(err)
	}
	if s.times.shelf.book != nil && s.times.shelf.table.Version == version {
		return s.times.shelf.table, s.times.shelf.book, nil
	}
	table, err := s.queue.Hub.Times.Timetable(ctx)
	if err != nil {
		return table, nil, problem(err)
	}
	book, err := table.Book()
	if err != nil {
		// It was read before it was kept: another version of muster reads otherwise.
		return table, nil, fmt.Errorf("%w: %w", errUnread, err)
	}
	s.times.shelf.table, s.times.shelf.book = table, book
	return table, book, nil
}

// agreeTries is how often a change is made anew when somebody else was faster.
const agreeTries = 5

// A manner is how a timetable is changed.
type manner struct {
	check bool // only say what would be
	anew  bool // all texts are replaced: those that are there need not be readable
}

// agree changes the timetable: change makes the new one of what is there, and says
// what is to be told. It answers with the version, and what became different.
func (s *Server) agree(ctx context.Context, how manner,
	change func(windows.Timetable, *windows.Book) (windows.Timetable, jobs.Alert, error)) (
	api.WindowsChanged, error) {
	for try := 1; ; try++ {
		table, book, unread, err := s.ground(ctx, how)
		if err != nil {
			return api.WindowsChanged{}, err
		}
		next, event, err := change(table, book)
		if err != nil {
			return api.WindowsChanged{}, err
		}
		out := api.WindowsChanged{Version: table.Version, Already: event.Event == "",
			Notes: []string{}}
		next, then, err := next.Settle(book, s.now().UTC().Truncate(time.Second))
		if err != nil {
			return out, refusal(mistakes("body.files", err))
		}
		out.Change = book.Compare(then)
		out.Notes = append(unread, s.doubts(book, then, out.Change)...)
		if how.check || out.Already {
			return out, nil
		}
		event.Detail["void"] = out.Void
		out.Version, err = s.queue.Hub.Times.SetTimetable(ctx, next, event)
		if !errors.Is(err, queue.ErrChanged) || try == agreeTries {
			return out, problem(err)
		}
	}
}

// ground is what a change begins with, and what is to be said of it. Of a timetable that
// cannot be read the book is empty if all of it is replaced: there must be a way out.
func (s *Server) ground(ctx context.Context, how manner) (table windows.Timetable,
	book *windows.Book, notes []string, err error) {
	notes = []string{}
	if !how.anew {
		table, book, err = s.book(ctx)
		return table, book, notes, err
	}
	table, book, err = s.kept(ctx)
	if errors.Is(err, errUnread) {
		book, err = windows.NewBook(windows.Agreed{}), nil
		notes = []string{fmt.Sprintf("what was agreed until now (version %d) cannot be read: "+
			"all is told as added, and every approval that does not hold as void", table.Version)}
	}
	return table, book, notes, err
}

// Ahead is the part that the inputs of all lists of occurrences have. The API library
// reads only exported parts.
type Ahead struct {
	Count int       `query:"count" minimum:"1" maximum:"1000" default:"10"`
	From  time.Time `query:"from" doc:"now if not given"`
}

type (
	applyInput struct {
		Asked
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
		Runbook string `query:"runbook" doc:"for this runbook; else for any"`
	}
)

// applyWindows answers PUT /v1/windows.
func (s *Server) applyWindows(ctx context.Context, in *applyInput) (*changedOutput, error) {
	g, wrong := giverOf(in.Body.OrderRequest, "applied", in.who, in.User)
	if len(in.Body.Files) == 0 {
		wrong = append(wrong, mistake("body.files", "no file: give one with `windows: []` to prune only"))
	}
	if len(wrong) > 0 {
		return nil, refusal(wrong)
	}
	how := manner{check: in.Body.Check, anew: in.Body.All}
	var did windows.Applied
	out, err := s.agree(ctx, how, func(t windows.Timetable, book *windows.Book) (
		windows.Timetable, jobs.Alert, error) {
		next, applied, err := t.Apply(windows.Application{Files: in.Body.Files,
			Attached: in.Body.Attached, Pruning: in.Body.Pruning})
		if err != nil {
			return t, jobs.Alert{}, refusal(mistakes("body.files", err))
		}
		did = applied
		if err := meets(in.Body.Expected, "windows or freezes", did.Basis, t.Version); err != nil {
			return t, jobs.Alert{}, err
		}
		if t.SameTexts(next) {
			return t, jobs.Alert{}, nil
		}
		return next, event("windows-applied", "windows", g), nil
	})
	out.Left, out.Basis = did.Left, did.Basis
	if err == nil && !in.Body.Check && !out.Already {
		logOrder(s.log, "windows applied", g, "version", out.Version, "changed", len(out.Changed),
			"added", len(out.Added), "removed", len(out.Removed), "void", len(out.Void))
	}
	return &changedOutput{out}, err
}

func event(name, object string, g giver) jobs.Alert {
	return jobs.Alert{Event: name, Object: object, Detail: map[string]any{"by": g.name,
		"proven": g.proven, "reason": g.reason}}
}

// windows answers GET /v1/windows.
func (s *Server) windows(ctx context.Context, _ *nothing) (*windowListOutput, error) {
	table, book, err := s.book(ctx)
	if err != nil {
		return nil, err
	}
	out := api.WindowList{Version: table.Version, Windows: []api.WindowInfo{},
		Freezes:   []api.FreezeInfo{},
		Approvals: table.Approvals, Void: []string{}, Timetable: table}
	for _, w := range book.Agreed().Windows {
		out.Windows = append(out.Windows, windowInfo(s.now(), book, w))
	}
	for _, f := range book.Agreed().Freezes {
		out.Freezes = append(out.Freezes, s.describeFreeze(table, book, f))
	}
	for _, a := range book.Void() {
		out.Void = append(out.Void, a.ID)
	}
	if out.Approvals == nil {
		out.Approvals = []windows.Approval{}
	}
	return &windowListOutput{out}, nil
}

// windowNext answers GET /v1/windows/{window}/next.
func (s *Server) windowNext(ctx context.Context, in *windowNextInput) (*occurrencesOutput, error) {
	_, book, err := s.book(ctx)
	if err != nil {
		return nil, err
	}
	w, ok := book.Window(in.Window)
	if !ok {
		return nil, noWindow(in.Window)
	}
	return &occurrencesOutput{api.OccurrenceList{Occurrences: s.ahead(book, []windows.Window{w},
		nil, in.Ahead)}}, nil
}

func noWindow(name string) error {
	return huma.Error404NotFound(fmt.Sprintf("there is no window %q; `muster windows ls` lists them",
		clip(name)))
}

// hostNext answers GET /v1/hosts/{host}/next.
func (s *Server) hostNext(ctx context.Context, in *hostNextInput) (*occurrencesOutput, error) {
	_, book, err := s.book(ctx)
	if err != nil {
		return nil, err
	}
	place, err := s.place(in.Host)
	if err != nil {
		return nil, err
	}
	list := s.ahead(book, book.Explain(place).Windows, &place, in.Ahead)
	return &occurrencesOutput{api.OccurrenceList{Occurrences: list}}, nil
}

// ahead are the next occurrences of some windows, in their order.
func (s *Server) ahead(book *windows.Book, of []windows.Window, at *windows.Place,
	in Ahead) []api.Occurrence {
	from := in.From
	if from.IsZero() {
		from = s.now()
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

// occurrencesWithin is how far ahead is looked for occurrences.
const occurrencesWithin = 10 * 366 * 24 * time.Hour

// hostWindows answers GET /v1/hosts/{host}/windows.
func (s *Server) hostWindows(ctx context.Context, in *hostWindowsInput) (*hostWindowsOutput,
	error) {
	table, book, err := s.book(ctx)
	if err != nil {
		return nil, err
	}
	place, err := s.place(in.Host)
	if err != nil {
		return nil, err
	}
	e := book.Explain(place)
	out := api.HostWindows{Host: in.Host, Level: e.Level.String(), Windows: []api.WindowInfo{},
		Hidden: []api.WindowInfo{}, Others: []api.WindowInfo{}, Freezes: []api.FreezeInfo{}}
	for _, w := range e.Windows {
		out.Windows = append(out.Windows, windowInfo(s.now(), book, w))
	}
	for _, w := range e.Hidden {
		out.Hidden = append(out.Hidden, windowInfo(s.now(), book, w))
	}
	for _, w := range e.Others {
		out.Others = append(out.Others, windowInfo(s.now(), book, w))
	}
	for _, f := range e.Freezes {
		out.Freezes = append(out.Freezes, s.describeFreeze(table, book, f))
	}
	now, work := s.now(), windows.Work{Window: true, Runbook: in.Runbook}
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

// place is where a host of the inventory is.
func (s *Server) place(host string) (windows.Place, error) {
	st, err := s.stock.Get()
	if err != nil {
		return windows.Place{}, away(err.Error())
	}
	h, ok := st.Host(host)
	if !ok {
		return windows.Place{}, huma.Error404NotFound(fmt.Sprintf(
			"there is no host %q in the inventory; `muster hosts` lists them", clip(host)))
	}
	return jobs.Place(h), nil
}
