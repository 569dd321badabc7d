package trust

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"muster/internal/serverkey"
)

// calendar is a timetable with its statement, as Redis would have them.
type calendar struct {
	text     []byte
	excerpts map[string][]byte
	times    Times
	shares   []string
	kept     KeptTimes
}

// calendarOf makes one with an excerpt for the customers c0 to c8.
func calendarOf(t testing.TB, k serverkey.Keys) *calendar {
	t.Helper()
	c := &calendar{text: []byte(`{"version":7}`), excerpts: map[string][]byte{}}
	for i := range 9 {
		c.excerpts[fmt.Sprint("customer c", i)] = fmt.Appendf(nil, `{"of":%d}`, i)
	}
	c.times, c.shares = Times{Version: 7, Stamp: "stamp", Since: noon.Add(-time.Hour), At: noon}.State(c.text,
		c.excerpts)
	statement, signature, err := c.times.Sign(k)
	if err != nil {
		t.Fatal(err)
	}
	c.kept = KeptTimes{Version: "7", Stamp: "stamp", Statement: statement, Signature: signature, Table: c.text}
	return c
}

// signedAs signs a changed statement with a key, in a namespace.
func (c *calendar) signedAs(t *testing.T, k serverkey.Keys, namespace string, change func(map[string]any)) {
	t.Helper()
	var fields map[string]any
	if err := json.Unmarshal(c.kept.Statement, &fields); err != nil {
		t.Fatal(err)
	}
	change(fields)
	var err error
	if c.kept.Statement, err = json.Marshal(fields); err != nil {
		t.Fatal(err)
	}
	if c.kept.Signature, err = SignAs(k, namespace, c.kept.Statement); err != nil {
		t.Fatal(err)
	}
}

// A notary believes a timetable only with the statement that a server of its installation has signed
// for it.
func TestANotaryBelievesWhatAServerSigned(t *testing.T) {
	t.Parallel()
	own, foreign := keysFrom(t, "i1234", 1), keysFrom(t, "i1234", 9)
	nothing := func(map[string]any) {}
	for _, x := range []struct {
		words string // empty: it is believed
		do    func(*calendar)
	}{
		{"", func(*calendar) {}},
		{"no server has signed it", func(c *calendar) { c.kept.Statement = nil }},
		{"no server has signed it", func(c *calendar) { c.kept.Signature = "" }},
		{"it is not what a server has signed", func(c *calendar) { c.kept.Statement[20]++ }},
		{"it is not what a server has signed", func(c *calendar) { c.signedAs(t, foreign, NamespaceTimes, nothing) }},
		{"it is not what a server has signed", func(c *calendar) { c.signedAs(t, own, NamespaceOrder, nothing) }},
		{"it is of another installation", func(c *calendar) {
			c.signedAs(t, own, NamespaceTimes, func(f map[string]any) { f["installation"] = "other" })
		}},
		{"of a form that this muster does not know", func(c *calendar) {
			c.signedAs(t, own, NamespaceTimes, func(f map[string]any) { f["only"] = "mondays" })
		}},
		{"of a form that this muster does not know", func(c *calendar) {
			c.signedAs(t, own, NamespaceTimes, func(f map[string]any) { f["times"] = 2 })
		}},
		{"signed version 7, and Redis has another one, version 8", func(c *calendar) { c.kept.Version = "8" }},
		{"signed version 7, and Redis has another one, version 7", func(c *calendar) { c.kept.Stamp = "x" }},
		{"signed version 7, and Redis has none", func(c *calendar) { c.kept.Version = "" }},
		{"its text is not the one", func(c *calendar) { c.kept.Table = []byte(`{"version":7,"files":[]}`) }},
		{"its text is not the one", func(c *calendar) { c.kept.Table = nil }},
	} {
		c := calendarOf(t, own)
		x.do(c)
		n := NewNotary(func() (serverkey.Keys, error) { return own, nil }, func() time.Time { return noon })
		stated, doubt := n.Examine(c.kept)
		if x.words == "" && (doubt != nil || stated == nil || !n.Since().Equal(c.times.Since)) {
			t.Errorf("it is not believed: %v, since %s", doubt, n.Since())
		}
		if x.words != "" && (doubt == nil || stated != nil || !strings.Contains(doubt.Error(), x.words)) {
			t.Errorf("want %q, got %v", x.words, doubt)
		}
	}
}

