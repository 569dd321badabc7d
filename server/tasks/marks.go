package tasks

import (
	"context"

	"muster/api"
	"muster/history"
	"muster/jobs"
)

// marks returns whose word the end of each job of a task is, by host, as far as history knows. If
// history is away, health and every answer of history say so; the jobs are shown all the same.
func (f Finder) marks(ctx context.Context, id jobs.TaskID) map[string]api.Proof {
	if f.History == nil {
		return nil
	}
	marks, err := history.Proofs(ctx, f.History, id)
	if err != nil {
		return nil
	}
	return marks
}

// marked adds to a job that its end is not proven.
func marked(j jobs.JobInfo, p api.Proof) jobs.JobInfo {
	if p == api.NotProven && j.State == jobs.Ended {
		j.Note = api.WithoutProof(j.Note)
	}
	return j
}

// Marked is marked for the jobs of one task.
func (f Finder) Marked(ctx context.Context, id jobs.TaskID, list []jobs.JobInfo) {
	marks := f.marks(ctx, id)
	for i, j := range list {
		list[i] = marked(j, marks[j.Host])
	}
}
