package apply

import (
	"context"

	"muster/internal/manifest"
	"muster/jobs/queue/hub"
	"muster/server/fault"
	"muster/server/web"
	"muster/windows"
)

// A Kind keeps entries of one kind, or of several that are kept together.
type Kind interface {
	Words() []string // of its kinds

	// Look reads the entries in force.
	Look(ctx context.Context) (View, error)

	// May refuses a caller who may not change an entry; nil: the caller may.
	May(ctx context.Context, e manifest.Entry) error
}

// A Checker is a Kind that holds entries of files against other things, such as runbooks.
type Checker interface {
	// Check returns all mistakes in those entries that are of its kinds.
	Check(ctx context.Context, list []manifest.Entry) error
}

// A View has the entries as they were read.
type View interface {
	Entries() []manifest.Entry

	// Prepare returns the change that makes steps come into force, of the state that was read.
	Prepare(ctx context.Context, a Ask, steps []manifest.Step) (Ready, error)

	// Again reports whether the entries must be written anew even if nothing changes: Redis has
	// others than those that are in force.
	Again() bool

	// Sees reports whether the caller sees an entry.
	Sees(ctx context.Context, e manifest.Entry) (bool, error)

	// Write returns the entries as documents, and what is in force beside them.
	Write() (texts []manifest.Text, beside []string, err error)
}

// An Ask is what a caller wants to put in force.
type Ask struct {
	Set      manifest.Set
	Attached []windows.File
	Giver    web.Giver

	// An apply of the server itself also has these.

	Commit string                                    // from which the files are; empty: from none
	May    func(e manifest.Entry) error              // refuses an entry; nil: all are allowed
	More   func(version int64) (hub.Prepared, error) // is written together with the apply
}

// refused returns what is wrong with entries of files, and with those that they replace, if the
// asker may not change them.
func (a Ask) refused(was map[string]manifest.Entry) error {
	if a.May == nil {
		return nil
	}
	var wrong []error
	for _, e := range a.Set.Entries {
		err := a.May(e)
		if old, is := was[e.ID()]; is && err == nil {
			err = a.May(old)
		}
		wrong = append(wrong, web.Mistakes("body.files", err)...)
	}
	if len(wrong) > 0 {
		return fault.Refuse(wrong)
	}
	return nil
}

// mayRemove refuses an entry that the asker may not remove.
func (a Ask) mayRemove(e manifest.Entry) error {
	if a.May == nil || a.May(e) == nil {
		return nil
	}
	return fault.Refuse(web.Mistakes("body.files", a.May(e)))
}

// A Ready is the part of an apply that a Kind has prepared.
type Ready struct {
	Change hub.Prepared
	Notes  []string
	Void   []string // approvals that held before
}

// named returns the steps that write an entry of a kind, by name, and the names that go.
func named(steps []manifest.Step, kind string) (set map[string]manifest.Step, gone []string) {
	set = map[string]manifest.Step{}
	for _, s := range steps {
		e := s.Entry()
		switch {
		case e.Kind != kind:
		case s.Change == manifest.Removed:
			gone = append(gone, e.Name)
		case s.Change == manifest.Added || s.Change == manifest.Changed:
			set[e.Name] = s
		}
	}
	return set, gone
}
