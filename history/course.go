package history

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"muster/api"
	"muster/jobs"
)

// Course returns the attempts and steps of a job, as far as they were stored.
func (s *Store) Course(ctx context.Context, id jobs.ID) (api.Course, error) {
	c := api.Course{Steps: []api.StepBegun{}}
	var err error
	if c.Attempts, err = s.Attempts(ctx, id); err != nil {
		return c, err
	}
	err = s.rows(ctx, "steps", "select step, at from steps where task = $1 and host = $2 order by at",
		[]any{string(id.Task()), id.Host()}, func(scan func(...any) error) error {
			var b api.StepBegun
			var at int64
			err := scan(&b.Step, &at)
			b.At = instant(at)
			c.Steps = append(c.Steps, b)
			return err
		})
	return c, err
}

// Attempts lists the attempts of a job.
func (s *Store) Attempts(ctx context.Context, id jobs.ID) ([]api.Attempt, error) {
	out := []api.Attempt{}
	err := s.rows(ctx, "attempts", "select attempt, node, started, ended, how from attempts "+
		"where task = $1 and host = $2 order by attempt", []any{string(id.Task()), id.Host()},
		func(scan func(...any) error) error {
			var a api.Attempt
			var started, ended int64
			err := scan(&a.Attempt, &a.Node, &started, &ended, &a.How)
			a.Started, a.Ended = instant(started), instant(ended)
			out = append(out, a)
			return err
		})
	return out, err
}

// About picks events: those of a task and all its jobs or, with a host, of one job.
type About struct {
	Task  jobs.TaskID
	Host  string
	Event string // only events of this name; empty: all
}

// Events lists the events of a task or a job, the first one first, and skips the first skip
// events. more reports whether others follow.
func (s *Store) Events(ctx context.Context, of About, skip, most int) (list []jobs.Happening,
	more bool, err error) {
	most = min(max(most, 1), api.PageMax)
	text, args := "where task = $1", []any{string(of.Task)}
	if of.Host != "" {
		text += " and object = $2"
		args = append(args, string(jobs.NewID(of.Task, of.Host)))
	}
	if of.Event != "" {
		args = append(args, of.Event)
		text += fmt.Sprintf(" and event = $%d", len(args))
	}
	list = []jobs.Happening{}
	text = fmt.Sprintf("select zone, entry, at, event, object, detail from events %s "+
		"order by at, entry, object limit %d offset %d", text, most+1, max(skip, 0))
	err = s.rows(ctx, "events", text, args,
		func(scan func(...any) error) error {
			var h jobs.Happening
			var at int64
			var detail string
			if err := scan(&h.Zone, &h.ID, &at, &h.Event, &h.Object, &detail); err != nil {
				return err
			}
			h.At = instant(at)
			if strings.TrimSpace(detail) != "" {
				h.Detail = json.RawMessage(detail)
			}
			list = append(list, h)
			return nil
		})
	if len(list) > most {
		return list[:most], true, err
	}
	return list, false, err
}
