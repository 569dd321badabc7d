package outbox

import (
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"muster/api"
	"muster/history"
	"muster/jobs"
	"muster/notify"
)

// Outbox has the notifications in the database of a history.
type Outbox struct {
	h      history.Handle
	wanted func() bool
}

// New returns the outbox of a history. wanted reports whether there are rules: without them
// nothing is written. New is called before the store is used.
func New(s *history.Store, wanted func() bool) *Outbox {
	o := &Outbox{history.HandleOf(s), wanted}
	o.h.Also(o.record)
	return o
}

// record writes signals of what history stores in the same transaction.
func (o *Outbox) record(ctx context.Context, tx *sql.Tx, b history.Batch) error {
	if !o.wanted() {
		return nil
	}
	if b.Last == "" {
		var err error
		if b.Ended, err = fresh(ctx, tx, b.Ended); err != nil {
			return err
		}
	}
	list := append(endedTasks(b), happened(b)...)
	ends := outcomes(b)
	missed, err := missed(ctx, tx, b)
	if err != nil {
		return err
	}
	return o.add(ctx, tx, append(append(list, ends...), missed...))
}

// fresh leaves out the ends that history has.
func fresh(ctx context.Context, tx *sql.Tx, list []api.PastJob) (out []api.PastJob, err error) {
	for _, j := range list {
		var n int
		err := tx.QueryRowContext(ctx, `select count(*) from jobs where task = $1 and host = $2 and
			outcome = $3`, string(j.ID.Task()), j.ID.Host(), string(j.Outcome)).Scan(&n)
		if err != nil {
			return nil, fmt.Errorf("jobs: %w", err)
		}
		if n == 0 {
			out = append(out, j)
		}
	}
	return out, nil
}

// outcomes counts together the jobs of a batch that ended alike.
func outcomes(b history.Batch) []notify.Signal {
	return alike(b, b.Ended, notify.Outcome)
}

func alike(b history.Batch, list []api.PastJob, what notify.What) (out []notify.Signal) {
	type kind struct {
		task     jobs.TaskID
		outcome  jobs.Outcome
		customer string
	}
	at := map[kind]int{}
	for _, j := range list {
		k := kind{j.ID.Task(), j.Outcome, j.Customer}
		i, known := at[k]
		if !known {
			i = len(out)
			at[k] = i
			on := ""
			if j.Asked != nil {
				on = j.Asked.On
			}
			place := b.Zone + " " + b.Last
			if b.Last == "" {
				place = j.ID.Host()
			}
			out = append(out, notify.Signal{Key: fmt.Sprintf("%s %s %s %s %q", what, k.task, place,
				k.outcome, k.customer), At: j.Finished, What: what, Zone: j.Zone, Outcome: j.Outcome,
				Of: notify.Of{Task: k.task, Runbook: j.Runbook, Operator: j.Operator, On: on,
					Customer: j.Customer}})
		}
		out[i].Hosts.Add(j.ID.Host())
	}
	return out
}

// missed returns signals of the jobs that have expired although they waited for a window.
func missed(ctx context.Context, tx *sql.Tx, b history.Batch) ([]notify.Signal, error) {
	var list []api.PastJob
	waited := map[string]bool{}
	seen := map[jobs.TaskID]bool{}
	for _, j := range b.Ended {
		if j.Outcome != jobs.Expired {
			continue
		}
		if id := j.ID.Task(); !seen[id] {
			seen[id] = true
			if err := waiting(ctx, tx, id, waited); err != nil {
				return nil, err
			}
		}
		list = append(list, j)
	}
	for _, h := range b.Events {
		if h.Event == "defer" || h.Event == "appoint" {
			waited[h.Object] = true
		}
	}
	var out []api.PastJob
	for _, j := range list {
		if waited[string(j.ID)] {
			out = append(out, j)
		}
	}
	return alike(b, out, notify.WindowMissed), nil
}

// waiting adds the jobs of a task that have waited for a window.
func waiting(ctx context.Context, tx *sql.Tx, id jobs.TaskID, waited map[string]bool) error {
	return each(ctx, tx, `select distinct object from events where task = $1 and
		event in ('defer', 'appoint')`, []any{string(id)}, func(scan func(...any) error) error {
		var object string
		err := scan(&object)
		waited[object] = true
		return err
	})
}