// A notary believes none that was replaced, and the next one is always later.
func TestANotaryRemembersTheLast(t *testing.T) {
	t.Parallel()
	own := keysFrom(t, "i1234", 1)
	now := noon
	n := NewNotary(func() (serverkey.Keys, error) { return own, nil }, func() time.Time { return now })
	before := calendarOf(t, own)
	if !n.Never() {
		t.Error("a new notary remembers something")
	}
	if _, doubt := n.Examine(before.kept); doubt != nil || n.Never() {
		t.Fatal(doubt, n.Never())
	}
	next := n.Next(8, "s")
	n.Remember(next)
	if _, doubt := n.Examine(before.kept); doubt == nil || !strings.Contains(doubt.Error(), "an earlier one") {
		t.Errorf("one that was replaced: %v", doubt)
	}
	if stated, doubt := n.Believed(before.kept); doubt != nil || stated == nil {
		t.Errorf("a server has signed it once: %v", doubt)
	}
	now = now.Add(-time.Minute) // this server's clock is behind that of the one before
	if again := n.Next(9, "s"); !again.Since.After(next.Since) {
		t.Errorf("%s is not after %s", again.Since, next.Since)
	}
	now = now.Add(-time.Hour) // the clock before was wrong, and nodes have not believed it
	if again := n.Next(9, "s"); !again.Since.Equal(now) {
		t.Errorf("%s: want %s", again.Since, now)
	}
}

// A server says again that a timetable is in force if the last one who said so did that long ago, is
// none, or spoke of another one.
func TestANotaryKnowsWhetherItWasSaid(t *testing.T) {
	t.Parallel()
	own := keysFrom(t, "i1234", 1)
	now := noon.Add(30 * time.Second)
	n := NewNotary(func() (serverkey.Keys, error) { return own, nil }, func() time.Time { return now })
	c := calendarOf(t, own)
	other := c.kept
	other.Version = "8"
	if !n.Said(c.kept, time.Minute) || n.Said(other, time.Minute) || n.Said(KeptTimes{}, time.Minute) ||
		n.Said(calendarOf(t, keysFrom(t, "i1234", 9)).kept, time.Minute) {
		t.Error("half a minute after it was said")
	}
	now = noon.Add(time.Minute)
	if n.Said(c.kept, time.Minute) {
		t.Error("a minute after it was said")
	}
	now = noon
	n.Remember(Times{Version: 8, Since: noon})
	if n.Said(c.kept, time.Minute) {
		t.Error("it was replaced")
	}
}

// Without a key nothing is signed, and nothing is doubted.
func TestANotaryWithoutAKeyDoubtsNothing(t *testing.T) {
	t.Parallel()
	for _, n := range []*Notary{nil, NewNotary(func() (serverkey.Keys, error) { return serverkey.Keys{}, nil },
		func() time.Time { return noon })} {
		if stated, doubt := n.Examine(KeptTimes{Version: "7"}); stated != nil || doubt != nil {
			t.Errorf("%v, %v", stated, doubt)
		}
		if statement, signature, err := n.Sign(Times{}); statement != nil || signature != "" || err != nil {
			t.Errorf("%s, %s, %v", statement, signature, err)
		}
		if signs, err := n.Signs(); signs || err != nil {
			t.Errorf("it signs: %v", err)
		}
	}
	lost := errors.New("the key cannot be read")
	n := NewNotary(func() (serverkey.Keys, error) { return serverkey.Keys{}, lost }, func() time.Time { return noon })
	if _, doubt := n.Examine(KeptTimes{}); !errors.Is(doubt, lost) {
		t.Errorf("a key that cannot be read: %v", doubt)
	}
}

