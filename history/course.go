package history

import (
	"context"

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
