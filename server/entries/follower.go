package entries

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/hashicorp/go-hclog"

	"muster/internal/manifest"
	"muster/jobs"
	"muster/jobs/queue/entries"
	"muster/jobs/queue/hub"
	"muster/windows"
)

// Store keeps the versions.
type Store interface {
	Read(ctx context.Context, was *entries.Version) (*entries.Version, error)
	Replaced(ctx context.Context) (*entries.Version, error)
	Over(ctx context.Context, was *entries.Version) (*entries.Version, error)
	Prepare(was *entries.Version, floor int64, change entries.Change) (hub.Prepared, error)
}

// Follower knows the entries in force.
type Follower struct {
	store Store // nil: there are no entries
	log   hclog.Logger

	mu      sync.Mutex
	last    *entries.Version
	trouble string
	parsed  map[entries.PartID]parsed
	made    map[string]any // what was made of the last version, by kind
}

// parsed has the entries of a part.
type parsed struct {
	of   *entries.Part
	list []manifest.Entry
	err  error
}

// NewFollower returns the follower of the entries in a store.
func NewFollower(s Store, log hclog.Logger) *Follower {
	return &Follower{store: s, log: log, parsed: map[entries.PartID]parsed{}, made: map[string]any{}}
}

// readTime bounds the look whether a version is in force.
const readTime = 2 * time.Second

// Now returns the version in force. The error means that it is not known: nobody may answer from
// an earlier one.
func (f *Follower) Now(ctx context.Context) (*entries.Version, error) {
	if f == nil || f.store == nil {
		return nil, nil
	}
	ctx, cancel := context.WithTimeout(ctx, readTime)
	defer cancel()
	f.mu.Lock()
	was := f.last
	f.mu.Unlock()
	v, err := f.store.Read(ctx, was)
	f.mu.Lock()
	defer f.mu.Unlock()
	switch {
	case errors.Is(err, entries.ErrWentBack):
		f.complain(err.Error())
		return v, nil
	case errors.Is(err, entries.ErrUnsigned):
		f.complain(err.Error())
		return nil, err
	case err != nil:
		return nil, err
	case f.last != nil && v.Number < f.last.Number:
		return f.last, nil // another caller has read a newer one meanwhile
	case v != f.last:
		f.last, f.made = v, map[string]any{}
		if v.Number > 0 {
			f.log.Info("entries are in force", "version", v.Number)
		}
	}
	f.complain(v.Trouble())
	return f.last, nil
}

// complain keeps what is wrong; the caller has the lock.
func (f *Follower) complain(text string) {
	if text != "" && text != f.trouble {
		f.log.Error("entries: some are not in force", "error", text)
	}
	f.trouble = text
}

// Words says what is wrong with the entries that were read last; empty: nothing.
func (f *Follower) Words() string {
	if f == nil {
		return ""
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.trouble
}

// Base returns the version from which a change is made, and the number that the next one must
// exceed. A version that is not believed, or older than one that this server knew, is replaced as
// a whole, which the note says: by what this server knew, if it has read anything.
func (f *Follower) Base(ctx context.Context) (v *entries.Version, floor int64, note string,
	err error) {
	if f == nil || f.store == nil {
		return nil, 0, "", nil
	}
	_, err = f.Now(ctx)
	f.mu.Lock()
	last := f.last
	f.mu.Unlock()
	if last != nil {
		floor = last.Number
	}
	if err == nil {
		if v, err = f.store.Read(ctx, last); err == nil {
			return v, floor, "", nil
		}
	}
	switch {
	case last != nil && (errors.Is(err, entries.ErrWentBack) || errors.Is(err, entries.ErrUnsigned)):
		note = "this puts back what this server knew: " + err.Error()
		v, err = f.store.Over(ctx, last)
	case errors.Is(err, entries.ErrUnsigned):
		v, err = f.store.Replaced(ctx)
		note = "this replaces all runbooks, triggers and rules of notifications that were applied: " +
			entries.ErrUnsigned.Error()
	}
	return v, floor, note, err
}

// Prepare returns the change to the version after v.
func (f *Follower) Prepare(v *entries.Version, floor int64, change entries.Change) (hub.Prepared,
	error) {
	return f.store.Prepare(v, floor, change)
}

// Of returns the entries of a kind in a version. One that cannot be read has no value; the error
// has all the mistakes.
func (f *Follower) Of(v *entries.Version, kind string) ([]manifest.Entry, error) {
	var all []manifest.Entry
	var errs []error
	if f == nil {
		return nil, nil
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, p := range v.Of(kind) {
		known := f.parsed[p.PartID]
		if known.of != p {
			known = parse(p)
			f.parsed[p.PartID] = known
		}
		all, errs = append(all, known.list...), append(errs, known.err)
	}
	return all, errors.Join(errs...)
}

// parse reads the entries of a part, each on its own: one that a newer muster wrote, and that this
// one cannot read, keeps none of the others out.
func parse(p *entries.Part) parsed {
	out := parsed{of: p}
	var errs []error
	for _, d := range p.Docs {
		e := manifest.Entry{Kind: p.Kind, Name: d.Name, Customer: p.Customer, Document: d.Text}
		set, err := manifest.Read(manifest.Input{Rollout: jobs.CheckRollout,
			Files: []windows.File{{Name: p.Kind + " " + d.Name, Content: d.Text}}})
		switch {
		case err != nil:
			errs = append(errs, err)
		case len(set.Entries) != 1 || set.Entries[0].ID() != e.ID() ||
			set.Entries[0].Customer != p.Customer:
			errs = append(errs, errors.New(p.Kind+" "+d.Name+": its text is another entry"))
		default:
			e.Value = set.Entries[0].Value
		}
		out.list = append(out.list, e)
	}
	out.err = errors.Join(errs...)
	return out
}

// keep returns what was made of a version for a kind, and makes it once.
func keep[T any](f *Follower, v *entries.Version, kind string, work func() T) T {
	f.mu.Lock()
	known, is := f.made[kind].(T)
	is = is && f.last == v
	f.mu.Unlock()
	if is {
		return known
	}
	one := work()
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.last == v {
		if known, is := f.made[kind].(T); is {
			return known
		}
		f.made[kind] = one
	}
	return one
}
