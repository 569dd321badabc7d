package sessions

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"muster/internal/serverkey"
	"muster/jobs/queue"
	"muster/jobs/queue/hub"
	"muster/server/web"
	"muster/testkit/redistest"
)

// bookOf returns a book in a Redis, as one of several servers has it.
func bookOf(t *testing.T, cfg queue.Config, now func() time.Time) *Book {
	t.Helper()
	c, err := queue.Open(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	keys := keysOf(t)
	return NewBook(hub.NewSessions(c), nil, func() (serverkey.Keys, error) { return keys, nil }, now)
}

// Of all who use a link at the same moment, at several servers, one gets a session.
func TestALinkIsTakenOnce(t *testing.T) {
	t.Parallel()
	cfg := redistest.StartServer(t).Config()
	books := []*Book{bookOf(t, cfg, time.Now), bookOf(t, cfg, time.Now)}
	for range 5 {
		_, link, err := books[0].offer(t.Context(), web.Caller{Name: "os:alice", Local: true})
		if err != nil {
			t.Fatal(err)
		}
		var all sync.WaitGroup
		var got atomic.Int32
		for i := range 20 {
			all.Go(func() {
				if r, err := books[i%2].take(t.Context(), Link, link); err == nil && r.Owner == "os:alice" {
					got.Add(1)
				}
			})
		}
		all.Wait()
		if got.Load() != 1 {
			t.Errorf("%d got it", got.Load())
		}
	}
}

// An owner has a bounded number of sessions: a new one ends the oldest. Those of others stay, and
// what has ended, or was never a record, goes.
func TestAnOwnerHasABoundedNumberOfSessions(t *testing.T) {
	t.Parallel()
	_, cfg := redistest.StartMini(t)
	var at atomic.Int64
	at.Store(1_800_000_000_000_000)
	b := bookOf(t, cfg, func() time.Time { return time.UnixMicro(at.Add(1000)) })
	begin := func(owner string) Record {
		t.Helper()
		r, _, err := b.begin(t.Context(), Record{Kind: Browser, Owner: owner}, time.Time{})
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
	other, first := begin("user:other"), begin("user:many")
	if err := b.store.AddSession(t.Context(), "junk", "junk"); err != nil {
		t.Fatal(err)
	}
	for range ownerMax {
		begin("user:many")
	}
	has := func(id string) bool {
		_, _, err := b.store.SessionRecord(context.Background(), id)
		return err == nil
	}
	all, err := b.all(t.Context(), keysOf(t))
	if err != nil || len(all) != ownerMax+1 || has(first.ID) || !has(other.ID) || has("junk") {
		t.Errorf("%d records, %v; the oldest: %t, the other's: %t, junk: %t", len(all), err, has(first.ID),
			has(other.ID), has("junk"))
	}
	at.Add(int64(idleMax / time.Microsecond))
	begin("user:new")
	if all, _ := b.all(t.Context(), keysOf(t)); len(all) != 1 {
		t.Errorf("%d records after all others have ended", len(all))
	}
}
