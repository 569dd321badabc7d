package attempt

import (
	"context"
	"errors"
	"fmt"
	"time"

	"muster/fleet/remote"
	"muster/jobs"
	"muster/scripts"
	"muster/worker/verdict"
)

// This file asks a host how a job ended whose outcome is unknown, because a person ordered that. It
// begins, stops and awaits nothing of the job, whatever the host says.

// glanceTime bounds the question to the host. A host answers at once.
const glanceTime = 15 * time.Second

// A looker looks at the record of a job that has ended.
type looker struct{ *Attempt }

// find asks the host, and gives its answer to the queue. There is no result, because the job has
// ended. If the queue does not take the answer, find gives up, and the queue hands out the order
// again.
func (l looker) find(ctx context.Context) Ending {
	defer l.hangUp()
	over := Ending{Token: l.grant.Token, Stale: true}
	defer func() {
		if p := recover(); p != nil {
			l.logger().Error("panic in a question to a host", "panic", p)
		}
	}()
	r := l.read(ctx)
	if verdict.CauseOf(ctx) != nil && !errors.Is(verdict.CauseOf(ctx), verdict.ErrOverdue) {
		return over // the worker was stopped
	}
	r.Job, r.Token, r.Words = l.grant.Job, l.grant.Token, verdict.OneLine(r.Words)
	tell, cancel := context.WithTimeout(context.WithoutCancel(ctx), l.env.Config.Call)
	defer cancel()
	if l.env.Answer == nil {
		return over
	}
	if err := l.env.Answer(tell, l.zone, r); err != nil {
		l.logger().Warn("the queue did not take the answer of a host", "answer", r.Answer, "error",
			err)
		return over
	}
	l.logger().Info("a host answered how a job ended", "answer", r.Answer, "words", r.Words)
	return over
}

// read asks the host.
func (l looker) read(ctx context.Context) jobs.Reading {
	action, why := l.lastStep(ctx)
	if why != "" {
		return jobs.Reading{Answer: jobs.AnswerUntold, Words: why}
	}
	if err := (entry{l.Attempt}).trusted(ctx); err != nil {
		return jobs.Reading{Answer: jobs.AnswerUntold, Words: err.Error()}
	}
	conn, err := l.connect(ctx)
	if err != nil {
		return jobs.Reading{Answer: jobs.AnswerUnreachable, Words: verdict.Reason(err)}
	}
	l.conn = conn
	l.records().learnCommit(ctx)
	began := jobs.Token(0)
	f := l.glance(ctx, action, &began)
	r := l.judged(ctx, f)
	r.Began = began
	return r
}

// lastStep returns the step at which the job ended, or why no host can answer about that step.
func (l looker) lastStep(ctx context.Context) (action scripts.Action, why string) {
	g := l.grant
	switch {
	case g.Host == nil:
		return action, "the host is not in inventory version " + l.plan.Spec.Inventory
	case l.plan.Err != nil:
		return action, l.plan.Err.Error()
	case g.Step < 0 || g.Step >= len(l.plan.Book.Steps):
		return action, fmt.Sprintf("the job ended at step %d of a runbook with %d steps", g.Step+1,
			len(l.plan.Book.Steps))
	}
	if err := (entry{l.Attempt}).unseal(ctx); err != nil {
		return action, "its secrets cannot be covered in the output of the host: " + err.Error()
	}
	action, err := l.action(g.Step)
	switch {
	case err != nil:
		return action, err.Error()
	case !verdict.KeepsRecords(g.Host):
		return action, "the host keeps no record (fence: none)"
	case !verdict.Recorded(g.Host, action):
		return action, fmt.Sprintf("hosts keep no record of a step of kind %s (%s)", action.Kind,
			l.evidenceFor(action).StepWords())
	}
	return action, ""
}

// glance asks for the record of the step, under the token of the order. This token is newer than
// those of all attempts, so the host refuses all of them from then on if the step never began.
func (l looker) glance(ctx context.Context, action scripts.Action,
	began *jobs.Token) verdict.Evidence {
	record := l.records().Numbered(l.memory.Again)
	record.Again, record.Look, record.Glance, record.Marked = true, true, true, false
	record.Peek = l.grant.Mode == jobs.ModePeek
	if len(l.plan.Book.Steps) > 1 {
		notes{l.Attempt}.Remark(action.Name, "")
	}
	run := l.records().Run(action, record)
	l.transcript.Begins(run)
	f := l.evidenceFor(action)
	f.Order = nil // a cancel has no effect on a job that has ended
	f.Result, f.Err = l.conn.Run(ctx, remote.Command{Shell: ":", Bound: glanceTime, Record: record,
		Attached: func(token int64) {
			*began = jobs.Token(token)
			run.Token = *began
			l.transcript.TakeOver(run)
		}})
	notes{l.Attempt}.Hear(&f.Result)
	return l.withMemory(f)
}

