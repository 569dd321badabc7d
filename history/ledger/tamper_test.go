package ledger_test

import (
	"fmt"
	"testing"

	"muster/audit"
	"muster/history"
	"muster/history/ledger"
)

// tables are those of the log.
var tables = []string{"audit_tree", "audit_entries", "audit_hashes", "audit_names", "audit_checkpoints"}

// backup copies the tables.
func backup() (list []string) {
	for _, name := range tables {
		list = append(list, "create table saved_"+name+" as select * from "+name)
	}
	return list
}

// restore makes them what they were.
func restore() (list []string) {
	for _, name := range tables {
		list = append(list, "delete from "+name, "insert into "+name+" select * from saved_"+name)
	}
	return list
}

// cut takes the newest hundred of 250 entries away, with all that the tables know of them.
func cut(checkpoints bool) []string {
	list := []string{"delete from audit_entries where seq >= 150", "update audit_tree set size = 150",
		fmt.Sprintf("delete from audit_hashes where place >= %d", audit.HashCount(150))}
	if checkpoints {
		list = append(list, "delete from audit_checkpoints where size > 150")
	}
	return list
}

// Somebody with all rights in the database changes the log by SQL.
func TestTheExaminationNamesWhatSQLHasDone(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name string
		do   []string
		want audit.Finding
	}{
		{"a row changed", []string{"update audit_entries set leaf = replace(leaf, 'task.submit', 'task.cancel') " +
			"where seq = 117"}, found(audit.FoundChanged, 117, 117, "entry 117 was changed")},
		{"a column changed", []string{"update audit_entries set verb = 'task.cancel' where seq = 117"},
			found(audit.FoundChanged, 117, 117, "column verb")},
		{"a reason changed", []string{"update audit_entries set reason = 'none of it' where seq = 117"},
			found(audit.FoundChanged, 117, 117, "its reason or the address")},
		{"a name changed", []string{"update audit_names set name = 'os:mallory' where name = 'os:u1'"},
			found(audit.FoundChanged, 1, 1, `the name "os:mallory" was changed`)},
		{"a row deleted", []string{"delete from audit_entries where seq = 42"},
			found(audit.FoundDeleted, 42, 42, "entry 42 is missing")},
		{"rows deleted, and what follows renumbered", []string{"delete from audit_entries where seq = 249",
			"update audit_entries set seq = 249 where seq = 42"}, found(audit.FoundDeleted, 42, 42, "entry 42 is missing")},
		{"a row inserted", []string{`insert into audit_entries (seq, id, leaf, signature, at, who, verb, object, ends,
			salt, origin, reason) select 250, 'ffffffffffffffffffffffffffffffff', replace(replace(leaf,
			'"seq":7,', '"seq":250,'), id, 'ffffffffffffffffffffffffffffffff'), signature, at, who, verb, object, ends, salt,
			origin, reason from audit_entries where seq = 7`}, found(audit.FoundInserted, 250, 250, "inserted")},
		{"the newest hundred cut off", cut(false), found(audit.FoundCut, 150, 249, "(100 of them), are missing")},
		{"the newest hundred cut off with their checkpoints", cut(true), found(audit.FoundRestored, 150, 249,
			"entries 150 to 249 were cut off")},
		{"the names erased", []string{"update audit_names set name = '', salt = ''"}, found(audit.FoundErased, -1, -1,
			"no entry says so")},
		{"a hash changed", []string{fmt.Sprintf("update audit_hashes set hash = (select hash from audit_hashes where "+
			"place = 0) where place = %d", audit.LeafPlace(99))}, found(audit.FoundHash, 99, 99, "stored hash of entry 99")},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			both(t, func(t *testing.T, cfg history.Config) {
				l, h := ready(t, cfg)
				outside := fill(t, l, 250)
				if r := examine(t, l, outside...); !r.Whole() || r.Entries != 250 {
					t.Fatalf("before: %+v", r)
				}
				run(t, h, c.do...)
				if r := examine(t, l, outside...); !has(r, c.want) {
					t.Errorf("found %+v, want %+v", r.Findings, c.want)
				}
			})
		})
	}
}

// fill adds entries in calls of 50, with a checkpoint behind each.
func fill(t *testing.T, l *ledger.Ledger, n int) (outside []string) {
	t.Helper()
	size, err := l.Size(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for from := int(size); from < int(size)+n; from += 50 {
		var list []audit.Draft
		for i := range 50 {
			list = append(list, draft(fmt.Sprint(from+i, len(outside), n), fmt.Sprint("os:u", i%3), "task.submit"))
		}
		add(t, l, list...)
		outside = append(outside, checkpoint(t, l))
	}
	return outside
}

func TestTablesOfYesterdayAreFound(t *testing.T) {
	t.Parallel()
	both(t, func(t *testing.T, cfg history.Config) {
		l, h := ready(t, cfg)
		outside := fill(t, l, 100)
		run(t, h, backup()...)
		outside = append(outside, fill(t, l, 150)...)
		run(t, h, restore()...)
		const words = "an older copy of the tables was restored"
		if r := examine(t, l, outside...); !has(r, found(audit.FoundRestored, 100, 249, words)) {
			t.Errorf("restored: %+v", r.Findings)
		}
		if r := examine(t, l); !r.Whole() {
			t.Errorf("without a checkpoint outside nobody can know, but it found %+v", r.Findings)
		}
		fill(t, l, 200)
		if r := examine(t, l, outside...); !has(r, found(audit.FoundRewritten, 100, 149, words)) {
			t.Errorf("restored and written on: %+v", r.Findings)
		}
	})
}
