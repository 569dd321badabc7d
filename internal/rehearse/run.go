package rehearse

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"time"

	"muster/fleet"
	"muster/internal/seal"
	"muster/jobs"
	"muster/scripts"
	"muster/windows"
	"muster/worker"
	"muster/worker/attempt"
)

const (
	hostName    = "pretended"
	hostAddress = "192.0.2.1"
	taskID      = jobs.TaskID("0000000001")
	zone        = "default"

	// attemptsMax bounds the attempts at a job: a month of waits, a minute apart.
	attemptsMax = 50_000

	// started is the pretended time at which every rehearsal begins.
	started = 1_767_225_600 * time.Second // 2026-01-01
)

// Result is the result of a case.
type Result struct {
	File    string            `json:"file"`
	Line    int               `json:"line"`
	Case    string            `json:"case"`
	OK      bool              `json:"ok"`
	Wrong   []string          `json:"wrong,omitempty"` // what is not as it should be
	Refused string            `json:"refused,omitempty"`
	Outcome jobs.Outcome      `json:"outcome,omitempty"`
	Class   jobs.Class        `json:"class,omitempty"`
	Error   string            `json:"error,omitempty"`
	Steps   []string          `json:"steps"`
	Saved   map[string]string `json:"saved,omitempty"`
	Took    float64           `json:"took_seconds"` // in pretended time

	runs map[string]string // the last text of each step
}

// Check reports cases that name steps which the runbook does not have.
func (s *Suite) Check(r *scripts.Runbook) error {
	var known []string
	for _, step := range r.Steps {
		known = append(known, step.Name)
	}
	var wrong scripts.Mistakes
	for _, c := range s.Cases {
		for _, name := range slices.Sorted(maps.Keys(c.named)) {
			if at := c.named[name]; !slices.Contains(known, name) {
				wrong = append(wrong, scripts.Mistake{File: s.File, Line: at.Line, Col: at.Column,
					Text: fmt.Sprintf("case %q: runbook %s has no step %q: %s", c.Name, r.Name, name,
						scripts.Instead(name, known))})
			}
		}
	}
	if len(wrong) > 0 {
		return wrong
	}
	return nil
}

// Run runs one case. Its error concerns the rehearsal itself, not the result of the case.
func (s *Suite) Run(ctx context.Context, r *scripts.Runbook, c Case) (Result, error) {
	result := Result{File: s.File, Line: c.Line, Case: c.Name, Steps: []string{}}
	host := fleet.Host{Name: hostName, Address: hostAddress, Port: 22, Zone: zone,
		Fence: fleet.FenceNone, Customer: c.Host.Customer, Labels: c.Host.Labels}
	if c.Host.Name != "" {
		host.Name = c.Host.Name
	}
	if c.Host.Address != "" {
		host.Address = c.Host.Address
	}
	frozen, err := c.freeze(r, host)
	if err != nil {
		result.Refused = err.Error()
	} else if err := result.play(ctx, c, frozen, host); err != nil {
		return result, err
	}
	return c.judge(result), nil
}

// freeze makes of the runbook and the arguments of a case what a task carries.
func (c Case) freeze(r *scripts.Runbook, host fleet.Host) (scripts.Frozen, error) {
	given := scripts.Given{Args: c.Args, Secrets: map[string]seal.Text{}, Files: map[string][]byte{}}
	for name, text := range c.Secrets {
		given.Secrets[name] = seal.Text(text)
	}
	for name, text := range c.Files {
		given.Files[name] = []byte(text)
	}
	values, err := r.BindGiven(given)
	if err != nil {
		return scripts.Frozen{}, err
	}
	frozen, err := r.Freeze(values).Only(c.Only)
	if err != nil {
		return frozen, err
	}
	return frozen, frozen.Check(host)
}

// rehearsal is a queue of one job, and its clock.
type rehearsal struct {
	*stage
	book    scripts.Frozen
	clock   time.Duration // since 1970, in pretended time
	result  jobs.Result
	results int
}

