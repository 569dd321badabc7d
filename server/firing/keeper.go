package firing

import (
	"sync"

	"github.com/hashicorp/go-hclog"

	"muster/scripts"
	"muster/triggers"
)

// A Keeper keeps the triggers in force. A file with a mistake is refused whole: the earlier one
// stays.
type Keeper struct {
	read    func() (*triggers.Set, error) // the same pointer means that nothing has changed
	catalog func() *scripts.Catalog
	log     hclog.Logger

	mu        sync.Mutex
	set       *triggers.Set
	tried     *triggers.Set // the newest one that could be read …
	with      *scripts.Catalog
	checked   bool // … was held against these runbooks
	complaint string
}

// NewKeeper returns the keeper of triggers that a function reads; it returns a nil set where there
// is no file.
func NewKeeper(read func() (*triggers.Set, error), catalog func() *scripts.Catalog,
	log hclog.Logger) *Keeper {
	if read == nil {
		read = func() (*triggers.Set, error) { return nil, nil }
	}
	return &Keeper{read: read, catalog: catalog, log: log}
}

// Set returns the triggers in force now; nil: there are none, or there never was a file without
// mistakes.
func (k *Keeper) Set() *triggers.Set {
	s, err := k.read()
	catalog := k.catalog()
	k.mu.Lock()
	defer k.mu.Unlock()
	switch {
	case err != nil:
		k.complain(err.Error(), "the old triggers stay")
		k.checked = false
		return k.set
	case k.checked && s == k.tried && catalog == k.with:
		return k.set
	}
	k.tried, k.with, k.checked = s, catalog, true
	wrong := s.Check(func(name string) (triggers.Schema, error) {
		r, err := catalog.Lookup(name)
		return triggers.SchemaOf(r), err
	})
	switch {
	case len(wrong) > 0 && s == k.set:
		k.complain(wrong.Error(), "runbooks have changed, and some triggers cannot work")
		return k.set
	case len(wrong) > 0:
		k.complain(wrong.Error(), "the old triggers stay")
		return k.set
	}
	if k.set != s {
		k.log.Info("triggers are in force", "triggers", len(s.All()))
	}
	k.set, k.complaint = s, ""
	return k.set
}

func (k *Keeper) complain(text, what string) {
	if text != k.complaint {
		k.complaint = text
		k.log.Error("triggers: "+what, "error", text)
	}
}

// Complaint says why a changed file is not in force, or which triggers cannot work; empty: all is
// well.
func (k *Keeper) Complaint() string {
	k.Set()
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.complaint
}

// Words says what is wrong with the file of triggers; empty: nothing.
func (k *Keeper) Words() string {
	if text := k.Complaint(); text != "" {
		return "the changed file of triggers is not in force, or not all of it: " + text
	}
	return ""
}
