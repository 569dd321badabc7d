package intake

import (
	"context"
	"errors"

	"muster/jobs"
	"muster/jobs/lane"
	"muster/jobs/queue"
	"muster/server/draft"
	"muster/server/fault"
	"muster/server/web"
)

// Lanes gives tasks their places in lanes.
type Lanes interface {
	// EnterLane gives a task its place; fresh reports that it had none.
	EnterLane(ctx context.Context, key string, e lane.Entry) (fresh bool, err error)
	// PutInLane notes that all jobs of a task are in the queue.
	PutInLane(ctx context.Context, key string, id jobs.TaskID) error
	LeaveLane(ctx context.Context, key string, id jobs.TaskID) error
	// LaneOf returns the lane in which a task is, and its place; empty: it is in none.
	LaneOf(ctx context.Context, id jobs.TaskID) (key string, e lane.Entry, err error)
}

// Puts puts tasks that wait for their turn.
type Puts interface {
	PutOnly(ctx context.Context, t jobs.Task, hosts map[string][]string) error
}

// A Turn lets tasks begin in the order of their lanes.
type Turn struct {
	Lanes   Lanes
	Puts    Puts
	Advance func(ctx context.Context, key string) error // lets the next of a lane begin
}

// checkLane refuses a lane for what cannot wait for its turn.
func (s *submission) checkLane(context.Context) error {
	l := s.ask.Waits.Lane
	s.wrong = append(s.wrong, l.Check()...)
	switch {
	case l.Key == "":
	case s.ask.Waits.Hold:
		s.wrong = append(s.wrong, fault.At("query.lane", "a task in a lane cannot wait for "+
			"signatures: leave one of them out"))
	case draft.Chained(s.ask.Body):
		s.wrong = append(s.wrong, fault.At("query.lane", "the tasks of a chain cannot wait for a "+
			"lane: leave out staged and roll_back, or the lane"))
	}
	return nil
}

// scopeLane makes a lane that of the customer of the hosts.
func (s *submission) scopeLane(view *web.View) (err error) {
	s.ask.Waits.Lane, err = scoped(s.ask.Waits.Lane, s.draft, view)
	return err
}

// scoped returns the lane of the customer of a draft's hosts: nobody waits in the lane of a
// customer, or ends work there, who has no hosts of that one. A lane for hosts of several
// customers, or of none, is the house's, and whoever uses it sees the whole house.
func scoped(l draft.Lane, p draft.Draft, view *web.View) (draft.Lane, error) {
	if l.Key == "" {
		return l, nil
	}
	if l.Mode == string(lane.Pipeline) {
		_, err := draft.CheckOf(p.Task.Spec)
		if err == nil && len(p.Secrets) > 0 {
			err = errors.New("a task with secret arguments cannot be checked by its lane")
		}
		if err != nil {
			return l, fault.Refuse(fault.Each("query.lane_mode", err))
		}
	}
	of := map[string]bool{}
	for _, h := range p.Picked {
		of[h.Customer] = true
	}
	if len(of) == 1 {
		l.Customer = p.Picked[0].Customer
	}
	if l.Customer == "" && !view.All() {
		return l, fault.Refuse([]error{fault.At("query.lane", "a lane is of one customer, and the hosts "+
			"are of %d: choose hosts of one, or ask somebody who sees the whole house", len(of))})
	}
	return l, nil
}

// inLane answers a repeated submit of a task that waits in its lane; of one that a server has not
// put whole, it lets the submit go on.
func (s *submission) inLane(ctx context.Context, t jobs.TaskInfo) error {
	key, e, err := s.in.Entry.Turn.Lanes.LaneOf(ctx, t.Task)
	switch {
	case err != nil:
		return err
	case key == "":
		return nil
	case s.ask.Waits.Lane.Key != lane.Plain(key):
		return conflict(t.Task, "it is in lane "+lane.Plain(key))
	case e.Put:
		return s.repeat(t)
	}
	return nil
}

// place puts a draft into its lane: it has its place first, so that a server that dies in between
// lets nothing overtake it that was submitted later and was whole earlier.
func (e *Entry) place(ctx context.Context, p *draft.Draft) error {
	mode, most, err := lane.ParseMode(p.Waits.Lane.Mode)
	if err != nil {
		return err // the draft was checked
	}
	key, id := lane.Of(p.Waits.Lane.Customer, p.Waits.Lane.Key), p.Task.ID
	fresh, err := e.Turn.Lanes.EnterLane(ctx, key, lane.Entry{Task: id, Mode: mode, Most: most,
		Since: jobs.MicrosOf(e.Now()), Runbook: p.Task.Spec.Runbook, By: p.Task.Spec.Operator})
	if err != nil {
		return err
	}
	if err := e.Turn.Puts.PutOnly(ctx, p.Task, p.Hosts); err != nil {
		if fresh && (errors.Is(err, queue.ErrConflict) || errors.Is(err, queue.ErrCancelled)) {
			err = errors.Join(err, e.Turn.Lanes.LeaveLane(ctx, key, id))
		}
		return err
	}
	if err := e.Turn.Lanes.PutInLane(ctx, key, id); err != nil {
		return err
	}
	if err := e.Turn.Advance(ctx, key); err != nil {
		e.Log.Warn("a task begins in its lane later", "lane", key, "task", id, "why", err)
	}
	return nil
}
