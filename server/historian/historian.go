package historian

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"muster/api"
	"muster/history"
	"muster/jobs"
	"muster/jobs/queue"
	"muster/jobs/queue/keys"
)

// Duty is the name of the duty to write history.
const Duty = "history"

const (
	poll = 500 * time.Millisecond // between two rounds when nothing happens
	// pollSoon is the same while something happens: what Redis loses before history has it, and
	// no host keeps, is lost for ever.
	pollSoon = 50 * time.Millisecond
	pageMax  = 1000 // entries of a stream that are stored at once
	// tail is the time for which a stream keeps stored events, for people who follow them.
	tail  = 24 * time.Hour
	retry = 2 * time.Second // until a history that was away is tried again
	// careEvery is the time between two rounds that trim what was stored.
	careEvery = time.Minute
)

// A Term is the time for which this server has the duty.
type Term interface{ Trusted() bool }

// Historian writes history for one term.
type Historian struct {
	Needs
	term  Term
	at    map[string]api.Position // by zone, as the store has it
	cared time.Time               // when the streams were last trimmed
	round struct {
		begun bool // Redis and history were compared once
		busy  bool // the last one stored something
	}

	ends   ends
	forget forgetter
	outage outage
	healer healer
}

// New returns the historian of a term.
func New(n Needs, t Term) *Historian {
	h := &Historian{Needs: n, term: t, at: map[string]api.Position{}}
	m := memory{tasks: n.Queue.Tasks, past: n.Past, known: map[jobs.TaskID]jobs.TaskInfo{}}
	h.ends = ends{memory: m, jobs: n.Queue.Jobs, endings: n.Queue.Endings,
		outputs: n.Queue.Outputs, stock: n.Stock,
		prover: &prover{Proofs: n.Proofs, log: n.Log}}
	believes := believer{n.Queue.Members, m.zonesOf, n.Stock, n.Log, map[string]bool{}}
	h.healer = healer{past: n.Past, ends: h.ends, believes: believes}
	return h
}

