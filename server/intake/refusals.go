package intake

import (
	"context"
	"slices"
	"time"

	"muster/api"
	"muster/server/draft"
	"muster/windows"
)

// Refusals returns what would be wrong with each of some tasks, were it the task of a tick at this
// moment. They all see the hosts at one moment. An error comes from Redis.
func (in *Intake) Refusals(ctx context.Context, asks []Ask) ([][]error, error) {
	if len(asks) == 0 {
		return nil, nil
	}
	moment, err := in.Look.Moment(ctx)
	if err != nil {
		return nil, err
	}
	openings, now := *in.Openings, in.Openings.Now()
	openings.Now = func() time.Time { return now }
	out, last := make([][]error, len(asks)), closed{}
	for i, a := range asks {
		p, wrong, err := in.resolve(ctx, moment, a, false)
		if err == nil && len(wrong) == 0 {
			wrong, err = openings.refuse(ctx, &p, a.Body.Timed, &last)
		}
		if err != nil {
			return nil, err
		}
		out[i] = wrong
	}
	return out, nil
}

// refuse returns what Appoint finds wrong. Work that needs no window has an appointment always, be
// it behind a freeze; and who leaves out closed hosts is refused only if all are closed.
func (o *Openings) refuse(ctx context.Context, p *draft.Draft, how api.Timed,
	last *closed) ([]error, error) {
	spec := p.Task.Spec
	if !spec.Window {
		return nil, nil
	}
	book, err := o.Book(ctx)
	if err != nil {
		return nil, err
	}
	seats, unknown, err := o.seats(ctx, p, nil)
	if err != nil {
		return nil, err
	}
	if wrong := nobodyKnows(spec, unknown, len(seats)); wrong != nil {
		return wrong, nil
	}
	work := windows.Work{Runbook: spec.Runbook, Window: true, Reserve: spec.Reserve,
		Override: spec.Override}
	// The slots of nodes decide when it would be the turn of a host, not whether it has an opening.
	open := func(f windows.Fitting) bool { return !f.Due.IsZero() }
	if how.SkipClosed && slices.ContainsFunc(book.Fit(seats[:min(1, len(seats))], work, nil), open) {
		return nil, nil
	}
	if last.book != book || last.work != work || last.skip != how.SkipClosed ||
		!slices.Equal(last.seats, seats) {
		*last = closed{book, seats, work, how.SkipClosed,
			leaveClosed(p, seats, book.Fit(seats, work, nil), how.SkipClosed)}
	}
	return last.wrong, nil
}

// closed has the answer about work that was looked at last.
type closed struct {
	book  *windows.Book
	seats []windows.Seat
	work  windows.Work
	skip  bool
	wrong []error
}
