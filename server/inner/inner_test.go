package inner_test

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"

	"muster/fleet"
	"muster/jobs"
	"muster/jobs/queue"
	"muster/jobs/queue/hub"
	"muster/jobs/queue/inbox"
	"muster/jobs/queue/keys"
	"muster/jobs/queue/read"
	"muster/jobs/queue/versions"
	"muster/server/election"
	"muster/server/inner"
	"muster/testkit/redistest"
)

// plain signs nothing.
type plain struct{}

func (plain) Vouch(_, text string) (string, error)   { return text, nil }
func (plain) Vouched(_, kept string) (string, error) { return kept, nil }

// needs returns what a feeder needs of a real Redis, with triggers that wait for all kinds.
func needs(c *queue.Conn) inner.Needs {
	tasks := read.NewTasks(c, nil, nil)
	return inner.Needs{Box: inbox.New(c, plain{}), Zones: c, Streams: read.NewZones(c), Tasks: tasks,
		Jobs: tasks, Facts: hub.NewFacts(c), Versions: versions.New(c),
		Wants: func(context.Context) func(string) bool { return func(string) bool { return true } },
		Log:   hclog.NewNullLogger(), Now: time.Now}
}

// hosts returns some hosts; version changes the address of the first one.
func hosts(n, version int) (list []fleet.Host) {
	for i := range n {
		list = append(list, fleet.Host{Name: fmt.Sprint("h", i), Address: "10.0.0.1", Port: 22, Zone: "z",
			User: "root", Fence: fleet.FenceNone, Customer: []string{"acme", "bolt"}[i%2]})
	}
	list[0].Address, list[0].Group, list[2].Group = fmt.Sprint("10.0.1.", version), "pair", "pair"
	return list
}

// world is a Redis in which things happen.
type world struct {
	t    *testing.T
	cfg  queue.Config
	conn *queue.Conn
	box  *inbox.Inbox
}

