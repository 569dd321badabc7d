package scribe_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"muster/audit"
	"muster/server/scribe"
	"muster/testkit/sqltest"
)

func TestAnEntryThatIsWrittenIsInTheTables(t *testing.T) {
	t.Parallel()
	d := fresh(t)
	var all sync.WaitGroup
	for i := range 50 {
		all.Go(func() {
			verb := fmt.Sprint("verb", i)
			if _, err := d.Write(t.Context(), order(verb), false); err != nil {
				t.Error(err)
			}
			if !slices.Contains(verbs(d.list(t)), verb+" ") {
				t.Errorf("%s was written and is not there", verb)
			}
		})
	}
	all.Wait()
	if n := len(d.list(t)); n != 50 {
		t.Errorf("%d entries", n)
	}
}

// A PostgreSQL dies, and comes back.
func TestWhileSQLIsAwayEntriesGoToASpoolAndComeBackInOrder(t *testing.T) {
	t.Parallel()
	p := sqltest.StartPostgres(t)
	d := at(t, p.Config(t), filepath.Join(t.TempDir(), "audit"))
	write := func(verb string) {
		t.Helper()
		if _, err := d.Write(t.Context(), order(verb), false); err != nil {
			t.Fatal(err)
		}
	}
	write("one")
	p.Kill()
	write("two")
	write("three")
	d.Keep(order("four"))
	if err := d.Idle(t.Context()); err != nil {
		t.Fatal(err)
	}
	st := d.State()
	if st.Spooled != 3 || st.Away == "" || d.Tend(t.Context()) == nil {
		t.Errorf("state %+v", st)
	}
	text, err := os.ReadFile(filepath.Join(d.dir, "spool-1.jsonl"))
	if err != nil || strings.Count(string(text), "\n") != 3 {
		t.Errorf("spool: %s, %v", text, err)
	}
	if err := p.Start(); err != nil {
		t.Fatal(err)
	}
	d.pass(time.Minute)
	write("five")
	want := []string{"one ", "two spool", "three spool", "four spool", "five "}
	if got := verbs(d.list(t)); !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
	if st := d.State(); st.Spooled != 0 || st.Away != "" {
		t.Errorf("afterwards: %+v", st)
	}
}

