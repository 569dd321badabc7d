package dispatch_test

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"

	"muster/events"
	"muster/ingress"
	"muster/jobs/queue"
	"muster/jobs/queue/hub"
	"muster/jobs/queue/inbox"
	"muster/jobs/queue/keys"
	"muster/server/dispatch"
	"muster/server/election"
	"muster/testkit/redistest"
)

// plain signs nothing.
type plain struct{}

func (plain) Vouch(_, text string) (string, error)   { return text, nil }
func (plain) Vouched(_, kept string) (string, error) { return kept, nil }

// forever is a term that nobody ends.
type forever int64

func (f forever) Number() int64 { return int64(f) }
func (forever) Trusted() bool   { return true }

// firer is a Firer by a function.
type firer func(ctx context.Context, e events.Event) (events.Outcome, error)

func (f firer) Fire(ctx context.Context, e events.Event) (events.Outcome, error) { return f(ctx, e) }

// world is an inbox on a Redis of its own, with the duty to work on it.
type world struct {
	*inbox.Inbox
	cfg  queue.Config
	conn *queue.Conn
	term forever
}

func newWorld(t *testing.T) *world {
	t.Helper()
	w := &world{cfg: redistest.StartServer(t).Config()}
	var err error
	if w.conn, err = queue.Open(t.Context(), w.cfg); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { w.conn.Close() })
	w.Inbox = inbox.New(w.conn, plain{})
	return w
}

func (w *world) lead(t *testing.T) {
	t.Helper()
	// It is not renewed, so it must last: the test is a server that holds its lease.
	term, err := hub.NewLeaders(w.conn).Lead(t.Context(), inbox.Duty, "test", 0)
	if err == nil {
		err = w.conn.Redis().Persist(t.Context(), keys.Hub("leader:", inbox.Duty)).Err()
	}
	if err != nil {
		t.Fatal(err)
	}
	w.term = forever(term.Number)
}

// run runs a dispatcher until the returned function ends it.
func (w *world) run(t *testing.T, n dispatch.Needs) (stop func()) {
	t.Helper()
	n.Inbox, n.Past, n.Log, n.Now = w.Inbox, w.Inbox, hclog.NewNullLogger(), time.Now
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- dispatch.New(n, w.term).Run(ctx) }()
	return func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
}

var wide = ingress.Bounds{PerMinute: 1e6, Waiting: 1e6, Bytes: 1 << 30, Remember: time.Hour}

func (w *world) take(t *testing.T, id, customer string, class ingress.Class) {
	t.Helper()
	_, err := w.Take(t.Context(), inbox.Arrival{Event: events.Event{ID: id, Source: "src",
		Customer: customer, At: time.Now(), Body: []byte("{}")}, Class: class, Bounds: wide})
	if err != nil {
		t.Error(err)
	}
}

// await calls f until it is true.
func await(t *testing.T, what string, f func() bool) {
	t.Helper()
	ticks := time.NewTicker(5 * time.Millisecond)
	defer ticks.Stop()
	for end := time.After(time.Minute); !f(); {
		select {
		case <-ticks.C:
		case <-end:
			t.Fatalf("%s: not within a minute", what)
		}
	}
}

