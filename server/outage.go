package server

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

// unstored returns how much of each stream is not stored.
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

// awayHistory returns nil while history is written, by the last word of the historian.
func awayHistory(ctx context.Context, q Stores, h *history.Store) (*api.AwayHistory, error) {
	if h == nil {
		return nil, nil // nobody has to write it
	}
	a, err := q.Care.Outages.HistoryAway(ctx)
	if err != nil || a.Since.IsZero() {
		return nil, err
	}
	list, err := q.Care.Backlogs.Backlogs(ctx)
	if err != nil {
		return nil, err
	}
	return &api.AwayHistory{Since: a.Since, Note: a.Note, Streams: unstored(a, list)}, nil
}
