package history

import (
	"cmp"
	"context"
	"database/sql"
	"encoding/json"
	"slices"
	"time"

	"muster/api"
	"muster/jobs"
)

// SavePlan stores a plan, so that it can be compared with its task later.
func (s *Store) SavePlan(ctx context.Context, p api.Plan) error {
	body, err := json.Marshal(p)
	if err != nil {
		return err
	}
	return s.tx(ctx, "save a plan", func(tx *sql.Tx) error {
		_, err := tx.ExecContext(ctx, "insert into plans (id, task, at, runbook, target, body) "+
			"values ($1, '', $2, $3, $4, $5)", p.ID, micros(p.At), clean(p.Runbook), clean(p.On),
			clean(string(body)))
		return err
	})
}

// PlanFor is the time after a plan in which a task of the same runbook, selector and operator
// counts as the planned one.
const PlanFor = time.Hour

// Calibrate compares the plans since an instant with the tasks that followed them.
func (s *Store) Calibrate(ctx context.Context, since time.Time) (api.Calibration, error) {
	c := api.Calibration{Compared: []api.Compared{}}
	var plans []api.Plan
	err := s.rows(ctx, "calibrate",
		"select body from plans where at >= $1 order by at desc limit 1000",
		[]any{int64(jobs.MicrosOf(since))}, func(scan func(...any) error) error {
			var body string
			if err := scan(&body); err != nil {
				return err
			}
			var p api.Plan
			err := json.Unmarshal([]byte(body), &p)
			plans = append(plans, p)
			return err
		})
	if err != nil {
		return c, err
	}
	c.Plans = len(plans)
	taken := map[jobs.TaskID]bool{}
	for _, p := range plans {
		from := jobs.MicrosOf(p.At.Time)
		list, err := s.tasks(ctx, `where runbook = $1 and target = $2 and operator = $3 and
			submitted >= $4 and submitted < $5 order by submitted limit 1`, p.Runbook, p.On, p.Operator,
			int64(from), int64(from.Add(PlanFor)))
		if err != nil {
			return c, err
		}
		// Of several plans for a task the last one counts, and the last one comes first.
		if len(list) == 0 || taken[list[0].Task] {
			continue
		}
		taken[list[0].Task] = true
		t, err := s.Task(ctx, list[0].Task)
		if err != nil {
			return c, err
		}
		c.Compared = append(c.Compared, compare(p, t))
	}
	judge(&c)
	return c, nil
}

// compare compares a plan with its task.
func compare(p api.Plan, t jobs.TaskInfo) api.Compared {
	c := api.Compared{Plan: p, Task: t.Task, State: string(t.State), Hosts: t.Total}
	if !p.Done.IsZero() {
		c.Expected = p.Done.Sub(p.At.Time)
	}
	if t.State != jobs.TaskEnded || t.Finished.IsZero() {
		return c
	}
	c.Undone = t.Total - t.Outcomes[jobs.Succeeded]
	c.Actual = max(t.Finished.Sub(t.Submitted.Time), 1)
	if c.Expected > 0 {
		c.Off = float64(c.Actual) / float64(c.Expected)
	}
	return c
}

func judge(c *api.Calibration) {
	var offs []float64
	for _, one := range c.Compared {
		if one.Off == 0 {
			continue
		}
		offs = append(offs, one.Off)
		if one.Off > api.WrongBy || one.Off < 1.0/api.WrongBy {
			c.Wrong++
		}
	}
	if len(offs) > 0 {
		slices.SortFunc(offs, cmp.Compare[float64])
		c.Median = offs[(len(offs)-1)/2]
	}
}