// done returns the number of events that have ended.
func (w *world) done(t *testing.T) int {
	t.Helper()
	list, err := w.Tallies(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if len(list) == 0 {
		return 0
	}
	return int(list[0].Done)
}

// flood is the number of events of a flood.
var flood = flag.Int("flood", 5_000, "events of a flood of one customer")

// One customer floods, and others wait for no more than one turn of it.
func TestAFloodOfOneCustomerHoldsUpNobody(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.lead(t)
	var filling sync.WaitGroup
	for part := range 16 {
		filling.Go(func() {
			for i := part; i < *flood; i += 16 {
				w.take(t, fmt.Sprint("f", i), "acme", ingress.Trigger)
			}
		})
	}
	filling.Wait()
	var mu sync.Mutex
	var order []string
	fired := make(chan struct{}, 1)
	small := []string{"", "duck", "eagle", "finch", "goose", "heron", "ibis"}
	for _, customer := range small {
		w.take(t, "one-of-"+customer, customer, ingress.Trigger)
	}
	stop := w.run(t, dispatch.Needs{Fire: firer(func(_ context.Context, e events.Event) (
		events.Outcome, error) {
		mu.Lock()
		defer mu.Unlock()
		order = append(order, e.Customer)
		n := 0
		for _, c := range order {
			if c != "acme" {
				n++
			}
		}
		if n == len(small) {
			select {
			case fired <- struct{}{}:
			default:
			}
		}
		return events.Outcome{}, nil
	})})
	<-fired
	stop()
	last, n := 0, 0
	for i, c := range order {
		if c != "acme" {
			last = i
		}
	}
	for _, c := range order[:last] {
		if c == "acme" {
			n++
		}
	}
	// Others begin while acme has its first turn; the last of them may begin after its second.
	if order[0] != "" || n > 2*dispatch.TurnEvents {
		t.Errorf("%d events of the flood were worked on before the last of %d others; the first was "+
			"of %q, want the house", n, len(small), order[0])
	}
	t.Logf("%d events of the flood before the last of %d others", n, len(small))
}

// The house goes first, but its own flood holds up nobody either.
func TestAFloodOfTheHouseHoldsUpNobody(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.lead(t)
	for i := range 200 {
		w.take(t, fmt.Sprint("h", i), "", ingress.Management)
	}
	w.take(t, "one", "acme", ingress.Trigger)
	var mu sync.Mutex
	var order []string
	stop := w.run(t, dispatch.Needs{Fire: firer(func(_ context.Context, e events.Event) (
		events.Outcome, error) {
		mu.Lock()
		defer mu.Unlock()
		order = append(order, e.ID)
		return events.Outcome{}, nil
	})})
	await(t, "all events", func() bool { return w.done(t) == 201 })
	stop()
	if i := slices.Index(order, "one"); i != dispatch.TurnEvents {
		t.Errorf("the customer is number %d of %d, want %d", i, len(order), dispatch.TurnEvents)
	}
}

// An event that fails is tried again before those behind it, and other customers do not wait.
func TestAnEventThatFailsIsTriedAgainInItsPlace(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.lead(t)
	for _, id := range []string{"a1", "a2"} {
		w.take(t, id, "acme", ingress.Trigger)
	}
	w.take(t, "d1", "duck", ingress.Trigger)
	var mu sync.Mutex
	var order []string
	stop := w.run(t, dispatch.Needs{Fire: firer(func(_ context.Context, e events.Event) (
		events.Outcome, error) {
		mu.Lock()
		defer mu.Unlock()
		order = append(order, e.ID)
		if n := len(order); e.ID == "a1" && slices.Index(order, "a1") == n-1 {
			panic("a mistake")
		}
		return events.Outcome{Firings: []events.Firing{{Trigger: "x", Task: "t-" + e.ID}}}, nil
	})})
	await(t, "all events", func() bool { return w.done(t) == 3 })
	stop()
	order = slices.DeleteFunc(order, func(id string) bool { return id == "d1" })
	if want := []string{"a1", "a1", "a2"}; !slices.Equal(order, want) {
		t.Errorf("order %q, want %q", order, want)
	}
	k, err := w.Event(t.Context(), "a1")
	if err != nil || k.Tries != 1 || !strings.Contains(k.Error, "a mistake in muster") ||
		!slices.Equal(k.Outcome.Tasks(), []string{"t-a1"}) {
		t.Errorf("%+v, %v", k, err)
	}
}

// An event that fails holds the events of its source, and not those of others; one that changes how
// we work holds all of its customer.
func TestAnEventThatFailsHoldsItsSource(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.lead(t)
	from := func(id, source, customer string, class ingress.Class) {
		t.Helper()
		_, err := w.Take(t.Context(), inbox.Arrival{Event: events.Event{ID: id, Source: source,
			Customer: customer, At: time.Now(), Body: []byte("{}")}, Class: class, Bounds: wide})
		if err != nil {
			t.Fatal(err)
		}
	}
	from("a1", "bad", "acme", ingress.Trigger)
	from("a2", "bad", "acme", ingress.Trigger)
	from("a3", "good", "acme", ingress.Trigger)
	from("b1", "bad", "bolt", ingress.Management)
	from("b2", "good", "bolt", ingress.Trigger)
	var mu sync.Mutex
	var order []string
	broken := true
	stop := w.run(t, dispatch.Needs{Fire: firer(func(_ context.Context, e events.Event) (
		events.Outcome, error) {
		mu.Lock()
		defer mu.Unlock()
		if broken && e.Source == "bad" {
			return events.Outcome{}, errors.New("not now")
		}
		order = append(order, e.ID)
		return events.Outcome{}, nil
	})})
	tries := func(id string) int {
		k, err := w.Event(t.Context(), id)
		if err != nil {
			t.Fatal(err)
		}
		return k.Tries
	}
	await(t, "tries", func() bool { return tries("a1") > 1 && tries("b1") > 1 })
	mu.Lock()
	if want := []string{"a3"}; !slices.Equal(order, want) {
		t.Errorf("while they fail: %q, want %q", order, want)
	}
	broken = false
	mu.Unlock()
	await(t, "all events", func() bool {
		mu.Lock()
		defer mu.Unlock()
		return len(order) == 5
	})
	stop()
	if slices.Index(order, "a1") > slices.Index(order, "a2") ||
		slices.Index(order, "b1") > slices.Index(order, "b2") || tries("a2") > 0 {
		t.Errorf("order %q, tries of a2: %d", order, tries("a2"))
	}
}

// An event of another customer that comes while a flood is worked on is served within a turn.
func TestAnEventThatComesInAFloodHasItsTurn(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.lead(t)
	for i := range 400 {
		w.take(t, fmt.Sprint("f", i), "acme", ingress.Trigger)
	}
	var mu sync.Mutex
	before, after := 0, -1
	in := make(chan struct{})
	stop := w.run(t, dispatch.Needs{Fire: firer(func(_ context.Context, e events.Event) (
		events.Outcome, error) {
		mu.Lock()
		defer mu.Unlock()
		if e.Customer == "bolt" {
			after = before
		} else if before++; before == 100 {
			w.take(t, "one", "bolt", ingress.Trigger)
			close(in)
		}
		return events.Outcome{}, nil
	})})
	<-in
	await(t, "the one event", func() bool {
		mu.Lock()
		defer mu.Unlock()
		return after >= 0
	})
	stop()
	if n := after - 100; n > 2*dispatch.TurnEvents {
		t.Errorf("%d events of the flood were worked on before the other one", n)
	}
}

// An event that fails for too long is set aside and told, and those behind it go on.
func TestAnEventThatAlwaysFailsIsSetAside(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.lead(t)
	w.take(t, "a1", "acme", ingress.Trigger)
	w.take(t, "a2", "acme", ingress.Trigger)
	for range 19 {
		if _, err := w.Tried(t.Context(), int64(w.term), "a1", "no"); err != nil {
			t.Fatal(err)
		}
	}
	told := make(chan string, 1)
	stop := w.run(t, dispatch.Needs{
		Fire: firer(func(_ context.Context, e events.Event) (events.Outcome, error) {
			if e.ID == "a1" {
				return events.Outcome{}, errors.New("Redis is away")
			}
			return events.Outcome{}, nil
		}),
		Tell: func(_ context.Context, e events.Event, s inbox.State, why string) {
			told <- fmt.Sprintf("%s %s %s", e.ID, s, why)
		}})
	await(t, "the event behind it", func() bool { return w.done(t) == 1 })
	stop()
	if got, want := <-told, "a1 stuck Redis is away"; got != want {
		t.Errorf("told %q, want %q", got, want)
	}
	if k, err := w.Event(t.Context(), "a1"); err != nil || k.State != inbox.Stuck || k.Tries != 20 {
		t.Errorf("%+v, %v", k, err)
	}
}

// Events that no server wrote are not worked on.
func TestNothingIsDoneAboutAForgedEvent(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.lead(t)
	w.take(t, "a1", "acme", ingress.Trigger)
	w.take(t, "a2", "acme", ingress.Trigger)
	w.conn.Redis().HSet(t.Context(), keys.Hub("event:", "a1"), "body", `{"a": 1}`)
	var fired []string
	stop := w.run(t, dispatch.Needs{Fire: firer(func(_ context.Context, e events.Event) (
		events.Outcome, error) {
		fired = append(fired, e.ID)
		return events.Outcome{}, nil
	})})
	await(t, "the other event", func() bool { return w.done(t) == 1 })
	stop()
	if k, err := w.Event(t.Context(), "a1"); err != nil || k.State != inbox.Doubted ||
		!slices.Equal(fired, []string{"a2"}) {
		t.Errorf("fired %q, %+v, %v", fired, k, err)
	}
}

// childRedis and childFolder tell a copy of the test program to be a server that works on events.
const childRedis, childFolder = "MUSTER_DISPATCH_REDIS", "MUSTER_DISPATCH_FOLDER"

// childDies is the number of the event behind whose firing the copy kills itself, before it can say
// so.
const childDies = "MUSTER_DISPATCH_DIES"

func TestMain(m *testing.M) {
	if url := os.Getenv(childRedis); url != "" {
		beServer(url, os.Getenv(childFolder))
	}
	os.Exit(m.Run())
}

// beServer stands for the duty. For each event it makes a file whose name is the key of the firing,
// as the queue refuses a second task with the id of the first; and it writes each try into a log.
func beServer(url, folder string) {
	cfg := queue.DefaultConfig()
	cfg.URL = url
	ctx := context.Background()
	c, err := queue.Open(ctx, cfg)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	log, err := os.OpenFile(filepath.Join(folder, "tries"), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	last, _ := strconv.Atoi(os.Getenv(childDies)) // 0: it does not
	var n atomic.Int64
	fire := firer(func(_ context.Context, e events.Event) (events.Outcome, error) {
		if _, err := fmt.Fprintln(log, e.ID); err != nil {
			return events.Outcome{}, err
		}
		name := strings.ReplaceAll(events.Key(e.ID, "x"), "/", "-")
		f, err := os.OpenFile(filepath.Join(folder, name), os.O_CREATE|os.O_EXCL, 0o600)
		if errors.Is(err, os.ErrExist) { // an earlier server has made it
			err = nil
		} else if err == nil {
			err = f.Close()
		}
		if n.Add(1) == int64(last) {
			_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
		}
		return events.Outcome{Firings: []events.Firing{{Trigger: "x", Task: name}}}, err
	})
	candidate := election.Candidate{Votes: hub.NewLeaders(c), Who: func() string { return "child" },
		Log: hclog.NewNullLogger()}
	candidate.Stand(ctx, election.Duty{Name: inbox.Duty,
		Work: func(ctx context.Context, t *election.Term) error {
			box := inbox.New(c, plain{})
			return dispatch.New(dispatch.Needs{Inbox: box, Past: box, Fire: fire,
				Log: hclog.NewNullLogger(), Now: time.Now}, t).Run(ctx)
		}})
}

// Servers that work on events are killed at any place: no event is lost, and none ends twice.
func TestAKilledServerLosesNoEvent(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	folder := t.TempDir()
	const kills = 12
	n := 0
	begin := func(dies int) *exec.Cmd {
		c := exec.CommandContext(t.Context(), os.Args[0])
		c.Env = append(os.Environ(), childRedis+"="+w.cfg.URL, childFolder+"="+folder,
			childDies+"="+strconv.Itoa(dies))
		c.Stderr = os.Stderr
		if err := c.Start(); err != nil {
			t.Fatal(err)
		}
		return c
	}
	for kill := range kills {
		for range 60 {
			w.take(t, fmt.Sprint("e", n), []string{"", "acme", "duck"}[n%3], ingress.Classes()[n%3])
			n++
		}
		before := w.done(t)
		child := begin(kill % 2 * (kill + 1)) // every other dies by itself
		if kill%2 == 0 {
			await(t, "the first events of this server", func() bool { return w.done(t) > before })
			if err := child.Process.Kill(); err != nil {
				t.Fatal(err)
			}
		}
		_ = child.Wait() // it was killed
		// Its lease ends now, for this test, and not within 3 s.
		w.conn.Redis().Del(t.Context(), keys.Hub("leader:", inbox.Duty))
	}
	child := begin(0)
	await(t, "all events", func() bool { return w.done(t) == n })
	_ = child.Process.Kill()
	_ = child.Wait()
	list, err := w.Tallies(t.Context())
	if err != nil || len(list) != 1 || list[0].Waiting != 0 || list[0].Done != int64(n) {
		t.Errorf("%+v, %v, want %d done", list, err, n)
	}
	made, err := filepath.Glob(filepath.Join(folder, "event-*"))
	if err != nil || len(made) != n {
		t.Errorf("%d events have fired, want %d (%v)", len(made), n, err)
	}
	tries, err := os.ReadFile(filepath.Join(folder, "tries"))
	if err != nil {
		t.Fatal(err)
	}
	if strings.Count(string(tries), "\n") <= n {
		t.Error("no event was tried twice, so no server died between an event and its end")
	}
	t.Logf("%d events, %d kills, %d tries", n, kills, strings.Count(string(tries), "\n"))
}
