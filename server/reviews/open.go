package reviews

import (
	"context"
	"strings"

	"muster/api"
	"muster/audit"
	"muster/history/ledger"
	"muster/jobs"
	"muster/server/scribe"
)

// pageMax bounds the entries that are read at once.
const pageMax = 500

// all returns all entries about broken glass, the newest first. In the life of a house there are
// few.
func all(ctx context.Context, l *ledger.Ledger) (list []ledger.Row, err error) {
	f := ledger.Filter{Verb: scribe.GlassAny, EntriesMax: pageMax}
	for {
		page, err := l.Page(ctx, f)
		if err != nil {
			return nil, err
		}
		list = append(list, page...)
		if len(page) < pageMax {
			return list, nil
		}
		f.Before = page[len(page)-1].Record.Seq
	}
}

// reviewsOf returns a review for each time at which somebody broke the glass, the newest first. A
// later entry about the same task closes it, unless the server refused that. A reviewer whose name
// was erased stays another person.
func reviewsOf(list []ledger.Row) []api.Review {
	var out []api.Review
	closed := map[string]ledger.Row{}
	for _, r := range list {
		switch {
		case r.Verb == scribe.GlassReviewed && (r.Ended == nil || r.Ended.Result != audit.Done):
		case r.Verb == scribe.GlassReviewed:
			closed[r.Object] = r
		case r.Verb == scribe.GlassBroken:
			one := api.Review{Task: jobs.TaskID(strings.TrimPrefix(r.Object, "task/")), Who: nameOf(r),
				At: jobs.Time{Time: r.At.Time}, Reason: r.Record.Private.Reason}
			if by, done := closed[r.Object]; done {
				one.By, one.Closed, one.Words = nameOf(by), jobs.Time{Time: by.At.Time},
					by.Record.Private.Reason
			}
			out = append(out, one)
		}
	}
	return out
}

// nameOf returns the name of the one who caused an entry; erased: its reference.
func nameOf(r ledger.Row) string {
	if p := r.Record.Person; p != nil && p.Name != "" {
		return p.Name
	}
	return r.Who
}

// openOf returns the reviews that nobody has closed.
func openOf(list []api.Review) []api.Review {
	open := []api.Review{}
	for _, one := range list {
		if one.Closed.IsZero() {
			open = append(open, one)
		}
	}
	return open
}
