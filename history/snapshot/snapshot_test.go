package snapshot

import (
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"reflect"
	"strings"
	"testing"

	"muster/history"
	"muster/testkit/sqltest"
)

func TestMain(m *testing.M) {
	code := m.Run()
	sqltest.Done()
	os.Exit(code)
}

// tape keeps a copy.
type tape struct {
	tables []Table
	rows   map[string][][]any
	fail   string // a table at which it fails
}

func (c *tape) Table(t Table) error {
	if c.fail == t.Name {
		return errors.New("the disk is full")
	}
	c.tables = append(c.tables, t)
	return nil
}

func (c *tape) Row(values []any) error {
	name := c.tables[len(c.tables)-1].Name
	var row []byte
	for _, v := range values {
		var err error
		if row, err = AppendValue(row, v); err != nil {
			return fmt.Errorf("table %s: %w", name, err)
		}
	}
	list, err := Values(row)
	if c.rows == nil {
		c.rows = map[string][][]any{}
	}
	c.rows[name] = append(c.rows[name], list)
	return err
}

// play puts the copy into a sink.
func (c *tape) play(to Sink) error {
	for _, t := range c.tables {
		if err := to.Table(t); err != nil {
			return err
		}
		for _, row := range c.rows[t.Name] {
			if err := to.Row(row); err != nil {
				return err
			}
		}
	}
	return nil
}

func read(t *testing.T, s *history.Store) *tape {
	t.Helper()
	c := &tape{}
	if err := Read(t.Context(), history.HandleOf(s), c); err != nil {
		t.Fatal(err)
	}
	return c
}

// fill puts rows of all kinds of values into a store.
func fill(t *testing.T, s *history.Store, rows int) {
	t.Helper()
	var list []history.Statement
	for i := range rows {
		list = append(list,
			history.Statement{Text: "insert into output (task, host, size, kept, data) values ($1, $2, $3, $4, $5)",
				Args: []any{"task", fmt.Sprint("host", i), int64(math.MinInt64), int64(i), []byte{0, 1, 0xff}}},
			history.Statement{Text: "insert into events (zone, entry, at, event, object, task, detail) " +
				"values ($1, $2, $3, 'end', $4, 'task', '')", Args: []any{"zürich", fmt.Sprint(i), int64(i), "a'b;\n"}},
			history.Statement{Text: "insert into jobs (task, host, zone, customer, model, runbook, operator, outcome, " +
				"class, exit, error, note, node, attempt, tries, due, started, finished) values ('task', $1, '', '', '', " +
				"'', '', '', '', null, '', '', '', 1, 1, 1, 1, 1)", Args: []any{fmt.Sprint("host", i)}})
	}
	if err := history.HandleOf(s).Exec(t.Context(), "fill", list...); err != nil {
		t.Fatal(err)
	}
}

// A copy of either database fits into either, and replaces all that was there.
func TestACopyFitsIntoEitherDatabase(t *testing.T) {
	t.Parallel()
	open := map[string]func() *history.Store{
		"SQLite":     func() *history.Store { return sqltest.Ready(t, sqltest.SQLite(t)) },
		"PostgreSQL": func() *history.Store { return sqltest.Ready(t, sqltest.Shared(t).Config(t)) },
	}
	for from, a := range open {
		for to, b := range open {
			t.Run(from+" to "+to, func(t *testing.T) {
				source, target := a(), b()
				fill(t, source, 400)
				fill(t, target, 3)
				c := read(t, source)
				if len(c.tables) < 20 || len(c.rows["output"]) != 400 || len(c.rows["audit_tree"]) != 1 {
					t.Fatalf("the copy has %d tables and %d rows of output", len(c.tables), len(c.rows["output"]))
				}
				h := history.HandleOf(target)
				if empty, err := Empty(t.Context(), h); err != nil || empty {
					t.Errorf("a database with rows is empty: %v, %v", empty, err)
				}
				if err := Replace(t.Context(), h, c.play); err != nil {
					t.Fatal(err)
				}
				if got := read(t, target); !reflect.DeepEqual(got, c) {
					t.Error("the copy of the copy differs")
				}
			})
		}
	}
}

