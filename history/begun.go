package history

import (
	"context"

	"muster/jobs"
)

// Begun lists the jobs of a task that have begun and whose end is not known, by host, from the
// host after `after` on. Each has the number and the node of its last attempt, and the state lost.
// Deferred and returned attempts do not count, because they did nothing.
func (s *Store) Begun(ctx context.Context, id jobs.TaskID, after string, most int) (
	list []jobs.JobInfo, err error) {
	err = s.rows(ctx, "list attempts", `select host, attempt, node, started from attempts as a
		where task = $1 and host > $2 and how not in ('defer', 'back') and attempt = (select
			max(attempt) from attempts where task = a.task and host = a.host and
			how not in ('defer', 'back'))
		and not exists (select 1 from jobs where task = a.task and host = a.host)
		order by host limit $3`, []any{string(id), after, most},
		func(scan func(...any) error) error {
			j := jobs.JobInfo{State: jobs.Lost}
			var attempt, started int64
			err := scan(&j.Host, &attempt, &j.Node, &started)
			j.ID, j.Attempt, j.Started = jobs.NewID(id, j.Host), int(attempt), instant(started)
			list = append(list, j)
			return err
		})
	return list, err
}
