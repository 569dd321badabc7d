package inbox

import (
	"context"
	"errors"
	"fmt"
	"strconv"

	"muster/ingress"
	"muster/jobs/queue"
	"muster/jobs/queue/keys"
)

// FeedDuty is the duty of the server that tells muster's own events; inbox.lua checks which one has
// it.
const FeedDuty = "inner"

// ErrMoved says that another step was done since the places were read.
var ErrMoved = errors.New("another server has told events meanwhile")

// Places say how far muster's own events are told.
type Places struct {
	Steps int64 // that were done, in this installation
	At    map[string]string
}

// A Step tells some of muster's own events, and moves the places up to which they are told.
type Step struct {
	After  int64             // Steps of the places that were read
	At     map[string]string // the places that change; an empty text removes one
	Events []Arrival         // of one source
	Bounds ingress.Bounds    // of this source
}

// stepsField is the field that counts steps. No place has its name.
const stepsField = "steps"

// Places returns how far muster's own events are told.
func (q *Inbox) Places(ctx context.Context) (Places, error) {
	h, err := q.c.Redis().HGetAll(ctx, keys.Hub("fed", "")).Result()
	if err != nil {
		return Places{}, q.c.Say("fed", err)
	}
	p := Places{At: h}
	p.Steps, _ = strconv.ParseInt(h[stepsField], 10, 64)
	delete(h, stepsField)
	return p, nil
}

// Feed does a step, all of it or nothing, for the leader of a term of FeedDuty. It returns the
// number of events that were not known. The error is a *Flood, wraps queue.ErrDeposed, ErrMoved or
// queue.ErrFewer, or Redis cannot be used: then it is not known whether the step was done, and
// Places tells.
func (q *Inbox) Feed(ctx context.Context, term int64, s Step) (int, error) {
	args := []any{"feed", strconv.FormatInt(term, 10), strconv.FormatInt(s.After, 10),
		s.Bounds.Remember.Milliseconds(), s.Bounds.PerMinute, s.Bounds.Waiting, s.Bounds.Bytes,
		len(s.At)}
	for name, to := range s.At {
		args = append(args, name, to)
	}
	for _, a := range s.Events {
		kept, err := q.vouched(a)
		if err != nil {
			return 0, err
		}
		args = append(args, a.ID, a.Source, a.Customer, string(a.Class), kept, a.Body)
	}
	answer, err := q.lasting(ctx, args...)
	if err != nil && !errors.Is(err, queue.ErrFewer) {
		return 0, err
	}
	status, n, bad := reply(answer)
	switch {
	case bad != nil:
		return 0, bad
	case status == "deposed":
		return 0, fmt.Errorf("events: %w", queue.ErrDeposed)
	case status == "moved":
		return 0, fmt.Errorf("events: %w", ErrMoved)
	}
	return int(n), err
}
