package attempt

import (
	"context"
	"errors"
	"time"

	"muster/fleet/remote"
	"muster/jobs"
	"muster/scripts"
	"muster/worker/kinds"
	"muster/worker/verdict"
	"muster/worker/warden"
)

// This file lends an attempt to the kinds of steps, each part of it as a small type of its own.

// hand returns all that a kind may use of this attempt.
func (a *Attempt) hand() kinds.Hand {
	return kinds.Hand{
		Job:     known{a},
		Course:  course{a},
		Notes:   notes{a},
		Host:    line{a},
		Permits: clearance{a},
		Times:   a.times,
		Records: a.records(),
		Gate:    gate{a},

		Memory:  &a.memory,
		Said:    a.transcript,
		Stop:    a.stop.ctx,
		Secrets: a.secrets.texts,
		Alone:   len(a.plan.Book.Steps) == 1,
		Clock:   a.env.Clock,
		Node:    kinds.Node{Blobs: a.env.Blobs, Player: a.env.Play},
	}
}

// known lends the knowledge that an attempt has of its job.
type known struct{ at *Attempt }

// Evidence returns the evidence of this moment, for decisions about a step.
func (k known) Evidence(action scripts.Action) verdict.Evidence { return k.at.evidenceFor(action) }

// Now returns the time of Redis, as far as the attempt knows it.
func (k known) Now() jobs.Micros { return k.at.now() }

// Left returns the rest of the lease.
func (k known) Left() time.Duration { return k.at.lease.left() }

// Spend counts the time that follows as u, until done is called.
func (k known) Spend(u jobs.Use) (done func()) { return k.at.spend(u) }

// Chance returns a number from 0 to 1, which spreads the retries of hosts.
func (k known) Chance() float64 { return k.at.env.Chance() }

// line lends the connection of an attempt to the host of its job.
type line struct{ at *Attempt }

// Run runs a command on the host.
func (l line) Run(ctx context.Context, c remote.Command) (remote.Result, error) {
	return l.at.conn.Run(ctx, c)
}

// Upload puts a file on the host.
func (l line) Upload(ctx context.Context, u remote.Upload) error { return l.at.conn.Upload(ctx, u) }

// Reconnect replaces the connection by a new one.
func (l line) Reconnect(ctx context.Context) (err error) {
	l.at.hangUp()
	l.at.conn, err = l.at.connect(ctx)
	return err
}

// gate asks the queue for the answer to the gate at which a job stands.
type gate struct{ at *Attempt }

// Answer returns the answer; its word is empty if nobody has answered.
func (g gate) Answer(ctx context.Context) (jobs.GateAnswer, error) {
	return g.trusted(ctx, g.at.env.Queue.Gate)
}

// Close ends the wait for an answer, and returns the answer if somebody gave one meanwhile.
func (g gate) Close(ctx context.Context) (jobs.GateAnswer, error) {
	return g.trusted(ctx, g.at.env.Queue.CloseGate)
}

// trusted returns the answer of the queue. An answer that is of nobody whom this node trusts is a
// refusal: the first answer counts, so no other one can follow it.
func (g gate) trusted(ctx context.Context, ask asking) (jobs.GateAnswer, error) {
	a, err := g.insist(ctx, ask)
	if err != nil || !g.at.plan.Proven || a.Word == "" || a.Word == jobs.GateLate {
		return a, err
	}
	err = g.at.env.Trust.Answered(ctx, g.at.zone, g.at.grant.Job, g.at.step, a)
	if doubt := new(warden.Doubt); errors.As(err, &doubt) {
		return jobs.GateAnswer{Word: jobs.GateRefuse, Note: doubt.Error()}, nil
	}
	return a, err
}

// asking is a question to the queue about a gate of a job.
type asking = func(context.Context, string, jobs.ID, int) (jobs.GateAnswer, error)

// insist asks the queue until it answers or the attempt must end.
func (g gate) insist(ctx context.Context, ask asking) (jobs.GateAnswer, error) {
	for tries := 1; ; tries++ {
		within := min(g.at.env.Config.Call, g.at.lease.left())
		call, cancel := context.WithTimeout(ctx, within)
		answer, err := ask(call, g.at.zone, g.at.grant.Job, g.at.step)
		cancel()
		if err == nil {
			return answer, nil
		}
		err = verdict.NoAnswer(err, within)
		timer := time.NewTimer(verdict.Pause(tries, g.at.env.Chance()))
		select {
		case <-timer.C:
		case <-g.at.stop.ctx.Done():
			timer.Stop()
			return answer, err
		}
	}
}
