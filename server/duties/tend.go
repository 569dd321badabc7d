package duties

import (
	"context"
	"sync"
	"time"

	"github.com/hashicorp/go-hclog"
)

// Tend cares for the queue: it does what must also be done in zones where no master lives.
type Tend struct {
	Zones    Zones
	Care     ZoneCare
	Staff    Staff
	Excerpts Excerpts
	Blobs    BlobCare
	Grace    time.Duration // a blob is kept so long after it was last needed
	Facts    *Facts
	Moves    *Mover
	Tally    *Tally
	Log      hclog.Logger

	mu     sync.Mutex // one round at a time
	rounds int
}

// Zones lists the zones that Redis knows.
type Zones interface {
	Zones(ctx context.Context) ([]string, error)
}

// ZoneCare repeats, mends and forgets what is due in a zone.
type ZoneCare interface {
	Tend(ctx context.Context, zone string) error
}

// Staff notes which zones have nodes.
type Staff interface {
	NoteStaff(ctx context.Context) error
}

// Excerpts makes what workers read of the timetable, if it is not there.
type Excerpts interface {
	PutExcerpts(ctx context.Context) (bool, error)
}

// BlobCare removes the contents that nobody needs any more.
type BlobCare interface {
	TendBlobs(ctx context.Context, grace time.Duration) (removed int, err error)
}

// TendDuty is the name of the duty to care for the queue.
const TendDuty = "tend"

// TendEvery is the time between two rounds.
const TendEvery = 10 * time.Second

// rarely is the number of rounds after which work without hurry is done again.
const rarely = 30

// Run cares for the queue until ctx is done.
func (d *Tend) Run(ctx context.Context) error {
	defer d.Tally.forget()
	Repeat(ctx, d.Log, TendDuty, TendEvery, d.RunOnce)
	return nil
}

// RunOnce does one round. When one zone fails it continues with the others.
func (d *Tend) RunOnce(ctx context.Context) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	zones, err := d.Zones.Zones(ctx)
	if err != nil {
		return err
	}
	var first error
	note := func(err error) {
		if first == nil {
			first = err
		}
	}
	for _, zone := range zones {
		note(d.Care.Tend(ctx, zone))
	}
	d.rounds++
	if d.rounds%rarely == 1 {
		note(d.tendBlobs(ctx))
		note(d.Facts.forget(ctx))
	}
	note(d.Staff.NoteStaff(ctx))
	_, err = d.Excerpts.PutExcerpts(ctx)
	note(err)
	note(d.Moves.RunOnce(ctx))
	note(d.Facts.RunOnce(ctx))
	note(d.Tally.RunOnce(ctx))
	return first
}

// tendBlobs removes the blobs that nobody needs any more.
func (d *Tend) tendBlobs(ctx context.Context) error {
	n, err := d.Blobs.TendBlobs(ctx, d.Grace)
	if n > 0 {
		d.Log.Info("blobs removed that nobody needed", "blobs", n, "grace", d.Grace)
	}
	return err
}
