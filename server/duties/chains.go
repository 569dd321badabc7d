package duties

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/hashicorp/go-hclog"

	"muster/fleet"
	"muster/jobs"
	"muster/jobs/queue"
)

// Chains continues chains: tasks that follow each other.
type Chains struct {
	Store   ChainStore
	Care    ChainCare
	Tasks   Tasks
	Jobs    Jobs
	Cancels Cancels
	Links   Links
	// Waits begins to gather why jobs do not run: of the jobs that it adds it lists the reasons.
	Waits func() Reasons
	Log   hclog.Logger
	Now   func() time.Time

	// plans are chains that were read: jobs.TaskID to jobs.Chain. They have files within, and
	// are read each second.
	plans sync.Map
}

// ChainStore has the chains, and what was decided of them.
type ChainStore interface {
	Chain(ctx context.Context, id jobs.TaskID) (jobs.Chain, error)
	ChainOrders(ctx context.Context, id jobs.TaskID) (jobs.ChainOrders, *jobs.ChainInfo, error)
}

// ChainCare lists the open chains, and notes how they proceed.
type ChainCare interface {
	Chains(ctx context.Context) ([]jobs.TaskID, error)
	NoteChain(ctx context.Context, id jobs.TaskID, found jobs.ChainOrders) error
	EndChain(ctx context.Context, id jobs.TaskID, result jobs.ChainInfo) error
	ForgetChain(ctx context.Context, id jobs.TaskID) error
}

// Links submits the tasks of chains.
type Links interface {
	// PutLink submits a task of a chain on some hosts, once. gone are hosts that have left the
	// inventory.
	PutLink(ctx context.Context, c jobs.Chain, l jobs.Link, hosts []string) (gone []string,
		err error)
	// Hopeless reports whether a submit fails with this error however often it is tried.
	Hopeless(err error) bool
}

// Reasons gathers why jobs do not run.
type Reasons interface {
	Add(ctx context.Context, list []jobs.JobInfo) error
	List() []jobs.Lack
}

// RunOnce continues each chain as far as it can.
func (d *Chains) RunOnce(ctx context.Context) error {
	ids, err := d.Care.Chains(ctx)
	if err != nil {
		return err
	}
	var first error
	for _, id := range ids {
		if err := d.Advance(ctx, id); err != nil && first == nil {
			first = fmt.Errorf("chain %s: %w", id, err)
		}
	}
	return first
}

// Advance takes the next action in a chain. Two servers may do that at once: the tasks of a chain
// have their ids from the beginning.
func (d *Chains) Advance(ctx context.Context, id jobs.TaskID) error {
	c, o, result, err := d.Read(ctx, id)
	if errors.Is(err, queue.ErrNotFound) {
		return d.Care.ForgetChain(ctx, id)
	}
	if err != nil || result != nil {
		return err
	}
	seen, err := d.See(ctx, c, o)
	if err != nil {
		return err
	}
	state, next, why := c.Next(seen)
	switch next {
	case jobs.ChainStage:
		_, err = d.Links.PutLink(ctx, c, *c.Stage, c.Hosts)
		d.log(err, "staging begins", c, "")
	case jobs.ChainDo:
		err = d.do(ctx, c, seen)
		d.log(err, "activation is submitted", c, "")
	case jobs.ChainHalt:
		_, err = d.Cancels.Cancel(ctx, c.Do.Task, chainNote(c, why))
		d.log(err, "stopped", c, why)
	case jobs.ChainUndo:
		err = d.undo(ctx, c, seen, why)
		d.log(err, "taken back", c, why)
	case jobs.ChainFinish:
		err = d.finish(ctx, c, seen, "")
		d.log(err, string(state), c, why)
	}
	if d.Links.Hopeless(err) {
		why := fmt.Sprintf("%s: %s; see to it by hand", next, err)
		d.Log.Error("chain broken", "chain", id, "why", why)
		return d.Care.NoteChain(ctx, id, jobs.ChainOrders{Broken: why})
	}
	return err
}

