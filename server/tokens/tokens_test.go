package tokens

import (
	"errors"
	"reflect"
	"strings"
	"testing"
	"time"

	"muster/internal/serverkey"
	"muster/jobs/queue"
	"muster/jobs/queue/hub"
	"muster/testkit/redistest"
)

func keysOf(t testing.TB, first byte) serverkey.Keys {
	t.Helper()
	k, err := serverkey.Parse([]byte(serverkey.File("i1234", [serverkey.Size]byte{first})))
	if err != nil {
		t.Fatal(err)
	}
	return k
}

// bookOf returns a book in a Redis, at a pretended time.
func bookOf(t *testing.T, cfg queue.Config, now *time.Time) *Book {
	t.Helper()
	c, err := queue.Open(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	keys := keysOf(t, 1)
	return NewBook(hub.NewTokens(c), func() (serverkey.Keys, error) { return keys, nil },
		func() time.Time { return *now })
}

// A token is found by whoever shares Redis and the key, until it is removed.
func TestEveryServerFindsAToken(t *testing.T) {
	t.Parallel()
	for name, cfg := range map[string]func(*testing.T) queue.Config{
		"miniredis":    func(t *testing.T) queue.Config { _, cfg := redistest.StartMini(t); return cfg },
		"redis-server": func(t *testing.T) queue.Config { return redistest.StartServer(t).Config() },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ctx, cfg := t.Context(), cfg(t)
			now := time.UnixMilli(1_800_000_000_000)
			one, two := bookOf(t, cfg, &now), bookOf(t, cfg, &now)
			if any, err := one.Any(ctx); any || err != nil {
				t.Errorf("at first: %v, %v", any, err)
			}
			r, token, err := one.make(ctx, wish{name: "ci", owner: "user:ci", maker: "os:root", life: time.Hour})
			if err != nil {
				t.Fatal(err)
			}
			got, err := two.Find(ctx, token)
			if err != nil || got.Owner != "user:ci" || !got.Expires.Time.Equal(now.Add(time.Hour)) {
				t.Errorf("the other server finds %+v, %v", got, err)
			}
			list, err := one.list(ctx)
			if err != nil || len(list) != 1 || !list[0].Used.Equal(now) {
				t.Errorf("listed as %+v, %v", list, err)
			}
			now = now.Add(useEvery - time.Second)
			if _, err := two.Find(ctx, token); err != nil {
				t.Error(err)
			}
			if list, err = one.list(ctx); err != nil || !list[0].Used.Equal(now.Add(time.Second-useEvery)) {
				t.Errorf("the use is noted each time: %+v, %v", list, err)
			}
			now = now.Add(time.Second)
			if _, err := two.Find(ctx, token); err != nil {
				t.Error(err)
			}
			if list, err = one.list(ctx); err != nil || !list[0].Used.Equal(now) {
				t.Errorf("after a minute the use is not noted: %+v, %v", list, err)
			}
			if _, err := one.named(ctx, "user:other", r.ID); !errors.Is(err, queue.ErrNotFound) {
				t.Errorf("another owner removes it: %v", err)
			}
			if _, err := one.named(ctx, "", ""); !errors.Is(err, queue.ErrNotFound) {
				t.Errorf("no name removes one: %v", err)
			}
			if found, err := one.named(ctx, "user:ci", "ci"); err != nil || found.ID != r.ID {
				t.Errorf("by its name: %+v, %v", found, err)
			}
			if err := one.drop(ctx, r.ID); err != nil {
				t.Error(err)
			}
			var no *Refusal
			if _, err := two.Find(ctx, token); !errors.As(err, &no) || no.Reason != Unknown {
				t.Errorf("a removed token: %v", err)
			}
			if err := one.store.AddToken(ctx, "same", "x"); err != nil {
				t.Error(err)
			}
			if err := one.store.AddToken(ctx, "same", "y"); !errors.Is(err, queue.ErrTokenName) {
				t.Errorf("an id twice: %v", err)
			}
		})
	}
}

func TestALifeIsBounded(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]time.Duration{"": lifeUsual, "1m": time.Minute, "12h": 12 * time.Hour,
		"90d": 90 * 24 * time.Hour, "365d": lifeMax, "8760h": lifeMax,
		"59s": 0, "366d": 0, "-1d": 0, "d": 0, "1": 0, "9223372036854775807d": 0, "1000000000000000000000d": 0} {
		got, err := parseLife(text)
		if got != want || (err == nil) != (want != 0) {
			t.Errorf("%q: %s, %v, want %s", text, got, err, want)
		}
	}
}

func FuzzSplit(f *testing.F) {
	_, token := newRecord(Record{Name: "a", Owner: "user:a"})
	f.Add(token)
	f.Add("mst_")
	f.Add("muster_x")
	f.Fuzz(func(t *testing.T, token string) {
		id, secret, err := split(token)
		if err == nil && (!isID(id) || secret == "" || prefix+id+"_"+secret != token) {
			t.Errorf("%q is %q and %q", token, id, secret)
		}
	})
}

// Nothing but what text wrote opens, whatever somebody makes of it.
func FuzzOpen(f *testing.F) {
	keys := keysOf(f, 1)
	r, _ := newRecord(Record{Name: "a", Owner: "user:a", Created: infoTime(time.UnixMilli(1)),
		Expires: infoTime(time.UnixMilli(2))})
	r.ID, r.Hash = "aaaaaaaaaaaa", strings.Repeat("0", 64)
	right, err := r.text(keys)
	if err != nil {
		f.Fatal(err)
	}
	back, err := open(keys, r.ID, right)
	if err != nil || back.Owner != r.Owner || !back.Expires.Time.Equal(r.Expires.Time) {
		f.Fatal(back, err)
	}
	f.Add("aaaaaaaaaaaa", right)
	f.Add("aaaaaaaaaaab", right)
	f.Add("aaaaaaaaaaaa", right+" ")
	f.Fuzz(func(t *testing.T, id, text string) {
		got, err := open(keys, id, text)
		if err == nil && (text != right || !reflect.DeepEqual(got, back) || id != r.ID) {
			t.Errorf("%q opens under %q: %+v", text, id, got)
		}
	})
}
