// Package courses reads the courses of many jobs at once: their attempts and the steps that they
// began, and when the jobs of a task could first run.
//
// Floor 4: may import history, api, jobs.
package courses

import (
	"context"
	"fmt"
	"strings"
	"time"

	"muster/api"
	"muster/history"
	"muster/jobs"
)

// Of returns the courses of jobs of one task, by host, the first attempt and step first.
func Of(ctx context.Context, s *history.Store, task jobs.TaskID, hosts []string) (
	map[string]api.Course, error) {
	out := make(map[string]api.Course, len(hosts))
	marks, args := make([]string, len(hosts)), []any{string(task)}
	for i, host := range hosts {
		args = append(args, host)
		marks[i] = fmt.Sprintf("$%d", i+2)
	}
	if len(hosts) == 0 {
		return out, nil
	}
	which := "where task = $1 and host in (" + strings.Join(marks, ", ") + ")"
	h := history.HandleOf(s)
	err := h.Rows(ctx, "attempts", "select host, attempt, node, started, ended, how from attempts "+
		which+" order by host, attempt", args, func(scan func(...any) error) error {
		var host string
		var a api.Attempt
		var started, ended int64
		err := scan(&host, &a.Attempt, &a.Node, &started, &ended, &a.How)
		a.Started, a.Ended = instant(started), instant(ended)
		c := out[host]
		c.Attempts = append(c.Attempts, a)
		out[host] = c
		return err
	})
	if err != nil {
		return nil, err
	}
	err = h.Rows(ctx, "steps", "select host, step, at from steps "+which+" order by host, at", args,
		func(scan func(...any) error) error {
			var host string
			var b api.StepBegun
			var at int64
			err := scan(&host, &b.Step, &at)
			b.At = instant(at)
			c := out[host]
			c.Steps = append(c.Steps, b)
			out[host] = c
			return err
		})
	return out, err
}

// Committed returns when the jobs of a task could run in all its zones; zero: it is not known.
func Committed(ctx context.Context, s *history.Store, task jobs.TaskID) (at time.Time, err error) {
	err = history.HandleOf(s).Rows(ctx, "events", "select coalesce(max(at), 0) from events where "+
		"task = $1 and object = $1 and event = 'commit'", []any{string(task)},
		func(scan func(...any) error) error {
			var us int64
			err := scan(&us)
			at = instant(us).Time
			return err
		})
	return at, err
}

// instant returns an instant of a table; 0 is not set.
func instant(us int64) jobs.Time {
	if us == 0 {
		return jobs.Time{}
	}
	return jobs.TimeOf(jobs.Micros(us))
}
