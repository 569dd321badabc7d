package gitops

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"muster/api"
	"muster/events"
	"muster/internal/gitsource"
	"muster/internal/repofile"
	"muster/internal/wording"
	"muster/jobs/queue"
	"muster/jobs/queue/applies"
	"muster/server/dispatch"
	"muster/server/metrics"
	"muster/server/web"
)

// Routes answers the routes of repositories.
type Routes struct{ *Follower }

type (
	listOutput struct{ Body api.Repositories }
	pollInput  struct {
		web.Asked
		User       string `header:"X-Muster-User" doc:"operator; counts in muster demo only"`
		Repository string `path:"repository"`
		Body       api.RepositoryPoll
	}
	pollOutput struct{ Body api.RepositoryAsked }
)

// Routes registers the routes of the resource.
func (s Routes) Routes(a huma.API) {
	huma.Register(a, web.Get("/v1/repositories", "List the repositories that configure muster"),
		s.list)
	huma.Register(a, web.Post("/v1/repositories/{repository}/poll", "Look at a repository at once"),
		s.poll)
}

// list answers GET /v1/repositories.
func (s Routes) list(ctx context.Context, _ *web.Nothing) (*listOutput, error) {
	out := &listOutput{api.Repositories{Repositories: []api.Repository{},
		Complaint: s.keeper.words()}}
	set := s.Set()
	places, err := s.places(ctx, set)
	if err != nil {
		return nil, web.Problem(err)
	}
	for _, r := range set.All() {
		out.Body.Repositories = append(out.Body.Repositories, shown(r, places[r.Name]))
	}
	return out, nil
}

func shown(r repofile.Repository, p applies.Place) api.Repository {
	one := api.Repository{Name: r.Name, URL: r.URL, Branch: r.Branch, Path: r.Path, Origin: r.Origin(),
		Customers: r.Customers, Kinds: r.Kinds, Signed: r.Signers != "", Source: r.From}
	if one.Customers == nil {
		one.Customers = []string{}
	}
	one.State = api.RepositoryState{Commit: p.Commit, Subject: p.Subject, Signer: p.Signer,
		Version: p.Version, Since: p.Since, Seen: p.Look.Seen, Looked: p.Look.At, Heard: p.Look.Asked,
		Error: p.Look.Error, Refused: p.Look.Refused, Adrift: p.Look.Adrift}
	if p.Doubt != nil {
		one.State.Doubt = p.Doubt.Error()
	}
	return one
}

// acceptTries bounds the tries to keep an accepted commit while others keep something else.
const acceptTries = 20

// poll answers POST /v1/repositories/{repository}/poll.
func (s Routes) poll(ctx context.Context, in *pollInput) (*pollOutput, error) {
	giver, wrong := web.GiverOf(in.Body.OrderRequest, "poll", in.Caller(), in.User)
	if a := in.Body.Accept; a != "" && !gitsource.IsCommit(a) {
		wrong = append(wrong, web.Mistake("body.accept", "%s: want the whole name of a commit, which "+
			"`muster repository show` prints", wording.Quote(a)))
	} else if a != "" && giver.Reason == "" {
		wrong = append(wrong, web.Mistake("body.reason", "a reason is needed: history goes back"))
	}
	if len(wrong) > 0 {
		return nil, web.Refusal(wrong)
	}
	r, known := s.Set().Find(in.Repository)
	if !known {
		return nil, huma.Error404NotFound(fmt.Sprintf("there is no repository %s; `muster repository "+
			"ls` lists those that are", wording.Quote(web.Clip(in.Repository))))
	}
	if in.Body.Accept != "" {
		if err := s.accept(ctx, r.Name, in.Body.Accept); err != nil {
			return nil, web.Problem(err)
		}
	}
	n, err := s.ask(ctx, r.Name)
	if err != nil {
		return nil, web.Problem(err)
	}
	web.LogOrder(s.Log, "poll", giver, "repository", r.Name, "accept", in.Body.Accept)
	return &pollOutput{api.RepositoryAsked{Asked: n}}, nil
}

// accept keeps that a commit may come into force although history goes back to it.
func (f *Follower) accept(ctx context.Context, name, commit string) error {
	for try := 1; ; try++ {
		list, err := f.Places.ReadPlaces(ctx, name)
		if err != nil {
			return err
		}
		now := list[name]
		now.Accept = commit
		err = f.Places.SavePlace(ctx, list[name], now)
		if !errors.Is(err, queue.ErrStale) || try == acceptTries {
			return err
		}
	}
}

// reachedFor is the time for which a repository may be out of reach before people are told.
const reachedFor = 10 * time.Minute

// Troubles says of each repository what people must know of; empty: all is well.
func (f *Follower) Troubles(ctx context.Context) (map[string]string, error) {
	set, out := f.Set(), map[string]string{}
	places, err := f.places(ctx, set)
	for _, r := range set.All() {
		if err != nil {
			return nil, err
		}
		p := places[r.Name]
		out[r.Name] = ""
		switch {
		case p.Look.Error == "":
		case p.Look.Refused:
			out[r.Name] = fmt.Sprintf("commit %s is not in force: %s", gitsource.Short(p.Look.Seen),
				oneLine(p.Look.Error))
		case f.Now().Sub(p.Look.Reached.Time) > max(reachedFor, 3*r.Every):
			out[r.Name] = "it cannot be read: " + oneLine(p.Look.Error)
		}
	}
	return out, nil
}

func oneLine(text string) string { return strings.ReplaceAll(text, "\n", "; ") }

// Words says what is wrong with repositories; empty: nothing.
func (f *Follower) Words(ctx context.Context) string {
	var list []string
	if text := f.keeper.words(); text != "" {
		list = append(list, text)
	}
	troubles, _ := f.Troubles(ctx) // another line says that Redis is away
	for name, text := range troubles {
		if text != "" {
			list = append(list, "repository "+name+": "+text)
		}
	}
	slices.Sort(list)
	return strings.Join(list, "; ")
}

// Gauges returns the numbers of repositories.
func (f *Follower) Gauges(ctx context.Context) (out []metrics.Repository) {
	set := f.Set()
	places, err := f.places(ctx, set)
	for _, r := range set.All() {
		if err != nil {
			return nil
		}
		p := places[r.Name]
		one := metrics.Repository{Name: r.Name, Age: -1, Behind: p.Look.Error != "",
			Adrift: p.Look.Adrift}
		if p.Commit == "" {
			one.Adrift = -1
		}
		if !p.Look.Reached.IsZero() {
			one.Age = f.Now().Sub(p.Look.Reached.Time)
		}
		out = append(out, one)
	}
	return out
}

// Before returns what does something about events: servers look at the repositories from whose
// source they come, and then next does what it does. next may be nil.
func (f *Follower) Before(next dispatch.Firer) dispatch.Firer { return firer{f, next} }

type firer struct {
	*Follower
	next dispatch.Firer
}

// Fire asks for a look at each repository that an event concerns. An event has no say in what is
// looked at, or put in force.
func (f firer) Fire(ctx context.Context, e events.Event) (events.Outcome, error) {
	var out events.Outcome
	for _, r := range f.Set().All() {
		if r.From == "" || r.From != e.Source {
			continue
		}
		if _, err := f.ask(ctx, r.Name); err != nil {
			return out, err
		}
		out.Firings = append(out.Firings, events.Firing{Trigger: r.Origin(),
			Why: "the repository is looked at"})
	}
	if f.next == nil {
		return out, nil
	}
	more, err := f.next.Fire(ctx, e)
	more.Firings = append(out.Firings, more.Firings...)
	return more, err
}