// play lets a worker do the job, attempt by attempt.
func (r *Result) play(ctx context.Context, c Case, book scripts.Frozen, host fleet.Host) error {
	keys, err := seal.ParseKeys([]byte(seal.FormatKey([seal.KeySize]byte{})))
	if err != nil {
		return err
	}
	err = book.Seal(func(argument string, text seal.Text) (string, error) {
		return keys.Seal(string(taskID), argument, text)
	})
	if err != nil {
		return err
	}
	play := &rehearsal{book: book, clock: started, stage: &stage{answers: c.Answers,
		given: map[string]int{}, ran: map[string]string{}}}
	spec, err := play.spec()
	if err != nil {
		return err
	}
	grant := jobs.Grant{Job: jobs.NewID(taskID, host.Name), Mode: jobs.ModeFresh, Host: &host,
		Timeout: spec.Timeout}
	for grant.Attempt = 1; grant.Attempt <= attemptsMax; grant.Attempt++ {
		grant.Token = jobs.Token(play.clock.Microseconds())
		if err := play.attempt(ctx, grant, spec, keys); err != nil {
			return err
		}
		last := play.result
		if last.Kind == jobs.KindEnd {
			r.end(play)
			return nil
		}
		play.clock += max(last.Delay, time.Millisecond)
		grant.Mode, grant.Step, grant.Saved = jobs.ModeContinue, last.Step, last.Saved
		switch last.Kind {
		case jobs.KindRetry:
			grant.Tries++
		case jobs.KindVerify:
			grant.Probes++
		}
	}
	return fmt.Errorf("case %q: the job does not end after %d attempts", c.Name, attemptsMax)
}

// end reads what came of the job.
func (r *Result) end(p *rehearsal) {
	var kept struct {
		Saved map[string]string `json:"saved"`
	}
	// The saved data of a worker is JSON, or empty.
	_ = json.Unmarshal([]byte(p.result.Saved), &kept)
	r.Outcome, r.Class, r.Error = p.result.Outcome, p.result.Class, p.result.Error
	r.Steps, r.Saved, r.Took = p.steps, kept.Saved, (p.clock - started).Seconds()
	if r.Steps == nil {
		r.Steps = []string{}
	}
	r.runs = p.ran
}

// spec is that of the task. Windows and limits are not pretended.
func (p *rehearsal) spec() (jobs.Spec, error) {
	longest := time.Second
	for _, step := range p.book.Steps {
		longest = max(longest, step.Timeout)
	}
	action, err := json.Marshal(p.book)
	policy := jobs.Policy{Tries: p.book.Retry.Submit, Delay: p.book.Retry.Delay}
	return jobs.Spec{Runbook: p.book.Runbook, Timeout: jobs.AttemptTimeout(longest), Retry: policy,
		Repeatable: p.book.Repeatable, Action: action,
		Terms: jobs.Terms{Disruptive: p.book.Disruptive}}, err
}

// attempt hands the job to a worker that takes no other.
func (p *rehearsal) attempt(ctx context.Context, g jobs.Grant, spec jobs.Spec, k seal.Keys) error {
	p.at(g.Step)
	results := p.results
	w, err := worker.New(worker.Default(), worker.Doors{Queue: p, Times: p,
		Steps: attempt.Doors{Queue: p, Unseal: k.Open, Play: p.plays, Dial: func(ctx context.Context,
			h fleet.Host) (attempt.Conn, error) {
			c, err := p.dial(ctx, h)
			if err != nil {
				return nil, err
			}
			return c, nil
		}},
		Clock: func() time.Duration { return p.clock }})
	if err != nil {
		return err
	}
	orders := make(chan jobs.Order, 1)
	orders <- jobs.OrderDrain
	err = w.Run(ctx, jobs.Handover{Node: "pretended", Slot: "1", Zone: zone, Sent: p.clock,
		Reply: jobs.Reply{Status: jobs.StatusJobs, Now: jobs.Micros(g.Token), Jobs: []jobs.Grant{g},
			Specs: map[jobs.TaskID]jobs.Spec{taskID: spec}}},
		worker.Master{Orders: orders, Report: func(jobs.Report) {}})
	if err == nil && p.results == results {
		err = errors.New("the worker said nothing of the job: a mistake in muster")
	}
	return err
}

// at says which step is in hand.
func (p *rehearsal) at(step int) {
	if step >= 0 && step < len(p.book.Steps) {
		p.step, p.kind = p.book.Steps[step].Name, p.book.Steps[step].Kind
	}
}

// Step takes the result of the job.
func (p *rehearsal) Step(_ context.Context, _ string, s jobs.Step) (jobs.Reply, error) {
	for _, r := range s.Results {
		p.result = r
		p.results++
	}
	now := jobs.Micros(p.clock.Microseconds())
	return jobs.Reply{Status: jobs.StatusNext, Now: now, Next: now.Add(time.Hour)}, nil
}

