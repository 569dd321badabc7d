package submit

import (
	"context"
	"net/http"
	"os"
	"time"

	"muster/api"
	"muster/cli"
	"muster/cli/approvals"
	"muster/cli/watch"
	"muster/jobs"
	"muster/jobs/trace"
)

// Run submits a task and, unless told otherwise, follows it.
func Run(ctx context.Context, s *cli.Session, f RunFlags, runbook string) error {
	end, err := takeLarge(ctx, s, &f)
	defer end()
	if err != nil {
		return err
	}
	var signer approvals.Signer
	if f.watch.held.signs() {
		if signer, err = approvals.NewSigner(""); err != nil {
			return cli.Exit(cli.ExitUsage, err)
		}
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
	if text := os.Getenv("TRACEPARENT"); text != "" {
		if _, wrong := trace.Parse(text); wrong != nil {
			s.Say("TRACEPARENT is not used: %s", cli.SaidCell(wrong.Error()))
		}
	}
	t, err := f.handIn(ctx, s, b)
	if err != nil {
		return SubmitEnding(ctx, b, err)
	}
	if f.watch.held.any() {
		if runs, err := f.watch.held.wait(ctx, s, signer, asked{b, t}); err != nil || !runs {
			return err
		}
		if t.TaskInfo, err = s.Client.Task(ctx, t.Task, 0, 0); err != nil {
			return err
		}
	}
	if err := f.turn.say(ctx, s, t.TaskInfo); err != nil {
		return err
	}
	return f.follow(ctx, s, b, t)
}

// handIn sends a submit, and again if there was no answer.
func (f RunFlags) handIn(ctx context.Context, s *cli.Session, b api.Submit) (api.Submitted,
	error) {
	again := func(error, time.Duration) { s.Say("no answer, trying again") }
	query := f.turn.query()
	switch {
	case f.watch.held.any():
		query = f.watch.held.query()
	case len(query) == 0:
		return s.Client.Submit(ctx, b, again)
	}
	return cli.HandIn[api.Submitted](ctx, s.Client, jobs.TaskID(b.ID), cli.Call{
		Method: http.MethodPost, Path: "/v1/tasks", Query: query, Body: b,
		Bound: cli.SubmitTimeout}, again)
}

// follow shows a task that was accepted, and follows it unless told otherwise.
func (f RunFlags) follow(ctx context.Context, s *cli.Session, b api.Submit,
	t api.Submitted) error {
	switch {
	case b.DryRun:
		return ShowPlan(ctx, s, t)
	case s.JSON && !f.watch.wait:
		return s.WriteJSON(t)
	case f.watch.detach:
		s.Say("%s", Accepted(t))
		SayPlan(s.Screen, t)
		watch.Stands(ctx, s, t.Task)
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
