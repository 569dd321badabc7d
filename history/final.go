package history

import (
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"slices"

	"muster/api"
	"muster/jobs"
)

// A Contradiction is a second end of a job that differs from the stored one. The stored one stays.
type Contradiction struct {
	Job   api.PastJob  // the job by the later event
	First jobs.Outcome // the stored outcome
}

// ends stores the ends and the output of jobs, and returns the jobs that it has stored. It
// replaces nothing of a job that is stored with another final outcome.
func (s *Store) ends(ctx context.Context, tx *sql.Tx, list []api.PastJob,
	said map[jobs.ID]jobs.Output) (taken []api.PastJob, against []Contradiction, err error) {
	rows := jobRows(list)
	n, err := s.count(ctx, tx, jobTable, rows)
	if err != nil {
		return nil, nil, err
	}
	if taken = list; n < int64(len(rows)) {
		if against, err = contradictions(ctx, tx, list); err != nil {
			return nil, nil, err
		}
		taken = slices.DeleteFunc(slices.Clone(list), func(j api.PastJob) bool {
			return slices.ContainsFunc(against, func(c Contradiction) bool { return c.Job.ID == j.ID })
		})
	}
	output, err := s.outputRows(taken, said)
	if err != nil {
		return nil, nil, err
	}
	return taken, against, s.insert(ctx, tx, outputTable, output)
}

// contradictions returns the jobs that are stored with another outcome.
func contradictions(ctx context.Context, tx *sql.Tx, list []api.PastJob) (out []Contradiction,
	err error) {
	for _, j := range list {
		var known string
		err := tx.QueryRowContext(ctx, "select outcome from jobs where task = $1 and host = $2",
			string(j.ID.Task()), j.ID.Host()).Scan(&known)
		if err != nil {
			return nil, fmt.Errorf("jobs: %w", err)
		}
		if jobs.Outcome(known) != j.Outcome {
			out = append(out, Contradiction{j, jobs.Outcome(known)})
		}
	}
	return out, nil
}

// contradictionRows returns the event rows that record contradictions, at a position of a stream.
func contradictionRows(b Batch, list []Contradiction) (out [][]any) {
	for _, c := range list {
		detail, _ := json.Marshal(map[string]any{"known": c.First, "outcome": c.Job.Outcome,
			"error": c.Job.Error}) // only texts: no error is possible
		out = append(out, []any{b.Zone, b.Last, micros(c.Job.Finished), "contradiction", string(c.Job.ID),
			string(c.Job.ID.Task()), clean(string(detail)), ""})
	}
	return out
}
