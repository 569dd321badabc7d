package herald

import (
	"sync"

	"github.com/hashicorp/go-hclog"

	"muster/notify"
)

// Keeper keeps the rules in force. A file with a mistake is refused whole: the earlier rules stay.
type Keeper struct {
	read func() (*notify.Rules, error) // the same pointer means that nothing has changed
	log  hclog.Logger

	mu        sync.Mutex
	rules     *notify.Rules
	complaint string
}

// NewKeeper returns the keeper of rules that a function reads; it returns nil rules where there is
// no file.
func NewKeeper(read func() (*notify.Rules, error), log hclog.Logger) *Keeper {
	return &Keeper{read: read, log: log}
}

// Rules returns the rules in force now; nil: there are none, or there never was a file without
// mistakes.
func (k *Keeper) Rules() *notify.Rules {
	if k == nil {
		return nil
	}
	r, err := k.read()
	k.mu.Lock()
	defer k.mu.Unlock()
	switch {
	case err != nil:
		if text := err.Error(); text != k.complaint {
			k.complaint = text
			k.log.Error("notify: the old rules stay", "error", text)
		}
	case r != k.rules:
		k.rules, k.complaint = r, ""
		if r != nil {
			k.log.Info("notify: rules are in force", "rules", len(r.Rules()), "receivers",
				len(r.Receivers()))
		}
	default:
		k.complaint = ""
	}
	return k.rules
}

// Wanted reports whether what happens is to be kept for rules: there are some, or there is a file
// whose mistakes somebody will correct.
func (k *Keeper) Wanted() bool { return k.Rules() != nil || k.Complaint() != "" }

// Complaint says why a changed file is not in force; empty: it is.
func (k *Keeper) Complaint() string {
	if k == nil {
		return ""
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.complaint
}
