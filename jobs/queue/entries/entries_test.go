package entries_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"

	"muster/internal/serverkey"
	"muster/jobs/queue"
	"muster/jobs/queue/entries"
	"muster/jobs/queue/hub"
	"muster/jobs/queue/keys"
	"muster/testkit/redistest"
)

// childURL names the variable by which this binary is the process that writes until it is killed.
const childURL = "ENTRIES_TEST_REDIS"

func TestMain(m *testing.M) {
	if url := os.Getenv(childURL); url != "" {
		fmt.Fprintln(os.Stderr, writeForever(url))
		os.Exit(1)
	}
	os.Exit(m.Run())
}

// signed vouches with a key of servers.
type signed struct{ serverkey.Keys }

func (s signed) Vouch(name, text string) (string, error) {
	return s.Keys.Vouch(serverkey.Entries, name, text), nil
}

func (s signed) Vouched(name, kept string) (string, error) {
	return s.Keys.Vouched(serverkey.Entries, name, kept)
}

func voucher(first byte) signed {
	k, err := serverkey.Parse([]byte(serverkey.File("testworld", [serverkey.Size]byte{first})))
	if err != nil {
		panic(err)
	}
	return signed{k}
}

// house is a store and its connection.
type house struct {
	*entries.Store
	c *queue.Conn
}

func each(t *testing.T, test func(t *testing.T, h house)) {
	t.Helper()
	for _, kind := range []string{"mini", "real"} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			var cfg queue.Config
			if kind == "mini" {
				_, cfg = redistest.StartMini(t)
			} else {
				cfg = redistest.StartServer(t).Config()
			}
			c, err := queue.Open(t.Context(), cfg)
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = c.Close() })
			test(t, house{entries.New(c, voucher(7)), c})
		})
	}
}

func write(ctx context.Context, h house, was *entries.Version, floor int64, change entries.Change) error {
	p, err := h.Prepare(was, floor, change)
	if err != nil {
		return err
	}
	return hub.Make(ctx, h.c, p)
}

// must makes a change of the version in force, and returns the next one.
func must(t *testing.T, h house, change entries.Change) *entries.Version {
	t.Helper()
	was, err := h.Read(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := write(t.Context(), h, was, 0, change); err != nil {
		t.Fatal(err)
	}
	v, err := h.Read(t.Context(), was)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

// words returns the texts of a version.
func words(v *entries.Version) string {
	var out []string
	for _, p := range v.Of("trigger") {
		for _, d := range p.Docs {
			out = append(out, p.Customer+"/"+d.Name+"="+d.Text)
		}
	}
	return strings.Join(out, " ")
}

func one(customer, name, text string) entries.Change {
	return entries.Change{{Kind: "trigger", Customer: customer}: {{Name: name, Text: text}}}
}

func TestOnlyTheChangedPartIsWrittenAndRead(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, h house) {
		first := must(t, h, one("acme", "a", "1"))
		second := must(t, h, one("bolt", "b", "1"))
		again, err := h.Read(t.Context(), second)
		if err != nil || again != second {
			t.Errorf("a version in force is read again: %v", err)
		}
		third, err := h.Read(t.Context(), first)
		if err != nil || words(third) != "acme/a=1 bolt/b=1" || third.Number != 2 ||
			third.Of("trigger")[0] != first.Of("trigger")[0] {
			t.Errorf("%d: %s, %v", third.Number, words(third), err)
		}
		last := must(t, h, entries.Change{{Kind: "trigger", Customer: "acme"}: nil})
		fields, err := h.c.Redis().HKeys(t.Context(), keys.Hub("entries", "")).Result()
		if err != nil || words(last) != "bolt/b=1" || len(fields) != 3 {
			t.Errorf("%s, of the fields %v, %v", words(last), fields, err)
		}
		if err := write(t.Context(), h, third, 0, one("acme", "a", "2")); !errors.Is(err, queue.ErrStale) {
			t.Errorf("a change of an older version: %v", err)
		}
	})
}

// Entries give power, so they are believed only as a server wrote them.
func TestWhatNoServerWroteIsNotBelieved(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, h house) {
		ctx, key := t.Context(), keys.Hub("entries", "")
		must(t, h, one("acme", "a", "1"))
		old, err := h.c.Redis().HGet(ctx, key, "part:trigger/acme").Result()
		if err != nil {
			t.Fatal(err)
		}
		must(t, h, one("acme", "a", "2"))
		good := must(t, h, one("bolt", "b", "1"))
		set := func(field, text string) {
			t.Helper()
			if err := h.c.Redis().HSet(ctx, key, field, text).Err(); err != nil {
				t.Fatal(err)
			}
		}
		for what, text := range map[string]string{"an earlier part": old, "another": `[{"name":"a","text":"x"}]`} {
			set("part:trigger/acme", text)
			v, err := h.Read(ctx, nil)
			if err != nil || words(v) != "bolt/b=1" || !strings.Contains(v.Trouble(), "trigger/acme: it is not what") {
				t.Errorf("%s: %s, %q, %v", what, words(v), v.Trouble(), err)
			}
		}
		if v, err := h.Read(ctx, good); err != nil || v != good {
			t.Errorf("who has read it before: %v", err)
		}
		set("part:trigger/house", `[{"name":"x","text":"x"}]`) // no head has its sum
		if v, err := h.Read(ctx, nil); err != nil || strings.Contains(words(v), "x") {
			t.Errorf("a part without a sum: %s, %v", words(v), err)
		}
		foreign := entries.New(h.c, voucher(8))
		if _, err := foreign.Read(ctx, nil); !errors.Is(err, entries.ErrUnsigned) {
			t.Errorf("another key: %v", err)
		}
		set("mark", "9.other")
		if _, err := h.Read(ctx, nil); !errors.Is(err, entries.ErrUnsigned) {
			t.Errorf("another mark: %v", err)
		}
		set("head", "{}")
		if _, err := h.Read(ctx, nil); !errors.Is(err, entries.ErrUnsigned) {
			t.Errorf("another head: %v", err)
		}
		all, err := h.Replaced(ctx)
		if err != nil {
			t.Fatal(err)
		}
		if err := write(ctx, h, all, good.Number, one("acme", "a", "3")); err != nil {
			t.Fatal(err)
		}
		v, err := h.Read(ctx, good)
		if err != nil || words(v) != "acme/a=3" || v.Number != good.Number+1 {
			t.Errorf("replaced: %d %s, %v", v.Number, words(v), err)
		}
		if fields, _ := h.c.Redis().HKeys(ctx, key).Result(); len(fields) != 3 {
			t.Errorf("left over: %v", fields)
		}
	})
}

