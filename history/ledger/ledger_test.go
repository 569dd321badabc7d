package ledger_test

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"

	"muster/audit"
	"muster/history"
	"muster/history/ledger"
)

func TestEntriesAreFoundAgain(t *testing.T) {
	t.Parallel()
	both(t, func(t *testing.T, cfg history.Config) {
		l, _ := ready(t, cfg)
		first := draft("one", "os:alice", "task.submit")
		second := draft("two", "os:bob", "task.cancel")
		third := draft("three", "os:alice", "zone.pause")
		add(t, l, first, outcome(first))
		add(t, l, second, third)
		for name, c := range map[string]struct {
			f    ledger.Filter
			want []int64
		}{
			"all":             {ledger.Filter{EntriesMax: 10}, []int64{3, 2, 0}},
			"with outcomes":   {ledger.Filter{EntriesMax: 10, Outcomes: true}, []int64{3, 2, 1, 0}},
			"a page":          {ledger.Filter{EntriesMax: 1}, []int64{3}},
			"the next page":   {ledger.Filter{EntriesMax: 1, Before: 3}, []int64{2}},
			"of a person":     {ledger.Filter{EntriesMax: 10, Who: "os:alice"}, []int64{3, 0}},
			"of nobody":       {ledger.Filter{EntriesMax: 10, Who: "os:carol"}, nil},
			"of a verb":       {ledger.Filter{EntriesMax: 10, Verb: "task.cancel"}, []int64{2}},
			"of verbs":        {ledger.Filter{EntriesMax: 10, Verb: "task.*"}, []int64{2, 0}},
			"of an object":    {ledger.Filter{EntriesMax: 10, Object: "task/two"}, []int64{2}},
			"no pattern":      {ledger.Filter{EntriesMax: 10, Object: "task/t%"}, nil},
			"from an instant": {ledger.Filter{EntriesMax: 10, From: begin.Add(1)}, []int64{3, 2, 0}},
			"before it":       {ledger.Filter{EntriesMax: 10, To: begin}, nil},
		} {
			list, err := l.Page(t.Context(), c.f)
			if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			var got []int64
			for _, r := range list {
				got = append(got, r.Seq)
			}
			if fmt.Sprint(got) != fmt.Sprint(c.want) {
				t.Errorf("%s: %v, want %v", name, got, c.want)
			}
		}
		r, err := l.Entry(t.Context(), 0)
		if err != nil || r.Ended == nil || r.Ended.Result != audit.Done || r.Record.Person.Name != "os:alice" ||
			r.Record.Private.Reason != "because of one" {
			t.Errorf("entry 0: %+v, %v", r, err)
		}
		if _, err := l.Entry(t.Context(), 9); !errors.Is(err, ledger.ErrNotFound) {
			t.Errorf("entry 9: %v", err)
		}
		checkpoint(t, l)
		if r := examine(t, l); !r.Whole() || r.Entries != 4 || r.Checkpoints != 1 {
			t.Errorf("%+v", r)
		}
	})
}

// Several servers append at the same time, each with a connection of its own.
func TestServersThatAppendAtTheSameTimeShareOneSequence(t *testing.T) {
	t.Parallel()
	both(t, func(t *testing.T, cfg history.Config) {
		const servers, calls, entries = 4, 8, 5
		var all sync.WaitGroup
		for s := range servers {
			l, _ := ready(t, cfg)
			all.Go(func() {
				for c := range calls {
					var list []audit.Draft
					for e := range entries {
						list = append(list, draft(fmt.Sprint(s, c, e), fmt.Sprint("os:u", (s+e)%3), "task.submit"))
					}
					addPatiently(t, l, list)
				}
			})
		}
		all.Wait()
		l, _ := ready(t, cfg)
		checkpoint(t, l)
		if r := examine(t, l); !r.Whole() || r.Entries != servers*calls*entries || r.Checkpoints != 1 {
			t.Errorf("%+v", r)
		}
	})
}

