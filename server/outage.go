package server

import (
	"context"
	"time"

	"muster/api"
	"muster/internal/wording"
	"muster/jobs"
	"muster/jobs/queue/care"
)

// Outages tell of times in which history cannot be written, to people and other servers.
type Outages interface {
	HistoryAway(ctx context.Context) (jobs.HistoryAway, error)
	BeginHistoryAway(ctx context.Context, a jobs.HistoryAway) error
	EndHistoryAway(ctx context.Context, a jobs.HistoryAway, now time.Time) error
	Backlogs(ctx context.Context) ([]care.Backlog, error)
}

// awayAfter is how long history is in trouble before an event says so: one call that
// failed is none.
const awayAfter = 3 * time.Second

// outage is what a historian knows of such a time. What was said of it stands in Redis, so
// that the next one does not say it again, and says when it is over.
type outage struct {
	asked  bool             // Redis was asked what an earlier historian has said
	said   bool             // an event says that it has begun
	away   jobs.HistoryAway // Since is not set: there is none
	stored map[string]int64 // by zone, entries that were stored at last
}

// note says by an event that a time without history begins, or ends: each once. What
// keeps it from that it tries again with the next round.
func (o *outage) note(ctx context.Context, q Outages, trouble error, now time.Time) error {
	if !o.asked {
		a, err := q.HistoryAway(ctx)
		if err != nil {
			return err
		}
		o.asked, o.said, o.away = true, !a.Since.IsZero(), a
	}
	switch {
	case trouble == nil && o.said:
		if err := q.EndHistoryAway(ctx, o.away, now); err != nil {
			return err
		}
		fallthrough
	case trouble == nil:
		o.said, o.away = false, jobs.HistoryAway{}
	case o.away.Since.IsZero():
		o.away = jobs.HistoryAway{Since: jobs.Time{Time: now}, Stored: o.stored,
			Note: wording.ClipTo(trouble.Error(), resultMax)}
	case !o.said && now.Sub(o.away.Since.Time) >= awayAfter:
		if err := q.BeginHistoryAway(ctx, o.away); err != nil {
			return err
		}
		o.said = true
	}
	return nil
}

// keep remembers how far a stream was stored.
func (o *outage) keep(zone string, entries int64) {
	if o.stored == nil {
		o.stored = map[string]int64{}
	}
	if delete(o.stored, zone); entries >= 0 {
		o.stored[zone] = entries
	}
}

// unstored is what of each stream is not stored.
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

// awayHistory is nil while history is written, as far as the one who writes has said.
func (s *Server) awayHistory(ctx context.Context) (*api.AwayHistory, error) {
	if s.history == nil {
		return nil, nil // nobody has to write it
	}
	a, err := s.queue.Care.Outages.HistoryAway(ctx)
	if err != nil || a.Since.IsZero() {
		return nil, err
	}
	list, err := s.queue.Care.Outages.Backlogs(ctx)
	if err != nil {
		return nil, err
	}
	return &api.AwayHistory{Since: a.Since, Note: a.Note, Streams: unstored(a, list)}, nil
}
