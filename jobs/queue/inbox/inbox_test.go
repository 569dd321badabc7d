package inbox_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"muster/events"
	"muster/ingress"
	"muster/internal/serverkey"
	"muster/jobs/queue"
	"muster/jobs/queue/hub"
	"muster/jobs/queue/inbox"
	"muster/jobs/queue/keys"
	"muster/testkit/redistest"
)

// signer signs records by the key of servers.
type signer struct{ keys serverkey.Keys }

func (s signer) Vouch(name, text string) (string, error) {
	return s.keys.Vouch(serverkey.Events, name, text), nil
}

func (s signer) Vouched(name, kept string) (string, error) {
	return s.keys.Vouched(serverkey.Events, name, kept)
}

func newSigner(t testing.TB, b byte) signer {
	t.Helper()
	k, err := serverkey.Parse([]byte(serverkey.File("test", [serverkey.Size]byte{b})))
	if err != nil {
		t.Fatal(err)
	}
	return signer{k}
}

// world is an inbox on a Redis, with the duty to work on it.
type world struct {
	*inbox.Inbox
	conn    *queue.Conn
	leaders *hub.Leaders
	term    int64
	flush   func()
}

// eachRedis runs a test on an embedded Redis, and on a real one as the user of servers.
func eachRedis(t *testing.T, test func(t *testing.T, w *world)) {
	t.Run("miniredis", func(t *testing.T) {
		t.Parallel()
		m, cfg := redistest.StartMini(t)
		test(t, openAt(t, cfg, m.FlushAll))
	})
	t.Run("redis-server", func(t *testing.T) {
		t.Parallel()
		s := redistest.StartServerWithUsers(t, "../../../etc/users.acl", nil)
		plain, err := queue.Open(t.Context(), s.Config())
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { plain.Close() })
		test(t, openAt(t, s.As(keys.RoleServer), func() { plain.Redis().FlushAll(t.Context()) }))
		redistest.CheckRefusals(t, s)
	})
}

