package care

import (
	"context"
	"errors"

	"muster/jobs"
	"muster/jobs/queue"
)

// Work sees lost jobs and expiries.
type Work interface {
	Sweep(ctx context.Context, zone string) error
}

// Halts repeats the halt, or its end, in a zone that has not heard of it.
type Halts interface {
	TendHalt(ctx context.Context, zone string) error
}

// Switches repeats pauses in a zone that has not heard of them, and brings back what lies aside
// of a task that nobody pauses.
type Switches interface {
	TendPauses(ctx context.Context, zone string) error
	Release(ctx context.Context, zone string, id jobs.TaskID) error
}

// Submits goes on with commits that were left half way.
type Submits interface {
	TendCommits(ctx context.Context) error
}

// Cancels goes on with cancels that were left half way.
type Cancels interface {
	EndCancelled(ctx context.Context, zone string, id jobs.TaskID, note string) error
}

// Inventory lets the limits of the inventory in force hold for tasks that were submitted
// with an earlier one.
type Inventory interface {
	AmendInForce(ctx context.Context, zone string) error
}

// Needs are the handles that a round of care calls.
type Needs struct {
	Work      Work
	Halts     Halts
	Switches  Switches
	Submits   Submits
	Cancels   Cancels
	Inventory Inventory
}

// Care does what must happen in a zone also where no master lives.
type Care struct {
	c     *queue.Conn
	fsck  *Fsck
	needs Needs
}

// New returns the care behind a connection.
func New(c *queue.Conn, n Needs) *Care { return &Care{c, NewFsck(c), n} }

// Tend does what must happen in a zone also where no master lives: it sees lost
// jobs and expiries, goes on with commits that were left half way, and makes the zone
// stand as the last halt or pause, or its end, wants it, and nodes find the function of
// step; seldom it does what tendSeldom says. A duty calls it every 10 s.
func (q *Care) Tend(ctx context.Context, zone string) error {
	if err := q.needs.Halts.TendHalt(ctx, zone); err != nil {
		return err
	}
	errs := []error{q.c.TendLibrary(ctx, zone), q.needs.Switches.TendPauses(ctx, zone)}
	if err := q.needs.Work.Sweep(ctx, zone); err != nil {
		return err
	}
	return errors.Join(append(errs, q.tendSeldom(ctx, zone), q.needs.Submits.TendCommits(ctx))...)
}

// cleanEvery is how many rounds pass between two looks at semaphores and open tasks.
const cleanEvery = 30

// tendSeldom frees groups and limits that are held by a job that has ended or does not
// exist, and goes on with resumes and cancels that were left half way. The script looks at
// the owner itself, so what is alive keeps what it has.
func (q *Care) tendSeldom(ctx context.Context, zone string) error {
	if n, known := q.c.Hand.Round(zone); !known || n%cleanEvery != 0 {
		return nil
	}
	// Who submitted while the inventory was changed may not have known its limits.
	err := q.needs.Inventory.AmendInForce(ctx, zone)
	return errors.Join(q.fsck.freeSemaphores(ctx, zone), err, q.tendHalfway(ctx, zone))
}