// Run writes history until ctx is done.
func (h *Historian) Run(ctx context.Context) error {
	defer h.Trouble.set("")
	said := ""
	for ctx.Err() == nil {
		more, err := h.RunOnce(ctx)
		if ctx.Err() != nil {
			return nil
		}
		said = h.say(said, err)
		err2 := h.outage.note(ctx, h.Queue.Outages, err, h.Now())
		if err2 != nil && ctx.Err() == nil {
			h.Log.Debug("whether history is written could not be kept", "error", err2)
		}
		wait := poll
		if h.round.busy {
			wait = pollSoon
		}
		switch {
		case err != nil:
			wait = retry
			h.at = map[string]api.Position{} // another server may have written
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

// say logs once what is wrong, and when it is over. Work goes on meanwhile, and the
// stream holds what happens.
func (h *Historian) say(said string, err error) string {
	words := ""
	if err != nil {
		words = err.Error()
	}
	h.Trouble.set(words)
	switch {
	case words != "" && words != said && errors.Is(err, queue.ErrRedis):
		h.Log.Error("history waits for Redis, which cannot be used: what is in its event streams is "+
			"stored when it can be", "error", words)
	case words != "" && words != said:
		h.Log.Error("history is not written: the event streams hold what happens, "+
			"about 1,000,000 entries each", "error", words)
	case words == "" && said != "":
		h.Log.Info("history is written again")
	}
	return words
}

// RunOnce stores what is new in all streams, a page of each, and reports whether there is more.
func (h *Historian) RunOnce(ctx context.Context) (more bool, err error) {
	h.round.busy = false
	zones, err := h.Queue.Zones.Zones(ctx)
	if err != nil {
		return false, err
	}
	spoiled := h.Guard.RunOnce(ctx, zones)
	if spoiled != nil && !queue.OneZone(spoiled) {
		return false, spoiled
	}
	if !h.round.begun {
		err := h.begin(ctx)
		if err != nil && !queue.OneZone(err) {
			return false, errors.Join(spoiled, err)
		}
		spoiled = errors.Join(spoiled, err)
	}
	for _, zone := range append(zones, keys.HubZone) {
		full, err := h.drain(ctx, zone)
		switch {
		case queue.OneZone(err): // the events of other zones are stored all the same
			spoiled = errors.Join(spoiled, fmt.Errorf("zone %s: %w", zone, err))
		case err != nil:
			return false, err
		}
		more = more || full
	}
	if spoiled != nil && !queue.Away(spoiled) {
		return more, spoiled
	}
	if err := h.healer.heal(ctx); err != nil {
		return more, errors.Join(spoiled, err)
	}
	if now := h.Now(); now.Sub(h.cared) >= careEvery {
		h.cared = now
		if err := h.care(ctx, zones); err != nil {
			return more, errors.Join(spoiled, err)
		}
	}
	return more, errors.Join(spoiled, h.forgetOld(ctx))
}

// forgetOld deletes some of what is older than the store keeps it.
func (h *Historian) forgetOld(ctx context.Context) error {
	if h.Keep <= 0 || ctx.Err() != nil || !h.term.Trusted() {
		return nil
	}
	now := h.Now()
	return h.forget.stretch(ctx, now, func(ctx context.Context) (int64, error) {
		return h.Writer.Forget(ctx, now.Add(-h.Keep))
	})
}

// begin gives the workers the estimates, which Redis may have forgotten, and compares the
// tasks that Redis knows: an earlier historian may have died before it did.
func (h *Historian) begin(ctx context.Context) error {
	err := h.Estimates.give(ctx)
	if err == nil {
		err = h.suspect(ctx)
	}
	h.round.begun = err == nil
	return err
}

// suspectMax bounds the newest tasks that are compared.
const suspectMax = 200

// suspect notes that parts of all tasks which Redis knows may be missing in history.
func (h *Historian) suspect(ctx context.Context) error {
	list, err := h.Queue.Tasks.Tasks(ctx, suspectMax)
	if err != nil {
		return err
	}
	open, err := h.Past.Open(ctx, suspectMax)
	if err != nil {
		return err
	}
	for _, t := range list {
		h.healer.add(t.Task)
	}
	h.healer.add(open...)
	return nil
}

// drain stores a page of a zone's stream.
func (h *Historian) drain(ctx context.Context, zone string) (full bool, err error) {
	pos, known := h.at[zone]
	if !known {
		if pos, err = h.Writer.Position(ctx, zone); err != nil {
			return false, err
		}
		h.outage.keep(zone, pos.Entries)
	}
	page, err := h.Queue.Events.EventPage(ctx, zone, pos.Last, pageMax)
	if err != nil {
		return false, err
	}
	full = page.Entries == pageMax
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
		if err := h.noteGap(ctx, zone, gap); err != nil {
			return false, err
		}
	}
	events, err := h.healer.believes.events(ctx, zone, page.Events)
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

// noteGap looks for what a gap may have hidden. A zone whose Redis went back in time starts
// nothing before history was asked.
func (h *Historian) noteGap(ctx context.Context, zone string, gap *api.Gap) error {
	gap.Zone = zone
	h.Log.Error("events were gone before history had them", "zone", zone, "entries", gap.Entries,
		"after", gap.After, "first", gap.First, "note", gap.Note)
	if err := h.suspect(ctx); err != nil {
		return err
	}
	if gap.Back && zone != keys.HubZone {
		return h.Guard.Debts.KeepHistory(ctx, zone, gap.Note)
	}
	return nil
}

// store adds to a batch what Redis knows of its tasks and jobs, and stores it.
func (h *Historian) store(ctx context.Context, b history.Batch) error {
	needs := history.NeedsOf(b.Events)
	for _, id := range needs.Tasks {
		t, whole, err := h.ends.memory.look(ctx, id)
		if err != nil {
			return err
		}
		if whole {
			b.Tasks = append(b.Tasks, t)
		}
	}
	ended, err := h.ends.of(ctx, b.Zone, needs.Ended)
	if err != nil {
		return err
	}
	b.Ended, b.Outputs = ended.jobs, ended.said
	if err := h.ends.prover.events(ctx, b.Zone, b.Events, b.Ended); err != nil {
		return err
	}
	if !h.term.Trusted() {
		return errors.New("this server may have lost the duty")
	}
	changed, err := h.Writer.Put(ctx, b, h.Now())
	if err != nil {
		delete(h.at, b.Zone)
		if errors.Is(err, history.ErrMoved) {
			return nil // an earlier or later historian has moved the position: read it again
		}
		return err
	}
	h.at[b.Zone] = api.Position{Zone: b.Zone, Last: b.Last, Entries: b.Entries}
	h.outage.keep(b.Zone, b.Entries)
	h.round.busy = true
	h.healer.add(needs.Over...)
	if err := h.Counting.count(ctx, b); err != nil {
		h.Log.Warn("the metrics lack windows that were missed", "zone", b.Zone, "error", err)
	}
	return h.Estimates.save(ctx, changed)
}

// contradicted logs that the second end of a job differs from the one in history.
func (h *Historian) contradicted(c history.Contradiction) {
	h.Log.Error("a job ended otherwise than history knows: its first end stays", "job", c.Job.ID,
		"known", c.First, "now", c.Job.Outcome, "error", c.Job.Error)
}

// care trims what was stored from the streams, and keeps the estimates few.
func (h *Historian) care(ctx context.Context, zones []string) error {
	old := fmt.Sprintf("%d-0", h.Now().Add(-tail).UnixMilli())
	for _, zone := range append(zones, keys.HubZone) {
		before := h.at[zone].Last
		if entryLess(old, before) {
			before = old
		}
		if before == "" {
			continue
		}
		if err := h.Queue.Trimming.TrimEvents(ctx, zone, before); err != nil {
			return err
		}
	}
	return h.Estimates.forget(ctx)
}
