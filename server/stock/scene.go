package stock

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"

	"muster/api"
	"muster/fleet"
	"muster/internal/wording"
	"muster/jobs"
	"muster/jobs/quarantine"
	"muster/jobs/queue"
	"muster/server/web"
)

// Drains say which hosts selections leave out, and which ones of these take checks.
type Drains interface {
	Drained(ctx context.Context) (map[string]jobs.Drain, error)
	Quarantined(ctx context.Context) (map[string]quarantine.Mark, error)
}

// Jobs reads the jobs of one task in the order of its frozen host list, from a place on, so
// many at a time.
type Jobs interface {
	EachJob(ctx context.Context, id jobs.TaskID, from, most int,
		f func([]jobs.JobInfo) error) error
}

// A Looker reads this many jobs at once.
const chunk = 500

// A Looker finds out how hosts stand at a moment.
type Looker struct {
	store  *Store
	drains Drains
	facts  Facts
	jobs   Jobs

	drained atomic.Pointer[drainedStock]
	said    atomic.Pointer[saidStock]
	parts   parts
}

// NewLooker returns a Looker at the hosts of a Store.
func NewLooker(s *Store, d Drains, f Facts, j Jobs) *Looker {
	return &Looker{store: s, drains: d, facts: f, jobs: j}
}

// A Scene resolves selectors as hosts stand at one moment.
type Scene struct {
	*Stock // with the labels of the moment; nil: there is none
	// All has all hosts, also those that the caller does not see, without such labels.
	All     *Stock
	Drained map[string]jobs.Drain      // also the hosts in quarantine
	aside   *aside                     // nil: no host is in quarantine
	earlier map[fleet.Earlier][]string // hosts of earlier tasks, as far as the selector asks
	wrong   []error                    // with what the selector says of these
	picks   map[string]fleet.Picked    // by selector; nil: they are not kept
}

// Scene finds out how hosts stand, with the facts and earlier tasks that a selector names; it may
// be empty. It has the hosts that the caller sees, whose view is in the context. An error comes
// from Redis: PickFor and Choose report mistakes in the selector.
func (l *Looker) Scene(ctx context.Context, on string) (Scene, error) {
	m, err := l.Moment(ctx)
	if err != nil {
		return Scene{}, err
	}
	return m.Scene(ctx, on)
}

// PickFor picks hosts for work.
func (v Scene) PickFor(on string) (fleet.Picked, error) {
	if p, known := v.picks[on]; known {
		return p, nil
	}
	sel, err := v.parse(on)
	if err != nil {
		return fleet.Picked{}, err
	}
	p, err := v.Pick(sel)
	if err == nil && v.picks != nil {
		v.picks[on] = p
	}
	return p, err
}

// Choose picks hosts whether they are drained or not.
func (v Scene) Choose(on string) ([]fleet.Host, error) {
	sel, err := v.parse(on)
	if err != nil {
		return nil, err
	}
	return v.Select(sel)
}

// Undrained leaves drained hosts out.
func (v Scene) Undrained(hosts []fleet.Host) (work []fleet.Host, drained []string) {
	for _, h := range hosts {
		_, out := v.Drained[h.Name]
		if _, labelled := h.Labels[fleet.Drained]; out || labelled {
			drained = append(drained, h.Name)
			continue
		}
		work = append(work, h)
	}
	return work, drained
}

// Unknown says that there is no such host, and what comes near.
func (v Scene) Unknown(name string) string {
	if err := fleet.CheckName(name); err != nil {
		return fmt.Sprintf("%q is not the name of a host: %v", wording.Clip(name), err)
	}
	sel, err := fleet.ParseSelector(name)
	if err == nil {
		_, err = v.Select(sel)
	}
	if err == nil { // a word like all
		return fmt.Sprintf("there is no host %s", wording.Clip(name))
	}
	return err.Error()
}

// LeftOut shows which hosts a selection left out.
func LeftOut(p fleet.Picked) api.LeftOut {
	return api.LeftOut{Drained: fleet.Fold(p.Drained), Gone: fleet.Fold(p.Gone)}
}

// parse reads a selector, for Pick and Select.
func (v Scene) parse(on string) (fleet.Selector, error) {
	switch {
	case v.Stock == nil:
		return fleet.Selector{}, ErrNone
	case len(v.wrong) > 0:
		return fleet.Selector{}, errors.Join(v.wrong...)
	}
	sel, err := fleet.ParseSelector(on)
	return sel.Resolve(v.earlier), err
}

// earlierError says what is wrong with a task that a selector names.
type earlierError struct {
	what fleet.Earlier
	why  string
}

func (e *earlierError) Error() string { return fmt.Sprintf("%s: %s", e.what, e.why) }

// earlier finds the hosts on which an earlier task ended in some way. A task that has no host in
// the view is hidden.
func (l *Looker) earlier(ctx context.Context, view *web.View, e fleet.Earlier) ([]string,
	error) {
	id, err := jobs.ParseTaskID(e.Task)
	outcome := jobs.Outcome(e.Outcome)
	switch {
	case err != nil:
		return nil, &earlierError{e, err.Error()}
	case outcome != "" && !outcome.Valid():
		return nil, &earlierError{e, "want one of " + wording.Join(jobs.Outcomes(), ", ")}
	}
	names, seen := []string{}, view.Whole()
	err = l.jobs.EachJob(ctx, id, 0, chunk, func(list []jobs.JobInfo) error {
		for _, j := range list {
			if !view.Sees(j.Host) {
				continue
			}
			seen = true
			if outcome == "" || j.State == jobs.Ended && (j.Outcome == outcome) != e.Not {
				names = append(names, j.Host)
			}
		}
		return nil
	})
	if errors.Is(err, queue.ErrNotFound) || err == nil && !seen {
		return nil, &earlierError{e, "there is no such task, or no more"}
	}
	return names, err
}

// A drainedStock is the last answer of withDrains, with the index of the hosts in it.
type drainedStock struct {
	of    *Stock
	names []string
	with  *Stock
}

// withDrains returns the inventory in which drained hosts have a label; nil if there is none.
func (l *Looker) withDrains(st *Stock, drained map[string]jobs.Drain) *Stock {
	if st == nil || len(drained) == 0 {
		return st
	}
	names := make([]string, 0, len(drained))
	for name := range drained {
		names = append(names, name)
	}
	slices.SortFunc(names, strings.Compare)
	if last := l.drained.Load(); last != nil && last.of == st && slices.Equal(last.names, names) {
		return last.with
	}
	labels := make(map[string]map[string]string, len(names))
	for _, name := range names {
		labels[name] = map[string]string{fleet.Drained: "true"}
	}
	with := st.labelled(labels)
	l.drained.Store(&drainedStock{st, names, with})
	return with
}

// TasksLooked bounds the newest tasks in which the jobs of a host are looked for.
const TasksLooked = 50