// judged returns the answer for the queue, by the record of the host.
func (l looker) judged(ctx context.Context, f verdict.Evidence) jobs.Reading {
	var e *remote.Error
	if f.Err != nil && !errors.As(f.Err, &e) {
		return jobs.Reading{Answer: jobs.AnswerUnreachable, Words: f.Err.Error()}
	}
	if e == nil {
		return l.settled(l.end(f))
	}
	words := f.Place() + verdict.Reason(f.Err)
	switch e.Kind {
	case remote.KindTimeout, remote.KindStopped:
		if e.Sent {
			return l.settled(l.end(f))
		}
	case remote.KindWork:
		return jobs.Reading{Answer: jobs.AnswerRunning,
			Words: fmt.Sprintf("%s, for at most %s more", words, e.Wait.Round(time.Second))}
	case remote.KindRunning:
		return jobs.Reading{Answer: jobs.AnswerRunning, Words: words}
	case remote.KindNever:
		if l.grant.Mode == jobs.ModePeek {
			return jobs.Reading{Answer: jobs.AnswerBusy, Words: words + " so far; another job has the " +
				"host, so it cannot be told to refuse the step: ask again"}
		}
		return l.settled(l.stepNeverBegan(ctx, f))
	case remote.KindGone:
		return jobs.Reading{Answer: jobs.AnswerGone, Words: words, Over: true}
	case remote.KindUntold, remote.KindRecord:
		return jobs.Reading{Answer: jobs.AnswerUntold, Words: words}
	case remote.KindBusy, remote.KindStale:
		return jobs.Reading{Answer: jobs.AnswerBusy, Words: words + ": ask again"}
	}
	return jobs.Reading{Answer: jobs.AnswerUnreachable, Words: words}
}

// settled returns the answer for an end; if the end is unknown, the answer says why.
func (l looker) settled(end jobs.Result) jobs.Reading {
	if end.Outcome == jobs.Unknown {
		return jobs.Reading{Answer: jobs.AnswerDoubt, Words: end.Error, Over: true}
	}
	end.Token = l.grant.Token
	end.Output, end.Gap = l.transcript.Output()
	end.Runs = l.transcript.RunsFor(jobs.KindEnd)
	return jobs.Reading{Answer: jobs.AnswerSettled,
		Words: verdict.Also(string(end.Outcome), end.Error), Over: true, End: &end}
}

// end returns the end of a job, by the record of its last step. The steps after that one never
// began, and nobody does them now: a job with a missing step has failed.
func (l looker) end(f verdict.Evidence) jobs.Result {
	r, lost := verdict.SecretsLost(f)
	goOn := false
	if !lost {
		r, goOn = verdict.Judge(f, 0)
	}
	switch {
	case goOn:
		r = l.rest(f)
	case r.Kind != jobs.KindEnd: // a further try would have followed
		r = f.EndOf(jobs.Failed, jobs.ClassTransient, r.Error+"; it was not tried again")
		r.ExitCode = exitOf(f)
	case verdict.Rescues(f, r):
		r.Class = jobs.ClassOperator
		r.Error = verdict.OneLine(verdict.Shortened(r.Error, verdict.NoteMax) + "; its on_fail never ran")
	}
	return course{l.Attempt}.conclude(r)
}

func exitOf(f verdict.Evidence) *int {
	code := f.Result.ExitCode
	if f.Err != nil || code < 0 {
		return nil
	}
	return &code
}

// rest returns the end of a job whose last step ended well: the job is through if all steps after
// it are skipped, and else it has failed.
func (l looker) rest(f verdict.Evidence) jobs.Result {
	well := f.StepWords()
	step := course{l.Attempt}
	step.GoOn(f.Finding().Saved)
	for ; !step.over(); step.GoOn(nil) {
		next, err := l.action(l.step)
		if err == nil && next.Skip != "" {
			continue
		}
		missing := l.evidenceFor(next)
		return missing.EndOf(jobs.Failed, jobs.ClassOperator, fmt.Sprintf("%s ended well, and nothing "+
			"was done after it: %s never began", well, missing.StepWords()))
	}
	return l.withMemory(f).Through()
}

// stepNeverBegan returns the end of a job whose step never began, and cannot begin any more.
func (l looker) stepNeverBegan(ctx context.Context, f verdict.Evidence) jobs.Result {
	text := f.StepWords() + " never began"
	if f.Step == 0 {
		text += ": nothing of the job ran"
	}
	ctx, cancel := context.WithTimeout(ctx, l.env.Config.Call)
	defer cancel()
	notes, err := l.env.Queue.Stops(ctx, l.zone, []jobs.ID{l.grant.Job})
	if note := notes[l.grant.Job]; err == nil && note != "" && l.memory.Failed == nil {
		return f.EndOf(jobs.Cancelled, jobs.ClassNone, verdict.Shortened(note, verdict.NoteMax)+"; "+text)
	}
	return course{l.Attempt}.conclude(f.EndOf(jobs.Failed, jobs.ClassOperator, text))
}
