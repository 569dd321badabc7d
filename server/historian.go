package server

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"muster/api"
	"muster/history"
	"muster/jobs"
	"muster/jobs/queue"
	"muster/jobs/queue/keys"
	"muster/jobs/queue/read"
	"muster/server/election"
)

// dutyHistory is the duty of who writes history.
const dutyHistory = "history"

const (
	historyPoll = 500 * time.Millisecond // between two looks when nothing happens
	// historySoon is the same while something does: what Redis loses before history has it, and
	// no host keeps, is known to nobody.
	historySoon = 50 * time.Millisecond
	historyPage = 1000 // entries of a stream that are stored at once
	// historyTail is how long the stream keeps what was stored, for those who
	// follow events.
	historyTail  = 24 * time.Hour
	historyRetry = 2 * time.Second // until a history that was away is tried again
	// historyCare is how often what is stored is looked after.
	historyCare = time.Minute
)

// historian is one term of who writes history.
type historian struct {
	*Server
	term  interface{ Trusted() bool }
	at    map[string]api.Position // by zone, as the store has it
	tasks map[jobs.TaskID]jobs.TaskInfo
	cared time.Time // when what is stored was last looked after
	begun bool      // what Redis knows was compared once
	busy  bool      // the last round stored something

	lost     bool      // Redis has lost what was agreed
	compared time.Time // when that was looked at last

	forget  forgetter
	outage  outage
	healing []jobs.TaskID // tasks of which a part may be missing

	believes believer
}

// keepHistory writes history for as long as this server has the duty.
func (s *Server) keepHistory(ctx context.Context, t *election.Term) error {
	h := newHistorian(s, t)
	defer s.told.forget()
	said := ""
	for ctx.Err() == nil {
		more, err := h.round(ctx)
		if ctx.Err() != nil {
			return nil
		}
		said = s.tell(said, err)
		if err := h.outage.note(ctx, s.queue.Care.Outages, err, s.now()); err != nil && ctx.Err() == nil {
			s.log.Debug("whether history is written could not be kept", "error", err)
		}
		wait := historyPoll
		if h.busy {
			wait = historySoon
		}
		switch {
		case err != nil:
			wait = historyRetry
			h.at = map[string]api.Position{} // somebody else may have written
		case more:
			continue
		}
		timer := time.NewTimer(wait)
		select {
		case <-ctx.Done():
		case <-timer.C:
		}
		timer.Stop()
	}
	return nil
}

func newHistorian(s *Server, t interface{ Trusted() bool }) *historian {
	h := &historian{Server: s, term: t, at: map[string]api.Position{},
		tasks: map[jobs.TaskID]jobs.TaskInfo{}}
	h.believes = believer{s.queue.Hub.Members, h.zonesOf, s.stock.current.Load, s.log,
		map[string]bool{}}
	return h
}

// tell says once what is wrong, and when it is over. Work goes on meanwhile, and the
// stream holds what happens.
func (s *Server) tell(said string, err error) string {
	words := ""
	if err != nil {
		words = err.Error()
	}
	s.told.set(words)
	switch {
	case words != "" && words != said && errors.Is(err, queue.ErrRedis):
		s.log.Error("history waits for Redis, which cannot be used: what is in its event streams is "+
			"stored when it can be", "error", words)
	case words != "" && words != said:
		s.log.Error("history is not written: the event streams hold what happens, "+
			"about 1,000,000 entries each", "error", words)
	case words == "" && said != "":
		s.log.Info("history is written again")
	}
	return words
}

