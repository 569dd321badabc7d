package outbox

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"muster/history"
	"muster/jobs"
	"muster/notify"
)

// The states of a delivery.
const (
	Waiting   = "waiting"
	Delivered = "delivered"
	Gone      = "gone"    // the receiver says that it wants none any more
	Expired   = "expired" // it was given up
)

// States lists the states.
func States() []string { return []string{Waiting, Delivered, Gone, Expired} }

// A Delivery is a message to one receiver.
type Delivery struct {
	ID       string
	Receiver string
	Rule     string
	Whats    string // kinds of happenings, between commas
	State    string
	Created  time.Time
	Next     time.Time // of the next try
	Tries    int
	At       time.Time // of the last try; zero: there was none
	Error    string    // of the last try
	Tasks    notify.Tasks
	Title    string
	Body     string // JSON of a notify.Message
}

const columns = "id, receiver, rule, whats, state, created, next, tries, at, error, tasks, " +
	"title, body"

func insert(ctx context.Context, tx *sql.Tx, d Delivery) error {
	tasks, err := json.Marshal(d.Tasks)
	if err != nil {
		return err
	}
	_, err = tx.ExecContext(ctx, "insert into notify_deliveries ("+columns+`) values ($1, $2, $3, $4,
		$5, $6, $7, 0, 0, $8, $9, $10, $11) on conflict (id) do nothing`, d.ID, d.Receiver, d.Rule,
		d.Whats, d.State, int64(jobs.MicrosOf(d.Created)), int64(jobs.MicrosOf(d.Next)), d.Error,
		string(tasks), clean(d.Title), clean(d.Body))
	return wrap("notify_deliveries", err)
}

// Add writes a message that comes from no signal.
func (o *Outbox) Add(ctx context.Context, d Delivery) error {
	return o.h.Tx(ctx, "notify: add a message", func(tx *sql.Tx) error { return insert(ctx, tx, d) })
}

func scanDelivery(scan func(...any) error) (d Delivery, err error) {
	var created, next, at int64
	var tasks string
	err = scan(&d.ID, &d.Receiver, &d.Rule, &d.Whats, &d.State, &created, &next, &d.Tries, &at,
		&d.Error, &tasks, &d.Title, &d.Body)
	if err != nil {
		return d, err
	}
	d.Created, d.Next = jobs.Micros(created).Time(), jobs.Micros(next).Time()
	if at != 0 {
		d.At = jobs.Micros(at).Time()
	}
	return d, json.Unmarshal([]byte(tasks), &d.Tasks)
}

func (o *Outbox) read(ctx context.Context, rest string, args ...any) (list []Delivery, err error) {
	err = o.h.Rows(ctx, "notify: read messages", "select "+columns+" from notify_deliveries "+rest,
		args, func(scan func(...any) error) error {
			d, err := scanDelivery(scan)
			list = append(list, d)
			return err
		})
	return list, err
}

// Due returns messages to a receiver that are to be tried now, the longest due first.
func (o *Outbox) Due(ctx context.Context, receiver string, now time.Time, most int) ([]Delivery,
	error) {
	return o.read(ctx, fmt.Sprintf(`where state = 'waiting' and receiver = $1 and next <= $2
		order by next, id limit %d`, most), receiver, int64(jobs.MicrosOf(now)))
}

// A Tried says how a try ended.
type Tried struct {
	ID    string
	State string
	At    time.Time
	Next  time.Time // of a message that waits
	Error string
	// Told is written with it; nil: nothing is.
	Told *notify.Signal
}

// Keep writes how tries ended.
func (o *Outbox) Keep(ctx context.Context, list ...Tried) error {
	if len(list) == 0 {
		return nil
	}
	return o.h.Tx(ctx, "notify: keep tries", func(tx *sql.Tx) error {
		for _, t := range list {
			_, err := tx.ExecContext(ctx, `update notify_deliveries set state = $1, at = $2, next = $3,
				error = $4, tries = tries + 1 where id = $5 and state = 'waiting'`, t.State,
				int64(jobs.MicrosOf(t.At)), int64(jobs.MicrosOf(t.Next)), clean(t.Error), t.ID)
			if err == nil && t.Told != nil {
				err = o.add(ctx, tx, []notify.Signal{*t.Told})
			}
			if err != nil {
				return wrap("notify_deliveries", err)
			}
		}
		return nil
	})
}

