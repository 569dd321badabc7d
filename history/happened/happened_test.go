package happened_test

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"muster/history"
	"muster/history/happened"
	"muster/jobs"
	"muster/testkit/sqltest"
)

func TestMain(m *testing.M) {
	code := m.Run()
	sqltest.Done()
	os.Exit(code)
}

var begin = time.Date(2026, 11, 20, 10, 0, 0, 0, time.UTC)

const task = jobs.TaskID("0wcy000001")

// filled returns a store with these events: "<second> <name> <object> [who]".
func filled(t *testing.T, cfg history.Config, lines ...string) *history.Store {
	t.Helper()
	s, err := history.Open(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	for err = s.Migrate(t.Context()); errors.Is(err, history.ErrChanging); {
		err = s.Migrate(t.Context())
	}
	if err != nil {
		t.Fatal(err)
	}
	b := history.Batch{Zone: "default", Last: "9-0"}
	for _, line := range lines {
		var second int
		var h jobs.Happening
		var who string
		if _, err := fmt.Sscan(line+" -", &second, &h.Event, &h.Object, &who); err != nil {
			t.Fatal(err)
		}
		h.Zone, h.ID = "default", fmt.Sprintf("%d-0", second)
		h.At = jobs.Time{Time: begin.Add(time.Duration(second) * time.Second)}
		if who != "-" {
			h.Detail = map[string]any{"note": "paused by " + who + " (unproven): cut by bob: no"}
		}
		b.Events = append(b.Events, h)
	}
	if _, err := s.Put(t.Context(), b, begin); err != nil {
		t.Fatal(err)
	}
	return s
}

// read returns the events of all pages, with so many a page, as "<name> <object>".
func read(t *testing.T, s *history.Store, f happened.Filter, most int) (text string) {
	t.Helper()
	cursor := ""
	for range 100 {
		list, more, err := happened.List(t.Context(), s, f, cursor, most)
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range list {
			text += e.Event + " " + e.Object + "\n"
			cursor = e.Cursor
		}
		if !more {
			return text
		}
	}
	t.Fatalf("the pages do not end: %s", text)
	return ""
}

// Each condition leaves out what it should, and pages of every size have each event once: also of an
// entry that holds the same event twice.
func TestEventsOfTheHouseComeInPages(t *testing.T) {
	t.Parallel()
	both(t, func(t *testing.T, cfg history.Config) {
		a, b := string(jobs.NewID(task, "fw1")), string(jobs.NewID(task, "fw2.b"))
		s := filled(t, cfg, "1 halt zone os:alice", "2 submit "+string(task), "3 take "+a, "3 take "+b,
			"3 back "+a, "3 back "+a, "4 end "+a, "5 lift zone oidc:https://id.example#7", "6 end "+b)
		list := func(parts ...string) string { return strings.Join(parts, "\n") + "\n" }
		for name, c := range map[string]struct {
			f    happened.Filter
			want string
		}{
			"all": {happened.Filter{}, list("halt zone", "submit "+string(task), "back "+a, "back "+a, "take "+a,
				"take "+b, "end "+a, "lift zone", "end "+b)},
			"alice":   {happened.Filter{Who: "os:alice"}, list("halt zone")},
			"another": {happened.Filter{Who: "oidc:https://id.example#7"}, list("lift zone")},
			"bob":     {happened.Filter{Who: "bob"}, ""},
			"kinds":   {happened.Filter{Kinds: []string{"end", "lift"}}, list("end "+a, "lift zone", "end "+b)},
			"host":    {happened.Filter{Host: "fw2.b"}, list("take "+b, "end "+b)},
			"zone":    {happened.Filter{Zone: "zrh"}, ""},
			"from, to": {happened.Filter{From: begin.Add(4 * time.Second), To: begin.Add(6 * time.Second)},
				list("end "+a, "lift zone")},
			"mine":     {happened.Filter{Of: []string{"fw2.b", "fw9"}}, list("submit "+string(task), "take "+b, "end "+b)},
			"nobody's": {happened.Filter{Of: []string{}, Kinds: []string{"halt", "end"}}, ""},
			"job":      {happened.Filter{Task: task, Host: "fw1", Kinds: []string{"end"}}, list("end " + a)},
		} {
			for most := 1; most <= 10; most++ {
				if got := read(t, s, c.f, most); got != c.want {
					t.Errorf("%s, pages of %d:\n%swant\n%s", name, most, got, c.want)
				}
			}
		}
		for _, bad := range []string{"7", "a.1-0.default.1", "1.1-0.default.-1", "1.1-0", "..."} {
			if _, _, err := happened.List(t.Context(), s, happened.Filter{}, bad, 1); !errors.Is(err, history.ErrCursor) {
				t.Errorf("cursor %q: %v", bad, err)
			}
		}
	})
}

// Events that an older muster stored do not say who gave the order: whoever asks learns that.
func TestEventsOfAnOlderMusterAreSaidToLackTheirOperator(t *testing.T) {
	t.Parallel()
	both(t, func(t *testing.T, cfg history.Config) {
		s := filled(t, cfg, "1 halt zone os:alice", "5 lift zone os:alice")
		unsaid := func(from int) bool {
			got, err := happened.IsUnsaid(t.Context(), s, happened.Filter{Who: "os:alice",
				From: begin.Add(time.Duration(from) * time.Second)})
			if err != nil {
				t.Fatal(err)
			}
			return got
		}
		if unsaid(0) {
			t.Error("all events say it")
		}
		err := history.HandleOf(s).Exec(t.Context(), "age", history.Statement{
			Text: "update events set who = null where event = 'halt'"})
		if err != nil || !unsaid(0) || unsaid(2) {
			t.Errorf("%v: from the beginning %v, after it %v", err, unsaid(0), unsaid(2))
		}
	})
}

// both runs a test on a fresh SQLite and on a fresh database of PostgreSQL.
func both(t *testing.T, f func(t *testing.T, cfg history.Config)) {
	t.Run("sqlite", func(t *testing.T) { t.Parallel(); f(t, sqltest.SQLite(t)) })
	t.Run("postgres", func(t *testing.T) { t.Parallel(); f(t, sqltest.Shared(t).Config(t)) })
}
