package warden

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"muster/internal/serverkey"
	"muster/jobs"
	"muster/trust"
	"muster/windows"
)

// hub is the timetable in Redis, with a freeze of customer acme.
type hub struct {
	trust.KeptTimes
	excerpts map[string][]byte
	shares   []string
	now      time.Time // of Redis
	away     error
	asked    int
	alerts   []jobs.Alert
}

func (h *hub) Kept(_ context.Context, ask trust.TimesAsked) (trust.KeptTimes, error) {
	h.asked++
	k := h.KeptTimes
	if !ask.Table {
		k.Table = nil
	}
	for _, scope := range ask.Scopes {
		k.Excerpts = append(k.Excerpts, h.excerpts[scope])
	}
	for _, n := range ask.Shares {
		share := ""
		if n < len(h.shares) {
			share = h.shares[n]
		}
		k.Shares = append(k.Shares, share)
	}
	return k, h.away
}

func (h *hub) Agreed(context.Context) (jobs.Agreed, error) {
	return jobs.Agreed{Mark: h.Mark(), Now: jobs.MicrosOf(h.now)}, h.away
}

// Excerpts reads them as a node without trust does.
func (h *hub) Excerpts(_ context.Context, scopes []windows.Scope) (jobs.Excerpts, error) {
	x := jobs.Excerpts{Mark: h.Mark()}
	for _, s := range scopes {
		part, err := excerptOf(h.excerpts[s.String()])
		if err != nil {
			return x, err
		}
		x.Parts = append(x.Parts, part)
	}
	return x, h.away
}

func (h *hub) Estimate(context.Context, string) (jobs.Estimate, bool, error) {
	return jobs.Estimate{}, false, nil
}

func (h *hub) Alert(_ context.Context, _ string, a jobs.Alert) error {
	h.alerts = append(h.alerts, a)
	return nil
}

// diary remembers as the file of a node does.
type diary struct{ since time.Time }

func (d *diary) Since() (time.Time, error) { return d.since, nil }

func (d *diary) Remember(since time.Time) error {
	if since.After(d.since) {
		d.since = since
	}
	return nil
}

// serverKey returns the key of servers that begins with a byte.
func serverKey(t testing.TB, installation string, first byte) serverkey.Keys {
	t.Helper()
	k, err := serverkey.Parse([]byte(serverkey.File(installation, [serverkey.Size]byte{first})))
	if err != nil {
		t.Fatal(err)
	}
	return k
}

// state puts a timetable with these freezes into the hub, which a server has signed.
func (h *hub) state(t testing.TB, k serverkey.Keys, said trust.Times, freezes ...windows.FreezeOrder) {
	t.Helper()
	table := windows.Timetable{Version: said.Version, Freezes: freezes}
	book, err := table.Book()
	if err != nil {
		t.Fatal(err)
	}
	if h.excerpts, err = book.Excerpts(); err != nil {
		t.Fatal(err)
	}
	text, err := json.Marshal(table)
	if err != nil {
		t.Fatal(err)
	}
	said.Stamp = "s"
	stated, shares := said.State(text, h.excerpts)
	h.shares = shares
	h.KeptTimes = trust.KeptTimes{Version: strconv.FormatInt(said.Version, 10), Stamp: "s", Table: text}
	h.ExcerptsOf = h.Version
	if h.Statement, h.Signature, err = stated.Sign(k); err != nil {
		t.Fatal(err)
	}
}

func freezeOf(customer string) windows.FreezeOrder {
	return windows.FreezeOrder{Name: "f-" + customer, Level: "customer", Of: customer, From: noon, Reason: "r",
		By: "os:alice", At: noon}
}

// frost is a house with a freeze of acme, and one of beta; a worker asks about hosts of acme.
type frost struct {
	*world
	hub
	diary
	servers serverkey.Keys
	times   *Times
}

func newFrost(t testing.TB, policy string) *frost {
	t.Helper()
	f := &frost{world: newWorld(t, policy), servers: serverKey(t, "i1234", 1)}
	f.hub.now = noon
	f.state(t, f.servers, trust.Times{Version: 7, Since: noon.Add(-time.Hour), At: noon},
		freezeOf("acme"), freezeOf("beta"))
	f.again()
	return f
}

// again is another worker of the node.
func (f *frost) again() {
	f.times = f.Times(&f.hub, &f.hub, TimesOptions{Zone: "default", Age: DefaultAge, Memory: &f.diary})
}

var places = []windows.Scope{{Level: windows.Host, Name: "fw1"}, {Level: windows.Customer, Name: "acme"},
	{Level: windows.Everyone}}

