package work

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"muster/internal/proc"
	"muster/jobs"
	"muster/jobs/queue"
	"muster/jobs/queue/codec"
	"muster/jobs/queue/keys"
	"muster/trust"
)

// Work hands out jobs and takes their results.
type Work struct {
	c     *queue.Conn
	prove Prover // nil: nobody vouches for what is reported
}

// A Prover returns the proof of the node for what it says of a job; empty: it has no key.
type Prover func(trust.Testimony) string

// NewWork returns the work behind a connection.
func NewWork(c *queue.Conn) *Work { return &Work{c: c} }

// ProvedBy returns the same work for a node that vouches for what it reports.
func (q *Work) ProvedBy(p Prover) *Work { return &Work{q.c, p} }

// fewerPause is the pause before the next try to take jobs after a take was released.
const fewerPause = 2 * time.Second

// putBack releases jobs whose take too few replicas have stored: after a failover another worker
// would get them too. Nothing was started. If putBack fails, the caller repeats its call, gets the
// same jobs and asks the replicas again.
func (q *Work) putBack(ctx context.Context, name string, s jobs.Step, reply jobs.Reply,
	why string) (jobs.Reply, error) {
	back := jobs.Step{Node: s.Node, Slot: s.Slot, Request: s.Request + "-back"}
	for _, g := range codec.Holding(reply.Jobs) {
		back.Results = append(back.Results, jobs.Result{Job: g.Job, Token: g.Token, Kind: jobs.KindBack})
	}
	if _, _, err := q.step(ctx, name, back); err != nil {
		return reply, fmt.Errorf("%s the take, and giving back failed: %w", why, err)
	}
	return jobs.Reply{Status: jobs.StatusNext, Now: reply.Now, Next: reply.Now.Add(fewerPause),
		Late: reply.Late, Why: why + " the take: nothing was started"}, nil
}

// wantMax bounds the jobs that one call hands out.
const wantMax = 256

// Step delivers results and takes jobs, in one round trip. After an error it is not known whether
// the call was carried out: repeat it with the same Request until it answers. The queue answers a
// repetition with the earlier answer.
func (q *Work) Step(ctx context.Context, name string, s jobs.Step) (jobs.Reply, error) {
	if err := checkStep(s); err != nil {
		return jobs.Reply{}, err
	}
	if err := q.c.Enter(ctx, name); err != nil {
		return jobs.Reply{}, err
	}
	q.c.Hand.GiveUp(name, s.Results)
	epoch, sent := q.c.Hand.Epoch(name), proc.Boot()
	reply, acked, err := q.step(ctx, name, s)
	if err != nil {
		return jobs.Reply{}, err
	}
	if why := q.c.Config().Fewer(acked); why != "" && len(reply.Jobs) > 0 {
		if reply, err = q.putBack(ctx, name, s, reply, why); err != nil {
			return jobs.Reply{}, err
		}
	}
	q.c.Hand.Note(name, s, reply, sent)
	reply.Epoch = epoch
	if reply.Status == jobs.StatusFrozen {
		reply.Why = q.why(ctx, name)
	}
	return reply, nil
}

// step calls the script, and returns how many replicas have its writes.
func (q *Work) step(ctx context.Context, name string, s jobs.Step) (jobs.Reply, int, error) {
	args := make([]any, 0, 8+15*len(s.Results))
	args = append(args, s.Node, s.Slot, s.Request, s.Want, "", codec.Known(s.Known), "",
		len(s.Results))
	for _, r := range s.Results {
		args = codec.AppendResult(args, r, q.proofOf(s, r))
	}
	r, err := q.c.Stamped(ctx, queue.Scripts.Step, name, func(stamp string) []any {
		args[6] = stamp
		if !q.c.Config().Embedded {
			args[4] = stamp
		}
		return args
	})
	if err != nil {
		return jobs.Reply{}, 0, err
	}
	reply, err := codec.ReadReply(r)
	if err != nil {
		return jobs.Reply{}, 0, fmt.Errorf("step in zone %s: %w", name, err)
	}
	return reply, r.Acked, nil
}

// why returns the reason why a zone is frozen. It is for people, so a failure does not matter.
func (q *Work) why(ctx context.Context, name string) string {
	v, err := q.c.Redis().HMGet(ctx, keys.Zone(name, "zone", ""), "why", "epoch", "owed").Result()
	if err != nil {
		return "for a reason that could not be read"
	}
	why, _ := v[0].(string)
	epoch, _ := v[1].(string)
	q.c.Follow(ctx, name, epoch) // a failure does not matter: the next call tries again
	owed, _ := v[2].(string)
	return codec.WhyShut(why, owed)
}

