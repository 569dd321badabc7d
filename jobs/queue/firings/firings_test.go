package firings_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"muster/internal/serverkey"
	"muster/jobs"
	"muster/jobs/queue"
	"muster/jobs/queue/firings"
	"muster/jobs/queue/keys"
	"muster/testkit/redistest"
	"muster/triggers"
)

var begin = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// signer vouches with a key of servers.
type signer struct{ keys serverkey.Keys }

func (s signer) Vouch(name, text string) (string, error) {
	return s.keys.Vouch(serverkey.Firings, name, text), nil
}

func (s signer) Vouched(name, kept string) (string, error) {
	return s.keys.Vouched(serverkey.Firings, name, kept)
}

func signed(t *testing.T, first byte) signer {
	t.Helper()
	k, err := serverkey.Parse([]byte(serverkey.File("testworld", [serverkey.Size]byte{first})))
	if err != nil {
		t.Fatal(err)
	}
	return signer{k}
}

// book is a book on a real Redis.
func book(t *testing.T) (*firings.Book, *queue.Conn) {
	t.Helper()
	c, err := queue.Open(t.Context(), redistest.StartServer(t).Config())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return firings.New(c).VouchedBy(signed(t, 1)), c
}

func record(event, trigger string, task jobs.TaskID, at time.Time) firings.Record {
	return firings.Record{Event: event, Trigger: trigger, Task: task, At: jobs.Time{Time: at},
		Result: triggers.Fires}
}

// Many that change one memory at a time lose nothing of each other.
func TestChangesOfOneMemoryFollowEachOther(t *testing.T) {
	t.Parallel()
	b, _ := book(t)
	var all sync.WaitGroup
	for i := range 10 {
		all.Go(func() {
			err := b.Change(t.Context(), "look", func(p triggers.Past) (triggers.Past, []firings.Record) {
				p.Fired = append(p.Fired, begin.Add(time.Duration(i)))
				return p, []firings.Record{record(fmt.Sprint("e", i), "look", "", begin)}
			})
			if err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	past, doubts, err := b.Memories(t.Context())
	if err != nil || len(doubts) > 0 || len(past["look"].Fired) != 10 {
		t.Errorf("%+v, %v, %v", past, doubts, err)
	}
	list, more, err := b.List(t.Context(), 0, 9)
	if err != nil || !more || len(list) != 9 {
		t.Errorf("%d records, %v, %v", len(list), more, err)
	}
}

// No writer to Redis makes a trigger fire, or hides a descent: texts without the MAC of
// their name are left out.
func TestWhatNoServerHasWrittenIsNotBelieved(t *testing.T) {
	t.Parallel()
	b, c := book(t)
	held := triggers.Past{Held: map[string]triggers.Held{"": {Bound: triggers.Bound{Event: "e1"}}}}
	err := b.Change(t.Context(), "one", func(triggers.Past) (triggers.Past, []firings.Record) {
		return held, []firings.Record{record("e1", "one", "0000000001", begin)}
	})
	if err != nil {
		t.Fatal(err)
	}
	rdb, memories, records := c.Redis(), keys.Hub("triggers", ""), keys.Hub("firings", "")
	good, err := rdb.HGet(t.Context(), memories, "one").Result()
	if err != nil {
		t.Fatal(err)
	}
	foreign := firings.New(c).VouchedBy(signed(t, 2))
	err = foreign.Change(t.Context(), "two", func(triggers.Past) (triggers.Past, []firings.Record) {
		return held, []firings.Record{record("e2", "two", "0000000002", begin)}
	})
	rec, recErr := rdb.HGet(t.Context(), records, "e1/one").Result()
	if err := errors.Join(err, recErr, rdb.HSet(t.Context(), memories, "three", good, "four",
		good[strings.IndexByte(good, '{'):]).Err(), rdb.HSet(t.Context(), records, "e1/three", rec,
		"task/0000000009", "e1/one").Err()); err != nil {
		t.Fatal(err)
	}
	past, doubts, err := b.Memories(t.Context())
	if err != nil || len(doubts) != 3 || len(past) != 1 || past["one"].Held[""].Bound.Event != "e1" {
		t.Errorf("%+v, %v, %v", past, doubts, err)
	}
	list, err := b.Records(t.Context(), "e1", []string{"one", "three"})
	if err != nil || len(list) != 1 || list["one"].Task != "0000000001" {
		t.Errorf("%+v, %v", list, err)
	}
	for _, id := range []jobs.TaskID{"0000000002", "0000000009"} {
		if r, err := b.OfTask(t.Context(), id); !errors.Is(err, queue.ErrNotFound) {
			t.Errorf("task %s has the firing %+v, %v", id, r, err)
		}
	}
	if r, err := b.OfTask(t.Context(), "0000000001"); err != nil || r.Event != "e1" {
		t.Errorf("%+v, %v", r, err)
	}
}

func TestOldRecordsGoWithTheirTasks(t *testing.T) {
	t.Parallel()
	b, c := book(t)
	now := begin.Add(firings.KeepFor)
	for i, at := range []time.Time{begin.Add(-time.Hour), begin.Add(-1), now} {
		err := b.Change(t.Context(), "one", func(p triggers.Past) (triggers.Past, []firings.Record) {
			return p, []firings.Record{record(fmt.Sprint("e", i), "one", jobs.TaskID(fmt.Sprint("000000000", i)), at)}
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := b.Trim(t.Context(), now); err != nil {
		t.Fatal(err)
	}
	left, err := c.Redis().HKeys(t.Context(), keys.Hub("firings", "")).Result()
	slices.Sort(left)
	if err != nil || !slices.Equal(left, []string{"e2/one", "task/0000000002"}) {
		t.Errorf("%q is left, %v", left, err)
	}
	// A memory without anything in it is none.
	if n := c.Redis().HLen(t.Context(), keys.Hub("triggers", "")).Val(); n != 0 {
		t.Errorf("%d memories are left", n)
	}
}