// frozen asks as a worker does before a step, and returns the freezes that it knows of.
func (f *frost) frozen(ctx context.Context) (freezes []string, err error) {
	a, err := f.times.Agreed(ctx)
	if err != nil {
		return nil, err
	}
	x, err := f.times.Excerpts(ctx, places)
	if err == nil && x.Mark != a.Mark {
		err = errors.New("two marks")
	}
	if x.Table != nil {
		for _, f := range x.Table.Freezes {
			freezes = append(freezes, f.Name)
		}
	}
	for _, part := range x.Parts {
		for _, one := range part.Freezes {
			freezes = append(freezes, one.Name)
		}
	}
	return freezes, err
}

// thaws are attacks on the timetable, with the words of the doubt.
var thaws = []struct {
	name, words string
	do          func(*testing.T, *frost)
}{
	{"the freeze is taken away", "what it says of customer acme", func(_ *testing.T, f *frost) {
		delete(f.excerpts, "customer acme")
	}},
	{"the excerpt of another customer", "what it says of customer acme", func(_ *testing.T, f *frost) {
		f.excerpts["customer acme"] = f.excerpts["customer beta"]
	}},
	{"an excerpt that nobody agreed to", "what it says of host fw1", func(_ *testing.T, f *frost) {
		f.excerpts["host fw1"] = f.excerpts["customer acme"]
	}},
	{"the list of excerpts", "the list of its excerpts", func(_ *testing.T, f *frost) {
		delete(f.excerpts, "customer acme")
		for i := range f.shares {
			f.shares[i] = strings.ReplaceAll(f.shares[i], "customer acme", "customer zeta")
		}
	}},
	{"no excerpts, and another text", "its text is not the one", func(_ *testing.T, f *frost) {
		f.ExcerptsOf, f.Table = "", []byte(`{"version":7}`)
	}},
	{"a statement of another key", "it is not what a server has signed", func(t *testing.T, f *frost) {
		f.state(t, serverKey(t, "i1234", 9), trust.Times{Version: 7, Since: noon, At: noon})
	}},
	{"a statement of another installation", "it is of another installation", func(t *testing.T, f *frost) {
		f.state(t, otherName(t), trust.Times{Version: 7, Since: noon, At: noon})
	}},
	{"no statement", "no server has signed it", func(_ *testing.T, f *frost) { f.Statement = nil }},
	{"a timetable that was replaced", "another one has been in force since", func(t *testing.T, f *frost) {
		f.since = noon.Add(-time.Minute)
		f.state(t, f.servers, trust.Times{Version: 6, Since: noon.Add(-2 * time.Hour), At: noon})
	}},
	{"nothing at all", "no server has signed it", func(_ *testing.T, f *frost) {
		f.hub = hub{now: noon}
		f.again()
	}},
	{"a statement of yesterday", "servers last said 24h0m0s ago", func(t *testing.T, f *frost) {
		f.state(t, f.servers, trust.Times{Version: 6, Since: noon.Add(-48 * time.Hour), At: noon.Add(-24 * time.Hour)})
	}},
	{"a statement of tomorrow", "set the wrong one right", func(t *testing.T, f *frost) {
		f.state(t, f.servers, trust.Times{Version: 8, Since: noon, At: noon.Add(24 * time.Hour)})
	}},
}

// otherName returns the key of the servers under the name of another installation, as if somebody had
// given one key to two.
func otherName(t *testing.T) serverkey.Keys { return serverKey(t, "other", 1) }

// A worker believes no timetable but the one that servers have signed last, and tells people.
func TestATimetableThatNobodySignedIsNotBelieved(t *testing.T) {
	t.Parallel()
	for _, x := range thaws {
		f := newFrost(t, strict)
		x.do(t, f)
		freezes, err := f.frozen(t.Context())
		if err == nil || !strings.Contains(err.Error(), x.words) {
			t.Errorf("%s: %v, %v: want %q", x.name, freezes, err, x.words)
		}
		if _, err = f.frozen(t.Context()); err == nil {
			t.Errorf("%s: the second time it is believed", x.name)
		}
		if len(f.hub.alerts) != 1 || f.hub.alerts[0].Event != "times-doubted" {
			t.Errorf("%s: people were told %v", x.name, f.hub.alerts)
		}
		f.hub.alerts = nil
		f.state(t, f.servers, trust.Times{Version: 9, Since: noon, At: noon}, freezeOf("acme"))
		if freezes, err = f.frozen(t.Context()); err != nil || fmt.Sprint(freezes) != "[f-acme]" {
			t.Errorf("%s: the next one of a server: %v, %v", x.name, freezes, err)
		}
	}
}

// A policy that warns only tells people, and one that is off reads no statement.
func TestAPolicyThatWarnsBelievesTheTimetable(t *testing.T) {
	t.Parallel()
	for _, x := range thaws {
		f := newFrost(t, lenient)
		x.do(t, f)
		if _, err := f.frozen(t.Context()); err != nil {
			t.Errorf("%s: %v", x.name, err)
		}
		if len(f.hub.alerts) != 1 {
			t.Errorf("%s: people were told %v", x.name, f.hub.alerts)
		}
	}
	off := newFrost(t, "  - {mode: \"off\"}\n")
	off.Statement = nil
	if freezes, err := off.frozen(t.Context()); err != nil || len(freezes) != 1 || off.hub.asked != 0 {
		t.Errorf("off: %v, %v, asked %d times", freezes, err, off.hub.asked)
	}
}

