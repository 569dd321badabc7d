package firing

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/hashicorp/go-hclog"

	"muster/scripts"
	"muster/triggers"
)

// A Keeper keeps the triggers in force: those of a file, and those that were applied. A file with a
// mistake is refused whole: the earlier one stays. Of the applied ones each counts alone.
type Keeper struct {
	Needed
	log hclog.Logger

	mu        sync.Mutex
	file      *triggers.Set // that is in force
	tried     *triggers.Set // the newest one that could be read …
	with      *scripts.Catalog
	checked   bool // … was held against these runbooks
	complaint string
	all       joined
}

// Needed has what a Keeper works with.
type Needed struct {
	Read    func() (*triggers.Set, error) // the same pointer means that nothing has changed
	Catalog func() *scripts.Catalog
	Applied func(ctx context.Context) (*triggers.Applied, error) // nil: nobody applies any
}

// joined has the triggers of all places, and what they were made of.
type joined struct {
	file      *triggers.Set
	applied   *triggers.Applied
	catalog   *scripts.Catalog
	set       *triggers.Set
	complaint string // about the applied ones
}

// NewKeeper returns the keeper of triggers. Its Read returns a nil set where there is no file.
func NewKeeper(n Needed, log hclog.Logger) *Keeper {
	if n.Read == nil {
		n.Read = func() (*triggers.Set, error) { return nil, nil }
	}
	if n.Applied == nil {
		n.Applied = func(context.Context) (*triggers.Applied, error) { return nil, nil }
	}
	return &Keeper{Needed: n, log: log}
}

// Set returns the triggers in force now. The error means that it is not known which are: nobody may
// answer from earlier ones.
func (k *Keeper) Set(ctx context.Context) (*triggers.Set, error) {
	applied, err := k.Applied(ctx)
	if err != nil {
		return nil, err
	}
	file := k.File()
	catalog := k.Catalog()
	k.mu.Lock()
	defer k.mu.Unlock()
	if j := k.all; j.file != file || j.applied != applied || j.catalog != catalog || j.set == nil {
		k.all = join(file, applied, catalog)
		if text := k.all.complaint; text != "" && text != j.complaint {
			k.log.Error("triggers: some that were applied do not work", "error", text)
		}
	}
	return k.all.set, nil
}

// join returns the triggers of a file, and those that were applied and can work.
func join(file *triggers.Set, applied *triggers.Applied, catalog *scripts.Catalog) joined {
	j := joined{file: file, applied: applied, catalog: catalog}
	list := file.All()
	if applied == nil {
		j.set = triggers.NewSet(list)
		return j
	}
	wrong := []string{applied.Trouble}
	for _, t := range applied.List {
		if old, is := file.Find(t.Name); is {
			wrong = append(wrong, fmt.Sprintf("trigger %s was applied, and stands in %s:%d, too: the file "+
				"counts", t.Name, old.File, old.Line))
		} else if mistakes := t.Check(schemaOf(catalog)); len(mistakes) > 0 {
			wrong = append(wrong, mistakes.Error())
		} else {
			list = append(list, t)
		}
	}
	j.set = triggers.NewSet(list)
	j.complaint = strings.Join(slices.DeleteFunc(wrong, func(s string) bool { return s == "" }), "; ")
	return j
}

func schemaOf(catalog *scripts.Catalog) func(name string) (triggers.Schema, error) {
	return func(name string) (triggers.Schema, error) {
		r, err := catalog.Lookup(name)
		return triggers.SchemaOf(r), err
	}
}

// File returns the triggers of the file that are in force now; nil: there are none, or there never
// was a file without mistakes.
func (k *Keeper) File() *triggers.Set {
	s, err := k.Read()
	catalog := k.Catalog()
	k.mu.Lock()
	defer k.mu.Unlock()
	switch {
	case err != nil:
		k.complain(err.Error(), "the old triggers stay")
		k.checked = false
		return k.file
	case k.checked && s == k.tried && catalog == k.with:
		return k.file
	}
	k.tried, k.with, k.checked = s, catalog, true
	wrong := s.Check(schemaOf(catalog))
	switch {
	case len(wrong) > 0 && s == k.file:
		k.complain(wrong.Error(), "runbooks have changed, and some triggers cannot work")
		return k.file
	case len(wrong) > 0:
		k.complain(wrong.Error(), "the old triggers stay")
		return k.file
	}
	if k.file != s {
		k.log.Info("triggers are in force", "triggers", len(s.All()))
	}
	k.file, k.complaint = s, ""
	return k.file
}

func (k *Keeper) complain(text, what string) {
	if text != k.complaint {
		k.complaint = text
		k.log.Error("triggers: "+what, "error", text)
	}
}

// broken says why a changed file is not in force, or which triggers of it cannot work; empty: all
// is well.
func (k *Keeper) broken() string {
	k.File()
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.complaint
}

// Complaint says which triggers are not in force or cannot work; empty: all is well. It
// knows of the applied ones since the last look at them.
func (k *Keeper) Complaint() string {
	text := k.broken()
	k.mu.Lock()
	defer k.mu.Unlock()
	return strings.Trim(text+"; "+k.all.complaint, "; ")
}

// Words says what is wrong with triggers; empty: nothing.
func (k *Keeper) Words() string {
	if text := k.Complaint(); text != "" {
		return "the changed file of triggers is not in force, or not all triggers work: " + text
	}
	return ""
}
