package historian

import (
	"context"
	"errors"
	"fmt"

	"github.com/hashicorp/go-hclog"

	"muster/api"
	"muster/history"
	"muster/jobs"
	"muster/jobs/queue"
	"muster/jobs/queue/care"
)

// Debts notes which zones may have forgotten something that history knows.
type Debts interface {
	Debts(ctx context.Context, zones []string) ([]care.Debt, error)
	KeepHistory(ctx context.Context, zone, why string) error
}

// Recalling gives zones back what Redis has forgotten and history knows.
type Recalling interface {
	Unsettled(ctx context.Context, zone string) ([]jobs.TaskID, error)
	Recall(ctx context.Context, d care.Debt, p care.Past) (jobs.Recalled, error)
	Settle(ctx context.Context, d care.Debt) error
}

// Past gives a zone what history knows: how the jobs of a task ended, and which began.
type Past interface {
	Position(ctx context.Context, zone string) (api.Position, error)
	Positions(ctx context.Context) ([]api.Position, error)
	Jobs(ctx context.Context, f history.Filter, cursor string, most int) ([]api.PastJob, string,
		error)
	Begun(ctx context.Context, id jobs.TaskID, after string, most int) ([]jobs.JobInfo, error)
}

// recaller asks history for zones whose Redis may have gone back in time. As long as one of
// them was not settled nothing starts there.
type recaller struct {
	debts   Debts
	queue   Recalling
	history Past
	log     hclog.Logger
	lost    bool // Redis has lost what was agreed: nothing may start before that is restored
}

// agreedGone is the reason why nothing starts in a zone whose hub has lost what was agreed.
const agreedGone = "Redis has lost what was agreed about times: `muster restore` puts it back"

// settle asks history for all zones that owe it. When one fails it continues with the others.
func (r recaller) settle(ctx context.Context, zones []string) error {
	debts, unread := r.debts.Debts(ctx, zones)
	errs := []error{unread}
	for _, d := range debts {
		err := r.settleZone(ctx, d)
		if err != nil && !errors.Is(err, queue.ErrStale) { // else it is read again soon
			errs = append(errs, fmt.Errorf("zone %s: %w", d.Zone, err))
		}
	}
	return errors.Join(errs...)
}

func (r recaller) settleZone(ctx context.Context, d care.Debt) error {
	switch {
	case !d.Recorded:
		return r.introduce(ctx, d.Zone)
	case r.lost && d.Owed == "":
		return r.debts.KeepHistory(ctx, d.Zone, agreedGone)
	case d.Owed != "" && !r.lost:
		return r.pay(ctx, d)
	}
	return nil
}

// introduce notes in a zone that history is kept of it. A zone that history knows, and that has
// no such note, may be an older copy.
func (r recaller) introduce(ctx context.Context, zone string) error {
	pos, err := r.history.Position(ctx, zone)
	if err != nil {
		return err
	}
	why := ""
	switch {
	case r.lost:
		why = agreedGone
	case pos.Last != "":
		why = "history knows this zone, and Redis has forgotten that"
	}
	return r.debts.KeepHistory(ctx, zone, why)
}

// pay compares all tasks of a zone that have not ended in Redis with history.
func (r recaller) pay(ctx context.Context, d care.Debt) error {
	list, err := r.queue.Unsettled(ctx, d.Zone)
	if err != nil {
		return err
	}
	var all jobs.Recalled
	for _, id := range list {
		if err := r.task(ctx, d, id, &all); err != nil {
			return fmt.Errorf("nothing starts in zone %s before history was asked what has ended: %w",
				d.Zone, err)
		}
	}
	if err := r.queue.Settle(ctx, d); err != nil {
		return err
	}
	r.log.Info("history was asked what has ended: the zone may start", "zone", d.Zone,
		"tasks", len(list), "ended", all.Ended, "begun", all.Lost)
	return nil
}

// task gives a zone what history knows of a task, a page at a time.
func (r recaller) task(ctx context.Context, d care.Debt, id jobs.TaskID,
	all *jobs.Recalled) error {
	// The jobs below may include what history stores after this, which does no harm.
	pos, err := r.history.Position(ctx, d.Zone)
	if err != nil {
		return err
	}
	take := func(page []jobs.JobInfo) error {
		n, err := r.queue.Recall(ctx, d, care.Past{Task: id, Heard: pos.Last, Jobs: page})
		all.Ended, all.Lost = all.Ended+n.Ended, all.Lost+n.Lost
		return err
	}
	for cursor := ""; ; {
		list, next, err := r.history.Jobs(ctx, history.Filter{Task: id}, cursor, api.PageMax)
		if err != nil {
			return err
		}
		page := make([]jobs.JobInfo, len(list))
		for i, j := range list {
			page[i] = j.JobInfo
		}
		if err := take(page); err != nil {
			return err
		}
		if cursor = next; next == "" {
			break
		}
	}
	for after := ""; ; {
		page, err := r.history.Begun(ctx, id, after, api.PageMax)
		if err != nil || len(page) == 0 {
			return err
		}
		if err := take(page); err != nil {
			return err
		}
		after = page[len(page)-1].Host
	}
}
