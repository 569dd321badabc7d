package state

import (
	"context"

	"muster/api"
	"muster/history"
	"muster/jobs"
	"muster/jobs/queue/care"
)

// Backlogs shows how full the event streams are.
type Backlogs interface {
	Backlogs(ctx context.Context) ([]care.Backlog, error)
}

// unstored returns the part of each stream that history does not have.
func unstored(a jobs.HistoryAway, list []care.Backlog) []api.Unstored {
	out := []api.Unstored{}
	for _, b := range list {
		u := api.Unstored{Zone: b.Zone, Entries: b.Length, Most: b.Most, AtMost: true}
		if n, known := a.Stored[b.Zone]; known && b.Added >= n {
			u.Entries, u.AtMost = b.Added-n, false
		}
		u.Share = float64(u.Entries) / float64(u.Most)
		out = append(out, u)
	}
	return out
}

// Away returns the outage of history, by the last word of the historian; nil if there is none.
func Away(ctx context.Context, q Queue, h *history.Store) (*api.AwayHistory, error) {
	if h == nil {
		return nil, nil // nobody has to write it
	}
	a, err := q.Outages.HistoryAway(ctx)
	if err != nil || a.Since.IsZero() {
		return nil, err
	}
	list, err := q.Backlogs.Backlogs(ctx)
	if err != nil {
		return nil, err
	}
	return &api.AwayHistory{Since: a.Since, Note: a.Note, Streams: unstored(a, list)}, nil
}
