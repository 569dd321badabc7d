package duties

import (
	"context"
	"slices"

	"muster/api"
	"muster/history"
	"muster/jobs"
	"muster/jobs/queue/read"
	"muster/trust"
)

// Proving finds successes that no node has proven. A writer to Redis can invent them, and the next
// wave must not begin because of them.
type Proving struct {
	Endings Endings
	Trust   func() (*trust.Rules, error) // nil: nobody is asked for proofs
	Past    *history.Store               // nil: there is no history
}

// Endings reads how jobs of one task ended in a zone.
type Endings interface {
	Endings(ctx context.Context, zone string, ids []jobs.ID) ([]read.Ending, error)
}

// doubtful returns those hosts on which a task is said to have succeeded, and no node has proven
// it. It asks only where the policy requires that orders hold.
func (p Proving) doubtful(ctx context.Context, t jobs.TaskInfo, hosts []string) ([]string, error) {
	if p.Trust == nil {
		return nil, nil
	}
	rules, err := p.Trust()
	if err != nil {
		return nil, err
	}
	judge := rules.Judge()
	if judge == nil || !judge.Requires() {
		return nil, nil
	}
	proven := map[string]bool{}
	for _, zone := range t.Zones {
		for part := range slices.Chunk(hosts, jobsMax) {
			ids := make([]jobs.ID, len(part))
			for i, host := range part {
				ids[i] = jobs.NewID(t.Task, host)
			}
			list, err := p.Endings.Endings(ctx, zone, ids)
			if err != nil {
				return nil, err
			}
			for _, e := range list {
				if e.Job.State == jobs.Ended && judge.Check(e.Said, e.Proof, e.Job.Finished.Time) == nil {
					proven[e.Job.Host] = true
				}
			}
		}
	}
	doubtful := slices.DeleteFunc(slices.Clone(hosts), func(host string) bool { return proven[host] })
	if len(doubtful) == 0 || p.Past == nil {
		return doubtful, nil
	}
	// Redis gets ends that it had forgotten back from history, without their proofs.
	past, err := history.Proofs(ctx, p.Past, t.Task)
	if err != nil {
		return nil, err
	}
	return slices.DeleteFunc(doubtful, func(host string) bool { return past[host] == api.ByNode }), nil
}
