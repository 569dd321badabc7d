package gitops

import (
	"sync"

	"github.com/hashicorp/go-hclog"

	"muster/internal/repofile"
)

// A keeper keeps the repositories in force. A file with a mistake is refused whole: the earlier one
// stays.
type keeper struct {
	read func() (*repofile.Set, error) // nil: there is no file
	log  hclog.Logger

	mu        sync.Mutex
	set       *repofile.Set
	complaint string
}

// now returns the repositories in force; nil: there are none.
func (k *keeper) now() *repofile.Set {
	if k.read == nil {
		return nil
	}
	s, err := k.read()
	k.mu.Lock()
	defer k.mu.Unlock()
	switch {
	case err != nil && err.Error() != k.complaint:
		k.complaint = err.Error()
		k.log.Error("repositories: the old ones stay", "error", k.complaint)
	case err == nil && s != k.set:
		k.set, k.complaint = s, ""
		k.log.Info("repositories are in force", "repositories", len(s.All()))
	case err == nil:
		k.complaint = ""
	}
	return k.set
}

// words says why a changed file is not in force; empty: it is.
func (k *keeper) words() string {
	k.now()
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.complaint == "" {
		return ""
	}
	return "the changed file of repositories is not in force: " + k.complaint
}