// Read returns a chain, its decisions and its result, which is nil while the chain runs.
func (d *Chains) Read(ctx context.Context, id jobs.TaskID) (c jobs.Chain, o jobs.ChainOrders,
	result *jobs.ChainInfo, err error) {
	if kept, ok := d.plans.Load(id); ok {
		c, _ = kept.(jobs.Chain)
	} else if c, err = d.Store.Chain(ctx, id); err != nil {
		return c, o, nil, err
	}
	if o, result, err = d.Store.ChainOrders(ctx, id); err != nil {
		return c, o, nil, err
	}
	if result != nil {
		d.plans.Delete(id)
	} else {
		d.plans.Store(id, c)
	}
	return c, o, result, nil
}

// finish keeps the result of a chain; state is its last state, where its tasks do not show it.
func (d *Chains) finish(ctx context.Context, c jobs.Chain, seen jobs.ChainSeen,
	state jobs.ChainState) error {
	info, err := d.Info(ctx, c, seen)
	if err != nil {
		return err
	}
	if state != "" {
		info.State, info.Why = state, info.Why+"; nothing was activated"
	}
	info.Waits = nil
	d.plans.Delete(c.ID)
	return d.Care.EndChain(ctx, c.ID, *info)
}

func (d *Chains) log(err error, what string, c jobs.Chain, why string) {
	if err == nil {
		d.Log.Info("chain: "+what, "chain", c.ID, "runbook", c.Runbook, "why", why)
	}
}

func chainNote(c jobs.Chain, why string) string { return fmt.Sprintf("chain %s: %s", c.ID, why) }

// See returns the state of the tasks of a chain.
func (d *Chains) See(ctx context.Context, c jobs.Chain, o jobs.ChainOrders) (
	seen jobs.ChainSeen, err error) {
	seen = jobs.ChainSeen{ChainOrders: o, Now: d.Now()}
	if c.Stage != nil {
		if seen.Stage, err = d.wholeTask(ctx, c, c.Stage.Task); err != nil {
			return seen, err
		}
	}
	if seen.Do, err = d.wholeTask(ctx, c, c.Do.Task); err != nil || c.Undo == nil {
		return seen, err
	}
	seen.Undo, err = d.wholeTask(ctx, c, c.Undo.Task)
	return seen, err
}

// wholeTask returns a task of a chain; nil if it was not submitted as a whole. The ids of a chain
// can be guessed: a task that somebody else has put under one is none of the chain's.
func (d *Chains) wholeTask(ctx context.Context, c jobs.Chain, id jobs.TaskID) (*jobs.TaskInfo,
	error) {
	t, err := d.Tasks.Task(ctx, id)
	if errors.Is(err, queue.ErrNotFound) || err == nil && (t.State == jobs.TaskSubmitting ||
		t.CancelledInSubmit || t.Chain != c.ID || t.Operator != c.Operator) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return &t, nil
}

// do submits the main task, on the hosts where it was prepared. The number of the others is written
// down first: Redis forgets the jobs that show it after a day.
func (d *Chains) do(ctx context.Context, c jobs.Chain, seen jobs.ChainSeen) error {
	names := c.Hosts
	missed := 0
	if c.Stage != nil {
		names = nil
		err := d.Jobs.EachJob(ctx, c.Stage.Task, 0, jobsMax, func(chunk []jobs.JobInfo) error {
			for _, j := range chunk {
				if j.Outcome == jobs.Succeeded {
					names = append(names, j.Host)
				}
			}
			return nil
		})
		if err != nil {
			return err
		}
		if seen.Stage != nil {
			missed = c.Missed(*seen.Stage)
		}
	}
	found := jobs.ChainOrders{Begun: true, Missed: missed}
	if err := d.Care.NoteChain(ctx, c.ID, found); err != nil {
		return err
	}
	gone, err := d.Links.PutLink(ctx, c, c.Do, names)
	if len(gone) > 0 && err == nil {
		d.Log.Warn("chain: hosts have left the inventory", "chain", c.ID, "hosts", fleet.Fold(gone))
	}
	return err
}

