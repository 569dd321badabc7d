package apply

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/hashicorp/go-hclog"

	"muster/api"
	"muster/internal/manifest"
	"muster/internal/wording"
	"muster/jobs"
	"muster/jobs/queue"
	"muster/jobs/queue/applies"
	"muster/server/fault"
	"muster/server/web"
)

// Store keeps the results of applies and the origins of entries.
type Store interface {
	State(ctx context.Context) (applies.State, error)
	OriginOf(ctx context.Context, ids ...string) (map[string]string, error)
	Apply(ctx context.Context, was applies.State, d applies.Deed) (int64, error)
	Result(ctx context.Context, id string) (applies.Result, error)
	Results(ctx context.Context, most int) ([]applies.Result, error)
}

// Resource answers the routes of applies.
type Resource struct {
	Store  Store
	Kinds  []Kind
	Log    hclog.Logger
	Now    func() time.Time
	Chance func() uint16
	Whole  func(context.Context) error // see web.WhileAgreed

	// Reserved says where people change the entries of an origin that no request may use; empty:
	// requests may. nil: there is no such origin.
	Reserved func(origin string) string
}

type (
	applyInput struct {
		web.Asked
		User string `header:"X-Muster-User" doc:"operator; counts in muster demo only"`
		Body api.ApplyRequest
	}
	applyOutput struct{ Body api.Applied }
)

// Routes registers the routes of applies.
func (r Resource) Routes(api huma.API) {
	apply := web.Operation(http.MethodPost, "/v1/apply", "Put entries of files in force, all or none")
	apply.MaxBodyBytes = web.SubmitMax
	huma.Register(api, apply, web.WhileAgreed(r.Whole, r.apply))
	huma.Register(api, web.Get("/v1/applies", "List what was applied"), r.list)
	huma.Register(api, web.Get("/v1/applies/{apply}", "Show what an apply did"), r.show)
	huma.Register(api, web.Get("/v1/entries", "Write the entries in force as documents"), r.entries)
}

// staleTries bounds the tries at an apply that others overtake.
const staleTries = 5

// apply answers POST /v1/apply.
func (r Resource) apply(ctx context.Context, in *applyInput) (*applyOutput, error) {
	b := in.Body
	g, wrong := web.GiverOf(b.OrderRequest, "applied", in.Caller(), in.User)
	set, err := manifest.Read(manifest.Input{Files: b.Files, Attached: b.Attached,
		Rollout: jobs.CheckRollout})
	wrong = append(append(wrong, web.Mistakes("body.files", err)...), check(b)...)
	wrong = append(wrong, r.reserved(b)...)
	if len(wrong) > 0 {
		wrong = append(wrong, r.held(ctx, set)...)
	}
	if len(wrong) == 0 && len(set.Entries) == 0 && !(b.Empty && b.Prune) {
		wrong = append(wrong, web.Mistake("body.files", "no entry is in there: want documents that "+
			"begin with kind: …; to remove all that comes from an origin, prune it with empty files"))
	}
	if len(wrong) > 0 {
		return nil, web.Refusal(wrong)
	}
	if b.ID == "" {
		b.ID = string(jobs.NewTaskID(r.Now(), r.Chance()))
	} else if done, err := r.before(ctx, b.ID, g); done != nil || err != nil {
		return done, err
	}
	for try := 1; ; try++ {
		out, err := r.once(ctx, b, Ask{Set: set, Attached: b.Attached, Giver: g})
		if errors.Is(err, queue.ErrStale) && try < staleTries {
			continue
		}
		if err != nil {
			return nil, web.Problem(err)
		}
		return &applyOutput{out}, nil
	}
}

// Put makes an apply of the server itself, for a place that it follows. queue.ErrStale is wrapped
// if others were faster. Like an apply of a person it is refused while Redis has lost what was
// agreed.
func (r Resource) Put(ctx context.Context, b api.ApplyRequest, a Ask) (api.Applied, error) {
	if r.Whole != nil {
		if err := r.Whole(ctx); err != nil {
			return api.Applied{}, err
		}
	}
	return r.once(ctx, b, a)
}

// reserved refuses origins that only the server itself uses.
func (r Resource) reserved(b api.ApplyRequest) (wrong []error) {
	for _, one := range [][2]string{{"origin", b.Origin}, {"take_from", b.TakeFrom}} {
		if r.Reserved == nil || one[1] == "" {
			continue
		}
		if where := r.Reserved(one[1]); where != "" {
			wrong = append(wrong, web.Mistake("body."+one[0], "a server follows %s by itself: push the "+
				"change to %s", one[1], where))
		}
	}
	return wrong
}

