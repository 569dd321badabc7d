package care

import (
	"context"
	"errors"

	"muster/jobs"
	"muster/jobs/queue"
)

// Work handles lost jobs and expiries.
type Work interface {
	Sweep(ctx context.Context, zone string) error
}

// Halts repeats the halt, or its end, in a zone that has not received it.
type Halts interface {
	TendHalt(ctx context.Context, zone string) error
}

// Switches repeats pauses in a zone that has not received them, and returns jobs to the queue that
// are still aside although nobody pauses their task.
type Switches interface {
	TendPauses(ctx context.Context, zone string) error
	Release(ctx context.Context, zone string, id jobs.TaskID) error
}

// Submits completes commits that were left half done.
type Submits interface {
	TendCommits(ctx context.Context) error
}

// Cancels completes cancels that were left half done.
type Cancels interface {
	EndCancelled(ctx context.Context, zone string, id jobs.TaskID, note string) error
}

// Inventory applies the limits of the inventory in force to tasks that were submitted with an
// earlier one.
type Inventory interface {
	AmendInForce(ctx context.Context, zone string) error
}

// Needs lists the handles that a round of care calls.
type Needs struct {
	Work      Work
	Halts     Halts
	Switches  Switches
	Submits   Submits
	Cancels   Cancels
	Inventory Inventory
}

// Care does the work that a zone needs even where no master lives.
type Care struct {
	c     *queue.Conn
	fsck  *Fsck
	needs Needs
}

// New returns the care behind a connection.
func New(c *queue.Conn, n Needs) *Care { return &Care{c, NewFsck(c), n} }

// Tend does the work that a zone needs even where no master lives: it handles lost jobs and
// expiries, completes commits that were left half done, applies the last halt or pause or its end,
// and gives nodes the function of step; now and then it calls tendSeldom. A duty calls it every 10
// s.
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

// cleanEvery is the number of rounds between two checks of semaphores and open tasks.
const cleanEvery = 30

// tendSeldom frees groups and limits whose holder has ended or does not exist, and completes
// resumes and cancels that were left half done. The script checks the holder again, so a live job
// keeps what it has.
func (q *Care) tendSeldom(ctx context.Context, zone string) error {
	if n, known := q.c.Hand.Round(zone); !known || n%cleanEvery != 0 {
		return nil
	}
	// A task that was submitted while the inventory changed may lack its new limits.
	err := q.needs.Inventory.AmendInForce(ctx, zone)
	return errors.Join(q.fsck.freeSemaphores(ctx, zone), err, q.tendHalfway(ctx, zone))
}
