// Package outliers decides which node is set aside because its jobs fail much more often than those
// of others. Pure.
//
// Floor 2: may import jobs.
package outliers

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"muster/jobs"
)

// A Policy says when a node is set aside. It is off without a Window.
type Policy struct {
	Window time.Duration // jobs that ended in it count
	Times  int           // so many times as often as on other nodes
}

// The bounds of a policy.
const (
	windowMin, windowMax = 5 * time.Minute, 24 * time.Hour
	timesMin, timesMax   = 2, 100
)

// DefaultTimes is the usual Times.
const DefaultTimes = 4

// Validate reports all mistakes at once.
func (p Policy) Validate() error {
	var errs []error
	if p.Window != 0 && (p.Window < windowMin || p.Window > windowMax) {
		errs = append(errs, fmt.Errorf("window = %s: want 0 (off), or %s to %s", p.Window, windowMin,
			windowMax))
	}
	if p.Times < timesMin || p.Times > timesMax {
		errs = append(errs, fmt.Errorf("times = %d: want %d to %d", p.Times, timesMin, timesMax))
	}
	return errors.Join(errs...)
}

// A Work identifies jobs that are alike: those of one task, zone and customer. Whatever lets all
// hosts of a customer fail says nothing about a node, even if one node got them all.
type Work struct {
	Task     jobs.TaskID
	Zone     string
	Customer string
	Runbook  string
}

// A Count counts jobs of a work that ended on a node.
type Count struct {
	Work
	Node   string
	Jobs   int
	Failed int
}

// Bad reports whether an outcome counts as a failure. A job that did not run says nothing, and is
// no job of a count.
func Bad(o jobs.Outcome) (bad, counts bool) {
	switch o {
	case jobs.Succeeded:
		return false, true
	case jobs.Failed, jobs.RolledBack, jobs.Unreachable, jobs.Timeout, jobs.Unknown:
		return true, true
	}
	return false, false
}

// An Outlier is a node on which the jobs of a runbook failed much more often than elsewhere.
type Outlier struct {
	Node, Runbook string
	Jobs, Failed  int
	Expected      float64 // failures, if they had failed as often as on other nodes

	customers map[string]*share
}

// share has the failures of one customer in an outlier.
type share struct {
	failed   int
	expected float64
}

// several reports whether the jobs of more than one customer fail too often: the hosts of one may
// fail for one node on purpose, and must not take that node from the others.
func (o *Outlier) several(times int) bool {
	bad := 0
	for _, s := range o.customers {
		if s.failed > 0 && float64(s.failed) >= float64(times)*s.expected {
			bad++
		}
	}
	return bad > 1
}

// A node is no outlier with fewer jobs or failures than these.
const (
	jobsLeast   = 20
	failedLeast = 10
)

// Find returns the outliers among the nodes, the worst one first.
//
// For each work the jobs of a node are compared with those of all other nodes. Works of which a
// node did all jobs are left out. The rate of the others is (failed+1)/(jobs+2), so that few jobs
// elsewhere are weak evidence. Where jobs of several customers run, those of more than one must
// fail so.
func Find(times int, counts []Count) []Outlier {
	whole, customers := map[Work]Count{}, map[string]bool{}
	for _, c := range counts {
		customers[c.Customer] = true
		sum := whole[c.Work]
		sum.Jobs, sum.Failed = sum.Jobs+c.Jobs, sum.Failed+c.Failed
		whole[c.Work] = sum
	}
	type of struct{ node, runbook string }
	all := map[of]*Outlier{}
	for _, c := range counts {
		others := whole[c.Work].Jobs - c.Jobs
		if others == 0 {
			continue
		}
		o := all[of{c.Node, c.Runbook}]
		if o == nil {
			o = &Outlier{Node: c.Node, Runbook: c.Runbook, customers: map[string]*share{}}
			all[of{c.Node, c.Runbook}] = o
		}
		o.Jobs, o.Failed = o.Jobs+c.Jobs, o.Failed+c.Failed
		failed := whole[c.Work].Failed - c.Failed
		expected := float64(c.Jobs) * float64(failed+1) / float64(others+2)
		o.Expected += expected
		if o.customers[c.Customer] == nil {
			o.customers[c.Customer] = &share{}
		}
		part := o.customers[c.Customer]
		part.failed, part.expected = part.failed+c.Failed, part.expected+expected
	}
	var list []Outlier
	for _, o := range all {
		often := float64(o.Failed) >= float64(times)*o.Expected &&
			(len(customers) == 1 || o.several(times))
		if o.Jobs >= jobsLeast && o.Failed >= failedLeast && often {
			list = append(list, *o)
		}
	}
	slices.SortFunc(list, func(a, b Outlier) int {
		return cmp.Or(cmp.Compare(float64(b.Failed)-b.Expected, float64(a.Failed)-a.Expected),
			cmp.Compare(a.Node, b.Node), cmp.Compare(a.Runbook, b.Runbook))
	})
	return list
}

// Mark begins the note of each order that sets a node aside.
const Mark = "set aside by muster: "

// Note explains why a node is set aside.
func (o Outlier) Note() string {
	return fmt.Sprintf("%s%d of its %d jobs of runbook %s failed, and as on other nodes %.1f "+
		"would have", Mark, o.Failed, o.Jobs, o.Runbook, o.Expected)
}

// IsAside reports whether muster itself has set a node aside.
func IsAside(n jobs.Node) bool {
	return n.Paused != nil && strings.HasPrefix(n.Paused.Note, Mark)
}

// Choose returns the outlier to set aside, if one may be, and why each of the others may not. A
// node leaves only if in each of its zones another one takes jobs, and none is set aside there
// already: what makes more than one node fail is not the node.
func Choose(list []Outlier, nodes []jobs.Node) (aside *Outlier, kept []string) {
	for _, o := range list {
		i := slices.IndexFunc(nodes, func(n jobs.Node) bool { return n.ID == o.Node })
		if i < 0 || !takes(nodes[i]) {
			continue // it takes nothing anyway
		}
		why := ""
		for _, zone := range nodes[i].Zones {
			why = cmp.Or(why, holds(zone, o.Node, nodes))
		}
		switch {
		case why != "":
			kept = append(kept, o.Note()+"; it works on, because "+why)
		case aside == nil:
			aside = &o
		}
	}
	return aside, kept
}

// takes reports whether a node takes jobs.
func takes(n jobs.Node) bool {
	leaves := n.State == jobs.NodeGone || n.State == jobs.NodeDraining || n.State == jobs.NodeStopping
	return !leaves && n.Paused == nil && (n.Governor == nil || !n.Governor.Starved)
}

// holds explains why a node must not leave a zone; empty: it may.
func holds(zone, node string, nodes []jobs.Node) string {
	others := 0
	for _, n := range nodes {
		if n.ID == node || n.State == jobs.NodeGone || !slices.Contains(n.Zones, zone) {
			continue
		}
		if IsAside(n) {
			return fmt.Sprintf("node %s is set aside in zone %s already", n.ID, zone)
		}
		if takes(n) && !slices.Contains(n.Standby, zone) {
			others++ // one that stands in leaves when nodes of the zone are back, also a paused one
		}
	}
	if others == 0 {
		return "no other node of zone " + zone + " takes jobs"
	}
	return ""
}
