package nodes

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"time"

	"github.com/hashicorp/go-hclog"

	"muster/internal/serverkey"
	"muster/jobs"
	"muster/jobs/outliers"
	"muster/trust"
)

// OutliersDuty is the name of the duty that sets nodes aside.
const OutliersDuty = "outliers"

// OutliersEvery is the time between two looks.
const OutliersEvery = time.Minute

// Outlying sets a node aside whose jobs fail much more often than those of others, by the same
// order by which a person pauses one. A person resumes it.
type Outlying struct {
	Policy outliers.Policy
	Queue  Queue
	// Counts returns what ended at a time or later, and began at another one or later.
	Counts func(ctx context.Context, from, begun time.Time) ([]outliers.Count, error)
	Keys   func() (serverkey.Keys, error)
	Log    hclog.Logger
	Now    func() time.Time

	said string // which nodes were left at work, at the last look
}

// patience bounds one look.
const patience = 30 * time.Second

// RunOnce looks at the jobs of the last time.
func (o *Outlying) RunOnce(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	nodes, err := o.Queue.Nodes(ctx)
	if err != nil {
		return err
	}
	standing, err := o.Queue.NodeOrders(ctx)
	if err != nil {
		return err
	}
	for i, n := range nodes {
		// A node may not have heard of its order yet.
		if order := read(standing[n.ID], n.ID); order != nil && order.Paused && n.Paused == nil {
			nodes[i].Paused = &jobs.Pause{Note: order.Note}
		}
	}
	counts, err := o.counts(ctx, standing)
	if err != nil {
		return err
	}
	aside, kept := outliers.Choose(outliers.Find(o.Policy.Times, counts), nodes)
	if said := strings.Join(kept, "; "); said != o.said {
		o.said = said
		if said != "" {
			o.Log.Warn("a node fails more often than others", "note", said)
		}
	}
	if aside == nil {
		return nil
	}
	i := slices.IndexFunc(nodes, func(n jobs.Node) bool { return n.ID == aside.Node })
	return o.setAside(ctx, nodes[i], aside.Note())
}

// counts returns what ended in the window. Of a node that somebody has paused or resumed meanwhile
// only what began afterwards counts: whoever resumes a node has looked at what was before.
func (o *Outlying) counts(ctx context.Context, standing map[string]string) ([]outliers.Count,
	error) {
	from := o.Now().Add(-o.Policy.Window)
	counts, err := o.Counts(ctx, from, time.Time{})
	if err != nil {
		return nil, err
	}
	for name, text := range standing {
		order := read(text, name)
		if order == nil || !order.At.After(from) {
			continue
		}
		later, err := o.Counts(ctx, order.At, order.At)
		if err != nil {
			return nil, err
		}
		of := func(c outliers.Count) bool { return c.Node == name }
		counts = slices.DeleteFunc(counts, of)
		for _, c := range later {
			if of(c) {
				counts = append(counts, c)
			}
		}
	}
	return counts, nil
}

// setAside orders that a node takes nothing, unless it was ordered that already.
func (o *Outlying) setAside(ctx context.Context, n jobs.Node, note string) error {
	keys, err := o.Keys()
	if err != nil {
		return err
	}
	done := false
	err = o.Queue.OrderNode(ctx, n.ID, n.Zones, func(last string, now int64) (string, error) {
		number := now
		was, err := signed(last, n.ID, keys)
		if err != nil {
			return "", err
		}
		if was != nil {
			number = max(number, was.Number+1)
		}
		if done = was == nil || !was.Paused; !done {
			note = cmp.Or(was.Note, note)
		}
		return trust.NodeOrder{Node: n.ID, Number: number, Paused: true, Note: note,
			At: time.UnixMicro(now)}.Sign(keys)
	})
	if err == nil && done {
		o.Log.Warn("node set aside", "node", n.ID, "note", note)
	}
	return err
}
