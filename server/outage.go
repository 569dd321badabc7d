package server

import (
	"context"
	"fmt"
	"math"
	"time"

	"muster/internal/wording"
	"muster/jobs"
	"muster/jobs/queue"
)

// Outages tell of times in which history cannot be written, to people and other servers.
type Outages interface {
	HistoryAway(ctx context.Context) (jobs.HistoryAway, error)
	BeginHistoryAway(ctx context.Context, a jobs.HistoryAway) error
	EndHistoryAway(ctx context.Context, a jobs.HistoryAway, now time.Time) error
	Backlogs(ctx context.Context) ([]queue.Backlog, error)
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

// Unstored is how much of what an event stream holds is not stored.
type Unstored struct {
	Zone    string  `json:"zone"`
	Entries int64   `json:"entries"`
	Most    int64   `json:"most"`    // about so many it holds
	Share   float64 `json:"share"`   // of that; from 1 on events are lost
	AtMost  bool    `json:"at_most"` // it is not known how many were stored: there may be less
}

// AwayHistory says that history is not written at the moment, and how much that may go on.
type AwayHistory struct {
	Since   jobs.Time  `json:"since"`
	Note    string     `json:"note"`
	Streams []Unstored `json:"streams"`
}

// unstored is what of each stream is not stored.
func unstored(a jobs.HistoryAway, list []queue.Backlog) []Unstored {
	out := []Unstored{}
	for _, b := range list {
		u := Unstored{Zone: b.Zone, Entries: b.Length, Most: b.Most, AtMost: true}
		if n, known := a.Stored[b.Zone]; known && b.Added >= n {
			u.Entries, u.AtMost = b.Added-n, false
		}
		u.Share = float64(u.Entries) / float64(u.Most)
		out = append(out, u)
	}
	return out
}

// awayHistory is nil while history is written, as far as the one who writes has said.
func (s *Server) awayHistory(ctx context.Context) (*AwayHistory, error) {
	if s.history == nil {
		return nil, nil // nobody has to write it
	}
	a, err := s.queue.HistoryAway(ctx)
	if err != nil || a.Since.IsZero() {
		return nil, err
	}
	list, err := s.queue.Backlogs(ctx)
	if err != nil {
		return nil, err
	}
	return &AwayHistory{a.Since, a.Note, unstored(a, list)}, nil
}

// Words say it in a line, with the stream of which the most is used.
func (a AwayHistory) Words() string {
	text := fmt.Sprintf("history is not written since %s: %s", a.Since, a.Note)
	var worst Unstored
	for _, u := range a.Streams {
		if u.Share >= worst.Share {
			worst = u
		}
	}
	if worst.Most == 0 {
		return text
	}
	atMost := ""
	if worst.AtMost {
		atMost = "at most "
	}
	text += fmt.Sprintf("; %s%g %% of what Redis holds of the events of zone %s is used (%d of about "+
		"%d entries)", atMost, math.Round(1000*worst.Share)/10, worst.Zone, worst.Entries, worst.Most)
	if worst.Share >= 1 {
		return text + ": events are being lost"
	}
	return text + ", and what is more will be lost"
}