// check returns the mistakes of a request beside those in its files.
func check(b api.ApplyRequest) []error {
	var wrong []error
	if b.ID != "" {
		if _, err := jobs.ParseTaskID(b.ID); err != nil {
			wrong = append(wrong, web.Mistake("body.id", "%v", err))
		}
	}
	for _, name := range []string{b.Origin, b.TakeFrom} {
		if err := manifest.CheckOrigin(name); name != "" && err != nil {
			wrong = append(wrong, web.Mistake("body", "%v", err))
		}
	}
	if b.Prune && b.Origin == "" {
		wrong = append(wrong, web.Mistake("body", "only entries of an origin are pruned: name "+
			"yours"))
	}
	return wrong
}

// held holds the entries of files against other things, and returns the mistakes.
func (r Resource) held(ctx context.Context, set manifest.Set) (wrong []error) {
	for _, k := range r.Kinds {
		if c, is := k.(Checker); is {
			wrong = append(wrong, web.Mistakes("body.files", c.Check(ctx, set.Entries))...)
		}
	}
	return wrong
}

// before returns the result of an apply that was made with the same id already; nil: none was.
func (r Resource) before(ctx context.Context, id string, g web.Giver) (*applyOutput, error) {
	kept, err := r.Store.Result(ctx, id)
	if errors.Is(err, queue.ErrNotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, web.Problem(err)
	}
	was := resultOf(kept)
	if was.By != g.Name || was.ID != id {
		return nil, huma.Error409Conflict(fmt.Sprintf("the id %s is that of another apply", id))
	}
	return &applyOutput{was}, nil
}

// once works an apply out from what is in force now, and makes it.
func (r Resource) once(ctx context.Context, b api.ApplyRequest, a Ask) (api.Applied, error) {
	// The origins come first: a change after it makes the readings below stale.
	state, err := r.Store.State(ctx)
	if err == nil {
		err = web.Meets(api.Expected{Version: b.IfVersion}, "entries", "", state.Version)
	}
	if err != nil {
		return api.Applied{}, err
	}
	if wrong := r.held(ctx, a.Set); len(wrong) > 0 {
		return api.Applied{}, fault.Refuse(wrong)
	}
	looks, err := r.look(ctx)
	if err != nil {
		return api.Applied{}, err
	}
	steps, err := r.plan(ctx, b, a, looks, state)
	if err != nil {
		return api.Applied{}, err
	}
	out := describe(steps)
	out.ID, out.Version, out.Check, out.Origin = b.ID, state.Version, b.Check, b.Origin
	out.By, out.Proven, out.Reason = a.Giver.Name, a.Giver.Proven, a.Giver.Reason
	out.Commit = a.Commit
	out.At = jobs.Time{Time: r.Now()}
	for _, id := range state.Doubts {
		if !web.ViewOf(ctx).Whole() {
			break // they are of other customers
		}
		out.Notes = append(out.Notes, "the origin of "+id+" is not believed: no server has signed it")
	}
	d := applies.Deed{ID: b.ID, Set: map[string]string{}}
	for _, l := range looks {
		if !slices.ContainsFunc(steps, l.writes) {
			continue
		}
		ready, err := l.view.Prepare(ctx, a, steps)
		if err != nil {
			return out, err
		}
		d.Changes = append(d.Changes, ready.Change)
		out.Void, out.Notes = append(out.Void, ready.Void...), append(out.Notes, ready.Notes...)
	}
	if b.Check || out.Already {
		return out, nil
	}
	for _, s := range steps {
		if s.Moved {
			d.Set[s.Entry().ID()] = s.Origin
		}
	}
	if a.More != nil {
		more, err := a.More(state.Version + 1)
		if err != nil {
			return out, err
		}
		d.Changes = append(d.Changes, more)
	}
	return r.make(ctx, state, d, out)
}

// make writes an apply that is ready.
func (r Resource) make(ctx context.Context, was applies.State, d applies.Deed, out api.Applied) (
	api.Applied, error) {
	out.Version = was.Version + 1
	short := out
	short.Entries = shortened(out.Entries)
	var err error
	if d.Result, err = json.Marshal(short); err != nil {
		return out, err
	}
	d.Event = jobs.Alert{Event: "applied", Object: out.ID, Detail: map[string]any{"by": out.By,
		"proven": out.Proven, "reason": out.Reason, "origin": out.Origin, "version": out.Version,
		"counts": out.Counts, "void": out.Void}}
	if out.Commit != "" {
		d.Event.Detail["commit"] = out.Commit
	}
	if _, err := r.Store.Apply(ctx, was, d); err != nil {
		return out, err
	}
	web.LogOrder(r.Log, "applied", web.Giver{Done: "applied", Name: out.By, Proven: out.Proven,
		Reason: out.Reason}, "apply", out.ID, "version", out.Version, "origin", out.Origin,
		"counts", out.Counts, "void", len(out.Void))
	return out, nil
}

