package server

import (
	"context"
	"errors"
	"fmt"

	"muster/fleet"
	"muster/jobs"
	"muster/jobs/queue"
)

// errChainBroken is wrapped when a chain can never go on by itself.
var errChainBroken = errors.New("it cannot go on")

// advanceChains is one round: it goes on with each chain as far as it can.
func (s *Server) advanceChains(ctx context.Context) error {
	ids, err := s.queue.Hub.ChainDuty.Chains(ctx)
	if err != nil {
		return err
	}
	var first error
	for _, id := range ids {
		if err := s.advanceChain(ctx, id); err != nil && first == nil {
			first = fmt.Errorf("chain %s: %w", id, err)
		}
	}
	return first
}

// advanceChain does what is next in a chain. All that it does can be done twice, by two
// servers at once: its tasks have their ids from the beginning.
func (s *Server) advanceChain(ctx context.Context, id jobs.TaskID) error {
	c, o, result, err := s.readChain(ctx, id)
	if errors.Is(err, queue.ErrNotFound) {
		return s.queue.Hub.ChainDuty.ForgetChain(ctx, id)
	}
	if err != nil || result != nil {
		return err
	}
	seen, err := s.seeChain(ctx, c, o)
	if err != nil {
		return err
	}
	state, next, why := c.Next(seen)
	switch next {
	case jobs.ChainStage:
		_, err = s.putLink(ctx, c, *c.Stage, c.Hosts)
		s.logChain(err, "staging begins", c, "")
	case jobs.ChainDo:
		err = s.doChain(ctx, c, seen)
		s.logChain(err, "activation is submitted", c, "")
	case jobs.ChainHalt:
		_, err = s.queue.Submit.Cancels.Cancel(ctx, c.Do.Task, chainNote(c, why))
		s.logChain(err, "stopped", c, why)
	case jobs.ChainUndo:
		err = s.undoChain(ctx, c, seen, why)
		s.logChain(err, "taken back", c, why)
	case jobs.ChainFinish:
		err = s.finishChain(ctx, c, seen, "")
		s.logChain(err, string(state), c, why)
	}
	if hopeless(err) {
		why := fmt.Sprintf("%s: %s; see to it by hand", next, err)
		s.log.Error("chain broken", "chain", id, "why", why)
		return s.queue.Hub.ChainDuty.NoteChain(ctx, id, jobs.ChainOrders{Broken: why})
	}
	return err
}

// hopeless tells whether an error comes again, however often a submit is tried.
func hopeless(err error) bool {
	return errors.Is(err, errChainBroken) || errors.Is(err, queue.ErrConflict) ||
		errors.Is(err, queue.ErrCancelled) || errors.Is(err, jobs.ErrNoBlob)
}

// readChain is a chain, what was decided of it, and what came of it; nil: it goes on.
func (s *Server) readChain(ctx context.Context, id jobs.TaskID) (c jobs.Chain, o jobs.ChainOrders,
	result *jobs.ChainInfo, err error) {
	if kept, ok := s.plans.Load(id); ok {
		c, _ = kept.(jobs.Chain)
	} else if c, err = s.queue.Hub.Chains.Chain(ctx, id); err != nil {
		return c, o, nil, err
	}
	if o, result, err = s.queue.Hub.Chains.ChainOrders(ctx, id); err != nil {
		return c, o, nil, err
	}
	if result != nil {
		s.plans.Delete(id)
	} else {
		s.plans.Store(id, c)
	}
	return c, o, result, nil
}

// finishChain keeps what came of a chain; state is how it ended, if that cannot be seen.
func (s *Server) finishChain(ctx context.Context, c jobs.Chain, seen jobs.ChainSeen,
	state jobs.ChainState) error {
	info, err := s.fullInfo(ctx, c, seen)
	if err != nil {
		return err
	}
	if state != "" {
		info.State, info.Why = state, info.Why+"; nothing was activated"
	}
	info.Waits = nil
	s.plans.Delete(c.ID)
	return s.queue.Hub.ChainDuty.EndChain(ctx, c.ID, *info)
}

func (s *Server) logChain(err error, what string, c jobs.Chain, why string) {
	if err == nil {
		s.log.Info("chain: "+what, "chain", c.ID, "runbook", c.Runbook, "why", why)
	}
}

func chainNote(c jobs.Chain, why string) string { return fmt.Sprintf("chain %s: %s", c.ID, why) }

