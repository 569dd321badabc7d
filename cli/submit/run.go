package submit

import (
	"context"
	"time"

	"muster/cli"
	"muster/cli/watch"
	"muster/jobs"
)

// Run submits a task and, unless told otherwise, follows it.
func Run(ctx context.Context, s *cli.Session, f RunFlags, runbook string) error {
	end, err := takeLarge(ctx, s, &f)
	defer end()
	if err != nil {
		return err
	}
	ask := KeyholeOf(s.Screen)
	if f.dry {
		ask = nil
	}
	secrets, err := f.TakeSecrets(ctx, s.Client, runbook, ask, cli.ArgFiles(ctx))
	if err != nil {
		return err
	}
	if secrets, err = f.WithBecome(ctx, secrets, ask, cli.ArgFiles(ctx)); err != nil {
		return cli.Exit(cli.ExitUsage, err)
	}
	b, err := f.Submit(runbook, s.Now(), s.Files.Reader(ctx))
	if err != nil {
		return cli.Exit(cli.ExitUsage, err)
	}
	b.As, b.Secrets = s.As, secrets
	if b.ID == "" && !b.DryRun {
		b.ID = string(jobs.NewTaskID(s.Now(), cli.Chance()))
	}
	t, err := s.Client.Submit(ctx, b, func(error, time.Duration) {
		s.Say("no answer, trying again")
	})
	if err != nil {
		return SubmitEnding(ctx, b, err)
	}
	switch {
	case b.DryRun:
		return ShowPlan(s.Screen, t)
	case s.JSON && !f.watch.wait:
		return s.WriteJSON(t)
	case f.watch.detach:
		s.Say("%s", Accepted(t))
		SayPlan(s.Screen, t)
		if t.Follows != nil {
			s.Say("look at it with `muster rollout show %s`", t.Task)
		} else {
			s.Say("follow it with `muster task %s --wait`", t.Task)
		}
		return s.Write(cli.Cell(string(t.Task)) + "\n")
	case !s.JSON:
		s.Say("%s", Accepted(t))
		SayPlan(s.Screen, t)
	}
	if t.Follows != nil {
		return watch.ToTheEndOfChain(ctx, s, *t.Follows)
	}
	return watch.ToTheEnd(ctx, s, t.TaskInfo)
}
