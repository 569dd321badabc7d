package herald

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/hashicorp/go-hclog"

	"muster/history/outbox"
	"muster/jobs"
	"muster/notify"
)

// Duty is the name of the duty to send notifications.
const Duty = "notify"

const (
	pollIdle  = time.Second
	pollBusy  = 100 * time.Millisecond
	careEvery = 10 * time.Minute
	retry     = 5 * time.Second // until tables that were away are tried again
	// together bounds the messages that one receiver gets at the same time.
	together = 8
)

// A Term is the time for which this server has the duty.
type Term interface{ Trusted() bool }

// Needs has all that a Herald works with.
type Needs struct {
	Outbox *outbox.Outbox
	Keeper *Keeper
	Watch  Watch
	Base   string // begins the addresses of pages; empty: there are none
	Log    hclog.Logger
	Now    func() time.Time
}

// Herald sends notifications for one term.
type Herald struct {
	Needs
	term Term
}

// New returns the herald of a term.
func New(n Needs, t Term) *Herald { return &Herald{n, t} }

// Run gathers and sends until ctx is done.
func (h *Herald) Run(ctx context.Context) error {
	var all sync.WaitGroup
	defer all.Wait()
	all.Go(func() { h.repeat(ctx, "gather", h.gather) })
	all.Go(func() {
		h.repeat(ctx, "care", func(ctx context.Context) (time.Duration, error) {
			return careEvery, h.care(ctx)
		})
	})
	all.Go(func() {
		h.repeat(ctx, "watch", func(ctx context.Context) (time.Duration, error) {
			if h.Keeper.Rules() == nil {
				return watchEvery, nil
			}
			list, next, err := h.Watch.look(ctx, h.Now())
			if err == nil {
				err = h.Outbox.Tell(ctx, list...)
			}
			if err == nil {
				h.Watch.state = next
			}
			return watchEvery, err
		})
	})
	h.receivers(ctx, &all)
	return nil
}

// receivers serves each receiver in a goroutine of its own, as long as the rules have it.
func (h *Herald) receivers(ctx context.Context, all *sync.WaitGroup) {
	serving := map[string]context.CancelFunc{}
	h.repeat(ctx, "receivers", func(context.Context) (time.Duration, error) {
		rules := h.Keeper.Rules()
		if rules == nil {
			return pollIdle, nil
		}
		for name, stop := range serving {
			if _, known := rules.Receiver(name); !known {
				stop()
				delete(serving, name)
			}
		}
		for _, r := range rules.Receivers() {
			if serving[r.Name] != nil {
				continue
			}
			own, stop := context.WithCancel(ctx)
			serving[r.Name] = stop
			all.Go(func() {
				h.repeat(own, "receiver "+r.Name, func(ctx context.Context) (time.Duration, error) {
					return h.serve(ctx, r.Name)
				})
			})
		}
		return pollIdle, nil
	})
	for _, stop := range serving {
		stop()
	}
}

// repeat does something again and again, after the pause that it returns, and logs once what goes
// wrong.
func (h *Herald) repeat(ctx context.Context, what string,
	do func(context.Context) (time.Duration, error)) {
	said := ""
	for ctx.Err() == nil {
		pause, err := do(ctx)
		words := ""
		if err != nil {
			words, pause = err.Error(), max(pause, retry)
		}
		if words != said && ctx.Err() == nil {
			if said = words; words != "" {
				h.Log.Error("notify", "of", what, "trouble", words)
			} else {
				h.Log.Info("notify", "of", what, "trouble", "over")
			}
		}
		timer := time.NewTimer(pause)
		select {
		case <-ctx.Done():
		case <-timer.C:
		}
		timer.Stop()
	}
}

func (h *Herald) gather(ctx context.Context) (time.Duration, error) {
	rules := h.Keeper.Rules()
	if rules == nil || !h.term.Trusted() {
		return pollIdle, nil
	}
	more, err := h.Outbox.Gather(ctx, outbox.Round{Rules: rules, Base: h.Base, Now: h.Now()})
	if more {
		return 0, err
	}
	return pollBusy, err
}

func (h *Herald) care(ctx context.Context) error {
	lost, err := h.Outbox.Forget(ctx, h.Now())
	if err != nil {
		return err
	}
	if lost > 0 {
		h.Log.Error("notify: what happened was told nobody, because for a day no rules could be read",
			"happenings", lost)
	}
	if rules := h.Keeper.Rules(); rules != nil && h.Keeper.Complaint() == "" {
		return h.Outbox.Orphans(ctx, rules, h.Now())
	}
	return nil
}

// serve sends what is due to one receiver, some messages at a time.
func (h *Herald) serve(ctx context.Context, name string) (time.Duration, error) {
	rules := h.Keeper.Rules()
	if rules == nil || !h.term.Trusted() {
		return pollIdle, nil
	}
	to, known := rules.Receiver(name)
	if !known {
		return pollIdle, nil
	}
	list, err := h.Outbox.Due(ctx, name, h.Now(), together)
	if err != nil || len(list) == 0 {
		return pollBusy * 2, err
	}
	tried := make([]outbox.Tried, len(list))
	var all sync.WaitGroup
	for i, d := range list {
		all.Go(func() { tried[i] = h.try(ctx, to, d) })
	}
	all.Wait()
	if ctx.Err() != nil {
		return 0, nil // whoever has the duty next tries them again, under the same ids
	}
	return 0, h.Outbox.Keep(ctx, tried...)
}

// try sends a message once, and says what follows from that.
func (h *Herald) try(ctx context.Context, to notify.Receiver, d outbox.Delivery) outbox.Tried {
	res := send(ctx, to, d)
	now := h.Now()
	t := outbox.Tried{ID: d.ID, State: outbox.Delivered, At: now, Next: now}
	if res.err == nil {
		return t
	}
	t.Error = res.err.Error()
	t.Next = now.Add(max(notify.Pause(d.Tries+1, d.ID), res.after))
	switch {
	case res.gone:
		t.State = outbox.Gone
	case now.Sub(d.Created) >= to.Expire || t.Next.Sub(d.Created) >= to.Expire:
		t.State = outbox.Expired
	default:
		t.State = outbox.Waiting
		return t
	}
	if ctx.Err() != nil {
		return t
	}
	h.Log.Error("notify: a message was given up", "receiver", to.Name, "id", d.ID, "title", d.Title,
		"tries", d.Tries+1, "error", t.Error)
	// The word that a message was given up must not make another such word.
	if d.Whats != string(notify.DeliveryExpired) {
		t.Told = &notify.Signal{Key: "expired " + d.ID, At: jobs.Time{Time: now},
			What: notify.DeliveryExpired, Object: to.Name,
			Note: fmt.Sprintf("%s; %s", d.Title, t.Error)}
	}
	return t
}

// Words says what is wrong; empty: nothing.
func Words(ctx context.Context, o *outbox.Outbox, k *Keeper, now time.Time) string {
	if text := k.Complaint(); text != "" {
		return "notifications: not all rules are in force: " + text
	}
	if o == nil || k.Rules() == nil {
		return ""
	}
	list, err := o.Tallies(ctx)
	if err != nil {
		return "notifications: " + err.Error()
	}
	for _, t := range list {
		if t.State == outbox.Waiting && now.Sub(t.Oldest) > lateAfter {
			return fmt.Sprintf("notifications: %s of %d messages has taken none since %s: `muster notify "+
				"ls --state waiting` says why", t.Receiver, t.Count, t.Oldest.UTC().Format(time.RFC3339))
		}
	}
	return ""
}

// lateAfter is the age of a waiting message from which health speaks of it.
const lateAfter = 5 * time.Minute