// Checkpoint lets every step begin.
func (p *rehearsal) Checkpoint(_ context.Context, _ string, c jobs.Checkpoint) (jobs.Verdict,
	error) {
	p.at(c.Step)
	return jobs.Go, nil
}

// Gate is the person of the case, who opens if it says nothing else: an exit other than 0
// refuses, and one who is unreachable never answers.
func (p *rehearsal) Gate(_ context.Context, _ string, _ jobs.ID, step int) (jobs.GateAnswer,
	error) {
	p.at(step)
	if p.away() {
		return jobs.GateAnswer{}, nil
	}
	p.came(p.book.Steps[step].Spec.(*scripts.GateSpec).Question)
	a := p.next()
	if a.Exit != 0 {
		return jobs.GateAnswer{Word: jobs.GateRefuse, Note: "refused: " + a.Output}, nil
	}
	return jobs.GateAnswer{Word: jobs.GateOpen, Note: "opened: " + a.Output}, nil
}

// CloseGate says that nobody came.
func (*rehearsal) CloseGate(context.Context, string, jobs.ID, int) (jobs.GateAnswer, error) {
	return jobs.GateAnswer{Word: jobs.GateLate}, nil
}

// Stops cancels nothing.
func (*rehearsal) Stops(context.Context, string, []jobs.ID) (map[jobs.ID]string, error) {
	return nil, nil
}

// Reorder has nothing to do.
func (*rehearsal) Reorder(context.Context, string, jobs.Overload) (jobs.Reordering, error) {
	return jobs.Reordering{Again: time.Hour}, nil
}

// Speak has no listeners.
func (*rehearsal) Speak(context.Context, string, []jobs.Speech) ([]jobs.ID, error) {
	return nil, nil
}

// Agreed is that nothing ever was.
func (p *rehearsal) Agreed(context.Context) (jobs.Agreed, error) {
	return jobs.Agreed{Now: jobs.Micros(p.clock.Microseconds())}, nil
}

// Excerpts are of no windows and no freezes.
func (*rehearsal) Excerpts(context.Context, []windows.Scope) (jobs.Excerpts, error) {
	return jobs.Excerpts{Table: &windows.Timetable{}}, nil
}

// Estimate knows nothing.
func (*rehearsal) Estimate(context.Context, string) (jobs.Estimate, bool, error) {
	return jobs.Estimate{}, false, nil
}

// Alert tells nobody.
func (*rehearsal) Alert(context.Context, string, jobs.Alert) error { return nil }

// judge holds what came of a case against what was wanted.
func (c Case) judge(r Result) Result {
	w := c.Want
	differ := func(what, want, got string) {
		r.Wrong = append(r.Wrong, fmt.Sprintf("%s\n  - %s\n  + %s", what, want, got))
	}
	match := func(what, pattern, got string) {
		if re, err := regexp.Compile(pattern); err != nil || !re.MatchString(got) {
			differ(what, "something that matches "+pattern, got)
		}
	}
	if r.Refused != "" || w.Refused != "" {
		match("refused", w.Refused, r.Refused)
		if w.Refused == "" {
			r.Wrong = []string{"refused: " + r.Refused}
		}
		r.OK = len(r.Wrong) == 0
		return r
	}
	if want := w.Outcome; want != "" && want != r.Outcome {
		differ("outcome", string(want), string(r.Outcome)+": "+r.Error)
	} else if want == "" && r.Outcome != jobs.Succeeded {
		differ("outcome", string(jobs.Succeeded), string(r.Outcome)+": "+r.Error)
	}
	if w.Class != "" && w.Class != r.Class {
		differ("class", string(w.Class), string(r.Class))
	}
	if w.Error != "" {
		match("error", w.Error, r.Error)
	}
	if w.Steps != nil && !slices.Equal(w.Steps, r.Steps) {
		differ("steps", strings.Join(w.Steps, ", "), strings.Join(r.Steps, ", "))
	}
	for _, name := range slices.Sorted(maps.Keys(w.Saved)) {
		if got, ok := r.Saved[name]; !ok || got != w.Saved[name] {
			differ("saved."+name, fmt.Sprintf("%q", w.Saved[name]), fmt.Sprintf("%q", got))
		}
	}
	for _, name := range slices.Sorted(maps.Keys(w.Runs)) {
		match("runs."+name, w.Runs[name], r.runs[name])
	}
	r.OK = len(r.Wrong) == 0
	return r
}
