package herald

import (
	"strings"
	"sync"

	"github.com/hashicorp/go-hclog"

	"muster/notify"
)

// Applied has the rules that were applied.
type Applied struct {
	List    []notify.Rule
	Trouble string // why some of them are not in the list
}

// Keeper keeps the rules in force: those of a file, and those that were applied. A file with a
// mistake is refused whole: its earlier rules stay. Of the applied ones each counts alone.
type Keeper struct {
	read    func() (*notify.Rules, error) // the same pointer means that nothing has changed
	applied func() (*Applied, error)      // likewise
	log     hclog.Logger

	mu        sync.Mutex
	file      *notify.Rules // of the file
	complaint string        // about the file
	all       joined
}

// joined has the rules of all places, and what they were made of.
type joined struct {
	file      *notify.Rules
	applied   *Applied
	rules     *notify.Rules
	complaint string // about the applied ones
}

// NewKeeper returns the keeper of rules that functions read; they return nil where there are none.
func NewKeeper(read func() (*notify.Rules, error), applied func() (*Applied, error),
	log hclog.Logger) *Keeper {
	if applied == nil {
		applied = func() (*Applied, error) { return nil, nil }
	}
	return &Keeper{read: read, applied: applied, log: log}
}

// Rules returns the rules in force now; nil: there are none, or it is not known which are, so that
// nobody is told anything before it is.
func (k *Keeper) Rules() *notify.Rules {
	if k == nil {
		return nil
	}
	applied, err := k.applied()
	file := k.File()
	k.mu.Lock()
	defer k.mu.Unlock()
	j := k.all
	switch {
	case err != nil:
		k.all = joined{applied: j.applied}
		if file != nil || j.applied != nil && len(j.applied.List) > 0 {
			k.all.complaint = "it is not known which rules are in force: " + err.Error()
		}
	case j.file == file && j.applied == applied && (j.rules != nil || j.complaint == ""):
	default:
		k.all = join(file, applied)
	}
	if text := k.all.complaint; text != "" && text != j.complaint {
		k.log.Error("notify: not all rules are in force", "error", text)
	}
	return k.all.rules
}

// join returns the rules of a file, and the applied ones that can work.
func join(file *notify.Rules, applied *Applied) joined {
	j := joined{file: file, applied: applied, rules: file}
	if applied == nil || len(applied.List) == 0 && applied.Trouble == "" {
		return j
	}
	rules, wrong := file.With(applied.List)
	if applied.Trouble != "" {
		wrong = append(wrong, applied.Trouble)
	}
	j.rules, j.complaint = rules, strings.Join(wrong, "; ")
	return j
}

// File returns the rules of the file in force now; nil: there is none, or it never was without
// mistakes.
func (k *Keeper) File() *notify.Rules {
	r, err := k.read()
	k.mu.Lock()
	defer k.mu.Unlock()
	switch {
	case err != nil:
		if text := err.Error(); text != k.complaint {
			k.complaint = text
			k.log.Error("notify: the old rules stay", "error", text)
		}
	case r != k.file:
		k.file, k.complaint = r, ""
		if r != nil {
			k.log.Info("notify: rules are in force", "rules", len(r.Rules()), "receivers",
				len(r.Receivers()))
		}
	default:
		k.complaint = ""
	}
	return k.file
}

// Wanted reports whether what happens is to be kept for rules: there are some, or there is a
// mistake that somebody will correct.
func (k *Keeper) Wanted() bool { return k.Rules() != nil || k.Complaint() != "" }

// Complaint says why a changed file is not in force, or which rules are not; empty: all are.
func (k *Keeper) Complaint() string {
	if k == nil {
		return ""
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	return strings.Trim(k.complaint+"; "+k.all.complaint, "; ")
}