func endedTasks(b history.Batch) (out []notify.Signal) {
	for _, t := range b.Tasks {
		if t.State == jobs.TaskEnded {
			out = append(out, notify.Signal{Key: "task-ended " + string(t.Task), At: t.Finished,
				What: notify.TaskEnded, Of: ofTask(t)})
		}
	}
	return out
}

func ofTask(t jobs.TaskInfo) notify.Of {
	return notify.Of{Task: t.Task, Runbook: t.Runbook, Operator: t.Operator, Schedule: t.Schedule,
		On: t.On}
}

// An event that rules tell of.
type telling struct {
	what notify.What
	over bool
}

var tellings = map[string]telling{
	"stop":            {notify.RolloutStopped, false},
	"freeze-group":    {notify.GroupFrozen, false},
	"clear":           {notify.GroupFrozen, true},
	"quarantine":      {notify.HostAside, false},
	"unquarantine":    {notify.HostAside, true},
	"freeze":          {notify.ZoneFrozen, false},
	"overtime":        {notify.WindowOverrun, false},
	"history-away":    {notify.HistoryAway, false},
	"history-back":    {notify.HistoryAway, true},
	"not-proven":      {notify.NotProven, false},
	"glass-broken":    {notify.GlassBroken, false},
	"agreed-lost":     {notify.AgreedLost, false},
	"agreed-restored": {notify.AgreedLost, true},
}

// happened returns signals of the events of a batch.
func happened(b history.Batch) (out []notify.Signal) {
	for _, h := range b.Events {
		t, ok := tellings[h.Event]
		if !ok {
			continue
		}
		s := notify.Signal{Key: "event " + h.Zone + " " + h.ID + " " + h.Event, At: h.At, What: t.what,
			Over: t.over, Zone: h.Zone, Object: h.Object, Note: noteOf(h.Detail)}
		s.Task = history.TaskOf(h.Object)
		if string(s.Task) == h.Object {
			s.Object = ""
		}
		switch t.what {
		case notify.ZoneFrozen, notify.HistoryAway, notify.AgreedLost:
			s.Object = ""
		case notify.GroupFrozen:
			s.Task = "" // the job that froze it is in the note
		case notify.HostAside:
			s.Task, s.Object = "", h.Object // the name of a host may look like that of a task
		}
		out = append(out, s)
	}
	return out
}

// noteOf returns the words of an event.
func noteOf(detail any) string {
	m, _ := detail.(map[string]any)
	var parts []string
	for _, name := range []string{"job", "what", "why", "note"} {
		if text, _ := m[name].(string); text != "" {
			parts = append(parts, text)
		}
	}
	return strings.Join(parts, ": ")
}

// Tell writes signals that come from no event.
func (o *Outbox) Tell(ctx context.Context, list ...notify.Signal) error {
	if len(list) == 0 || !o.wanted() {
		return nil
	}
	return o.h.Tx(ctx, "notify: add signals", func(tx *sql.Tx) error { return o.add(ctx, tx, list) })
}

// add writes signals; one that is there stays as it is.
func (o *Outbox) add(ctx context.Context, tx *sql.Tx, list []notify.Signal) error {
	now := jobs.MicrosOf(time.Now()) // what happened long ago is taken now, too
	for i, s := range list {
		text, err := json.Marshal(s)
		if err != nil {
			return err
		}
		_, err = tx.ExecContext(ctx, `insert into notify_signals (key, due, facts)
			values ($1, $2, $3) on conflict (key) do nothing`, clean(s.Key),
			int64(now)+int64(i), clean(string(text)))
		if err != nil {
			return fmt.Errorf("notify_signals: %w", err)
		}
	}
	return nil
}

// clean returns a text that PostgreSQL takes.
func clean(s string) string {
	return strings.ToValidUTF8(strings.ReplaceAll(s, "\x00", "\uFFFD"), "\uFFFD")
}

func micros(t jobs.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return int64(jobs.MicrosOf(t.Time))
}

// each runs a query in a transaction.
func each(ctx context.Context, tx *sql.Tx, query string, args []any,
	f func(scan func(...any) error) error) error {
	rows, err := tx.QueryContext(ctx, query, args...)
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		if err := f(rows.Scan); err != nil {
			return err
		}
	}
	return rows.Err()
}
