package tasks

import (
	"context"
	"errors"
	"slices"

	"muster/api"
	"muster/jobs"
	"muster/server/fold"
	"muster/server/stock"
	"muster/server/web"
)

type (
	summaryInput struct {
		Task    string `path:"task"`
		Excerpt int    `query:"excerpt" minimum:"0" maximum:"163840" default:"4096" doc:"bytes of output shown of a group"`
	}
	summaryOutput struct{ Body api.Summary }
)

// summary folds the jobs of a task that have ended. It reads every output once, and keeps only its
// hash and an excerpt of each group.
func (s FollowRoutes) summary(ctx context.Context, in *summaryInput) (*summaryOutput, error) {
	t, past, err := s.Find.At(ctx, in.Task)
	if err != nil {
		return nil, err
	}
	if past {
		sum, err := s.pastSummary(ctx, t, in.Excerpt)
		if err != nil {
			return nil, web.Problem(err)
		}
		return &summaryOutput{sum}, nil
	}
	f := fold.New(in.Excerpt)
	gates, later := 0, s.Why.Awaits(ctx)
	waiting := s.Why.Lacks(later)
	marks := s.Find.marks(ctx, t.Task)
	err = s.Reads.Jobs.EachJob(ctx, t.Task, 0, web.JobsMax, func(chunk []jobs.JobInfo) error {
		for _, j := range chunk {
			if j.Gate != nil && j.Gate.Answer == "" {
				gates++
			}
		}
		if err := errors.Join(later.Add(ctx, t, chunk), waiting.Add(ctx, chunk)); err != nil {
			return err
		}
		ended := slices.DeleteFunc(chunk, func(j jobs.JobInfo) bool { return j.State != jobs.Ended })
		for part := range slices.Chunk(ended, fold.OutputsMax) {
			outputs, err := s.Groups.Outputs(ctx, t.Zones, ids(part))
			if err != nil {
				return err
			}
			for _, j := range part {
				f.Add(marked(j, marks[j.Host]), outputs[j.ID], s.Groups.Stock.Address(j.Host))
			}
		}
		return nil
	})
	if err != nil {
		return nil, web.Problem(err)
	}
	groups, err := s.Groups.Show(ctx, t.Zones, f)
	if err != nil {
		return nil, web.Problem(err)
	}
	return &summaryOutput{api.Summary{Task: t, Groups: groups, AtGates: gates, Waits: waiting.List(),
		Awaits: later.List()}}, nil
}

// pastSummary folds the jobs of a task that history has.
func (s FollowRoutes) pastSummary(ctx context.Context, t jobs.TaskInfo, excerpt int) (api.Summary,
	error) {
	list, err := s.Find.PastJobs(ctx, t.Task)
	if err != nil {
		return api.Summary{}, err
	}
	f := fold.New(excerpt)
	for _, j := range list {
		said, err := s.Find.History.Output(ctx, j.ID)
		if err != nil {
			return api.Summary{}, err
		}
		f.Add(j, said, s.Groups.Stock.Address(j.Host))
	}
	groups, err := s.Groups.Show(ctx, nil, f)
	return api.Summary{Task: t, Groups: groups}, err
}

// Groups reads the outputs that a summary compares.
type Groups struct {
	Said  Outputs
	Stock *stock.Store
}

// Show returns the biggest groups of a folder, and one for the rest.
func (s Groups) Show(ctx context.Context, zones []string, f *fold.Folder) ([]api.Alike,
	error) {
	return f.Groups(fold.GroupsMax, func(missing []jobs.ID) (map[jobs.ID][]byte, error) {
		return s.Outputs(ctx, zones, missing)
	})
}

// Outputs returns the outputs of some jobs without the lines of muster. A job does not name its
// zone, and a look at a zone without it costs little.
func (s Groups) Outputs(ctx context.Context, zones []string,
	list []jobs.ID) (map[jobs.ID][]byte, error) {
	all := make(map[jobs.ID][]byte, len(list))
	for _, zone := range zones {
		some, err := s.Said.Outputs(ctx, zone, list)
		if err != nil {
			return nil, err
		}
		for id, o := range some {
			all[id] = plain(o.Theirs(), 0)
		}
	}
	return all, nil
}

func ids(list []jobs.JobInfo) []jobs.ID {
	out := make([]jobs.ID, len(list))
	for i, j := range list {
		out[i] = j.ID
	}
	return out
}
