package historian

import (
	"fmt"

	"muster/api"
	"muster/jobs/queue/read"
)

// gapOf returns the gap between a position and a page, nil if there is none, and how many
// entries of the stream have passed by the end of the page; −1: that is not known.
func gapOf(pos api.Position, page read.EventPage) (*api.Gap, int64) {
	s := page.Stream
	after := func(known int64) int64 {
		if known < 0 {
			return -1
		}
		return known + page.Entries
	}
	gap := &api.Gap{After: pos.Last, First: s.First, Entries: -1}
	switch {
	case pos.Last == "":
		if s.Added < 0 {
			return nil, -1
		}
		if gap.Entries = s.Added - s.Length; gap.Entries == 0 {
			return nil, page.Entries
		}
		gap.Note = "they were gone before this history began, or another database has them"
		return gap, after(gap.Entries)
	case s.Last == "" || entryLess(s.Last, pos.Last):
		// The entries come again with later times: no place is left to go back to.
		if pos.Entries < 0 {
			return nil, -1 // the gap is reported already
		}
		gap.Note = "Redis has forgotten events that history has; others may be missing until its " +
			"clock passes the last of them"
		gap.Back = true
		return gap, -1
	case wentBack(pos, page):
		gap.Note = "Redis went back in time: it has forgotten events that history has, and what " +
			"else it has forgotten is not known"
		gap.Back = true
		return gap, s.Added
	case !entryLess(pos.Last, s.First): // the stream has what was stored last
		return nil, after(pos.Entries)
	case s.Added < 0 || pos.Entries < 0:
		gap.Note = "it is not known how many"
		return gap, -1
	}
	gone := s.Added - s.Length
	switch {
	case gone < pos.Entries:
		gap.Note = "the stream began anew: it is not known what the old one had"
		return gap, after(gone)
	case gone == pos.Entries:
		return nil, after(gone)
	}
	gap.Entries = gone - pos.Entries
	gap.Note = "the stream was trimmed before they were stored"
	return gap, after(gone)
}

// wentBack reports whether a stream has fewer entries than were stored of it. Only a Redis has
// such a stream that was restored from an older copy, or that has lost the end of its file.
func wentBack(pos api.Position, page read.EventPage) bool {
	s := page.Stream
	return s.Added >= 0 && pos.Entries >= 0 && page.Last == s.Last && s.Length > 0 &&
		s.Added-page.Entries < pos.Entries && !entryLess(pos.Last, s.First)
}

// entryLess compares ids of entries.
func entryLess(a, b string) bool {
	var am, as, bm, bs uint64
	fmt.Sscanf(a, "%d-%d", &am, &as)
	fmt.Sscanf(b, "%d-%d", &bm, &bs)
	return am < bm || am == bm && as < bs
}