// seeChain is how the tasks of a chain stand.
func (s *Server) seeChain(ctx context.Context, c jobs.Chain, o jobs.ChainOrders) (
	seen jobs.ChainSeen, err error) {
	seen = jobs.ChainSeen{ChainOrders: o, Now: s.now()}
	if c.Stage != nil {
		if seen.Stage, err = s.wholeTask(ctx, c.Stage.Task); err != nil {
			return seen, err
		}
	}
	if seen.Do, err = s.wholeTask(ctx, c.Do.Task); err != nil || c.Undo == nil {
		return seen, err
	}
	seen.Undo, err = s.wholeTask(ctx, c.Undo.Task)
	return seen, err
}

// wholeTask is a task; nil if it is not there, or not as a whole.
func (s *Server) wholeTask(ctx context.Context, id jobs.TaskID) (*jobs.TaskInfo, error) {
	t, err := s.queue.Read.Tasks.Task(ctx, id)
	if errors.Is(err, queue.ErrNotFound) ||
		err == nil && (t.State == jobs.TaskSubmitting || t.CancelledInSubmit) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return &t, nil
}

// doChain submits the task that is meant, on the hosts where it was prepared. How many
// were not is written down first: the jobs that tell it are forgotten after a day.
func (s *Server) doChain(ctx context.Context, c jobs.Chain, seen jobs.ChainSeen) error {
	names := c.Hosts
	missed := 0
	if c.Stage != nil {
		names = nil
		err := s.queue.Read.Jobs.EachJob(ctx, c.Stage.Task, 0, jobsMax, func(chunk []jobs.JobInfo) error {
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
	if err := s.queue.Hub.ChainDuty.NoteChain(ctx, c.ID, found); err != nil {
		return err
	}
	gone, err := s.putLink(ctx, c, c.Do, names)
	if len(gone) > 0 && err == nil {
		s.log.Warn("chain: hosts have left the inventory", "chain", c.ID, "hosts", fleet.Fold(gone))
	}
	return err
}

// undoChain takes back what was begun, on all hosts where it was, however it ended there:
// the runbook looks itself. Nothing begins on others once the task is cancelled; where it
// still runs, the undo waits for its host.
func (s *Server) undoChain(ctx context.Context, c jobs.Chain, seen jobs.ChainSeen,
	why string) error {
	if seen.Do.State != jobs.TaskEnded {
		if _, err := s.queue.Submit.Cancels.Cancel(ctx, c.Do.Task, chainNote(c, why)); err != nil {
			return err
		}
	}
	var names []string
	err := s.queue.Read.Jobs.EachJob(ctx, c.Do.Task, 0, jobsMax, func(chunk []jobs.JobInfo) error {
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
		return s.finishChain(ctx, c, seen, jobs.ChainEnded)
	}
	_, err = s.putLink(ctx, c, *c.Undo, names)
	return err
}

// infoOf is a chain as people see it, without its hosts.
func infoOf(c jobs.Chain, seen jobs.ChainSeen) *jobs.ChainInfo {
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

// fullInfo is a chain with what became of each of its hosts.
func (s *Server) fullInfo(ctx context.Context, c jobs.Chain, seen jobs.ChainSeen) (
	*jobs.ChainInfo, error) {
	do, undo := map[string]*jobs.JobInfo{}, map[string]*jobs.JobInfo{}
	waiting := s.lacking(nil)
	read := func(t *jobs.TaskInfo, into map[string]*jobs.JobInfo) error {
		if t == nil || t.Total == 0 {
			return nil
		}
		return s.queue.Read.Jobs.EachJob(ctx, t.Task, 0, jobsMax, func(chunk []jobs.JobInfo) error {
			for _, j := range chunk {
				into[j.Host] = &j
			}
			return waiting.add(ctx, chunk)
		})
	}
	if err := errors.Join(read(seen.Do, do), read(seen.Undo, undo)); err != nil {
		return nil, err
	}
	if t := seen.Stage; t != nil && t.State != jobs.TaskEnded {
		err := s.queue.Read.Jobs.EachJob(ctx, t.Task, 0, jobsMax, func(chunk []jobs.JobInfo) error {
			return waiting.add(ctx, chunk)
		})
		if err != nil {
			return nil, err
		}
	}
	hosts := map[jobs.Fate][]string{}
	for _, host := range c.Hosts {
		fate := jobs.FateOf(do[host], undo[host])
		if seen.Do != nil && seen.Do.Total == 0 {
			fate = jobs.FateUnknown // it is not kept any more
		}
		hosts[fate] = append(hosts[fate], host)
	}
	i := infoOf(c, seen)
	i.Fates = map[jobs.Fate]string{}
	for fate, names := range hosts {
		i.Fates[fate] = fleet.Fold(names)
	}
	i.Waits = waiting.list()
	return i, nil
}
