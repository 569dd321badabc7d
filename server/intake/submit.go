package intake

import (
	"context"
	"errors"
	"fmt"
	"time"

	"muster/api"
	"muster/fleet"
	"muster/internal/wording"
	"muster/jobs"
	"muster/jobs/queue"
	"muster/jobs/trace"
	"muster/scripts"
	"muster/server/draft"
	"muster/server/fault"
	"muster/server/stock"
	"muster/server/web"
)

// PartsKept is the least time for which the parts of a task stay, once they were put.
const PartsKept = 24 * time.Hour

// An Answer is what becomes of a submit.
type Answer struct {
	Submitted api.Submitted
	Known     bool        // the task was there before
	Chain     *jobs.Chain // the chain that it would begin, of a dry run
	Follows   jobs.TaskID // the chain that it has begun
	Order     string      // the hash of the signed order of a new task; empty: there is none
}

// A submission is a submit on its way through the stages.
type submission struct {
	in      *Intake
	ask     Ask
	wrong   []error // all mistakes that were found and not yet reported
	catalog *scripts.Catalog
	stored  map[string]int64 // sizes of the stored contents that are named
	scene   stock.Scene
	draft   draft.Draft
	chain   *jobs.Chain // nil: the task is alone
	answer  Answer
}

// Submit makes a task of a request. Nothing runs before the last stage has ended.
func (in *Intake) Submit(ctx context.Context, a Ask) (Answer, error) {
	s := &submission{in: in, ask: a, wrong: a.Wrong, catalog: in.Catalog()}
	err := through(ctx,
		s.checkID,
		s.checkHold,
		s.checkLane,
		s.answerIfKnown,
		s.keepFiles,
		s.lookAtHosts,
		s.makeDraft,
		s.checkSecrets,
		s.refuseMistakes,
		s.checkRights,
		s.checkFacts,
		s.appoint,
		s.answerDryRun,
		s.beginChain,
		s.put,
	)
	return s.answer, err
}

func (s *submission) checkID(context.Context) error {
	if s.ask.Body.ID != "" {
		_, err := jobs.ParseTaskID(s.ask.Body.ID)
		s.wrong = append(s.wrong, fault.Each("body.id", err)...)
	}
	return nil
}

// checkHold refuses work that cannot wait for signatures of people.
func (s *submission) checkHold(context.Context) error {
	if s.ask.Glass != "" && !s.ask.Waits.Hold {
		s.wrong = append(s.wrong, fault.Each("query.break_glass",
			errors.New("it needs hold=true: the one who asks must sign the order"))...)
	}
	if !s.ask.Waits.Hold || s.ask.Body.DryRun {
		return nil
	}
	err := s.in.Entry.Signer.checkHold()
	if err == nil && draft.Chained(s.ask.Body) {
		err = errors.New("the tasks of a chain cannot wait for signatures: leave out staged and " +
			"roll_back, or do not hold it")
	}
	s.wrong = append(s.wrong, fault.Each("query.hold", err)...)
	return nil
}

// answerIfKnown answers a submit whose id is known already. The answer describes the stored task,
// even if the body would make another task today. If an earlier submit stored only the task's
// name, or some of its jobs, this submit goes on to complete it.
func (s *submission) answerIfKnown(ctx context.Context) error {
	id := jobs.TaskID(s.ask.Body.ID)
	if id == "" || len(s.wrong) > 0 || s.ask.Body.DryRun {
		return nil
	}
	t, err := s.in.Tasks.Task(ctx, id)
	if errors.Is(err, queue.ErrNotFound) {
		return s.notInHistory(ctx, id)
	}
	if err != nil {
		return err
	}
	if t.Operator != s.ask.Operator && !web.ViewOf(ctx).All() {
		return foreign(id)
	}
	if t.Runbook != s.ask.Body.Runbook || t.On != s.ask.Body.On || t.Operator != s.ask.Operator {
		return conflict(t.Task,
			fmt.Sprintf("it runs %s on %s for %s", t.Runbook, wording.Clip(t.On), t.Operator))
	}
	if t.Total == 0 {
		// It has its name in the lists, and no zone knows of it.
		if s.in.Now().Sub(t.Submitted.Time) < PartsKept {
			return nil
		}
		return conflict(t.Task, "it was submitted at "+t.Submitted.String()+
			", and what became of it is not kept any more")
	}
	if t.CancelledInSubmit {
		return neverComes(t.Task)
	}
	if t.State != jobs.TaskSubmitting {
		return s.repeat(t)
	}
	held, err := s.in.Holding.IsHeld(ctx, id)
	switch {
	case err != nil:
		return err
	case held && !s.ask.Waits.Hold:
		return conflict(id, "it waits for signatures, which `muster approvals show "+string(id)+
			"` shows")
	case held:
		return s.repeat(t)
	}
	if err := s.inLane(ctx, t); err != nil {
		return err
	}
	if now := s.in.Stock.Now(); now == nil || now.Version != t.Inventory {
		return conflict(t.Task, "an earlier submit got half way with inventory "+t.Inventory+
			", which is no longer in force; nothing of it has run, and it vanishes after a day")
	}
	return nil
}

// repeat answers with a task that is there.
func (s *submission) repeat(t jobs.TaskInfo) error {
	if draft.Chained(s.ask.Body) != (t.Chain != "") {
		return conflict(t.Task, "one of them is of a chain, the other is not")
	}
	s.answer = Answer{Submitted: api.Submitted{TaskInfo: t, Durable: s.in.Durable}, Known: true,
		Follows: t.Chain}
	return errAnswered
}