// A looked has the entries of a kind as they were read.
type looked struct {
	kind Kind
	view View
}

// look reads the entries of all kinds.
func (r Resource) look(ctx context.Context) ([]looked, error) {
	var out []looked
	for _, k := range r.Kinds {
		v, err := k.Look(ctx)
		if err != nil {
			return nil, err
		}
		out = append(out, looked{k, v})
	}
	return out, nil
}

// writes reports whether a step writes entries of this kind.
func (l looked) writes(s manifest.Step) bool {
	changed := s.Change != manifest.Kept && s.Change != manifest.Unchanged
	return l.has(s.Entry()) && (changed || l.view.Again())
}

func (l looked) has(e manifest.Entry) bool { return slices.Contains(l.kind.Words(), e.Kind) }

// plan returns the steps of an apply that its caller may make.
func (r Resource) plan(ctx context.Context, b api.ApplyRequest, a Ask, looks []looked,
	state applies.State) ([]manifest.Step, error) {
	var there []manifest.Entry
	was := map[string]manifest.Entry{}
	for _, l := range looks {
		there = append(there, l.view.Entries()...)
	}
	for _, e := range there {
		was[e.ID()] = e
	}
	may := func(e manifest.Entry) error {
		for _, l := range looks {
			if l.has(e) {
				return l.kind.May(ctx, e)
			}
		}
		return fmt.Errorf("nothing keeps entries of the kind %s", e.Kind)
	}
	var forbidden []error
	for _, e := range a.Set.Entries {
		err := may(e)
		if old, is := was[e.ID()]; is && err == nil {
			err = may(old)
		}
		if err != nil {
			forbidden = append(forbidden, refused(e, err))
		}
	}
	if err := refusal(forbidden); err != nil {
		return nil, err
	}
	if err := a.refused(was); err != nil {
		return nil, err
	}
	origins := map[string]string{}
	for id, o := range state.Origins {
		origins[id] = o.Name
	}
	steps, err := manifest.Manner{Origin: b.Origin, From: b.TakeFrom, Prune: b.Prune}.Plan(
		a.Set.Entries, there, origins)
	if err != nil {
		return nil, fault.Refuse(web.Mistakes("body.files", err))
	}
	for _, s := range steps {
		if s.Change != manifest.Removed {
			continue
		}
		if err := may(s.Was); err != nil {
			forbidden = append(forbidden, refused(s.Was, err))
		}
		if err := a.mayRemove(s.Was); err != nil {
			return nil, err
		}
	}
	if err := refusal(forbidden); err != nil {
		return nil, err
	}
	return slices.DeleteFunc(steps, func(s manifest.Step) bool {
		return s.Change == manifest.Kept && may(s.Was) != nil
	}), nil
}

// describe returns the answer about some steps.
func describe(steps []manifest.Step) api.Applied {
	out := api.Applied{Entries: []api.AppliedEntry{}, Counts: map[string]int{}, Void: []string{},
		Notes: []string{}, Already: !slices.ContainsFunc(steps, manifest.Step.Does)}
	for _, s := range steps {
		e := s.Entry()
		one := api.AppliedEntry{Kind: e.Kind, Name: e.Name, Customer: e.Customer,
			Change: string(s.Change), Differences: s.Differences, Moved: s.Moved}
		if one.Differences == nil {
			one.Differences = []string{}
		}
		out.Entries = append(out.Entries, one)
		out.Counts[one.Change]++
	}
	return out
}

// The bounds of the entries in a result that is kept.
const (
	entriesMax    = 1000
	differenceMax = 300 // bytes
)

// shortened returns the entries that a result keeps: those that changed.
func shortened(all []api.AppliedEntry) []api.AppliedEntry {
	out := []api.AppliedEntry{}
	for _, e := range all {
		if e.Change == string(manifest.Unchanged) && !e.Moved || e.Change == string(manifest.Kept) ||
			len(out) == entriesMax {
			continue
		}
		e.Differences = slices.Clone(e.Differences)
		for i, d := range e.Differences {
			e.Differences[i] = wording.ClipTo(d, differenceMax)
		}
		out = append(out, e)
	}
	return out
}
