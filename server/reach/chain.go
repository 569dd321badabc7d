package reach

import (
	"context"
	"fmt"
	"slices"

	"github.com/danielgtaylor/huma/v2"

	"muster/access"
	"muster/jobs"
	"muster/jobs/queue"
	"muster/server/web"
)

// A Chain is a chain, and the id by which a caller knows it.
type Chain struct {
	jobs.Chain
	ID jobs.TaskID
}

// May returns an error unless the caller may do something with all tasks of the chain. A chain that
// the caller does not see is not there.
func (c Chain) May(ctx context.Context, verb access.Verb) error {
	if !SeesChain(ctx, c.Chain) {
		return fmt.Errorf("task %s: %w", c.ID, queue.ErrNotFound)
	}
	v := web.ViewOf(ctx)
	if verb == access.See || v.May(access.Act{Verb: verb}) {
		return nil
	}
	for _, runbook := range runbooks(c.Chain) {
		if err := v.Refuse(access.Act{Verb: verb, Runbook: runbook}, c.Hosts); err != nil {
			return err
		}
	}
	return nil
}

// SeesChain reports whether a caller sees all of a chain.
func SeesChain(ctx context.Context, c jobs.Chain) bool {
	v := web.ViewOf(ctx)
	return !slices.ContainsFunc(runbooks(c), func(runbook string) bool {
		return !v.SeesWork(runbook, c.Hosts...)
	})
}

// runbooks returns the runbooks of all tasks of a chain.
func runbooks(c jobs.Chain) []string {
	list := []string{c.Do.Spec.Runbook}
	for _, l := range []*jobs.Link{c.Stage, c.Undo} {
		if l != nil {
			list = append(list, l.Spec.Runbook)
		}
	}
	return list
}

// Alone returns the answer for a task that has no chain, if the caller sees it. Else the task is
// not there. An error of the look is answered as it is.
func Alone(id jobs.TaskID, seen bool, err error) error {
	switch {
	case err != nil:
		return err
	case seen:
		return huma.Error404NotFound(fmt.Sprintf("task %s is alone: no other follows it", id))
	}
	return fmt.Errorf("task %s: %w", id, queue.ErrNotFound)
}
