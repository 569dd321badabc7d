package work

import (
	"context"
	"fmt"

	"muster/jobs"
	"muster/jobs/queue"
	"muster/jobs/queue/codec"
)

// speakMax bounds the jobs in one call of Speak. It is twice the number of slots of a worker.
const speakMax = 128

// Speak passes on output of hosts in running jobs. It returns the jobs whose attempt has ended or
// is no longer the latest. Output in a call that failed is left out: the result of the attempt
// brings all output that is kept.
func (q *Work) Speak(ctx context.Context, zone string, list []jobs.Speech) ([]jobs.ID, error) {
	if len(list) > speakMax {
		return nil, fmt.Errorf("speak: %d at once: at most %d", len(list), speakMax)
	}
	args := make([]any, 0, 1+6*len(list))
	args = append(args, len(list))
	for _, s := range list {
		args = append(args, string(s.Job), int64(s.Token), s.End, codec.Numbers(s.Drop), s.Data,
			codec.RunsText(s.Runs))
	}
	r, err := q.c.Script(ctx, queue.Scripts.Speak, zone, args...)
	if err != nil {
		return nil, err
	}
	r.Micros()
	var stale []jobs.ID
	for len(r.Left) > 0 && r.Err == nil {
		stale = append(stale, jobs.ID(r.Text()))
	}
	return stale, r.Err
}
