package waits

import (
	"cmp"
	"context"
	"slices"

	"muster/fleet"
	"muster/jobs"
	"muster/jobs/queue/read"
	"muster/server/fold"
)

const (
	// At most so many jobs that wait for what another has are asked what it is: each costs
	// some calls, and many of a task mostly wait for the same.
	lacksMax = 8
	// An answer tells so many reasons of a task apart.
	lacksShown = 20
)

// Lacks gathers why jobs do not run, and which ones for the same reason.
type Lacks struct {
	in     *Reader
	later  *Awaits // knows which jobs wait for a window or a freeze; nil: nobody asked
	asked  int     // jobs that were asked what another one has
	groups map[lackKey]*lackGroup
	order  []*lackGroup
	more   []string // hosts of those that were not asked
}

// The jobs of one group have a lackKey in common.
type lackKey struct {
	why   string // without what names one host
	order bool
}

type lackGroup struct {
	jobs.Lack
	why   string // that of the key
	hosts []string
}

// Lacks begins a look. Jobs that later knows to wait for a window have that as their own reason,
// which is left out.
func (r *Reader) Lacks(later *Awaits) *Lacks {
	return &Lacks{in: r, later: later, groups: map[lackKey]*lackGroup{}}
}

// Add looks at jobs of one task. One that has ended or that runs waits for nothing.
func (l *Lacks) Add(ctx context.Context, list []jobs.JobInfo) error {
	wait := slices.DeleteFunc(slices.Clone(list), func(j jobs.JobInfo) bool {
		return j.State == jobs.Ended || j.State == jobs.Running || j.Gate != nil && j.Gate.Answer == ""
	})
	return l.in.explain(ctx, wait, max(lacksMax-l.asked, 0), l.note)
}

// note counts one job by each of its reasons.
func (l *Lacks) note(j jobs.JobInfo, r read.Reasons) {
	l.count(j, lackKey{r.Orders, true}, r.Orders)
	l.count(j, lackKey{why: r.Shut}, r.Shut)
	own := lackKey{why: fold.Impersonal(r.Own, j.Host, l.in.Stock.Address(j.Host))}
	switch {
	case j.State == jobs.Blocked && l.asked >= lacksMax:
		l.more = append(l.more, j.Host)
	case j.State == jobs.Blocked:
		l.asked++
		l.count(j, own, r.Own)
	case j.State == jobs.Queued, l.later != nil && l.later.ahead[j.ID]:
		// It waits for its time alone.
	default:
		l.count(j, own, r.Own)
	}
}

func (l *Lacks) count(j jobs.JobInfo, key lackKey, why string) {
	if why == "" {
		return
	}
	g := l.groups[key]
	if g == nil {
		g = &lackGroup{Lack: jobs.Lack{Why: why, Order: key.order}, why: key.why}
		if !key.order {
			g.Waits = j.Waits
		}
		l.groups[key], l.order = g, append(l.order, g)
	}
	g.hosts = append(g.hosts, j.Host)
}

// List returns the reasons, that of the most jobs first. One item stands for all beyond the bound.
func (l *Lacks) List() []jobs.Lack {
	slices.SortStableFunc(l.order, func(a, b *lackGroup) int {
		return cmp.Compare(len(b.hosts), len(a.hosts))
	})
	out := []jobs.Lack{}
	more := slices.Clone(l.more)
	for i, g := range l.order {
		if i >= lacksShown {
			more = append(more, g.hosts...)
			continue
		}
		if len(g.hosts) > 1 {
			g.Why = g.why
		}
		g.Count, g.Hosts = len(g.hosts), fleet.Fold(g.hosts)
		out = append(out, g.Lack)
	}
	if len(more) > 0 {
		slices.Sort(more)
		more = slices.Compact(more)
		out = append(out, jobs.Lack{
			Why:   "they wait too, for this or the like; `muster job ID` tells of one",
			Count: len(more), Hosts: fleet.Fold(more)})
	}
	return out
}