func TestAnOlderVersionDoesNotComeBack(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, h house) {
		ctx, key := t.Context(), keys.Hub("entries", "")
		must(t, h, one("acme", "a", "1"))
		old, err := h.c.Redis().HGetAll(ctx, key).Result()
		if err != nil {
			t.Fatal(err)
		}
		good := must(t, h, one("acme", "a", "2"))
		if err := h.c.Redis().HSet(ctx, key, old).Err(); err != nil {
			t.Fatal(err)
		}
		v, err := h.Read(ctx, good)
		if !errors.Is(err, entries.ErrWentBack) || v != good {
			t.Errorf("an earlier version: %v", err)
		}
		// The next change is made of what was known, and not of what somebody put back.
		over, err := h.Over(ctx, good)
		if err != nil {
			t.Fatal(err)
		}
		if err := write(ctx, h, over, good.Number, one("bolt", "b", "1")); err != nil {
			t.Fatal(err)
		}
		if v, err = h.Read(ctx, good); err != nil || words(v) != "acme/a=2 bolt/b=1" {
			t.Errorf("applied again: %s, %v", words(v), err)
		}
		// The mark alone, which nobody signs, makes no base of an earlier version.
		mark := h.c.Redis().HGet(ctx, key, "mark").Val()
		newest := must(t, h, one("bolt", "b", "2"))
		if err := h.c.Redis().HSet(ctx, key, "mark", mark).Err(); err != nil {
			t.Fatal(err)
		}
		if err := write(ctx, h, v, 0, one("acme", "a", "4")); !errors.Is(err, queue.ErrStale) {
			t.Errorf("a change of the version before: %v, want %v", err, queue.ErrStale)
		}
		if _, err := h.Read(ctx, newest); !errors.Is(err, entries.ErrUnsigned) {
			t.Errorf("a mark that is not of the head: %v", err)
		}
	})
}

// manyParts is the number of parts that a writer changes to one number, all at once.
const manyParts = 30

func numbered(n int) entries.Change {
	c := entries.Change{}
	for i := range manyParts {
		c[entries.PartID{Kind: "trigger", Customer: "c" + strconv.Itoa(i)}] = []entries.Doc{
			{Name: "t", Text: strconv.Itoa(n)}}
	}
	return c
}

// writeForever changes all parts to the next number, again and again.
func writeForever(url string) error {
	ctx, cfg := context.Background(), queue.DefaultConfig()
	cfg.URL = url
	c, err := queue.Open(ctx, cfg)
	if err != nil {
		return err
	}
	h := house{entries.New(c, voucher(7)), c}
	for {
		v, err := h.Read(ctx, nil)
		if err == nil {
			err = write(ctx, h, v, 0, numbered(int(v.Number)+1))
		}
		if err != nil {
			return err
		}
		fmt.Println(v.Number + 1)
	}
}

// A writer that is killed at any place leaves the earlier version or the later one, and whoever
// reads meanwhile sees no mixture.
func TestAKilledWriterLeavesAllOrNothing(t *testing.T) {
	t.Parallel()
	r := redistest.StartServer(t)
	c, err := queue.Open(t.Context(), r.Config())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	s := entries.New(c, voucher(7))
	var last *entries.Version
	for range 5 {
		cmd := exec.CommandContext(t.Context(), os.Args[0])
		cmd.Env = append(os.Environ(), childURL+"="+r.Config().URL)
		cmd.Stderr = os.Stderr
		out, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		lines := bufio.NewScanner(out)
		for n := 0; n < 20 && lines.Scan(); n++ {
			last = whole(t, s, last)
		}
		_ = cmd.Process.Kill()
		_, _ = io.Copy(io.Discard, out)
		_ = cmd.Wait()
		last = whole(t, s, last)
	}
	if last.Number < 100 {
		t.Errorf("only %d versions were written", last.Number)
	}
}

// whole reads the version in force, and looks that all of its parts say its number.
func whole(t *testing.T, s *entries.Store, was *entries.Version) *entries.Version {
	t.Helper()
	v, err := s.Read(t.Context(), was)
	if err != nil {
		t.Fatal(err)
	}
	if got := v.Of("trigger"); len(got) != manyParts && v.Number > 0 {
		t.Fatalf("version %d has %d parts: %s", v.Number, len(got), v.Trouble())
	}
	for _, p := range v.Of("trigger") {
		if p.Docs[0].Text != strconv.FormatInt(v.Number, 10) {
			t.Fatalf("version %d has a part of %s", v.Number, p.Docs[0].Text)
		}
	}
	return v
}
