package arrivals

import (
	"sync"

	"github.com/hashicorp/go-hclog"

	"muster/ingress"
	"muster/jobs/queue/inbox"
	"muster/jobs/queue/versions"
	"muster/server/dispatch"
)

// Needs are the things with which a server takes events.
type Needs struct {
	// Sources reads the file of sources; the same pointer means that nothing has changed, and nil
	// that there is no file. A nil function: nobody sends any.
	Sources func() (*ingress.Sources, error)
	// Secrets reads the secrets of a source.
	Secrets func(s ingress.Source) ([]ingress.Secret, error)
	Inbox   *inbox.Inbox // nil: this server takes no events
	// Versions has the inventories of which muster's own events tell; nil: it tells none.
	Versions *versions.Inventory
	Fire     dispatch.Firer // nil: nothing is configured about any event
}

// Keeper keeps the sources in force. A file with a mistake is refused whole: the earlier sources
// stay.
type Keeper struct {
	read func() (*ingress.Sources, error)
	log  hclog.Logger

	mu        sync.Mutex
	sources   *ingress.Sources
	complaint string
}

// NewKeeper returns the keeper of the sources that a function reads; nil: there are none.
func NewKeeper(read func() (*ingress.Sources, error), log hclog.Logger) *Keeper {
	if read == nil {
		read = func() (*ingress.Sources, error) { return nil, nil }
	}
	return &Keeper{read: read, log: log}
}

// Sources returns the sources in force now; nil: there are none.
func (k *Keeper) Sources() *ingress.Sources {
	s, err := k.read()
	k.mu.Lock()
	defer k.mu.Unlock()
	switch {
	case err != nil:
		if text := err.Error(); text != k.complaint {
			k.complaint = text
			k.log.Error("events: the old sources stay", "error", text)
		}
	case s != k.sources:
		k.sources, k.complaint = s, ""
		k.log.Info("events: sources are in force", "sources", len(s.All()))
	default:
		k.complaint = ""
	}
	return k.sources
}

// Complaint says why a changed file is not in force; empty: it is.
func (k *Keeper) Complaint() string {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.complaint
}
