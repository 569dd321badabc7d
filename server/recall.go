package server

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

// Recalling gives zones back what Redis has forgotten and history knows.
type Recalling interface {
	Debts(ctx context.Context, zones []string) ([]care.Debt, error)
	KeepHistory(ctx context.Context, zone, why string) error
	Unsettled(ctx context.Context, zone string) ([]jobs.TaskID, error)
	Recall(ctx context.Context, d care.Debt, p care.Past) (jobs.Recalled, error)
	Settle(ctx context.Context, d care.Debt) error
}

// PastEnds are what a zone is told: how jobs of a task ended, and which began.
type PastEnds interface {
	Position(ctx context.Context, zone string) (api.Position, error)
	Jobs(ctx context.Context, f history.Filter, cursor string, most int) ([]api.PastJob, string,
		error)
	Begun(ctx context.Context, id jobs.TaskID, after string, most int) ([]jobs.JobInfo, error)
}

// recaller asks history for zones whose Redis may have gone back in time. As long as one of
// them was not settled nothing starts there.
type recaller struct {
	queue   Recalling
	history PastEnds
	log     hclog.Logger
	lost    bool // Redis has lost what was agreed: no zone may start before that is restored
}

// agreedGone is why a zone is shut whose hub has lost what was agreed.
const agreedGone = "Redis has lost what was agreed about times: `muster restore` puts it back"

// settle asks history for all zones that owe it. It goes on with the others when one fails.
func (r recaller) settle(ctx context.Context, zones []string) error {
	debts, unread := r.queue.Debts(ctx, zones)
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
		return r.queue.KeepHistory(ctx, d.Zone, agreedGone)
	case d.Owed != "" && !r.lost:
		return r.pay(ctx, d)
	}
	return nil
}

// introduce tells a zone that history is kept of it. One that history knows, and that does not
// know of history, may be an older copy.
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
	return r.queue.KeepHistory(ctx, zone, why)
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

// task takes back what history knows of a task, a page at a time.
func (r recaller) task(ctx context.Context, d care.Debt, id jobs.TaskID,
	all *jobs.Recalled) error {
	// What history hears after this may be told of the jobs below, and does no harm.
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

// owing says which zones wait for history, for people; empty: none does.
func (s *Server) owing(ctx context.Context) string {
	zones, err := s.queue.Conn.Zones(ctx)
	if err != nil {
		return "" // that Redis cannot be used is said already
	}
	debts, _ := s.queue.Care.Recall.Debts(ctx, zones) // of those that can be read
	for _, d := range debts {
		if d.Owed == "" {
			continue
		}
		text := "nothing starts in zone " + d.Zone + " before history was asked what has ended: Redis " +
			"may have forgotten it"
		if s.history == nil {
			text += "; this server keeps no history"
		}
		return text + ". To start without: `muster nodes thaw --zone " + d.Zone + " --reason …`"
	}
	return ""
}