// Neither a database nor a folder for the spool: the folder's name is a file.
func TestWithoutSQLAndSpoolOrdersAreRefusedAndStopsWork(t *testing.T) {
	t.Parallel()
	p := sqltest.StartPostgres(t)
	dir := filepath.Join(t.TempDir(), "audit")
	if err := os.WriteFile(dir, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	d := at(t, p.Config(t), dir)
	p.Kill()
	_, err := d.Write(t.Context(), order("task.submit"), false)
	var refused *scribe.Undurable
	if !errors.As(err, &refused) || !strings.Contains(err.Error(), "nothing was done") ||
		!strings.Contains(err.Error(), "Pause, halt, cancel, drain and freeze work") {
		t.Fatalf("an order: %v", err)
	}
	if _, err := d.Write(t.Context(), order("halt"), true); err != nil {
		t.Fatalf("a stop: %v", err)
	}
	if st := d.State(); st.Memory != 1 || st.Spool == "" {
		t.Errorf("state %+v", st)
	}
	if err := p.Start(); err != nil {
		t.Fatal(err)
	}
	d.pass(time.Minute)
	if err := errors.Join(d.Tend(t.Context()), d.Idle(t.Context())); err != nil && d.State().Away != "" {
		t.Fatal(err)
	}
	if got, want := verbs(d.list(t)), []string{"halt memory"}; !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}

func TestTheSpoolOfAProcessThatDiedIsBroughtIn(t *testing.T) {
	t.Parallel()
	p := sqltest.StartPostgres(t)
	cfg, dir := p.Config(t), filepath.Join(t.TempDir(), "audit")
	d := at(t, cfg, dir)
	next := at(t, cfg, dir)
	p.Kill()
	for _, verb := range []string{"one", "two"} {
		if _, err := d.Write(t.Context(), order(verb), false); err != nil {
			t.Fatal(err)
		}
	}
	if err := d.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	// It died while it wrote a third one, whose order was not carried out.
	file := filepath.Join(dir, "spool-1.jsonl")
	f, err := os.OpenFile(file, os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.WriteString(`{"entry":{"v":1,"seq":0,"id":"12`); err != nil || f.Close() != nil {
		t.Fatal(err)
	}
	if err := p.Start(); err != nil {
		t.Fatal(err)
	}
	next.pass(time.Minute)
	if _, err := next.Write(t.Context(), order("three"), false); err != nil {
		t.Fatal(err)
	}
	// The first call may have met a connection of the time before.
	next.pass(time.Minute)
	if err := errors.Join(next.Idle(t.Context()), next.Tend(t.Context()), next.Idle(t.Context())); err != nil &&
		next.State().Away != "" {
		t.Fatal(err)
	}
	got := strings.Join(verbs(next.list(t)), ", ")
	if !strings.HasPrefix(got, "one spool, two spool, three ") {
		t.Errorf("%q", got)
	}
	if info, err := os.Stat(file); err != nil || info.Size() != 0 {
		t.Errorf("the spool: %v, %v", info, err)
	}
}

func TestALineOfASpoolThatIsNoDraftIsKeptForAPerson(t *testing.T) {
	t.Parallel()
	cfg, dir := sqltest.SQLite(t), filepath.Join(t.TempDir(), "audit")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(dir, "spool-1.jsonl")
	if err := os.WriteFile(file, []byte("nonsense\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	d := at(t, cfg, dir)
	if _, err := d.Write(t.Context(), order("one"), false); err != nil {
		t.Fatal(err)
	}
	d.pass(time.Minute)
	if _, err := d.Write(t.Context(), order("two"), false); err != nil {
		t.Fatal(err)
	}
	if got := verbs(d.list(t)); !slices.Equal(got, []string{"one spool", "two "}) {
		t.Errorf("%q", got)
	}
	if text, err := os.ReadFile(file + ".bad-1"); err != nil || string(text) != "nonsense\n" {
		t.Errorf("%q, %v", text, err)
	}
}

// A stranger who has no token calls ten thousand times in three minutes.
func TestAFloodOfRefusedLoginsMakesFewEntries(t *testing.T) {
	t.Parallel()
	d := fresh(t)
	const calls, minutes = 10_000, 3
	for range minutes {
		for i := range calls {
			d.RefusedLogin([]string{"no_token", "unknown_token"}[i%2], "10.9.8.7:1234")
		}
		d.pass(time.Minute)
		if err := d.Tend(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	list := d.list(t)
	if len(list) > minutes*12 {
		t.Errorf("%d entries of %d refusals", len(list), minutes*calls)
	}
	var sum int64
	for _, r := range list {
		if r.Kind != audit.KindRefused || r.Verb != "login" || r.End.Result != audit.Refused {
			t.Fatalf("%+v", r)
		}
		sum += max(1, r.Times)
	}
	if sum != minutes*calls {
		t.Errorf("the entries count %d refusals, want %d", sum, minutes*calls)
	}
}

func TestTheWorkOfAScheduleIsItsOwn(t *testing.T) {
	t.Parallel()
	d := fresh(t)
	for _, o := range []scribe.Order{
		{Task: "0wcy000001", Operator: "os:alice", Proven: true, Schedule: "nightly",
			What: audit.Task{Runbook: "facts", Hosts: 9}},
		{Task: "0wcy000002", Operator: "os:alice", Proven: true},
	} {
		end, err := d.Ordered(t.Context(), o)
		if err != nil {
			t.Fatal(err)
		}
		end(audit.Done)
	}
	list := d.list(t)
	for i, want := range []string{"server:schedule/nightly schedule task.put task/0wcy000001",
		"server:schedule/nightly schedule task.put task/0wcy000001", "os:alice standing order task.put task/0wcy000002",
		"os:alice standing order task.put task/0wcy000002"} {
		r := list[i]
		if got := r.Record.Person.Name + " " + r.Proof + " " + r.Verb + " " + r.Object; got != want {
			t.Errorf("entry %d: %s, want %s", i, got, want)
		}
	}
	if list[0].Task == nil || list[0].Task.Hosts != 9 || list[1].End == nil || list[1].End.Of != list[0].ID {
		t.Errorf("%+v, %+v", list[0].Entry, list[1].Entry)
	}
}

// Redis takes nothing for a while, and the duty tries each second.
func TestAllTriesOfADutyAreOneEntry(t *testing.T) {
	t.Parallel()
	d := fresh(t)
	o := scribe.Order{Task: "0wcy000001", Operator: "os:alice", Proven: true, Schedule: "nightly",
		What: audit.Task{Order: "aa"}}
	for try := range 20 {
		end, err := d.Ordered(t.Context(), o)
		if err != nil {
			t.Fatal(err)
		}
		if try < 19 {
			end(audit.Failed)
		} else {
			end(audit.Done)
		}
	}
	list := d.list(t)
	if len(list) != 2 || list[1].End == nil || list[1].End.Result != audit.Done || list[1].End.Of != list[0].ID {
		t.Fatalf("%d entries: %+v", len(list), list)
	}
	o.What.Order = "bb"
	end, err := d.Ordered(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	end(audit.Refused)
	if list := d.list(t); len(list) != 4 {
		t.Errorf("another order under the same id: %d entries", len(list))
	}
}
