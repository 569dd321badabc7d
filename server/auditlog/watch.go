package auditlog

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"muster/audit"
	"muster/history/ledger"
	"muster/internal/wording"
	"muster/server/anchor"
	"muster/server/metrics"
	"muster/server/scribe"
)

// Log has the parts of the audit log of a server. Without a ledger there is none, as in tests.
type Log struct {
	Ledger *ledger.Ledger
	Scribe *scribe.Scribe
	Anchor *anchor.Anchor
	Keys   audit.Keyring
}

// Watch says how the log is.
type Watch struct {
	Log
	Now func() time.Time
}

const (
	// lateSink is the time for which a sink may be away before health says so.
	lateSink = 5 * time.Minute
	// latePoint is the age from which an entry should have a checkpoint.
	latePoint = 5 * time.Minute
)

// Words says what is wrong; empty: nothing.
func (w Watch) Words(ctx context.Context) string {
	if w.Ledger == nil {
		return ""
	}
	var wrong []string
	st := w.Scribe.State()
	if st.Spool != "" {
		wrong = append(wrong, "orders are refused, because neither the tables of the audit log nor its "+
			"spool can be written: "+st.Spool)
	} else if st.Away != "" {
		wrong = append(wrong, fmt.Sprintf("the audit log goes to its spool since %s: %s",
			st.Since.UTC().Format(time.RFC3339), wording.Clip(st.Away)))
	}
	if st.Lost > 0 {
		wrong = append(wrong, fmt.Sprintf("%d entries of the audit log were lost", st.Lost))
	}
	if text := w.Anchor.Trouble(); text != "" {
		wrong = append(wrong, text)
	}
	if st.Away != "" {
		return strings.Join(wrong, "; ")
	}
	g, err := w.Gauges(ctx)
	if err != nil {
		return strings.Join(append(wrong, err.Error()), "; ")
	}
	if g.Keyless && w.Anchor.Sinks() > 0 {
		wrong = append(wrong, "the places in audit.sinks get no checkpoint: this server has no key, and "+
			"signs nothing")
	}
	if !g.Keyless && g.Unsigned > latePoint {
		wrong = append(wrong, fmt.Sprintf("entries of the audit log have no checkpoint since %s",
			wording.Count(int(g.Unsigned.Minutes()), "minute")))
	}
	for _, s := range g.Sinks {
		if s.Lag > lateSink {
			wrong = append(wrong, fmt.Sprintf("sink %s of the audit log takes nothing since %s", s.Sink,
				wording.Count(int(s.Lag.Minutes()), "minute")))
		}
	}
	return strings.Join(wrong, "; ")
}

// Gauges returns the numbers of the log for a scrape; nil: there is none.
func (w Watch) Gauges(ctx context.Context) (*metrics.Audit, error) {
	if w.Ledger == nil {
		return nil, nil
	}
	st := w.Scribe.State()
	g := &metrics.Audit{Away: st.Away != "", Refusing: st.Spool != "", Waiting: st.Spooled + st.Memory,
		Lost: st.Lost}
	signer, _, err := w.Keys()
	g.Keyless = err != nil || signer == nil
	if g.Entries, err = w.Ledger.Size(ctx); err != nil {
		return g, err
	}
	newest, err := w.Ledger.NewestPoint(ctx)
	if err != nil {
		return g, err
	}
	g.Signed = newest.Size
	if g.Entries > g.Signed && g.Signed > 0 {
		if g.Unsigned, err = w.unsigned(ctx, newest); err != nil {
			return g, err
		}
	}
	list, err := w.Ledger.Sinks(ctx)
	for _, s := range list {
		if !w.Anchor.Has(s.Sink) {
			continue // it was one earlier
		}
		one := metrics.Sink{Sink: s.Sink}
		if !s.Since.IsZero() {
			one.Lag = w.Now().Sub(s.Since)
		}
		g.Sinks = append(g.Sinks, one)
	}
	return g, err
}

// skewMax bounds how far the clock of a server that wrote an entry may be ahead of ours.
const skewMax = time.Minute

// unsigned returns the age of the oldest entry behind a checkpoint, and at most that of the
// checkpoint: a house in which nothing happened for an hour has nothing to sign.
func (w Watch) unsigned(ctx context.Context, newest ledger.Point) (time.Duration, error) {
	now, since := w.Now(), newest.At
	err := w.Ledger.Each(ctx, newest.Size, newest.Size+1, func(r audit.Record) error {
		var e audit.Entry
		// An entry without a time to believe counts as old: somebody may have changed it.
		if json.Unmarshal([]byte(r.Leaf), &e) == nil && e.At.After(since) &&
			e.At.Before(now.Add(skewMax)) {
			since = e.At.Time
		}
		return nil
	})
	return max(now.Sub(since), 0), err
}