func openAt(t *testing.T, cfg queue.Config, flush func()) *world {
	t.Helper()
	c, err := queue.Open(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	w := &world{Inbox: inbox.New(c, newSigner(t, 1)), conn: c, leaders: hub.NewLeaders(c), flush: flush}
	w.elect(t)
	return w
}

// elect gives the duty to a new server, whoever had it before.
func (w *world) elect(t testing.TB) {
	t.Helper()
	ctx := context.Background()
	if err := w.leaders.Leave(ctx, inbox.Duty, w.term); err != nil {
		t.Fatal(err)
	}
	term, err := w.leaders.Lead(ctx, inbox.Duty, "test", 0)
	if err != nil || !term.Mine {
		t.Fatalf("%+v, %v", term, err)
	}
	w.term = term.Number
}

var wide = ingress.Bounds{PerMinute: 1e6, Waiting: 1e6, Bytes: 1 << 30, Remember: time.Hour}

func arrival(id, customer string, class ingress.Class) inbox.Arrival {
	return inbox.Arrival{Event: events.Event{ID: id, Source: "src", Kind: "push", Customer: customer,
		At: time.Unix(1795863634, 0).UTC(), Body: []byte(`{"id":"` + id + `"}`)}, Class: class,
		Bounds: wide}
}

func (w *world) take(t testing.TB, a inbox.Arrival) inbox.Taken {
	t.Helper()
	taken, err := w.Take(context.Background(), a)
	if err != nil {
		t.Fatal(err)
	}
	return taken
}

// order takes events out of the queue of a customer until it is empty.
func (w *world) order(t testing.TB, customer string) (ids []string) {
	t.Helper()
	for {
		next, ok, err := w.Next(context.Background(), customer)
		if err != nil {
			t.Fatal(err)
		}
		if !ok {
			return ids
		}
		ids = append(ids, next.ID)
		if was, err := w.End(t.Context(), w.term, next.ID, inbox.Done, events.Outcome{}); err != nil ||
			!was {
			t.Fatalf("%s: %t, %v", next.ID, was, err)
		}
	}
}

func TestAnEventComesBackAsItWasTaken(t *testing.T) {
	eachRedis(t, func(t *testing.T, w *world) {
		a := arrival("e1", "acme", ingress.Trigger)
		a.By = "os:mia"
		if got := w.take(t, a); got != (inbox.Taken{Seq: 1}) {
			t.Errorf("taken: %+v", got)
		}
		if again := w.take(t, a); again != (inbox.Taken{Seq: 1, Again: true}) {
			t.Errorf("taken again: %+v", again)
		}
		next, ok, err := w.Next(t.Context(), "acme")
		if err != nil || !ok || next.Doubt != nil || next.Tries != 0 {
			t.Fatalf("next: %+v, %t, %v", next, ok, err)
		}
		want := a.Event
		want.Seq = 1
		if fmt.Sprint(next.Event) != fmt.Sprint(want) {
			t.Errorf("next: %+v, want %+v", next.Event, want)
		}
		if _, ok, err := w.Next(t.Context(), ""); ok || err != nil {
			t.Errorf("the house has the event of a customer: %v", err)
		}
		if n, err := w.Tried(t.Context(), w.term, "e1", "no\nanswer"); n != 1 || err != nil {
			t.Errorf("tried: %d, %v", n, err)
		}
		o := events.Outcome{Firings: []events.Firing{{Trigger: "rules", Task: "0wcy7y2fb2"}}}
		if was, err := w.End(t.Context(), w.term, "e1", inbox.Done, o); !was || err != nil {
			t.Errorf("end: %t, %v", was, err)
		}
		if was, err := w.End(t.Context(), w.term, "e1", inbox.Done, o); was || err != nil {
			t.Errorf("a second end: %t, %v", was, err)
		}
		k, err := w.Event(t.Context(), "e1")
		if err != nil || k.State != inbox.Done || string(k.Body) != string(a.Body) || k.Tries != 1 ||
			k.Error != "no answer" || k.By != "os:mia" || k.Ended.IsZero() || k.Doubt != "" ||
			!slices.Equal(k.Outcome.Tasks(), []string{"0wcy7y2fb2"}) {
			t.Errorf("kept: %+v, %v", k, err)
		}
		if again := w.take(t, a); again != (inbox.Taken{Seq: 1, Again: true}) {
			t.Errorf("taken again after its end: %+v", again)
		}
		if _, err := w.Event(t.Context(), "e2"); !errors.Is(err, queue.ErrNotFound) {
			t.Errorf("no such event: %v", err)
		}
	})
}

// Management comes first, then results, then triggers.
func TestClassesGoInTheirOrder(t *testing.T) {
	eachRedis(t, func(t *testing.T, w *world) {
		for _, a := range []inbox.Arrival{arrival("t1", "acme", ingress.Trigger),
			arrival("r1", "acme", ingress.Result), arrival("t2", "acme", ingress.Trigger),
			arrival("m1", "acme", ingress.Management), arrival("m2", "acme", ingress.Management),
			arrival("r2", "acme", ingress.Result)} {
			w.take(t, a)
		}
		if got, want := w.order(t, "acme"), strings.Fields("m1 m2 r1 r2 t1 t2"); !slices.Equal(got, want) {
			t.Errorf("order %q, want %q", got, want)
		}
		if list, err := w.Turns(t.Context()); len(list) != 0 || err != nil {
			t.Errorf("turns of nobody: %q, %v", list, err)
		}
	})
}

func TestAServerWithoutTheDutyEndsNothing(t *testing.T) {
	eachRedis(t, func(t *testing.T, w *world) {
		w.take(t, arrival("e1", "", ingress.Trigger))
		old := w.term
		w.elect(t)
		_, ended := w.End(t.Context(), old, "e1", inbox.Done, events.Outcome{})
		_, tried := w.Tried(t.Context(), old, "e1", "x")
		turned := w.Turned(t.Context(), old, "")
		for what, err := range map[string]error{"end": ended, "tried": tried, "turn": turned} {
			if !errors.Is(err, queue.ErrDeposed) {
				t.Errorf("%s: %v, want %v", what, err, queue.ErrDeposed)
			}
		}
		if got := w.order(t, ""); !slices.Equal(got, []string{"e1"}) {
			t.Errorf("left are %q", got)
		}
	})
}

func TestAFloodEndsAtTheBoundsOfItsSource(t *testing.T) {
	eachRedis(t, func(t *testing.T, w *world) {
		send := func(id string, b ingress.Bounds) *inbox.Flood {
			a := arrival(id, "acme", ingress.Trigger)
			a.Bounds = b
			var f *inbox.Flood
			if _, err := w.Take(t.Context(), a); err != nil && !errors.As(err, &f) {
				t.Fatal(err)
			}
			return f
		}
		narrow := wide
		narrow.Waiting = 2
		for _, id := range []string{"e1", "e2"} {
			if f := send(id, narrow); f != nil {
				t.Fatalf("%s: %v", id, f)
			}
		}
		first, second := send("e3", narrow), send("e4", narrow)
		if first == nil || second == nil || !first.Waits || first.Wait != time.Minute || !first.Tell ||
			second.Tell {
			t.Errorf("beyond the number that may wait: %+v, %+v", first, second)
		}
		if f := send("e1", narrow); f != nil {
			t.Errorf("a repeated delivery during a flood: %v", f)
		}
		heavy := wide
		heavy.Bytes = 30
		if f := send("e5", heavy); f == nil || !f.Waits {
			t.Errorf("beyond the bytes that may wait: %+v", f)
		}
		quick := wide
		quick.PerMinute = 2
		// The minute may end in between, and then its bound begins anew.
		var f *inbox.Flood
		for i := 0; f == nil && i < 10; i++ {
			f = send(fmt.Sprint("q", i), quick)
		}
		if f == nil || f.Waits || f.Wait <= 0 || f.Wait > time.Minute {
			t.Errorf("beyond the number of a minute: %+v", f)
		}
		w.order(t, "acme")
		list, err := w.Tallies(t.Context())
		if err != nil || len(list) != 1 || list[0].Flood != 4 || list[0].Waiting != 0 ||
			list[0].Bytes != 0 || list[0].Again != 1 || list[0].Done != list[0].Taken {
			t.Errorf("tallies: %+v, %v", list, err)
		}
	})
}

// Nobody makes an event who can only write to Redis.
func TestNoServerHasVouchedForAForgedEvent(t *testing.T) {
	eachRedis(t, func(t *testing.T, w *world) {
		rdb := w.conn.Redis()
		other := inbox.New(w.conn, newSigner(t, 2))
		if _, err := other.Take(t.Context(), arrival("e1", "", ingress.Trigger)); err != nil {
			t.Fatal(err)
		}
		w.take(t, arrival("e5", "other", ingress.Trigger))
		check := func(id string) {
			t.Helper()
			next, ok, err := w.Next(t.Context(), "")
			if err != nil || !ok || next.ID != id || next.Doubt == nil {
				t.Errorf("%s: %+v, %t, %v", id, next, ok, err)
			}
			if k, err := w.Event(t.Context(), id); err != nil || k.Doubt == "" {
				t.Errorf("%s as people see it: %+v, %v", id, k, err)
			}
			w.order(t, "")
		}
		check("e1")
		for id, change := range map[string]func(){
			"e2": func() { rdb.HSet(t.Context(), keys.Hub("event:", "e2"), "body", `{"id":"e9"}`) },
			"e3": func() { rdb.HSet(t.Context(), keys.Hub("event:", "e3"), "record", "{}") },
			"e4": func() {
				text := rdb.HGet(t.Context(), keys.Hub("event:", "e5"), "record").Val()
				rdb.HSet(t.Context(), keys.Hub("event:", "e4"), "record", text)
			},
		} {
			w.take(t, arrival(id, "", ingress.Trigger))
			change()
			check(id)
		}
	})
}

// An event that somebody has deleted in Redis holds up none behind it.
func TestADeletedEventHoldsUpNothing(t *testing.T) {
	eachRedis(t, func(t *testing.T, w *world) {
		w.take(t, arrival("e1", "", ingress.Management))
		w.take(t, arrival("e2", "", ingress.Trigger))
		w.conn.Redis().Del(t.Context(), keys.Hub("event:", "e1"))
		if got := w.order(t, ""); !slices.Equal(got, []string{"e2"}) {
			t.Errorf("left are %q", got)
		}
	})
}

func TestListsShowTheNewestFirst(t *testing.T) {
	eachRedis(t, func(t *testing.T, w *world) {
		for i := range 450 {
			w.take(t, arrival(fmt.Sprintf("e%03d", i), []string{"acme", "duck"}[i%2], ingress.Trigger))
		}
		all := func(string) bool { return true }
		list, next, err := w.List(t.Context(), inbox.Filter{Most: 3, Sees: all})
		if err != nil || len(list) != 3 || list[0].ID != "e449" || list[2].ID != "e447" || next != 448 {
			t.Errorf("%+v, %d, %v", list, next, err)
		}
		list, next, err = w.List(t.Context(), inbox.Filter{Before: next, Most: 1, Customer: "duck",
			Sees: all})
		if err != nil || len(list) != 1 || list[0].ID != "e445" || len(list[0].Body) > 0 ||
			list[0].Size != 13 {
			t.Errorf("%+v, %d, %v", list, next, err)
		}
		list, next, err = w.List(t.Context(), inbox.Filter{Most: 500,
			Sees: func(c string) bool { return c == "acme" }})
		if err != nil || len(list) != 225 || next != 0 {
			t.Errorf("%d events, %d, %v", len(list), next, err)
		}
		if list, _, _ := w.List(t.Context(), inbox.Filter{Most: 5, State: inbox.Done,
			Sees: all}); len(list) != 0 {
			t.Errorf("%+v", list)
		}
	})
}

func TestPastEventsAreDropped(t *testing.T) {
	eachRedis(t, func(t *testing.T, w *world) {
		for i := range 5 {
			w.take(t, arrival(fmt.Sprint("e", i), "acme", ingress.Trigger))
		}
		w.order(t, "acme")
		w.take(t, arrival("waits", "acme", ingress.Trigger))
		if n, err := w.Trim(t.Context(), "src", time.Now().Add(-time.Hour)); n != 0 || err != nil {
			t.Errorf("of the last hour: %d, %v", n, err)
		}
		if n, err := w.Trim(t.Context(), "src", time.Now().Add(time.Hour)); n != 5 || err != nil {
			t.Errorf("of all times: %d, %v", n, err)
		}
		if _, err := w.Event(t.Context(), "e1"); !errors.Is(err, queue.ErrNotFound) {
			t.Errorf("dropped: %v", err)
		}
		if again := w.take(t, arrival("e1", "acme", ingress.Trigger)); !again.Again {
			t.Errorf("a dropped one is taken again: %+v", again)
		}
		if got := w.order(t, "acme"); !slices.Equal(got, []string{"waits"}) {
			t.Errorf("left are %q", got)
		}
	})
}

// twin compares the inbox with a model of it, while servers come and go.
type twin struct {
	w       *world
	waiting map[string][]inbox.Arrival // by customer, in their order
	seen    map[string]int64
	ended   map[string]int
	turns   []string // customers with events, the one whose last turn was longest ago first
	seq     int64
}

func (m *twin) sort(customer string) {
	slices.SortStableFunc(m.waiting[customer], func(a, b inbox.Arrival) int {
		return slices.Index(ingress.Classes(), a.Class) - slices.Index(ingress.Classes(), b.Class)
	})
}

// No event is lost and none ends twice, whoever takes, works and dies in which order.
func TestNoEventIsLostAndNoneEndsTwice(t *testing.T) {
	eachRedis(t, func(t *testing.T, w *world) {
		rapid.Check(t, func(r *rapid.T) {
			w.flush()
			w.term = 0
			w.elect(t)
			m := &twin{w: w, waiting: map[string][]inbox.Arrival{}, seen: map[string]int64{},
				ended: map[string]int{}}
			r.Repeat(map[string]func(*rapid.T){
				"take": m.take, "work": m.work, "die": m.die, "turn": m.turn, "": m.check})
			for customer := range m.waiting {
				w.order(t, customer)
			}
		})
	})
}

func (m *twin) take(r *rapid.T) {
	a := arrival(fmt.Sprint("e", rapid.IntRange(0, 30).Draw(r, "id")),
		rapid.SampledFrom([]string{"", "acme", "duck"}).Draw(r, "customer"),
		rapid.SampledFrom(ingress.Classes()).Draw(r, "class"))
	got, err := m.w.Take(context.Background(), a)
	want := inbox.Taken{Seq: m.seen[a.ID], Again: m.seen[a.ID] > 0}
	if !want.Again {
		m.seq++
		want.Seq, m.seen[a.ID] = m.seq, m.seq
		if len(m.waiting[a.Customer]) == 0 {
			m.turns = append(m.turns, a.Customer)
		}
		m.waiting[a.Customer] = append(m.waiting[a.Customer], a)
		m.sort(a.Customer)
	}
	if err != nil || got != want {
		r.Fatalf("take %s: %+v, %v, want %+v", a.ID, got, err, want)
	}
}

// work ends the first event of a customer; an older server may try that, too.
func (m *twin) work(r *rapid.T) {
	customer := rapid.SampledFrom([]string{"", "acme", "duck"}).Draw(r, "customer")
	next, ok, err := m.w.Next(context.Background(), customer)
	list := m.waiting[customer]
	if err != nil || ok != (len(list) > 0) || ok && (next.ID != list[0].ID || next.Doubt != nil) {
		r.Fatalf("next of %q: %+v, %t, %v, want the first of %v", customer, next, ok, err, list)
	}
	if !ok {
		return
	}
	if rapid.Bool().Draw(r, "deposed") {
		_, err := m.w.End(context.Background(), m.w.term-1, next.ID, inbox.Done, events.Outcome{})
		if !errors.Is(err, queue.ErrDeposed) {
			r.Fatalf("an older server ends %s: %v", next.ID, err)
		}
		return
	}
	was, err := m.w.End(context.Background(), m.w.term, next.ID, inbox.Done, events.Outcome{})
	if err != nil || !was {
		r.Fatalf("end %s: %t, %v", next.ID, was, err)
	}
	m.ended[next.ID]++
	if m.waiting[customer] = list[1:]; len(list) == 1 {
		m.turns = slices.DeleteFunc(m.turns, func(c string) bool { return c == customer })
	}
}

func (m *twin) die(r *rapid.T) {
	old := m.w.term
	if err := m.w.leaders.Leave(context.Background(), inbox.Duty, old); err != nil {
		r.Fatal(err)
	}
	term, err := m.w.leaders.Lead(context.Background(), inbox.Duty, "test", 0)
	if err != nil || term.Number <= old {
		r.Fatalf("%+v, %v", term, err)
	}
	m.w.term = term.Number
}

func (m *twin) turn(r *rapid.T) {
	if len(m.turns) == 0 {
		return
	}
	customer := rapid.SampledFrom(m.turns).Draw(r, "customer")
	if err := m.w.Turned(context.Background(), m.w.term, customer); err != nil {
		r.Fatal(err)
	}
	m.turns = append(slices.DeleteFunc(m.turns, func(c string) bool { return c == customer }), customer)
}

func (m *twin) check(r *rapid.T) {
	turns, err := m.w.Turns(context.Background())
	if err != nil {
		r.Fatal(err)
	}
	n := 0
	for _, list := range m.waiting {
		n += len(list)
	}
	if !slices.Equal(turns, m.turns) {
		r.Fatalf("turns %q, want %q", turns, m.turns)
	}
	for id, times := range m.ended {
		if times != 1 {
			r.Fatalf("%s ended %d times", id, times)
		}
	}
	tallies, err := m.w.Tallies(context.Background())
	if err != nil || len(tallies) == 1 && (tallies[0].Waiting != int64(n) ||
		tallies[0].Done != int64(len(m.ended)) || tallies[0].Taken != m.seq) {
		r.Fatalf("%+v, %v, want %d waiting, %d done", tallies, err, n, len(m.ended))
	}
}
