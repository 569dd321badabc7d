package outbox_test

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"muster/api"
	"muster/fleet"
	"muster/history"
	"muster/history/outbox"
	"muster/jobs"
	"muster/notify"
	"muster/testkit/sqltest"
)

func TestMain(m *testing.M) {
	code := m.Run()
	sqltest.Done()
	os.Exit(code)
}

// both runs a test on a fresh SQLite and on a fresh database of PostgreSQL.
func both(t *testing.T, f func(t *testing.T, d *desk)) {
	t.Run("sqlite", func(t *testing.T) { t.Parallel(); f(t, ready(t, sqltest.SQLite(t))) })
	t.Run("postgres", func(t *testing.T) { t.Parallel(); f(t, ready(t, sqltest.Shared(t).Config(t))) })
}

// desk is a history with its outbox, and a clock that the test moves.
type desk struct {
	t      *testing.T
	store  *history.Store
	box    *outbox.Outbox
	rules  *notify.Rules
	now    time.Time
	last   int
	wanted bool
}

func ready(t *testing.T, cfg history.Config) *desk {
	t.Helper()
	s, err := history.Open(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	d := &desk{t: t, store: s, now: time.Now().Add(time.Second), wanted: true}
	d.box = outbox.New(s, func() bool { return d.wanted })
	for err = s.Migrate(t.Context()); errors.Is(err, history.ErrChanging); {
		err = s.Migrate(t.Context())
	}
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func (d *desk) use(rules string) {
	d.t.Helper()
	r, err := notify.Parse(fleet.Source{Name: "n",
		Data: []byte("receivers:\n  noc: {program: {argv: [/bin/x]}}\n" +
			"  boss: {program: {argv: [/bin/x]}}\nrules:\n" + rules)})
	if err != nil {
		d.t.Fatal(err)
	}
	d.rules = r
}

// batch returns a part of a stream, behind the one before.
func (d *desk) batch(zone string) history.Batch {
	after := ""
	if d.last > 0 {
		after = fmt.Sprintf("%d-0", d.last)
	}
	d.last++
	return history.Batch{Zone: zone, After: after, Last: fmt.Sprintf("%d-0", d.last), Entries: int64(d.last)}
}

func (d *desk) put(b history.Batch) {
	d.t.Helper()
	if _, err := d.store.Put(d.t.Context(), b, d.now); err != nil {
		d.t.Fatal(err)
	}
}

// gather gathers until there is no more, and returns the messages that were made, the oldest first.
func (d *desk) gather() []outbox.Delivery {
	d.t.Helper()
	if soon := time.Now().Add(time.Second); soon.After(d.now) {
		d.now = soon // what was written just now is due
	}
	before := map[string]bool{}
	for _, m := range d.all() {
		before[m.ID] = true
	}
	for more := true; more; {
		var err error
		if more, err = d.box.Gather(d.t.Context(), outbox.Round{Rules: d.rules, Now: d.now}); err != nil {
			d.t.Fatal(err)
		}
	}
	list := slices.DeleteFunc(d.all(), func(m outbox.Delivery) bool { return before[m.ID] })
	slices.Reverse(list)
	return list
}

func (d *desk) all() []outbox.Delivery {
	d.t.Helper()
	list, err := d.box.List(d.t.Context(), outbox.Filter{Most: 100_000})
	if err != nil {
		d.t.Fatal(err)
	}
	return list
}

const task = jobs.TaskID("0wcy7y2fb2")

func job(id jobs.TaskID, host, customer string, o jobs.Outcome) api.PastJob {
	return api.PastJob{JobInfo: jobs.JobInfo{ID: jobs.NewID(id, host), Host: host, State: jobs.Ended,
		Outcome: o,
		Attempt: 1, Finished: jobs.Time{Time: time.Now()}}, Zone: "default", Customer: customer,
		Runbook: "firewall"}
}

func endedTask(id jobs.TaskID, total int) jobs.TaskInfo {
	return jobs.TaskInfo{Task: id, Runbook: "firewall", Operator: "alice", On: "all", State: jobs.TaskEnded,
		Total: total,
		Zones: []string{"default"}, Span: jobs.Span{Finished: jobs.Time{Time: time.Now()}}}
}

func TestAllTenOutcomesComeOutOfHistory(t *testing.T) {
	t.Parallel()
	both(t, func(t *testing.T, d *desk) {
		d.use("  - {name: r, what: outcome, wait: 0, to: noc}\n  - {name: e, what: task-ended, to: boss}\n")
		b := d.batch("default")
		for i, o := range jobs.Outcomes() {
			b.Ended = append(b.Ended, job(task, fmt.Sprint("fw", i), "acme", o))
		}
		b.Tasks = []jobs.TaskInfo{endedTask(task, 10)}
		d.put(b)
		list := d.gather()
		if len(list) != 2 {
			t.Fatalf("%+v", list)
		}
		for _, m := range list {
			for i, o := range jobs.Outcomes() {
				if !strings.Contains(m.Body, string(o)) || m.Receiver == "noc" && !strings.Contains(m.Body,
					fmt.Sprint("fw",
						i)) {
					t.Errorf("%s: %s is missing: %s", m.Receiver, o, m.Body)
				}
			}
			if !slices.Equal(m.Tasks.IDs, []jobs.TaskID{task}) || m.Tasks.Other {
				t.Errorf("it concerns %+v", m.Tasks)
			}
		}
		if more := d.gather(); len(more) != 0 {
			t.Errorf("told again: %+v", more)
		}
	})
}

func TestTwentyThousandHostsMakeOneMessage(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("-short: 20,000 hosts")
	}
	both(t, func(t *testing.T, d *desk) {
		d.use("  - {name: r, what: [outcome, task-ended], wait: 15m, to: noc}\n")
		for i := range 20 {
			b := d.batch("default")
			for k := range 1000 {
				b.Ended = append(b.Ended, job(task, fmt.Sprintf("fw%05d", i*1000+k), "acme", jobs.Failed))
			}
			if i == 19 {
				b.Tasks = []jobs.TaskInfo{endedTask(task, 20_000)}
			}
			d.put(b)
			if list := d.gather(); i < 19 && len(list) > 0 {
				t.Fatalf("told before its end: %+v", list)
			}
		}
		list := d.all()
		if len(list) != 1 || !strings.Contains(list[0].Body, "failed on 20000 hosts (fw00000, ") {
			t.Fatalf("%d messages: %.500s", len(list), fmt.Sprint(list))
		}
	})
}

// The streams of two zones are stored one after the other.
func TestTheEndOfATaskWaitsForTheJobsOfAllZones(t *testing.T) {
	t.Parallel()
	both(t, func(t *testing.T, d *desk) {
		d.use("  - {name: e, what: task-ended, to: noc}\n")
		b := d.batch("default")
		b.Tasks = []jobs.TaskInfo{endedTask(task, 2)}
		b.Ended = []api.PastJob{job(task, "fw1", "acme", jobs.Succeeded)}
		d.put(b)
		if list := d.gather(); len(list) > 0 {
			t.Fatalf("told without fw2: %+v", list)
		}
		b = d.batch("default")
		b.Ended = []api.PastJob{job(task, "fw2", "acme", jobs.Failed)}
		b.Tasks = []jobs.TaskInfo{endedTask(task, 2)}
		d.put(b)
		d.now = d.now.Add(5 * time.Second)
		if list := d.gather(); len(list) != 1 || !strings.Contains(list[0].Body,
			"1 succeeded, failed on 1 host (fw2)") {
			t.Errorf("%+v", list)
		}
		const lost = jobs.TaskID("0wcy7y2fb3")
		b = d.batch("default")
		b.Tasks = []jobs.TaskInfo{endedTask(lost, 3)}
		d.put(b)
		d.now = d.now.Add(2 * time.Minute)
		if list := d.gather(); len(list) != 1 || !strings.Contains(list[0].Body,
			"end not known to history on 3 hosts") {
			t.Errorf("a task whose jobs nobody knows: %+v", list)
		}
	})
}

// Either history has the end of a job and its signal, or neither: the transaction is broken off by a
// table that is away.
func TestHistoryAndSignalsAreWrittenTogether(t *testing.T) {
	t.Parallel()
	both(t, func(t *testing.T, d *desk) {
		d.use("  - {name: r, what: outcome, wait: 0, to: noc}\n")
		b := d.batch("default")
		b.Ended = []api.PastJob{job(task, "fw1", "acme", jobs.Failed)}
		d.sql("alter table notify_signals rename to away")
		if _, err := d.store.Put(t.Context(), b, d.now); err == nil {
			t.Fatal("history was stored without the signal")
		}
		if _, err := d.store.Job(t.Context(), b.Ended[0].ID); !errors.Is(err, history.ErrNotFound) {
			t.Errorf("the job: %v", err)
		}
		d.sql("alter table away rename to notify_signals")
		d.put(b)
		if list := d.gather(); len(list) != 1 {
			t.Errorf("%d messages", len(list))
		}
		// The same part, stored by somebody else meanwhile, is refused as a whole.
		if _, err := d.store.Put(t.Context(), b, d.now); !errors.Is(err, history.ErrMoved) {
			t.Errorf("%v", err)
		}
		if list := d.gather(); len(list) != 0 {
			t.Errorf("told twice: %+v", list)
		}
	})
}

func (d *desk) sql(text string) {
	d.t.Helper()
	err := history.HandleOf(d.store).Tx(d.t.Context(), "test", func(tx *sql.Tx) error {
		_, err := tx.ExecContext(context.Background(), text)
		return err
	})
	if err != nil {
		d.t.Fatal(err)
	}
}

func TestWhatAGapHidIsToldOnce(t *testing.T) {
	t.Parallel()
	both(t, func(t *testing.T, d *desk) {
		d.use("  - {name: r, what: outcome, wait: 0, to: noc}\n")
		b := d.batch("default")
		b.Ended = []api.PastJob{job(task, "fw1", "acme", jobs.Failed)}
		d.put(b)
		d.gather()
		list := []api.PastJob{job(task, "fw1", "acme", jobs.Failed), job(task, "fw2", "acme", jobs.Failed)}
		for range 2 {
			if err := d.store.Reconcile(t.Context(), endedTask(task, 2), list, nil); err != nil {
				t.Fatal(err)
			}
		}
		got := d.gather()
		if len(got) != 1 || strings.Contains(got[0].Body, "fw1") || !strings.Contains(got[0].Body, "fw2") {
			t.Errorf("%+v", got)
		}
	})
}

func TestEventsOfAllKindsAreTold(t *testing.T) {
	t.Parallel()
	both(t, func(t *testing.T, d *desk) {
		d.use("  - {name: r, what: [rollout-stopped, group-frozen, zone-frozen, window-missed, window-overrun, " +
			"history-away, not-proven, glass-broken, agreed-lost], group: rule, wait: 0, to: noc}\n")
		for _, c := range []struct{ event, object, want string }{
			{"stop", string(task), "task " + string(task) + " (firewall) was stopped by its rule: why so"},
			{"freeze-group", "gw1", "group default/gw1 is frozen"}, {"freeze", "zone", "zone default is frozen"},
			{"overtime", string(task) + ":fw1", "works on behind the end of its window"},
			{"history-away", "history", "history could not be written"}, {"not-proven", string(task) + ":fw1",
				"not proven"},
			{"glass-broken", string(task), "one person ran alone"}, {"agreed-lost", "agreed",
				"has lost what people have agreed"},
		} {
			b := d.batch("default")
			b.Tasks = []jobs.TaskInfo{{Task: task, Runbook: "firewall", State: jobs.TaskRunning, Total: 1}}
			b.Events = []jobs.Happening{{ID: b.Last, Zone: "default", At: jobs.Time{Time: d.now}, Event: c.event,
				Object: c.object,
				Detail: map[string]any{"note": "why so"}}}
			d.put(b)
			if list := d.gather(); len(list) != 1 || !strings.Contains(message(t, list[0]).Text, c.want) {
				t.Errorf("%s: %+v, want %s", c.event, list, c.want)
			}
		}
		b := d.batch("default")
		b.Events = []jobs.Happening{{ID: "x", Zone: "default", Event: "defer", Object: string(task) + ":fw1"}}
		d.put(b)
		b = d.batch("default")
		b.Ended = []api.PastJob{job(task, "fw1", "acme", jobs.Expired), job(task, "fw2", "acme", jobs.Expired)}
		d.put(b)
		list := d.gather()
		if len(list) != 1 || !strings.Contains(message(t, list[0]).Text,
			"expired in wait for a window on 1 host (fw1)") {
			t.Errorf("a missed window: %+v", list)
		}
	})
}

func message(t *testing.T, d outbox.Delivery) (m notify.Message) {
	t.Helper()
	if err := json.Unmarshal([]byte(d.Body), &m); err != nil || m.ID != d.ID {
		t.Fatalf("%v in %s", err, d.Body)
	}
	return m
}

func TestAMessageIsTriedUntilItIsDoneWith(t *testing.T) {
	t.Parallel()
	both(t, func(t *testing.T, d *desk) {
		d.use("  - {name: r, what: schedule-failed, wait: 0, to: [noc, boss]}\n")
		if err := d.box.Tell(t.Context(), notify.Signal{Key: "k", What: notify.ScheduleFailed,
			Object: "nightly"}); err != nil {
			t.Fatal(err)
		}
		d.gather()
		due := func(want int) outbox.Delivery {
			t.Helper()
			list, err := d.box.Due(t.Context(), "noc", d.now, 10)
			if err != nil || len(list) != want {
				t.Fatalf("%d are due, want %d: %v", len(list), want, err)
			}
			if want == 0 {
				return outbox.Delivery{}
			}
			return list[0]
		}
		m := due(1)
		keep := func(tr outbox.Tried) {
			t.Helper()
			tr.ID, tr.At = m.ID, d.now
			if err := d.box.Keep(t.Context(), tr); err != nil {
				t.Fatal(err)
			}
		}
		keep(outbox.Tried{State: outbox.Waiting, Next: d.now.Add(time.Minute), Error: "it hangs"})
		due(0)
		d.now = d.now.Add(time.Minute)
		if again := due(1); again.Body != m.Body || again.Tries != 1 || again.Error != "it hangs" {
			t.Errorf("%+v", again)
		}
		keep(outbox.Tried{State: outbox.Expired, Next: d.now, Error: "given up",
			Told: &notify.Signal{Key: "expired", What: notify.DeliveryExpired, Object: "noc"}})
		due(0)
		keep(outbox.Tried{State: outbox.Delivered}) // of a server that has lost the duty: too late
		if m, err := d.box.Get(t.Context(), m.ID); err != nil || m.State != outbox.Expired || m.Tries != 2 {
			t.Errorf("%+v, %v", m, err)
		}
		d.use("  - {name: x, what: delivery-expired, wait: 0, to: boss}\n")
		if list := d.gather(); len(list) != 1 || list[0].Receiver != "boss" {
			t.Errorf("nobody is told that a message was given up: %+v", list)
		}
		if _, err := d.box.Get(t.Context(), "msg_none"); !errors.Is(err, outbox.ErrNotFound) {
			t.Errorf("%v", err)
		}
	})
}

func TestTheOutboxIsBounded(t *testing.T) {
	t.Parallel()
	both(t, func(t *testing.T, d *desk) {
		d.use("  - {name: r, what: schedule-failed, wait: 0, to: noc}\n")
		d.sql("insert into notify_deliveries with recursive c(n) as (select 1 union all " +
			"select n + 1 from c where n < 10000) " +
			"select 'm' || n, 'noc', 'r', 'test', 'waiting', n, n, 0, 0, '', '{}', '', '' from c")
		if err := d.box.Tell(t.Context(), notify.Signal{Key: "k", What: notify.ScheduleFailed,
			Object: "nightly"}); err != nil {
			t.Fatal(err)
		}
		if list := d.gather(); len(list) != 1 || list[0].State != outbox.Expired ||
			!strings.Contains(list[0].Error,
				"10000 messages wait") {
			t.Errorf("%+v", list)
		}
		// A receiver that is there no more gets nothing, and its messages are forgotten in time.
		r, err := notify.Parse(fleet.Source{Name: "n", Data: []byte("rules: []\n")})
		if err == nil {
			err = d.box.Orphans(t.Context(), r, d.now)
		}
		if err != nil {
			t.Fatal(err)
		}
		if lost, err := d.box.Forget(t.Context(), d.now.Add(15*24*time.Hour)); err != nil || lost != 0 {
			t.Errorf("lost %d, %v", lost, err)
		}
		if list := d.all(); len(list) != 0 {
			t.Errorf("%d messages are left", len(list))
		}
	})
}

func TestWithoutRulesNothingIsWritten(t *testing.T) {
	t.Parallel()
	both(t, func(t *testing.T, d *desk) {
		d.use("  - {name: r, what: outcome, wait: 0, to: noc}\n")
		d.wanted = false
		b := d.batch("default")
		b.Ended = []api.PastJob{job(task, "fw1", "acme", jobs.Failed)}
		d.put(b)
		d.wanted = true
		if list := d.gather(); len(list) > 0 {
			t.Errorf("%+v", list)
		}
	})
}

// A server that has just lost its duty may still gather while the next one does.
func TestTwoServersThatGatherMakeEachMessageOnce(t *testing.T) {
	t.Parallel()
	both(t, func(t *testing.T, d *desk) {
		d.use("  - {name: r, what: schedule-failed, wait: 0, to: noc}\n")
		const signals = 200
		var list []notify.Signal
		for i := range signals {
			list = append(list, notify.Signal{Key: fmt.Sprint(i), What: notify.ScheduleFailed, Object: fmt.Sprint("s", i)})
		}
		if err := d.box.Tell(t.Context(), list...); err != nil {
			t.Fatal(err)
		}
		var all sync.WaitGroup
		for i := range 4 {
			all.Go(func() {
				// Their clocks differ, and what was written just now is due for all of them.
				now := time.Now().Add(time.Duration(i+1) * time.Second)
				r := outbox.Round{Rules: d.rules, Now: now}
				if _, err := d.box.Gather(context.Background(), r); err != nil {
					t.Error(err)
				}
			})
		}
		all.Wait()
		if got := d.all(); len(got) != signals {
			t.Errorf("%d messages of %d happenings", len(got), signals)
		}
	})
}