// addPatiently adds entries again while others have the file of SQLite: its lock is not fair, and on
// a busy machine one of four writers may wait for longer than a call does. The spool of the server
// does the same.
func addPatiently(t *testing.T, l *ledger.Ledger, list []audit.Draft) {
	t.Helper()
	for {
		err := l.Append(t.Context(), list, signer(t).Entry)
		if err == nil {
			return
		}
		if !strings.Contains(err.Error(), "SQLITE_BUSY") {
			t.Error(err)
			return
		}
	}
}

func TestAnEntryThatIsAddedTwiceIsThereOnce(t *testing.T) {
	t.Parallel()
	both(t, func(t *testing.T, cfg history.Config) {
		l, _ := ready(t, cfg)
		one, two := draft("one", "os:alice", "task.submit"), draft("two", "os:alice", "task.submit")
		add(t, l, one)
		add(t, l, one, two, two)
		if size, err := l.Size(t.Context()); err != nil || size != 2 {
			t.Errorf("%d entries, %v", size, err)
		}
		if r := examine(t, l); !r.Whole() {
			t.Errorf("%+v", r)
		}
	})
}

func TestAMistakeInOneEntryAddsNone(t *testing.T) {
	t.Parallel()
	both(t, func(t *testing.T, cfg history.Config) {
		l, _ := ready(t, cfg)
		bad := draft("two", "os:alice", "task.submit")
		bad.Entry.Kind = "nonsense"
		if err := l.Append(t.Context(), []audit.Draft{draft("one", "os:bob", "x"), bad}, nil); err == nil {
			t.Fatal("it was added")
		}
		if size, err := l.Size(t.Context()); err != nil || size != 0 {
			t.Errorf("%d entries, %v", size, err)
		}
		if r := examine(t, l); !r.Whole() || r.Entries != 0 {
			t.Errorf("%+v", r)
		}
	})
}

func TestANameThatIsErasedIsInNoTable(t *testing.T) {
	t.Parallel()
	both(t, func(t *testing.T, cfg history.Config) {
		l, _ := ready(t, cfg)
		add(t, l, draft("one", "os:alice", "task.submit"), draft("two", "os:bob", "task.submit"))
		p, err := l.PersonNamed(t.Context(), "os:alice")
		if err != nil {
			t.Fatal(err)
		}
		note := draft("three", "os:bob", audit.VerbErase)
		note.Entry.Object = audit.ErasedPerson(p.Ref)
		add(t, l, note)
		if err := l.Erase(t.Context(), p.Ref); err != nil {
			t.Fatal(err)
		}
		if _, err := l.PersonNamed(t.Context(), "os:alice"); !errors.Is(err, ledger.ErrNotFound) {
			t.Errorf("the name is still there: %v", err)
		}
		r, err := l.Entry(t.Context(), 0)
		if err != nil || !r.Record.Person.Erased() || r.Record.Private != (audit.Private{}) || r.Who != p.Ref {
			t.Errorf("entry 0: %+v, %v", r, err)
		}
		add(t, l, draft("four", "os:alice", "task.submit"))
		again, err := l.PersonNamed(t.Context(), "os:alice")
		if err != nil || again.Ref == p.Ref {
			t.Errorf("the new entries of a name lead to the erased ones: %+v, %v", again, err)
		}
		checkpoint(t, l)
		if r := examine(t, l); !r.Whole() || r.Erased != 1 {
			t.Errorf("%+v", r)
		}
	})
}

func TestASinkIsRemembered(t *testing.T) {
	t.Parallel()
	both(t, func(t *testing.T, cfg history.Config) {
		l, _ := ready(t, cfg)
		s := ledger.Sent{Sink: "file:/x", Entries: 7, Checkpoints: 5, At: begin, Since: begin, Trouble: "away"}
		for _, one := range []ledger.Sent{{Sink: "file:/x"}, s} {
			if err := l.SaveSent(t.Context(), one); err != nil {
				t.Fatal(err)
			}
		}
		list, err := l.Sinks(t.Context())
		if err != nil || len(list) != 1 || !list[0].At.Equal(begin) || list[0].Entries != 7 || list[0].Trouble != "away" {
			t.Errorf("%+v, %v", list, err)
		}
	})
}