// notInHistory refuses an id of a task that Redis has forgotten: it may have run.
func (s *submission) notInHistory(ctx context.Context, id jobs.TaskID) error {
	if s.in.Past == nil {
		return nil
	}
	t, err := s.in.Past.Task(ctx, id)
	if err != nil { // it is not there; or history is away, which stops nobody
		return nil
	}
	if !web.ViewOf(ctx).All() {
		return foreign(id)
	}
	return conflict(id, "history knows it since "+t.Submitted.String()+", and Redis has forgotten "+
		"it; `muster task "+string(id)+"` shows what became of it")
}

// keepFiles makes contents of the files that are too large for a task.
func (s *submission) keepFiles(ctx context.Context) (err error) {
	s.ask.Body, s.stored, err = s.in.Files.Keep(ctx, s.ask.Body, s.catalog, s.ask.Operator)
	return err
}

func (s *submission) lookAtHosts(ctx context.Context) (err error) {
	s.scene, err = s.in.Look.Scene(ctx, s.ask.Body.On)
	return nothingAccepted(err)
}

func (s *submission) makeDraft(context.Context) error {
	var more []error
	s.draft, s.chain, more = draft.NewChain(s.ask.Body, draft.Setting{Catalog: s.catalog,
		Scene: s.scene, Operator: s.ask.Operator, Proven: s.ask.Proven, Now: s.in.Now(),
		Stored: s.stored}, s.in.Chance)
	s.draft.Task.Spec.Schedule, s.draft.Task.Spec.Reason = s.ask.Schedule, s.ask.Reason
	s.draft.Task.Trace = traceOf(s.ask.Trace)
	s.wrong = append(s.wrong, more...)
	return nil
}

func (s *submission) checkSecrets(context.Context) error {
	s.wrong = append(s.wrong, s.in.Sealer.Check(s.draft)...)
	return nil
}

func (s *submission) refuseMistakes(context.Context) error { return refuse(s.wrong, nil) }

func (s *submission) checkFacts(ctx context.Context) error {
	wrong, err := checkFacts(ctx, s.in.Look, s.scene, &s.draft)
	return refuse(wrong, nothingAccepted(err))
}

// appoint gives each host the opening in which its job begins.
func (s *submission) appoint(ctx context.Context) error {
	wrong, err := s.in.Openings.Appoint(ctx, &s.draft, s.ask.Body.Timed, nil)
	return refuse(wrong, nothingAccepted(err))
}

// answerDryRun shows what the draft would come to.
func (s *submission) answerDryRun(context.Context) error {
	if !s.ask.Body.DryRun {
		return nil
	}
	s.answer = Answer{Submitted: s.draft.Answer(s.in.Durable), Chain: s.chain}
	s.answer.Submitted.Hosts = fleet.Fold(s.draft.Names)
	return errAnswered
}

// beginChain keeps a chain and submits its first task. If this server dies in between, the chain
// is kept, and another server continues it.
func (s *submission) beginChain(ctx context.Context) error {
	if s.chain == nil {
		return nil
	}
	c := s.chain
	s.draft.Task.ID = c.ID
	end, err := s.in.Entry.order(ctx, &s.draft, "chain.submit", "")
	if err != nil {
		return fault.Later(err.Error())
	}
	kept, err := s.in.Chains.SaveChain(ctx, *c)
	end(resultOf(err))
	if err != nil {
		return fault.Later(fmt.Sprintf("%s; submit it again with id %s", err, c.ID))
	}
	if kept.Runbook != c.Runbook || kept.On != c.On || kept.Operator != c.Operator {
		return conflict(c.ID, "it is a chain of "+kept.Runbook+" on "+wording.Clip(kept.On))
	}
	if err := s.in.Advance(ctx, c.ID); err != nil {
		return fault.Later(fmt.Sprintf("%s; it is kept, and goes on when Redis is back: "+
			"submit it again with id %s to hear of it", err, c.ID))
	}
	s.draft.Task.ID, s.draft.Task.Spec.Chain = c.ID, c.ID
	s.answer.Follows = c.ID
	return s.accepted(ctx)
}

func (s *submission) put(ctx context.Context) error {
	s.draft.Waits, s.draft.Glass = s.ask.Waits, s.ask.Glass
	if err := s.in.Entry.Put(ctx, &s.draft); err != nil {
		return err
	}
	return s.accepted(ctx)
}

// accepted answers with the task as it is in the queue. It is accepted, whatever becomes of this
// look at it.
func (s *submission) accepted(ctx context.Context) error {
	s.answer.Submitted, s.answer.Order = s.draft.Answer(s.in.Durable), s.draft.Order
	if t, err := s.in.Tasks.Task(ctx, s.draft.Task.ID); err == nil {
		s.answer.Submitted.TaskInfo = t
	}
	return errAnswered
}

// nothingAccepted adds to an error of Redis that the submit had no effect.
func nothingAccepted(err error) error {
	if err == nil {
		return nil
	}
	return fault.Later(fmt.Sprintf("%s; nothing was accepted: submit it again", err))
}

// traceOf returns a traceparent in its plain form; empty: it is none.
func traceOf(text string) string {
	c, err := trace.Parse(text)
	if err != nil {
		return ""
	}
	return c.String()
}

func conflict(id jobs.TaskID, why string) error {
	return fault.Contradict(fmt.Sprintf("task %s is there already and is not this one: %s; "+
		"submit under another id, or without one", id, why))
}

// neverComes refuses a submit with the id of a task that was cancelled while it was submitted.
func neverComes(id jobs.TaskID) error {
	return fault.Contradict(fmt.Sprintf("submit task %s: %v", id, queue.ErrCancelled))
}
