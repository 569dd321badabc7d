package jobs

import (
	"encoding/json"
	"flag"
	"os"
	"strings"
	"testing"
	"time"
)

var update = flag.Bool("update", false, "write the table into docs/LIFE_OF_A_JOB.md")

// table returns the table of states as the page shows it.
func table() string {
	var b strings.Builder
	b.WriteString("| state | what can happen, and the state after it |\n|---|---|\n")
	for _, s := range States() {
		var cells []string
		for _, e := range Events() {
			if n, err := s.Next(e); err == nil {
				cells = append(cells, string(e)+" → "+string(n))
			}
		}
		if s == Ended {
			cells = []string{"settle → ended, once, of one that ended unknown; other outcomes are final"}
		}
		b.WriteString("| " + string(s) + " | " + strings.Join(cells, ", ") + " |\n")
	}
	return b.String()
}

func TestTheDocShowsTheTable(t *testing.T) {
	const path, mark = "../docs/LIFE_OF_A_JOB.md", "printed by jobs.TestTheDocShowsTheTable -->\n"
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	head, got, ok := strings.Cut(string(text), mark)
	if !ok {
		t.Fatalf("%s lacks %q", path, mark)
	}
	if got == table() {
		return
	}
	if !*update {
		t.Fatalf("%s shows another table: go test ./jobs -update", path)
	}
	if err := os.WriteFile(path, []byte(head+mark+table()), 0o644); err != nil {
		t.Fatal(err)
	}
}

// Each state can be reached from the first and leads to the end, and no event leads out of the
// end.
func TestTheTableHasNoDeadEnds(t *testing.T) {
	reach := func(from State) map[State]bool {
		seen := map[State]bool{from: true}
		for todo := []State{from}; len(todo) > 0; todo = todo[1:] {
			for _, e := range Events() {
				if n, err := todo[0].Next(e); err == nil && !seen[n] {
					seen[n] = true
					todo = append(todo, n)
				}
			}
		}
		return seen
	}
	first := reach(Held)
	for _, s := range States() {
		if !first[s] {
			t.Errorf("%s cannot be reached", s)
		}
		if !reach(s)[Ended] {
			t.Errorf("%s never ends", s)
		}
	}
	for _, e := range Events() {
		if n, err := Ended.Next(e); err == nil && n != Ended {
			t.Errorf("an ended job can %s to %s", e, n)
		}
	}
}

func TestTaskIDsAreOrderedByTime(t *testing.T) {
	now := time.Date(2026, 11, 21, 10, 0, 0, 0, time.UTC)
	last := TaskID("")
	for i := range 1000 {
		id := NewTaskID(now.Add(time.Duration(i)*tick), uint16(i*7919))
		if _, err := ParseTaskID(string(id)); err != nil {
			t.Fatal(err)
		}
		if id <= last {
			t.Fatalf("%s comes after %s", id, last)
		}
		last = id
	}
	if a, b := NewTaskID(now, 1), NewTaskID(now, 2); a == b {
		t.Errorf("chance does not count: %s", a)
	}
}

func TestParseIDs(t *testing.T) {
	good := string(NewTaskID(time.Now(), 7))
	for text, ok := range map[string]bool{
		good + ":fw001": true, good + ":a.b-c_d": true, good: false, good + ":": false, "": false,
		":fw1": false, good + ":fw 1": false, good + ":fw1\n": false, good + ":{x}": false,
		good + ":-oProxyCommand=x": false, good + ":" + strings.Repeat("a", 300): false,
		strings.ToUpper(good) + "U:fw1": false, good[:9] + "u:fw1": false, good + ":a:b": false,
	} {
		id, err := ParseID(text)
		if (err == nil) != ok {
			t.Errorf("%q: %v", text, err)
		}
		if ok && (string(id.Task()) != good || NewID(id.Task(), id.Host()) != id) {
			t.Errorf("%q: task %q, host %q", text, id.Task(), id.Host())
		}
	}
}

func FuzzParseID(f *testing.F) {
	f.Add("0wcy7y2fb2:fw001")
	f.Add(":")
	f.Fuzz(func(t *testing.T, s string) {
		id, err := ParseID(s)
		if err == nil && string(NewID(id.Task(), id.Host())) != s {
			t.Errorf("%q does not come back: %q", s, id)
		}
		if err != nil && err.Error() == "" {
			t.Error("an error without words")
		}
	})
}

func TestMicros(t *testing.T) {
	at := time.Date(2026, 11, 21, 10, 12, 13, 456789000, time.UTC)
	m := MicrosOf(at)
	back, err := ParseMicros(m.String())
	if err != nil || back != m || !m.Time().Equal(at) {
		t.Errorf("%s, %v, %s", m, err, m.Time())
	}
	if m.Add(time.Second).Sub(m) != time.Second {
		t.Error("a second later is not a second later")
	}
	for _, bad := range []string{"1.76e+15", "1 ", "x", "1.5"} {
		if _, err := ParseMicros(bad); err == nil {
			t.Errorf("%q was accepted", bad)
		}
	}
	if m, err := ParseMicros(""); m != 0 || err != nil || !m.Time().IsZero() || MicrosOf(time.Time{}) != 0 {
		t.Error("nothing is not nothing")
	}
}

func TestTimesInJSON(t *testing.T) {
	at := Time{time.Date(2026, 11, 21, 10, 12, 13, 456789000, time.FixedZone("", 3600))}
	text, err := json.Marshal([]Time{at, {}})
	if err != nil || string(text) != `["2026-11-21T09:12:13.456Z",null]` {
		t.Errorf("%s, %v", text, err)
	}
	var back []Time
	if err := json.Unmarshal(text, &back); err != nil || !back[1].IsZero() ||
		back[0].UnixMilli() != at.UnixMilli() {
		t.Errorf("%v, %v", back, err)
	}
}

func TestCountsHaveEveryOutcome(t *testing.T) {
	c := NewCounts()
	c.Add(Counts{Failed: 2, Unknown: 1})
	if len(c) != len(Outcomes()) || c.Sum() != 3 || c[Failed] != 2 {
		t.Errorf("counts are %v", c)
	}
}

func TestNumbersOfAnAttempt(t *testing.T) {
	for _, c := range []struct{ step, timeout, margin, delay time.Duration }{
		{5 * time.Second, 43 * time.Second, 3 * time.Second, 5 * time.Second},
		{5 * time.Minute, 342 * time.Second, 7 * time.Second, 7 * time.Second},
		{24 * time.Hour, 88199 * time.Second, 1764 * time.Second, 1764 * time.Second},
	} {
		got := AttemptTimeout(c.step)
		if got.Round(time.Second) != c.timeout || Margin(got).Round(time.Second) != c.margin ||
			LockDelay(got).Round(time.Second) != c.delay {
			t.Errorf("step %s: timeout %s, margin %s, delay %s", c.step, got, Margin(got), LockDelay(got))
		}
		if own := got - Margin(got); own < ConnectAllowance+c.step+KillGrace {
			t.Errorf("step %s does not fit into %s", c.step, own)
		}
	}
}

func TestWhoTriesAgain(t *testing.T) {
	p := DefaultPolicy()
	for _, c := range []struct {
		tries int
		class Class
		want  bool
	}{{0, ClassTransient, true}, {2, ClassTransient, true}, {3, ClassTransient, false},
		{0, ClassUser, false}, {0, ClassOperator, false}, {0, ClassNone, false}} {
		if got := p.Again(c.tries, c.class); got != c.want {
			t.Errorf("after %d tries, class %q: %t", c.tries, c.class, got)
		}
	}
}