// A copy that breaks off, or is of other tables, changes nothing.
func TestACopyThatBreaksOffChangesNothing(t *testing.T) {
	t.Parallel()
	s := sqltest.Ready(t, sqltest.SQLite(t))
	if empty, err := Empty(t.Context(), history.HandleOf(s)); err != nil || !empty {
		t.Errorf("a new database is not empty: %v, %v", empty, err)
	}
	fill(t, s, 10)
	before := read(t, s)
	for words, spoil := range map[string]func(c *tape){
		"broke":         func(c *tape) { c.rows["output"][0] = append(c.rows["output"][0], "one more") },
		"other tables":  func(c *tape) { c.tables[0].Name = "jobs; drop table jobs" },
		"has no column": func(c *tape) { c.tables[0].Columns = []string{"task) values ('x'); --"} },
		"UNIQUE":        func(c *tape) { c.rows["jobs"] = append(c.rows["jobs"], c.rows["jobs"][0]) },
	} {
		c := read(t, s)
		spoil(c)
		err := Replace(t.Context(), history.HandleOf(s), c.play)
		if err == nil || words != "broke" && !strings.Contains(err.Error(), words) {
			t.Errorf("got %v, want %q", err, words)
		}
		if got := read(t, s); !reflect.DeepEqual(got, before) {
			t.Errorf("%s: it has changed", words)
		}
	}
	full := &tape{fail: "output"}
	if err := Read(t.Context(), history.HandleOf(s), full); err == nil {
		t.Error("a sink that fails goes unnoticed")
	}
}

// All rows of a copy are of one moment, whoever writes meanwhile.
func TestACopyIsOfOneMoment(t *testing.T) {
	t.Parallel()
	for name, cfg := range map[string]history.Config{"SQLite": sqltest.SQLite(t),
		"PostgreSQL": sqltest.Shared(t).Config(t)} {
		s := sqltest.Ready(t, cfg)
		fill(t, s, 5)
		c := &late{tape: tape{}, write: func() { fill2(t, s) }}
		if err := Read(t.Context(), history.HandleOf(s), c); err != nil {
			t.Fatal(err)
		}
		if n := len(c.rows["tasks"]) + len(c.rows["steps"]); n != 0 {
			t.Errorf("%s: %d rows of later are in the copy", name, n)
		}
		if n := len(read(t, s).rows["steps"]); n != 1 {
			t.Errorf("%s: %d rows were written meanwhile, want 1", name, n)
		}
	}
}

// late writes something while the copy is made.
type late struct {
	tape
	write func()
}

func (c *late) Table(t Table) error {
	if t.Name == "output" {
		c.write()
	}
	return c.tape.Table(t)
}

func fill2(t *testing.T, s *history.Store) {
	t.Helper()
	err := history.HandleOf(s).Exec(context.WithoutCancel(t.Context()), "write meanwhile", history.Statement{
		Text: "insert into steps (task, host, step, at) values ('task', 'late', 1, 1)"})
	if err != nil {
		t.Fatal(err)
	}
}

func FuzzValues(f *testing.F) {
	row, err := AppendValue(nil, "text")
	if err != nil {
		f.Fatal(err)
	}
	f.Add(row)
	f.Add([]byte{isInt, 0xff})
	f.Fuzz(func(t *testing.T, b []byte) {
		list, err := Values(b)
		if err != nil {
			return
		}
		var again []byte
		for _, v := range list {
			if again, err = AppendValue(again, v); err != nil {
				t.Fatal(err)
			}
		}
		if back, err := Values(again); err != nil || !reflect.DeepEqual(back, list) {
			t.Errorf("%x: %v, %v", b, back, err)
		}
	})
}
