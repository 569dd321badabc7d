package duties

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/hashicorp/go-hclog"

	"muster/api"
	"muster/fleet"
	"muster/jobs"
)

const (
	// FactsRunbook is the built-in runbook whose results are kept.
	FactsRunbook = "facts"
	// factsTasks bounds the newest tasks that are searched for it.
	factsTasks = 100
	// factsForget is the time for which facts outlive their host in the inventory.
	factsForget = 30 * 24 * time.Hour
)

// Facts keeps what hosts say about themselves when the runbook facts runs on them.
type Facts struct {
	Tasks Tasks
	Jobs  Jobs
	Store FactStore
	// Outputs returns the output of jobs, as text, without the notes of muster.
	Outputs func(ctx context.Context, zones []string, ids []jobs.ID) (map[jobs.ID][]byte, error)
	Stock   func() (inv *fleet.Inventory, version string) // nil: there is none
	Parts   time.Duration                                 // Redis keeps the jobs of a task so long
	Log     hclog.Logger
	Now     func() time.Time

	// seen has the jobs of each task whose facts are kept. Only the rounds use it.
	seen map[jobs.TaskID]map[jobs.ID]bool
}

// FactStore has the facts of hosts.
type FactStore interface {
	SaveFacts(ctx context.Context, list []jobs.HostFacts) (saved int, err error)
	Facts(ctx context.Context) (list map[string]jobs.HostFacts, mark string, err error)
	ForgetFacts(ctx context.Context, hosts []string) error
}

// RunOnce keeps what tasks have gathered since the last round. Keeping the same facts twice
// changes nothing.
func (d *Facts) RunOnce(ctx context.Context) error {
	list, err := d.Tasks.Tasks(ctx, factsTasks)
	if err != nil {
		return err
	}
	if d.seen == nil {
		d.seen = map[jobs.TaskID]map[jobs.ID]bool{}
	}
	for id := range d.seen {
		if !slices.ContainsFunc(list, func(t jobs.TaskInfo) bool { return t.Task == id }) {
			delete(d.seen, id)
		}
	}
	for _, t := range list {
		if t.Runbook != FactsRunbook || d.Now().Sub(t.Submitted.Time) > d.Parts {
			continue
		}
		if t.State == jobs.TaskAway {
			continue
		}
		seen := d.seen[t.Task]
		if seen == nil {
			seen = map[jobs.ID]bool{}
			d.seen[t.Task] = seen
		}
		if t.Outcomes[jobs.Succeeded] <= len(seen) {
			continue
		}
		got, err := d.keep(ctx, t, seen)
		if err != nil {
			return err
		}
		for _, bad := range got.Bad {
			d.Log.Warn("facts not kept", "task", t.Task, "host", bad.Host, "error", bad.Error)
		}
	}
	return nil
}

// Keep keeps what the jobs of a task have gathered that succeeded.
func (d *Facts) Keep(ctx context.Context, t jobs.TaskInfo) (api.Gathered, error) {
	return d.keep(ctx, t, map[jobs.ID]bool{})
}

// keep is Keep without the jobs that were seen, and marks the others as seen.
func (d *Facts) keep(ctx context.Context, t jobs.TaskInfo, seen map[jobs.ID]bool) (
	api.Gathered, error) {
	out := api.Gathered{Task: t.Task, Bad: []api.BadFacts{}}
	err := d.Jobs.EachJob(ctx, t.Task, 0, jobsMax, func(chunk []jobs.JobInfo) error {
		var ids []jobs.ID
		of := map[jobs.ID]jobs.JobInfo{}
		for _, j := range chunk {
			if j.Outcome == jobs.Succeeded && !seen[j.ID] {
				ids = append(ids, j.ID)
				of[j.ID] = j
			}
		}
		if len(ids) == 0 {
			return nil
		}
		said, err := d.Outputs(ctx, t.Zones, ids)
		if err != nil {
			return err
		}
		var list []jobs.HostFacts
		for _, id := range ids {
			j := of[id]
			facts, err := fleet.ParseFacts(said[id], j.Started.Time, j.Finished.Time)
			if err != nil {
				out.Bad = append(out.Bad, api.BadFacts{Host: j.Host, Error: err.Error()})
				continue
			}
			list = append(list, jobs.HostFacts{Host: j.Host, At: j.Finished, Task: t.Task,
				Inventory: t.Inventory, Facts: facts})
		}
		if _, err := d.Store.SaveFacts(ctx, list); err != nil {
			return err
		}
		out.Kept += len(list)
		for _, id := range ids {
			seen[id] = true
		}
		return nil
	})
	return out, err
}

// forget removes the facts of hosts that left the inventory long ago.
func (d *Facts) forget(ctx context.Context) error {
	stock, _ := d.Stock()
	if stock == nil {
		return nil
	}
	all, _, err := d.Store.Facts(ctx)
	if err != nil {
		return err
	}
	var gone []string
	for host, f := range all {
		if _, there := stock.Host(host); !there && d.Now().Sub(f.At.Time) > factsForget {
			gone = append(gone, host)
		}
	}
	if err := d.Store.ForgetFacts(ctx, gone); err != nil {
		return fmt.Errorf("facts of hosts that are gone: %w", err)
	}
	return nil
}
