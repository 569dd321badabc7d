package historian

import (
	"context"
	"time"

	"muster/internal/wording"
	"muster/jobs"
)

// Outages keeps in Redis that history cannot be written, for people and other servers.
type Outages interface {
	HistoryAway(ctx context.Context) (jobs.HistoryAway, error)
	BeginHistoryAway(ctx context.Context, a jobs.HistoryAway) error
	EndHistoryAway(ctx context.Context, a jobs.HistoryAway, now time.Time) error
}

// awayAfter is the time for which trouble lasts before an event says so: one failed call is no
// outage.
const awayAfter = 3 * time.Second

// noteMax bounds the reason of an outage, in bytes.
const noteMax = 500

// outage is a time in which history cannot be written. Redis keeps that an event has said so,
// so that the next historian does not repeat it, and says when it is over.
type outage struct {
	asked  bool             // Redis was asked what an earlier historian has said
	said   bool             // an event says that it has begun
	away   jobs.HistoryAway // Since is zero: there is none
	stored map[string]int64 // by zone, entries that were stored at last
}

// note says by an event that an outage begins, or ends: each once. After an error the next
// round tries again.
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
			Note: wording.ClipTo(trouble.Error(), noteMax)}
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
