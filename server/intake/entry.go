package intake

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/hashicorp/go-hclog"

	"muster/audit"
	"muster/fleet"
	"muster/jobs"
	"muster/jobs/queue"
	"muster/server/draft"
	"muster/server/fault"
	"muster/server/scribe"
	"muster/trust"
)

// An Entry makes at most so many ids when other tasks have them.
const idTries = 5

// Submits puts tasks into the queue.
type Submits interface {
	Submit(ctx context.Context, t jobs.Task, hosts map[string][]string, progress func(int)) error

	// PutHeld puts a task that waits for signatures of people.
	PutHeld(ctx context.Context, t jobs.Task, hosts map[string][]string) error
}

// Pins keeps stored contents for a task.
type Pins interface {
	PinBlobs(ctx context.Context, id jobs.TaskID, sums []string) error
}

// Alerts writes events of zones.
type Alerts interface {
	Alert(ctx context.Context, zone string, a jobs.Alert) error
}

// An Entry puts drafts into the queue.
type Entry struct {
	MayBegin func(context.Context) error // refuses new work that could not be done as was agreed
	Tasks    Tasks
	Pins     Pins
	Sealer   Sealer
	Signer   Signer
	Records  *trust.Records // those of the hosts that the signer has seen
	Alerts   Alerts
	Submits  Submits
	Turn     Turn
	Log      hclog.Logger
	Now      func() time.Time
	Chance   func() uint16
	Aside    Aside            // after which jobs a host is set aside
	Times    func() time.Time // since when the timetable has been in force; nil: it is not signed

	// Audit writes the entry of a task before the task is put; nil: nobody does.
	Audit interface {
		Ordered(ctx context.Context, o scribe.Order) (end func(result string), err error)
	}
}

func (e *Entry) times() time.Time {
	if e.Times == nil {
		return time.Time{}
	}
	return e.Times()
}

// Put gives a draft an id, if it has none, and hands it to the queue. It wraps queue.ErrRetried if
// another task does some of its hosts again.
func (e *Entry) Put(ctx context.Context, p *draft.Draft) error {
	if err := e.MayBegin(ctx); err != nil {
		return err
	}
	own := p.Task.ID == ""
	for try := 1; ; try++ {
		if own {
			p.Task.ID = jobs.NewTaskID(e.Now(), e.Chance())
		}
		err := e.putUnder(ctx, p, own)
		switch {
		case err == nil:
			return nil
		case errors.Is(err, queue.ErrRetried):
			return err
		case errors.Is(err, queue.ErrConflict) && own && try < idTries:
		case errors.Is(err, queue.ErrConflict):
			return conflict(p.Task.ID, "it has other arguments or other hosts, or the runbook has changed")
		case errors.Is(err, queue.ErrCancelled): // with its id it never comes
			return fault.Contradict(err.Error())
		case errors.Is(err, context.Canceled), errors.Is(err, jobs.ErrNoBlob):
			return err
		default:
			return fault.Later(fmt.Sprintf("%s; nothing of the task runs yet unless it was complete: "+
				"submit it again with id %s", err, p.Task.ID))
		}
	}
}

// putUnder hands a draft to the queue under its id, which is an own one or was given.
func (e *Entry) putUnder(ctx context.Context, p *draft.Draft, own bool) error {
	if own {
		// A put that meets another task has named itself in its place already.
		_, err := e.Tasks.Task(ctx, p.Task.ID)
		if err == nil {
			return queue.ErrConflict
		}
		if !errors.Is(err, queue.ErrNotFound) {
			return err
		}
	}
	return e.PutOnce(ctx, p)
}

// PutOnce hands a draft with an id to the queue. It may be called again with the same draft. Its
// errors are those of the queue.
func (e *Entry) PutOnce(ctx context.Context, p *draft.Draft) error {
	if err := e.Pins.PinBlobs(ctx, p.Task.ID, p.Blobs); err != nil {
		return err
	}
	if err := e.Sealer.seal(p); err != nil {
		return err
	}
	if err := e.noteOverride(ctx, p); err != nil {
		return err
	}
	hash, err := e.Signer.sign(p, moment{e.Records, e.Now(), e.times()})
	if err != nil {
		return err
	}
	end, err := e.order(ctx, p, "", hash)
	if err != nil {
		return err
	}
	if err := e.Aside.mark(p); err != nil {
		return err
	}
	p.Order = hash
	switch {
	case p.Waits.Hold:
		err = e.Submits.PutHeld(ctx, p.Task, p.Hosts)
	case p.Waits.Lane.Key != "":
		err = e.place(ctx, p)
	default:
		err = e.Submits.Submit(ctx, p.Task, p.Hosts, nil)
	}
	end(resultOf(err))
	return err
}

// order writes the entry of a draft, with the hash of its signed order, if it has one. The function
// that it returns writes the outcome.
func (e *Entry) order(ctx context.Context, p *draft.Draft, verb, hash string) (func(string),
	error) {
	if e.Audit == nil {
		return func(string) {}, nil
	}
	spec := p.Task.Spec
	var frozen struct{ Runbook, Hash string }
	if err := json.Unmarshal(spec.Action, &frozen); err != nil {
		return nil, err
	}
	what := audit.Task{Runbook: spec.Runbook, RunbookHash: frozen.Hash, Hosts: len(p.Names),
		Customers: customers(p.Picked), Zones: len(p.Hosts)}
	text, err := json.Marshal(struct {
		Task  jobs.Task
		Hosts map[string][]string
	}{p.Task, p.Hosts})
	if err != nil {
		return nil, err
	}
	sum := sha256.Sum256(text)
	what.Order = cmp.Or(hash, hex.EncodeToString(sum[:]))
	o := scribe.Order{Task: string(p.Task.ID), Verb: verb, Operator: spec.Operator,
		Proven: spec.Proven, Reason: spec.Reason, What: what}
	if !spec.Tick.IsZero() {
		o.Schedule = spec.Schedule
	}
	return e.Audit.Ordered(ctx, o)
}

// customers counts the customers of hosts.
func customers(hosts []fleet.Host) int {
	seen := map[string]bool{}
	for _, h := range hosts {
		if h.Customer != "" {
			seen[h.Customer] = true
		}
	}
	return len(seen)
}

// resultOf returns the outcome of a put. An error of Redis leaves open how much it has taken.
func resultOf(err error) string {
	switch {
	case err == nil:
		return audit.Done
	case errors.Is(err, queue.ErrConflict), errors.Is(err, queue.ErrCancelled),
		errors.Is(err, queue.ErrRetried), errors.Is(err, jobs.ErrNoBlob):
		return audit.Refused
	}
	return audit.Failed
}

// noteOverride keeps why freezes do not hold for a task, in all its zones, before it is
// put: a reason that nobody can find later would be none.
func (e *Entry) noteOverride(ctx context.Context, p *draft.Draft) error {
	spec := p.Task.Spec
	if spec.Override == "" {
		return nil
	}
	var errs []error
	for zone, hosts := range p.Hosts {
		errs = append(errs, e.Alerts.Alert(ctx, zone, jobs.Alert{Event: "override-freeze",
			Object: string(p.Task.ID), Detail: map[string]any{"note": spec.Override,
				"runbook": spec.Runbook, "hosts": len(hosts)}}))
	}
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("the reason to override a freeze could not be kept: %w", err)
	}
	e.Log.Warn("freezes do not hold for a task", "task", p.Task.ID, "note", spec.Override)
	return nil
}