// round stores what is new in all streams, a page of each. It tells whether there is
// more.
func (h *historian) round(ctx context.Context) (more bool, err error) {
	h.busy = false
	zones, err := h.queue.Conn.Zones(ctx)
	if err != nil {
		return false, err
	}
	spoiled := h.guard(ctx, zones)
	if spoiled != nil && !queue.Spoiled(spoiled) {
		return false, spoiled
	}
	if !h.begun {
		err := h.begin(ctx)
		if err != nil && !queue.Spoiled(err) {
			return false, errors.Join(spoiled, err)
		}
		spoiled = errors.Join(spoiled, err)
	}
	for _, zone := range append(zones, keys.HubZone) {
		full, err := h.drain(ctx, zone)
		switch {
		case queue.Spoiled(err): // the events of other zones are stored all the same
			spoiled = errors.Join(spoiled, fmt.Errorf("zone %s: %w", zone, err))
		case err != nil:
			return false, err
		}
		more = more || full
	}
	if spoiled != nil {
		return more, spoiled
	}
	if err := h.heal(ctx); err != nil {
		return more, err
	}
	if now := h.now(); now.Sub(h.cared) >= historyCare {
		h.cared = now
		if err := h.care(ctx, zones); err != nil {
			return more, err
		}
	}
	return more, h.forgetOld(ctx)
}

// forgetOld deletes some of what is older than it is kept.
func (h *historian) forgetOld(ctx context.Context) error {
	if h.cfg.HistoryKeep <= 0 || ctx.Err() != nil || !h.term.Trusted() {
		return nil
	}
	now := h.now()
	return h.forget.stretch(ctx, now, func(ctx context.Context) (int64, error) {
		return h.history.Forget(ctx, now.Add(-h.cfg.HistoryKeep))
	})
}

// agreedEvery is how often what is agreed is compared.
const agreedEvery = 2 * time.Second

// guard sees to it that nothing starts in a Redis that has forgotten something before it was told.
func (h *historian) guard(ctx context.Context, zones []string) error {
	if now := h.now(); h.lost || now.Sub(h.compared) >= agreedEvery || now.Before(h.compared) {
		k := agreedKeeper{h.queue.Hub.Agreed, h.history, h.log, h.now}
		var err error
		if h.lost, err = k.check(ctx); err != nil {
			return err
		}
		h.compared = now
	}
	// Redis may have forgotten its list of zones, too.
	known, err := h.history.Positions(ctx)
	if err != nil {
		return err
	}
	for _, p := range known {
		if p.Zone != keys.HubZone && !slices.Contains(zones, p.Zone) {
			zones = append(zones, p.Zone)
		}
	}
	return recaller{h.queue.Care.Recall, h.history, h.log, h.lost}.settle(ctx, zones)
}

// begin gives the workers the estimates, which Redis may have forgotten, and looks
// again at the tasks that Redis knows: an earlier historian may have died before it did.
func (h *historian) begin(ctx context.Context) error {
	err := h.giveEstimates(ctx)
	if err == nil {
		err = h.suspect(ctx)
	}
	h.begun = err == nil
	return err
}

// giveEstimates makes the estimates of the hub those of history.
func (h *historian) giveEstimates(ctx context.Context) error {
	list, err := h.history.Estimates(ctx)
	if err != nil {
		return err
	}
	return h.queue.Hub.Estimates.ReplaceEstimates(ctx, estimateFields(list))
}

// suspectMax is how many of the newest tasks are compared.
const suspectMax = 200

// suspect notes that of all tasks which Redis knows, parts may be missing.
func (h *historian) suspect(ctx context.Context) error {
	list, err := h.queue.Read.Tasks.Tasks(ctx, suspectMax)
	if err != nil {
		return err
	}
	open, err := h.history.Open(ctx, suspectMax)
	if err != nil {
		return err
	}
	for _, t := range list {
		h.healing = append(h.healing, t.Task)
	}
	h.healing = append(h.healing, open...)
	return nil
}

