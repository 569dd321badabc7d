package herald

import (
	"context"
	"fmt"
	"slices"
	"time"

	"muster/jobs"
	"muster/jobs/outliers"
	"muster/jobs/queue/hub"
	"muster/jobs/staff"
	"muster/notify"
)

const watchEvery = 3 * time.Second

// Watch looks at what no event tells of. Each look says how things are; only a change is told.
type Watch struct {
	Nodes     func(context.Context) ([]jobs.Node, error)
	Staff     func(context.Context) (map[string]*staff.Zone, error)
	Schedules func(context.Context) ([]hub.Schedule, error)
	Held      func(context.Context, time.Time) ([]jobs.TaskID, error)
	Task      func(context.Context, jobs.TaskID) (jobs.TaskInfo, error)
	// Repositories says what is wrong with each repository; empty: nothing. nil: there are none.
	Repositories func(context.Context) (map[string]string, error)
	state        map[string]string // as the last look saw them
}

// look returns what is to be told, and the state that the next look compares with, once that is
// written.
func (w *Watch) look(ctx context.Context, now time.Time) (list []notify.Signal,
	next map[string]string, err error) {
	next = map[string]string{}
	nodes, err := w.Nodes(ctx)
	if err != nil {
		return nil, nil, err
	}
	for _, n := range nodes {
		list = append(list, w.level(next, notify.Signal{What: notify.NodeGone, Object: n.ID,
			Over: n.State != jobs.NodeGone, Note: goneNote(n)}, now)...)
		list = append(list, w.level(next, aside(n), now)...)
	}
	zones, err := w.Staff(ctx)
	if err != nil {
		return nil, nil, err
	}
	for zone, z := range zones {
		missing := z.Missing()
		list = append(list, w.level(next, notify.Signal{What: notify.ZoneUnserved, Zone: zone,
			Over: missing == "" || z.Open == 0, Note: missing}, now)...)
	}
	if w.Repositories != nil {
		all, err := w.Repositories(ctx)
		if err != nil {
			return nil, nil, err
		}
		for name, trouble := range all {
			list = append(list, w.level(next, notify.Signal{What: notify.ApplyFailed, Object: name,
				Over: trouble == "", Note: trouble}, now)...)
		}
	}
	more, err := w.ticks(ctx, now)
	if err != nil {
		return nil, nil, err
	}
	held, err := w.held(ctx, now)
	if err != nil {
		return nil, nil, err
	}
	return slices.Concat(list, more, held), next, nil
}

func goneNote(n jobs.Node) string {
	if n.State != jobs.NodeGone {
		return ""
	}
	return "last heard of at " + n.Seen.UTC().Format(time.RFC3339)
}

// aside says whether muster itself lets a node take nothing.
func aside(n jobs.Node) notify.Signal {
	s := notify.Signal{What: notify.NodeAside, Object: n.ID, Over: !outliers.IsAside(n)}
	if !s.Over {
		s.Note = n.Paused.Note
	}
	return s
}

// level returns a signal if a thing is otherwise than at the last look. The first look of a server
// says how all things are; the desk leaves out the things that it has told before.
func (w *Watch) level(next map[string]string, s notify.Signal, now time.Time) []notify.Signal {
	name := string(s.What) + " " + s.Zone + "/" + s.Object
	next[name] = fmt.Sprint(s.Over)
	if w.state[name] == next[name] {
		return nil
	}
	s.At, s.Key = jobs.Time{Time: now}, fmt.Sprintf("%s %t %d", name, s.Over, now.UnixMicro())
	return []notify.Signal{s}
}

// ticks returns signals of schedules whose last tick has no task.
func (w *Watch) ticks(ctx context.Context, now time.Time) (list []notify.Signal, err error) {
	all, err := w.Schedules(ctx)
	for _, s := range all {
		if !s.Ticks.Refused || s.Ticks.Tick.IsZero() || now.Sub(s.Ticks.Tick.Time) > 24*time.Hour {
			continue
		}
		list = append(list, notify.Signal{What: notify.ScheduleFailed, Object: s.Name,
			Key: fmt.Sprintf("schedule %s %d", s.Name, s.Ticks.Tick.UnixMicro()),
			At:  jobs.Time{Time: now}, Note: s.Ticks.Result})
	}
	return list, err
}

// held returns signals of tasks that wait for signatures.
func (w *Watch) held(ctx context.Context, now time.Time) (list []notify.Signal, err error) {
	ids, err := w.Held(ctx, now)
	if err != nil {
		return nil, err
	}
	for _, id := range ids[:min(len(ids), 100)] {
		t, err := w.Task(ctx, id)
		if err != nil || t.Cancelled != "" {
			continue // it has expired, or it will be asked again
		}
		list = append(list, notify.Signal{What: notify.ApprovalWanted, Key: "approval " + string(id),
			At: jobs.Time{Time: now}, Note: t.Reason, Of: notify.Of{Task: id, Runbook: t.Runbook,
				Operator: t.Operator, On: t.On}})
	}
	return list, nil
}