// A statement is read once, and again when servers have said it anew.
func TestAStatementIsReadOnce(t *testing.T) {
	t.Parallel()
	f := newFrost(t, strict)
	for range 3 {
		if freezes, err := f.frozen(t.Context()); err != nil || fmt.Sprint(freezes) != "[f-acme]" {
			t.Fatalf("%v, %v", freezes, err)
		}
	}
	if f.hub.asked != 4 { // the statement, and the excerpts three times
		t.Errorf("asked %d times", f.hub.asked)
	}
	f.hub.now = noon.Add(stateAgain + time.Second)
	for range 3 {
		if _, err := f.times.Agreed(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	if f.hub.asked != 5 {
		t.Errorf("asked %d times for a newer one", f.hub.asked)
	}
	f.hub.now = noon.Add(DefaultAge + time.Second)
	if _, err := f.times.Agreed(t.Context()); err == nil {
		t.Error("an old statement counts by the clock of Redis, though that of the node is behind")
	}
	f.state(t, f.servers, trust.Times{Version: 7, Since: noon.Add(-time.Hour), At: f.hub.now}, freezeOf("acme"))
	f.hub.now = f.hub.now.Add(lookAgain)
	if _, err := f.times.Agreed(t.Context()); err != nil {
		t.Errorf("it was said anew: %v", err)
	}
}

// Another worker of the node, and a server in an order, say which timetable was the last.
func TestOthersSayWhichTimetableIsTheLast(t *testing.T) {
	t.Parallel()
	f := newFrost(t, strict)
	if _, err := f.frozen(t.Context()); err != nil || !f.since.Equal(noon.Add(-time.Hour)) {
		t.Fatalf("%s, %v", f.since, err)
	}
	f.state(t, f.servers, trust.Times{Version: 6, Since: noon.Add(-2 * time.Hour), At: noon})
	f.world = newWorld(t, strict)
	f.again()
	if _, err := f.frozen(t.Context()); err == nil {
		t.Error("another worker of the node believes one that was replaced")
	}

	f = newFrost(t, strict)
	for after, believed := range map[time.Duration]bool{-time.Hour: true, time.Hour: true, time.Minute: false} {
		f.world = newWorld(t, strict)
		f.orderWith(t, noon.Add(after))
		f.again()
		if err := f.Check(t.Context(), "default", grantOf(0), f.spec); err != nil {
			t.Fatal(err)
		}
		if _, err := f.frozen(t.Context()); err == nil != believed {
			t.Errorf("an order of a timetable since %s: %v", noon.Add(after), err)
		}
	}
}

// orderWith signs the order of the world anew, with the time of a timetable.
func (f *frost) orderWith(t *testing.T, since time.Time) {
	t.Helper()
	var o trust.Order
	if err := json.Unmarshal(f.order, &o); err != nil {
		t.Fatal(err)
	}
	o.Times = since
	var err error
	if f.order, err = json.Marshal(o); err != nil {
		t.Fatal(err)
	}
	if f.signatures[0], err = trust.SignAs(f.servers, trust.NamespaceOrder, f.order); err != nil {
		t.Fatal(err)
	}
}

// Redis that does not answer is no doubt, and a node that cannot read its rules begins nothing.
func TestARedisThatIsAwayIsNoDoubt(t *testing.T) {
	t.Parallel()
	f := newFrost(t, strict)
	gone := errors.New("gone")
	f.hub.away = gone
	if _, err := f.times.Agreed(t.Context()); !errors.Is(err, gone) {
		t.Errorf("%v", err)
	}
	if _, err := f.times.Excerpts(t.Context(), places); !errors.Is(err, gone) || len(f.hub.alerts) != 0 {
		t.Errorf("%v, people were told %v", err, f.hub.alerts)
	}
	f.hub.away, f.fail = nil, errors.New("a line of the policy")
	if _, err := f.frozen(t.Context()); !errors.Is(err, f.fail) {
		t.Errorf("%v", err)
	}
}

// A child checks once a second while steps begin, and once for each change of a timetable.
func BenchmarkTimes(b *testing.B) {
	f := newFrost(b, strict)
	var more []windows.FreezeOrder
	for i := range 2000 {
		more = append(more, freezeOf(fmt.Sprint("c", i)))
	}
	f.state(b, f.servers, trust.Times{Version: 7, Since: noon, At: noon}, append(more, freezeOf("acme"))...)
	b.Run("step", func(b *testing.B) {
		for b.Loop() {
			if _, err := f.times.Agreed(b.Context()); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("change", func(b *testing.B) {
		for b.Loop() {
			f.again()
			if _, err := f.frozen(b.Context()); err != nil {
				b.Fatal(err)
			}
		}
	})
}