// Orphans gives up the messages to receivers that are there no more.
func (o *Outbox) Orphans(ctx context.Context, r *notify.Rules, now time.Time) error {
	names, err := o.receivers(ctx)
	if err != nil {
		return err
	}
	for _, name := range names {
		if _, known := r.Receiver(name); known {
			continue
		}
		err := o.h.Exec(ctx, "notify: give up", history.Statement{
			Text: `update notify_deliveries set state = 'expired', at = $1,
				error = 'there is no receiver of this name any more' where state = 'waiting' and
				receiver = $2`, Args: []any{int64(jobs.MicrosOf(now)), name}})
		if err != nil {
			return err
		}
	}
	return nil
}

func (o *Outbox) receivers(ctx context.Context) (names []string, err error) {
	err = o.h.Rows(ctx, "notify: receivers", `select distinct receiver from notify_deliveries where
		state = 'waiting'`, nil, func(scan func(...any) error) error {
		var name string
		err := scan(&name)
		names = append(names, name)
		return err
	})
	return names, err
}

// A Filter picks messages.
type Filter struct {
	State, Receiver string
	Before          string // id of a message: only those that are older
	Most            int
}

// List returns messages, the newest first.
func (o *Outbox) List(ctx context.Context, f Filter) ([]Delivery, error) {
	var where []string
	var args []any
	add := func(text string, arg any) {
		args = append(args, arg)
		where = append(where, strings.ReplaceAll(text, "?", fmt.Sprintf("$%d", len(args))))
	}
	if f.State != "" {
		add("state = ?", f.State)
	}
	if f.Receiver != "" {
		add("receiver = ?", f.Receiver)
	}
	if f.Before != "" {
		add("(created, id) < (select created, id from notify_deliveries where id = ?)", f.Before)
	}
	rest := ""
	if len(where) > 0 {
		rest = "where " + strings.Join(where, " and ")
	}
	return o.read(ctx, fmt.Sprintf("%s order by created desc, id desc limit %d", rest, f.Most),
		args...)
}

// ErrNotFound says that there is no such message.
var ErrNotFound = errors.New("there is no such message")

// Get returns one message.
func (o *Outbox) Get(ctx context.Context, id string) (Delivery, error) {
	list, err := o.read(ctx, "where id = $1", id)
	if err == nil && len(list) == 0 {
		err = ErrNotFound
	}
	if err != nil {
		return Delivery{}, err
	}
	return list[0], nil
}

// A Tally counts the messages to a receiver.
type Tally struct {
	Receiver, State string
	Count           int
	Oldest          time.Time
}

// Tallies counts the messages that are kept, by receiver and state.
func (o *Outbox) Tallies(ctx context.Context) (list []Tally, err error) {
	err = o.h.Rows(ctx, "notify: count", `select receiver, state, count(*), min(created) from
		notify_deliveries group by receiver, state order by receiver, state`, nil,
		func(scan func(...any) error) error {
			var t Tally
			var oldest int64
			err := scan(&t.Receiver, &t.State, &t.Count, &oldest)
			t.Oldest = jobs.Micros(oldest).Time()
			list = append(list, t)
			return err
		})
	return list, err
}

// How long things are kept.
const (
	keepSignals    = 48 * time.Hour
	keepDeliveries = 14 * 24 * time.Hour
	keepStates     = 365 * 24 * time.Hour
	keepCount      = 100_000 // messages that do not wait any more
	keepUntaken    = 24 * time.Hour
)

// Forget deletes what is too old. It returns the number of signals that nobody has taken in time,
// because no rules could be read.
func (o *Outbox) Forget(ctx context.Context, now time.Time) (lost int64, err error) {
	before := func(d time.Duration) int64 { return int64(jobs.MicrosOf(now.Add(-d))) }
	err = o.h.Tx(ctx, "notify: forget", func(tx *sql.Tx) error {
		r, err := tx.ExecContext(ctx, "delete from notify_signals where taken = 0 and due < $1",
			before(keepUntaken))
		if err != nil {
			return err
		}
		if lost, err = r.RowsAffected(); err != nil {
			return err
		}
		for _, one := range []history.Statement{
			{Text: "delete from notify_signals where taken > 0 and taken < $1",
				Args: []any{before(keepSignals)}},
			{Text: "delete from notify_deliveries where state <> 'waiting' and created < $1",
				Args: []any{before(keepDeliveries)}},
			{Text: "delete from notify_states where at < $1", Args: []any{before(keepStates)}},
			{Text: fmt.Sprintf(`delete from notify_deliveries where state <> 'waiting' and created <
				coalesce((select created from notify_deliveries where state <> 'waiting'
				order by created desc limit 1 offset %d), 0)`, keepCount)},
		} {
			if _, err := tx.ExecContext(ctx, one.Text, one.Args...); err != nil {
				return err
			}
		}
		return nil
	})
	return lost, err
}