// undo rolls back all hosts on which the main task began, however it ended there: the runbook
// looks itself. Once the task is cancelled nothing begins on other hosts; where it still runs,
// the undo waits for the host.
func (d *Chains) undo(ctx context.Context, c jobs.Chain, seen jobs.ChainSeen,
	why string) error {
	if seen.Do.State != jobs.TaskEnded {
		if _, err := d.Cancels.Cancel(ctx, c.Do.Task, chainNote(c, why)); err != nil {
			return err
		}
	}
	var names []string
	err := d.Jobs.EachJob(ctx, c.Do.Task, 0, jobsMax, func(chunk []jobs.JobInfo) error {
		for _, j := range chunk {
			if !j.Started.IsZero() {
				names = append(names, j.Host)
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	switch {
	case len(names) == 0 && seen.Do.State != jobs.TaskEnded:
		return nil // the next round finds it so
	case len(names) == 0:
		return d.finish(ctx, c, seen, jobs.ChainEnded)
	}
	_, err = d.Links.PutLink(ctx, c, *c.Undo, names)
	return err
}

// InfoOf returns a chain as people see it, without the fates of its hosts.
func InfoOf(c jobs.Chain, seen jobs.ChainSeen) *jobs.ChainInfo {
	state, _, why := c.Next(seen)
	i := &jobs.ChainInfo{Chain: c.ID, Runbook: c.Runbook, On: c.On, Operator: c.Operator,
		Proven: c.Proven, State: state, Why: why, Created: jobs.TimeOf(c.Created),
		At: jobs.TimeOf(c.At), Total: len(c.Hosts), Failed: c.Failed(seen), Budget: c.Budget,
		ChainOrders: seen.ChainOrders}
	add := func(phase string, l *jobs.Link, t *jobs.TaskInfo) {
		if l != nil {
			i.Tasks = append(i.Tasks, jobs.ChainTask{Phase: phase, Task: l.Task, Info: t})
		}
	}
	add(jobs.PhaseStage, c.Stage, seen.Stage)
	add(jobs.PhaseDo, &c.Do, seen.Do)
	add(jobs.PhaseUndo, c.Undo, seen.Undo)
	return i
}

// Info returns a chain as people see it, with the fate of each of its hosts.
func (d *Chains) Info(ctx context.Context, c jobs.Chain, seen jobs.ChainSeen) (
	*jobs.ChainInfo, error) {
	do, undo := map[string]*jobs.JobInfo{}, map[string]*jobs.JobInfo{}
	waiting := d.Waits()
	read := func(t *jobs.TaskInfo, into map[string]*jobs.JobInfo) error {
		if t == nil || t.Total == 0 {
			return nil
		}
		return d.Jobs.EachJob(ctx, t.Task, 0, jobsMax, func(chunk []jobs.JobInfo) error {
			for _, j := range chunk {
				into[j.Host] = &j
			}
			return waiting.Add(ctx, chunk)
		})
	}
	if err := errors.Join(read(seen.Do, do), read(seen.Undo, undo)); err != nil {
		return nil, err
	}
	if t := seen.Stage; t != nil && t.State != jobs.TaskEnded {
		err := d.Jobs.EachJob(ctx, t.Task, 0, jobsMax, func(chunk []jobs.JobInfo) error {
			return waiting.Add(ctx, chunk)
		})
		if err != nil {
			return nil, err
		}
	}
	hosts := map[jobs.Fate][]string{}
	for _, host := range c.Hosts {
		fate := jobs.FateOf(do[host], undo[host])
		if seen.Do != nil && seen.Do.Total == 0 {
			fate = jobs.FateUnknown // Redis has forgotten it
		}
		hosts[fate] = append(hosts[fate], host)
	}
	i := InfoOf(c, seen)
	i.Fates = map[jobs.Fate]string{}
	for fate, names := range hosts {
		i.Fates[fate] = fleet.Fold(names)
	}
	i.Waits = waiting.List()
	return i, nil
}