func newWorld(t *testing.T) *world {
	t.Helper()
	cfg := redistest.StartServer(t).Config()
	c, err := queue.Open(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	w := &world{t, cfg, c, inbox.New(c, plain{})}
	w.publish(0)
	return w
}

func (w *world) must(err error) {
	w.t.Helper()
	if err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) publish(version int) {
	w.t.Helper()
	w.must(hub.NewInventory(w.conn).Publish(w.t.Context(), fmt.Sprint("v", version), hosts(9, version), nil))
}

func (w *world) freeze(group string) {
	w.t.Helper()
	w.must(w.conn.Alert(w.t.Context(), "z", jobs.Alert{Event: "freeze-group", Object: group,
		Detail: map[string]any{"job": "0wcy7y2fb2:h1", "note": "the line broke"}}))
}

func (w *world) fact(host string, n int) {
	w.t.Helper()
	_, err := hub.NewFacts(w.conn).SaveFacts(w.t.Context(), []jobs.HostFacts{{Host: host,
		At: jobs.Time{Time: time.Unix(int64(n), 0)}, Task: "0wcy7y2fb2", Facts: map[string]string{
			"kernel": fmt.Sprint(n), "uptime": fmt.Sprint(n)}}})
	w.must(err)
}

// told counts the events that wait, by kind and what they are about.
func (w *world) told() map[string]int {
	w.t.Helper()
	out := map[string]int{}
	before := int64(0)
	for {
		list, next, err := w.box.List(w.t.Context(), inbox.Filter{Before: before, Most: 200,
			Sees: func(string) bool { return true }})
		w.must(err)
		for _, k := range list {
			whole, err := w.box.Event(w.t.Context(), k.ID)
			w.must(err)
			out[fmt.Sprintf("%s %s %s", k.Kind, k.Customer, whole.Body)]++
		}
		if before = next; next == 0 {
			return out
		}
	}
}

// taken returns the number of events that were taken.
func (w *world) taken() int64 {
	list, err := w.box.Tallies(w.t.Context())
	w.must(err)
	if len(list) == 0 {
		return 0
	}
	return list[0].Taken
}

// term is one that nobody ends.
type term int64

func (t term) Number() int64 { return int64(t) }
func (term) Trusted() bool   { return true }

// lead gives the duty to the test.
func (w *world) lead() term {
	w.t.Helper()
	got, err := hub.NewLeaders(w.conn).Lead(w.t.Context(), inner.Duty, "test", 0)
	w.must(err)
	w.must(w.conn.Redis().Persist(w.t.Context(), keys.Hub("leader:", inner.Duty)).Err())
	return term(got.Number)
}

func await(t *testing.T, what string, f func() bool) {
	t.Helper()
	ticks := time.NewTicker(5 * time.Millisecond)
	defer ticks.Stop()
	for end := time.After(2 * time.Minute); !f(); {
		select {
		case <-ticks.C:
		case <-end:
			t.Fatalf("%s: not within two minutes", what)
		}
	}
}

// Nothing is told that happened before anybody waited; all that happens later is, in its order.
func TestWhatHappensIsToldFromTheFirstLookOn(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.freeze("early")
	w.fact("h1", 1)
	f := inner.New(needs(w.conn), w.lead())
	w.must(f.RunOnce(t.Context()))
	if n := w.taken(); n != 0 {
		t.Errorf("%d events of what happened before: %v", n, w.told())
	}
	w.freeze("late")
	w.freeze("pair") // both hosts of it are of one customer
	w.publish(1)
	w.fact("h1", 2)
	w.fact("h1", 3) // nobody looked in between: one change
	for range 2 {
		w.must(f.RunOnce(t.Context()))
	}
	w.must(hub.NewInventory(w.conn).Publish(t.Context(), "v0", hosts(9, 0), nil)) // back again
	w.must(f.RunOnce(t.Context()))
	w.publish(1) // and once more: another change, not the first one
	w.must(f.RunOnce(t.Context()))
	got := w.told()
	for _, want := range []string{`"group":"late"`, `"after":{"address":"10.0.1.1"`,
		`"after":{"address":"10.0.1.0"`, `"kernel":{"from":"1","to":"3"}`, `group-frozen acme`, `"hosts":["h0","h2"]`} {
		n := 0
		for text, many := range got {
			if strings.Contains(text, want) {
				n += many
			}
		}
		if most := map[bool]int{true: 2, false: 1}[strings.Contains(want, "10.0.1.1")]; n != most {
			t.Errorf("%s: told %d times, want %d: %v", want, n, most, got)
		}
	}
	if w.taken() != 6 {
		t.Errorf("%d events, want 6", w.taken())
	}
}

// Where no trigger waits, nothing is told; and while that is not known, all of it waits.
func TestOnlyWhatATriggerWaitsForIsTold(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	n := needs(w.conn)
	var wants func(string) bool
	n.Wants = func(context.Context) func(string) bool { return wants }
	f := inner.New(n, w.lead())
	look := func(to func(string) bool) {
		t.Helper()
		wants = to
		w.must(f.RunOnce(t.Context()))
	}
	frozen := func(kind string) bool { return kind == "group-frozen" }
	look(frozen)
	w.freeze("one")
	w.publish(1)
	look(nil) // the file of triggers cannot be read
	look(frozen)
	w.freeze("two")
	look(func(string) bool { return false })
	look(frozen)
	w.freeze("three")
	look(frozen)
	got := fmt.Sprint(w.told())
	if w.taken() != 2 || !strings.Contains(got, "one") || !strings.Contains(got, "three") {
		t.Errorf("%s", got)
	}
}

// A full inbox lets events wait, and none is lost.
func TestAFullInboxMakesWhatHappenedWait(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	f := inner.New(needs(w.conn), w.lead())
	w.must(f.RunOnce(t.Context()))
	w.must(w.conn.Redis().HSet(t.Context(), keys.Hub("inbox", ""), "waiting:muster", 10_000).Err())
	w.freeze("one")
	if err := f.RunOnce(t.Context()); err == nil || w.taken() != 0 {
		t.Errorf("a full inbox took it: %v", err)
	}
	w.must(w.conn.Redis().HSet(t.Context(), keys.Hub("inbox", ""), "waiting:muster", 0).Err())
	w.must(f.RunOnce(t.Context()))
	if w.taken() != 1 {
		t.Errorf("%v", w.told())
	}
}

// A server that has lost the duty, or works by old places, changes nothing.
func TestAServerThatLostTheDutyTellsNothing(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	old := inner.New(needs(w.conn), w.lead())
	w.must(old.RunOnce(t.Context()))
	w.must(w.conn.Redis().Del(t.Context(), keys.Hub("leader:", inner.Duty)).Err())
	next := inner.New(needs(w.conn), w.lead())
	w.freeze("one")
	if err := old.RunOnce(t.Context()); err == nil || w.taken() != 0 {
		t.Errorf("the deposed server told it: %v", err)
	}
	w.must(next.RunOnce(t.Context()))
	if w.taken() != 1 {
		t.Errorf("%v", w.told())
	}
}

// childRedis tells a copy of the test program to be a server with the duty.
const childRedis = "MUSTER_INNER_REDIS"

func TestMain(m *testing.M) {
	if url := os.Getenv(childRedis); url != "" {
		beServer(url)
	}
	os.Exit(m.Run())
}

func beServer(url string) {
	cfg := queue.DefaultConfig()
	cfg.URL = url
	ctx := context.Background()
	c, err := queue.Open(ctx, cfg)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	candidate := election.Candidate{Votes: hub.NewLeaders(c), Who: func() string { return "child" },
		Log: hclog.NewNullLogger()}
	candidate.Stand(ctx, election.Duty{Name: inner.Duty,
		Work: func(ctx context.Context, t *election.Term) error {
			return inner.New(needs(c), t).Run(ctx)
		}})
}

// Servers are killed at any place while they tell: nothing is lost, and nothing is told twice.
func TestAKilledServerTellsAllOfItOnce(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	f := inner.New(needs(w.conn), w.lead())
	w.must(f.RunOnce(t.Context())) // all is told that there is
	drop := func() { w.must(w.conn.Redis().Del(t.Context(), keys.Hub("leader:", inner.Duty)).Err()) }
	drop()
	begin := func() *exec.Cmd {
		c := exec.CommandContext(t.Context(), os.Args[0])
		c.Env = append(os.Environ(), childRedis+"="+w.cfg.URL)
		c.Stderr = os.Stderr
		w.must(c.Start())
		return c
	}
	const kills, each = 8, 120
	for kill := range kills {
		for i := range each {
			w.freeze(fmt.Sprintf("g%d-%d", kill, i))
		}
		w.publish(kill + 1)
		w.fact(fmt.Sprint("h", kill), kill)
		before := w.taken()
		child := begin()
		await(t, "the first events of this server", func() bool { return w.taken() > before })
		w.must(child.Process.Kill())
		_ = child.Wait() // it was killed
		drop()           // its lease ends now, for this test, and not within 3 s
	}
	child := begin()
	// Of the inventories and facts, those that nobody looked at in between are one change.
	last := fmt.Sprintf(`"after":{"address":"10.0.1.%d"`, kills)
	await(t, "all events", func() bool {
		return w.taken() > kills*each && strings.Contains(fmt.Sprint(w.told()), last)
	})
	_ = child.Process.Kill()
	_ = child.Wait()
	frozen, facts := 0, 0
	for text, n := range w.told() {
		if strings.HasPrefix(text, "group-frozen") {
			frozen++
		}
		if strings.HasPrefix(text, "fact-changed") {
			facts++
		}
		if n != 1 {
			t.Errorf("told %d times: %s", n, text)
		}
	}
	if frozen != kills*each {
		t.Errorf("%d of %d groups were told", frozen, kills*each)
	}
	if facts > kills {
		t.Errorf("%d facts were told, and %d changed", facts, kills)
	}
}
