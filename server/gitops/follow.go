package gitops

import (
	"context"
	"errors"
	"fmt"
	"os/user"
	"path/filepath"
	"strconv"
	"sync"
	"time"

	"github.com/hashicorp/go-hclog"

	"muster/api"
	"muster/internal/gitsource"
	"muster/internal/repofile"
	"muster/jobs"
	"muster/jobs/queue"
	"muster/jobs/queue/applies"
	"muster/jobs/queue/hub"
	"muster/server/apply"
	"muster/server/duties"
	"muster/server/scribe"
)

// Duty is the name of the duty to follow repositories.
const Duty = "repositories"

// Every is the time between two looks at what is due.
const Every = time.Second

// Places keeps what is known of each repository. Errors wrap queue.ErrStale if another server was
// faster.
type Places interface {
	ReadPlaces(ctx context.Context, names ...string) (map[string]applies.Place, error)
	PreparePlace(was, now applies.Place) (hub.Prepared, error)
	SavePlace(ctx context.Context, was, now applies.Place) error
	AskPlace(ctx context.Context, name string) (int64, error)
}

// Applies puts files in force.
type Applies interface {
	Put(ctx context.Context, b api.ApplyRequest, a apply.Ask) (api.Applied, error)
}

// Config says which repositories there are.
type Config struct {
	Read   func() (*repofile.Set, error) // nil: none; the same pointer means that nothing has changed
	Folder string                        // of the copies
}

// Needs has all that a Follower works with.
type Needs struct {
	Config
	Places  Places
	Applies Applies
	Audit   *scribe.Scribe // nil: there is no audit log
	Log     hclog.Logger
	Now     func() time.Time
	Chance  func() uint16
}

// A Follower follows repositories.
type Follower struct {
	Needs
	keeper keeper

	mu   sync.Mutex
	busy map[string]bool // by name: somebody looks at it
	all  sync.WaitGroup  // of those who look
	wake chan struct{}   // somebody has asked on this server: it needs not wait for the next second
}

// New returns a follower.
func New(n Needs) *Follower {
	return &Follower{Needs: n, keeper: keeper{read: n.Read, log: n.Log}, busy: map[string]bool{},
		wake: make(chan struct{}, 1)}
}

// Set returns the repositories in force.
func (f *Follower) Set() *repofile.Set { return f.keeper.now() }

// Reserved says where people change the entries of an origin; empty: no repository has it.
func (f *Follower) Reserved(origin string) string {
	if r, is := f.Set().Of(origin); is {
		return r.Where()
	}
	return ""
}

// Run follows repositories until ctx is done.
func (f *Follower) Run(ctx context.Context) {
	defer f.all.Wait()
	f.all.Go(func() {
		for {
			select {
			case <-ctx.Done():
				return
			case <-f.wake:
				_ = f.RunOnce(ctx) // the next second tells of errors
			}
		}
	})
	duties.Repeat(ctx, f.Log, Duty, Every, f.RunOnce)
}

// ask lets the server with the duty look at a repository at once.
func (f *Follower) ask(ctx context.Context, name string) (int64, error) {
	n, err := f.Places.AskPlace(ctx, name)
	select {
	case f.wake <- struct{}{}:
	default:
	}
	return n, err
}

// RunOnce begins to look at each repository whose time has come.
func (f *Follower) RunOnce(ctx context.Context) error {
	set := f.Set()
	places, err := f.places(ctx, set)
	if err != nil {
		return err
	}
	for _, r := range set.All() {
		p := places[r.Name]
		if p.Asks == p.Look.Asked && f.Now().Sub(p.Look.At.Time) < r.Every || !f.take(r.Name) {
			continue
		}
		f.all.Go(func() {
			defer f.release(r.Name)
			if err := f.look(ctx, set, r, p); err != nil && ctx.Err() == nil {
				f.Log.Warn("repositories: what came of a look is not kept", "repository", r.Name, "error", err)
			}
		})
	}
	return nil
}

func (f *Follower) take(name string) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.busy[name] {
		return false
	}
	f.busy[name] = true
	return true
}

func (f *Follower) release(name string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.busy, name)
}

func (f *Follower) places(ctx context.Context, set *repofile.Set) (map[string]applies.Place,
	error) {
	var names []string
	for _, r := range set.All() {
		names = append(names, r.Name)
	}
	return f.Places.ReadPlaces(ctx, names...)
}

// look looks at a repository and keeps how that went.
func (f *Follower) look(ctx context.Context, set *repofile.Set, r repofile.Repository,
	was applies.Place) error {
	if was.Doubt != nil {
		f.Log.Error("repositories: what Redis knows of one is not believed", "repository", r.Name,
			"error", was.Doubt)
	}
	now := was
	now.Look.At, now.Look.Asked, now.Doubt = jobs.Time{Time: f.Now()}, was.Asks, nil
	c, err := f.copyOf(set, r)
	if err == nil {
		l := &looking{Follower: f, repo: r, copy: c, was: was, now: &now}
		if err = l.bring(ctx); err != nil && was.Commit != "" {
			l.drift(ctx)
		}
	}
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if errors.Is(err, queue.ErrStale) {
		return nil // another server was faster, or somebody else's apply: the next look is soon
	}
	now.Look.Error, now.Look.Refused = "", false
	if err != nil {
		now.Look.Error, now.Look.Refused = wordsOf(err), refused(err)
	}
	if now.Look.Error != was.Look.Error {
		f.tell(r, now)
	}
	if now.Look.Refused || err == nil {
		now.Look.Reached = now.Look.At
	}
	return f.save(ctx, was, now)
}

// save keeps what is known of a repository, unless the apply has kept it already.
func (f *Follower) save(ctx context.Context, was, now applies.Place) error {
	if now.Version != was.Version || now.Commit != was.Commit {
		list, err := f.Places.ReadPlaces(ctx, now.Name)
		if err != nil {
			return err
		}
		if p := list[now.Name]; p.Commit == now.Commit && p.Version == now.Version {
			was = p
		}
	}
	return f.Places.SavePlace(ctx, was, now)
}

func (f *Follower) tell(r repofile.Repository, now applies.Place) {
	if now.Look.Error == "" {
		f.Log.Info("repositories: the newest commit is in force", "repository", r.Name, "commit",
			now.Commit, "version", now.Version)
		return
	}
	f.Log.Error("repositories: the earlier version stays in force", "repository", r.Name, "commit",
		now.Look.Seen, "in force", now.Commit, "error", now.Look.Error)
}

// copyOf returns the copy of a repository.
func (f *Follower) copyOf(set *repofile.Set, r repofile.Repository) (*gitsource.Copy, error) {
	c := &gitsource.Copy{Dir: filepath.Join(f.Folder, r.Name), Bounds: gitsource.DefaultBounds(),
		Source: gitsource.Source{URL: r.URL, Branch: r.Branch, Path: r.Path, Key: r.Key,
			KnownHosts: r.KnownHosts, Login: r.Login, CA: r.CA, Signers: r.Signers}}
	if set.User() == "" {
		return c, nil
	}
	u, err := user.Lookup(set.User())
	if err != nil {
		return nil, fmt.Errorf("git_user: %w", err)
	}
	uid, err := strconv.ParseUint(u.Uid, 10, 32)
	gid, bad := strconv.ParseUint(u.Gid, 10, 32)
	c.Source.User = &gitsource.User{UID: uint32(uid), GID: uint32(gid)}
	return c, errors.Join(err, bad)
}
