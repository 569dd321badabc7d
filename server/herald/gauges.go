package herald

import (
	"context"
	"time"

	"muster/history/outbox"
	"muster/server/metrics"
)

// Gauges returns the numbers of notifications for metrics; nil: there are no rules, or none were
// read.
func Gauges(ctx context.Context, o *outbox.Outbox, k *Keeper, now time.Time) *metrics.Notify {
	if o == nil || !k.Wanted() {
		return nil
	}
	out := &metrics.Notify{Refused: k.Complaint() != ""}
	list, err := o.Tallies(ctx)
	if err != nil {
		return out
	}
	for _, t := range list {
		one := metrics.Messages{Receiver: t.Receiver, State: t.State, Count: t.Count}
		if t.State == outbox.Waiting {
			one.Oldest = now.Sub(t.Oldest)
		}
		out.Messages = append(out.Messages, one)
	}
	return out
}