// An excerpt counts for its scope only, and so does its absence.
func TestAnExcerptCountsForItsScope(t *testing.T) {
	t.Parallel()
	c := calendarOf(t, keysFrom(t, "i1234", 1))
	holds := func(scope string, text []byte, shares []string) error {
		n, ok := c.times.ShareOf(scope)
		if !ok {
			t.Fatal("there are no shares")
		}
		list, err := c.times.Share(n, shares[n])
		if err != nil {
			return err
		}
		return ExcerptHolds(list, scope, text)
	}
	for scope, text := range c.excerpts {
		if err := holds(scope, text, c.shares); err != nil {
			t.Errorf("%s: %v", scope, err)
		}
		if holds(scope, nil, c.shares) == nil {
			t.Errorf("%s: an excerpt that was taken away is believed", scope)
		}
		if holds(scope, c.excerpts["customer c0"], c.shares) == nil && scope != "customer c0" {
			t.Errorf("%s: the excerpt of another one is believed", scope)
		}
		n, _ := c.times.ShareOf(scope)
		changed := append([]string{}, c.shares...)
		changed[n] = strings.ReplaceAll(changed[n], " "+scope+"\n", " customer x\n")
		if holds(scope, nil, changed) == nil {
			t.Errorf("%s: a changed list is believed", scope)
		}
	}
	if err := holds("host fw1", nil, c.shares); err != nil {
		t.Errorf("a scope of which nothing is agreed: %v", err)
	}
	if holds("host fw1", []byte(`{}`), c.shares) == nil {
		t.Error("an excerpt that nobody signed is believed")
	}
	if _, err := c.times.Share(len(c.shares), ""); err == nil {
		t.Error("a share that there is not is believed")
	}
	if whole, shares := (Times{Version: 7}).State(c.text, nil); len(whole.Shares)+len(shares) != 0 {
		t.Error("a timetable without excerpts has shares")
	}
}

// A statement counts for a time, by a clock that is not far behind the server's.
func TestAStatementIsFreshForATime(t *testing.T) {
	t.Parallel()
	said := &Times{At: noon, Since: noon}
	const most = 15 * time.Minute
	for after, words := range map[time.Duration]string{0: "", most: "", most + time.Second: "15m1s ago",
		-TimesAhead: "", -TimesAhead - time.Second: "set the wrong one right"} {
		err := said.Fresh(noon.Add(after), most)
		if words == "" && err != nil || words != "" && (err == nil || !strings.Contains(err.Error(), words)) {
			t.Errorf("after %s: %v, want %q", after, err, words)
		}
	}
}

// A server states each change of a timetable, here with 2,000 scopes; a child reads each statement,
// each share, and each excerpt.
func BenchmarkTimes(b *testing.B) {
	k := keysFrom(b, "i1234", 1)
	text, excerpts := make([]byte, 1<<20), map[string][]byte{}
	for i := range 2000 {
		excerpts[fmt.Sprint("customer c", i)] = make([]byte, 2000)
	}
	stated, shares := Times{Version: 7, Since: noon, At: noon}.State(text, excerpts)
	statement, signature, err := stated.Sign(k)
	if err != nil {
		b.Fatal(err)
	}
	by := signersOf(b, k, nil)
	b.Run("state", func(b *testing.B) {
		for b.Loop() {
			stated, _ := Times{Version: 7}.State(text, excerpts)
			if _, _, err := stated.Sign(k); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("read", func(b *testing.B) {
		b.ReportMetric(float64(len(statement)), "B/statement")
		for b.Loop() {
			if _, err := ReadTimes(statement, signature, "i1234", by); err != nil {
				b.Fatal(err)
			}
		}
	})
	n, _ := stated.ShareOf("customer c7")
	b.Run("share", func(b *testing.B) {
		b.ReportMetric(float64(len(shares[n])), "B/share")
		for b.Loop() {
			if _, err := stated.Share(n, shares[n]); err != nil {
				b.Fatal(err)
			}
		}
	})
	list, _ := stated.Share(n, shares[n])
	b.Run("excerpt", func(b *testing.B) {
		for b.Loop() {
			if err := ExcerptHolds(list, "customer c7", excerpts["customer c7"]); err != nil {
				b.Fatal(err)
			}
		}
	})
}
