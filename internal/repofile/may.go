package repofile

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"muster/internal/manifest"
	"muster/internal/wording"
)

// A Repository is one branch of a repository whose files configure muster.
type Repository struct {
	Name   string
	URL    string
	Branch string
	Path   string // folder with the files; empty: all of the branch
	Every  time.Duration
	From   string // the source of events after which servers look at once; empty: none

	Keys
	Limits
}

// Keys are the files with which git reaches a server, and by which it believes a commit.
type Keys struct {
	Key        string
	KnownHosts string
	Login      string
	CA         string
	Signers    string // empty: commits need no signature
}

// Limits say what a branch may change.
type Limits struct {
	Customers []string // whose entries; nil: those of the whole house
	Kinds     []string
	Empty     bool // it may have no entry at all, and then all of its entries go
}

// Prefix begins the origin of entries that come from a repository.
const Prefix = "git:"

// Origin returns the origin of the entries of the repository.
func (r Repository) Origin() string { return Prefix + r.Name }

// Where says where people change an entry of the repository.
func (r Repository) Where() string {
	return fmt.Sprintf("the branch %s of %s", r.Branch, r.URL)
}

// May returns why the branch must not change an entry; nil: it may, if the hosts of the entry are
// those of its customer.
func (r Repository) May(e manifest.Entry) error {
	what := e.Kind + " " + e.Name
	if e.Place != "" {
		what = e.Place + ": " + what
	}
	switch {
	case !slices.Contains(r.Kinds, e.Kind):
		return fmt.Errorf("%s: repository %s may change %s only: add the kind to kinds in the file of "+
			"repositories", what, r.Name, wording.Join(r.Kinds, ", "))
	case r.Customers == nil:
		return nil
	case e.Customer == "":
		return fmt.Errorf("%s: repository %s may change entries of %s only, and this one is of the "+
			"whole house", what, r.Name, customers(r.Customers))
	case !slices.Contains(r.Customers, e.Customer):
		return fmt.Errorf("%s: repository %s may change entries of %s only, and this one is of "+
			"customer %s", what, r.Name, customers(r.Customers), e.Customer)
	}
	return nil
}

func customers(names []string) string {
	if len(names) == 1 {
		return "customer " + names[0]
	}
	return "the customers " + strings.Join(names, ", ")
}
