package orders

import (
	"context"
	"fmt"

	"muster/jobs"
	"muster/jobs/queue"
	"muster/jobs/queue/codec"
)

// Asks orders that a worker asks a host how a job ended.
type Asks struct{ c *queue.Conn }

// NewAsks returns the orders behind a connection.
func NewAsks(c *queue.Conn) *Asks { return &Asks{c} }

// OrderAsk orders that the host of a job which ended unknown is asked how it ended. note says
// who orders it, and why; a worker of the zone carries it out. The error wraps ErrOpen if the
// job has not ended, and ErrForgotten if it ended more than a day ago.
func (q *Asks) OrderAsk(ctx context.Context, id jobs.ID, note string) (jobs.AskOrdered, error) {
	out := jobs.AskOrdered{Job: id}
	zone, err := q.c.Places.ZoneOf(ctx, id)
	if err != nil {
		return out, err
	}
	r, err := q.c.Script(ctx, queue.ScriptAsk, zone, "order", string(id), codec.OneLine(note))
	if err != nil {
		return out, err
	}
	status, what := r.Text(), r.Text()
	switch {
	case r.Err != nil:
		return out, fmt.Errorf("ask about job %s: %w", id, r.Err)
	case status == codec.Absent:
		return out, fmt.Errorf("job %s: %w", id, queue.ErrForgotten)
	case status == "open":
		return out, fmt.Errorf("job %s is %s: %w", id, what, queue.ErrOpen)
	}
	out.Already = status == "already"
	if status == "known" {
		out.Known = jobs.Outcome(what)
	}
	return out, nil
}