func checkStep(s jobs.Step) error {
	var errs []error
	if s.Want < 0 || s.Want > wantMax {
		errs = append(errs, fmt.Errorf("step: want = %d: 0 to %d", s.Want, wantMax))
	}
	if s.Slot == "" && (s.Want > 0 || len(s.Results) > 0) {
		errs = append(errs, errors.New("step: a sweep takes nothing and has no results"))
	}
	if strings.ContainsAny(s.Node+s.Slot+s.Request, " \t\r\n\"\\{}") {
		errs = append(errs, fmt.Errorf("step: node %q, slot %q, request %q: no blanks, quotes, "+
			"braces", s.Node, s.Slot, s.Request))
	}
	for _, r := range s.Results {
		if r.Kind == jobs.KindEnd && !r.Outcome.Valid() {
			errs = append(errs, fmt.Errorf("step: job %s: outcome %q is none", r.Job, r.Outcome))
		}
	}
	return errors.Join(errs...)
}

// Checkpoint asks whether the next step of a job may start. Only Go allows it, and only until the
// task's timeout has passed since the time before the call. Asking twice does no harm.
func (q *Work) Checkpoint(ctx context.Context, name string, c jobs.Checkpoint) (jobs.Verdict,
	error) {
	sent := proc.Boot()
	proof := ""
	if q.prove != nil {
		proof = q.prove(trust.Testimony{Kind: codec.SaidStep, Job: c.Job, Token: c.Token,
			Words: codec.StepWords(c.Step)})
	}
	r, err := q.c.Script(ctx, queue.Scripts.Checkpoint, name, string(c.Job), int64(c.Token), c.Step,
		c.Saved, proof)
	if err != nil {
		return "", err
	}
	v := jobs.Verdict(r.Text())
	switch v {
	case jobs.Go:
		q.c.Hand.Extend(name, c.Job, sent)
	case jobs.Stop, jobs.Stale:
	default:
		return "", fmt.Errorf("checkpoint of %s: answer %q", c.Job, v)
	}
	return v, nil
}

// Lose reports that a child is gone, and returns the jobs that were lost with it. Reporting twice
// does no harm.
func (q *Work) Lose(ctx context.Context, name string, l jobs.Loss) ([]jobs.ID, error) {
	if err := q.c.Enter(ctx, name); err != nil {
		return nil, err
	}
	r, err := q.c.Stamped(ctx, queue.Scripts.Lose, name, func(stamp string) []any {
		return []any{l.Node, l.Slot, codec.OneLine(l.Why), stamp}
	})
	if err != nil {
		return nil, err
	}
	var out []jobs.ID
	for len(r.Left) > 0 && r.Err == nil {
		out = append(out, jobs.ID(r.Text()))
	}
	return out, r.Err
}

// Held returns the jobs that the children of a node hold according to Redis, by slot. A slot
// without jobs is listed too: its child has not been reported gone.
func (q *Work) Held(ctx context.Context, name, node string) (map[string][]jobs.ID, error) {
	v, err := q.c.Redis().HGetAll(ctx, keys.Zone(name, "hold:", node)).Result()
	if err != nil {
		return nil, q.c.Say("held", err)
	}
	out := make(map[string][]jobs.ID, len(v))
	for slot, text := range v {
		if strings.HasPrefix(text, "- ") {
			continue // its child was lost
		}
		out[slot] = nil
		if lines := strings.SplitN(text, "\n", 5); len(lines) >= 4 {
			for i, word := range strings.Fields(lines[3]) {
				if i%2 == 0 {
					out[slot] = append(out[slot], jobs.ID(word))
				}
			}
		}
	}
	return out, nil
}

// Sweep makes a zone process its due jobs, even where no master lives or nothing may start.
func (q *Work) Sweep(ctx context.Context, zone string) error {
	for call := (jobs.Step{}); ; {
		reply, err := q.Step(ctx, zone, call)
		switch {
		case err != nil:
			return err
		case reply.Status == jobs.StatusMore:
		case reply.Status == jobs.StatusHalted && reply.Next > 0:
			call.Request = reply.Next.String()
		default:
			return nil
		}
	}
}