// drain stores a page of a zone's stream.
func (h *historian) drain(ctx context.Context, zone string) (full bool, err error) {
	pos, known := h.at[zone]
	if !known {
		if pos, err = h.history.Position(ctx, zone); err != nil {
			return false, err
		}
		h.outage.keep(zone, pos.Entries)
	}
	page, err := h.queue.Read.Zones.EventPage(ctx, zone, pos.Last, historyPage)
	if err != nil {
		return false, err
	}
	full = page.Entries == historyPage
	gap, entries := gapOf(pos, page)
	if entries < 0 && page.Stream.Added >= 0 && page.Stream.Last != "" &&
		page.Last == page.Stream.Last {
		entries = page.Stream.Added // at the end of the stream it is known again
	}
	if page.Entries == 0 && gap == nil {
		h.at[zone] = pos
		return false, nil
	}
	if gap != nil {
		gap.Zone = zone
		h.log.Error("events were gone before history had them", "zone", zone, "entries", gap.Entries,
			"after", gap.After, "first", gap.First, "note", gap.Note)
		if err := h.suspect(ctx); err != nil {
			return false, err
		}
		if gap.Back && zone != keys.HubZone {
			if err := h.queue.Care.Recall.KeepHistory(ctx, zone, gap.Note); err != nil {
				return false, err
			}
		}
	}
	events, err := h.believes.events(ctx, zone, page.Events)
	if err != nil {
		return false, err
	}
	b := history.Batch{Zone: zone, After: pos.Last, Last: page.Last, Entries: entries,
		Events: events, Gap: gap, Contradicted: h.contradicted}
	if b.Last == "" {
		b.Last = cmp.Or(pos.Last, "0-0")
	}
	return full, h.store(ctx, b)
}

// store asks Redis what it knows of the tasks and jobs of a batch, and stores it.
func (h *historian) store(ctx context.Context, b history.Batch) error {
	needs := history.NeedsOf(b.Events)
	for _, id := range needs.Tasks {
		t, known, err := h.known(ctx, id)
		if err != nil {
			return err
		}
		if known {
			b.Tasks = append(b.Tasks, t)
		}
	}
	var err error
	if b.Ended, err = h.ends(ctx, b.Zone, needs.Ended); err != nil {
		return err
	}
	if !h.term.Trusted() {
		return errors.New("this server may have lost the duty")
	}
	changed, err := h.history.Put(ctx, b, h.now())
	if err != nil {
		delete(h.at, b.Zone)
		if errors.Is(err, history.ErrMoved) {
			return nil // by one who had the duty before or has it now: look again
		}
		return err
	}
	h.at[b.Zone] = api.Position{Zone: b.Zone, Last: b.Last, Entries: b.Entries}
	h.outage.keep(b.Zone, b.Entries)
	h.busy = true
	h.healing = append(h.healing, needs.Over...)
	return h.queue.Hub.Estimates.SaveEstimates(ctx, estimateFields(changed))
}

// contradicted says that a job is told to have ended a second time, and otherwise.
func (h *historian) contradicted(c history.Contradiction) {
	h.log.Error("a job ended otherwise than history knows: its first end stays", "job", c.Job.ID,
		"known", c.First, "now", c.Job.Outcome, "error", c.Job.Error)
}

// gapOf tells what was trimmed behind a position, and how many entries of the stream
// have passed by the end of the page; −1: that is not known. What was stored stands in
// front of the first entry, if it is gone.
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
		// Its entries come again with later times: no place is left to go back to.
		if pos.Entries < 0 {
			return nil, -1 // it was said already
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

// wentBack tells whether a stream has fewer entries than were stored of it, which only a Redis
// has that was restored from an older copy, or has lost the end of its file.
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

// care trims what was stored from the streams, and keeps the estimates few.
func (h *historian) care(ctx context.Context, zones []string) error {
	old := fmt.Sprintf("%d-0", h.now().Add(-historyTail).UnixMilli())
	for _, zone := range append(zones, keys.HubZone) {
		before := h.at[zone].Last
		if entryLess(old, before) {
			before = old
		}
		if before == "" {
			continue
		}
		if err := h.queue.Care.History.TrimEvents(ctx, zone, before); err != nil {
			return err
		}
	}
	if many, err := h.history.ForgetEstimates(ctx); err != nil || !many {
		return err
	}
	return h.giveEstimates(ctx)
}

// estimateFields are estimates as workers look for them.
func estimateFields(list []history.Estimate) map[string]string {
	out := make(map[string]string, len(list))
	for _, e := range list {
		out[e.Work+"|"+e.Model+"|"+e.Customer] = fmt.Sprintf(`{"p50_ns":%d,"p90_ns":%d,"n":%d}`, e.P50,
			e.P90, e.N)
	}
	return out
}
