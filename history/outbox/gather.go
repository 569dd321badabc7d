package outbox

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"muster/jobs"
	"muster/notify"
)

const (
	// signalsMax bounds the signals of a round.
	signalsMax = 500
	// patience is the time for which the end of a task waits until history has all its jobs; the
	// streams of other zones may lag behind.
	patience = time.Minute
	lookSoon = time.Second
	// waitingMax bounds the messages that wait for one receiver.
	waitingMax = 10_000
)

// A Round has what one round of gathering needs.
type Round struct {
	Rules *notify.Rules
	Base  string // begins the addresses of pages; empty: there are none
	Now   time.Time
}

// Gather sorts new signals into groups, and writes the messages of the groups that are due, all in
// one transaction. It reports whether there may be more to do at once.
func (o *Outbox) Gather(ctx context.Context, r Round) (more bool, err error) {
	now := int64(jobs.MicrosOf(r.Now))
	idle := true // most rounds find nothing, and a transaction that writes would hold up history
	err = o.h.Rows(ctx, "notify: look", `select 1 from notify_signals where taken = 0 and due <= $1
		union all select 1 from notify_groups where due <= $1 limit 1`, []any{now},
		func(scan func(...any) error) error {
			idle = false
			var one int
			return scan(&one)
		})
	if err != nil || idle {
		return false, err
	}
	err = o.h.Tx(ctx, "notify: gather", func(tx *sql.Tx) error {
		// A server that has just lost the duty may be at it, too: the row lets one go first.
		if err := (book{ctx, tx, now}).SetState("gathering", ""); err != nil {
			return err
		}
		g := gathering{ctx: ctx, tx: tx, Round: r, full: map[string]int{}}
		g.desk = &notify.Desk{Rules: r.Rules, Book: book{ctx, tx, now}, Now: r.Now}
		n, err := g.signals()
		if err == nil {
			err = g.groups()
		}
		more = n == signalsMax
		return err
	})
	return more, err
}

// gathering is one round.
type gathering struct {
	ctx context.Context
	tx  *sql.Tx
	Round
	desk *notify.Desk
	full map[string]int // messages that wait, by receiver
}

func (g *gathering) signals() (int, error) {
	now := int64(jobs.MicrosOf(g.Now))
	var list []notify.Signal
	err := each(g.ctx, g.tx, fmt.Sprintf(`select facts from notify_signals where taken = 0 and
		due <= $1 order by due, key limit %d`, signalsMax), []any{now},
		func(scan func(...any) error) error {
			var text string
			if err := scan(&text); err != nil {
				return err
			}
			var s notify.Signal
			if err := json.Unmarshal([]byte(text), &s); err != nil {
				return err
			}
			list = append(list, s)
			return nil
		})
	if err != nil {
		return 0, fmt.Errorf("notify_signals: %w", err)
	}
	for _, s := range list {
		whole, err := g.complete(&s)
		if err != nil {
			return 0, err
		}
		text, arg := "update notify_signals set taken = $2 where key = $1", now
		if !whole {
			text, arg = "update notify_signals set due = $2 where key = $1",
				int64(jobs.MicrosOf(g.Now.Add(lookSoon)))
		} else if err := g.desk.Take(s); err != nil {
			return 0, err
		}
		if _, err := g.tx.ExecContext(g.ctx, text, clean(s.Key), arg); err != nil {
			return 0, fmt.Errorf("notify_signals: %w", err)
		}
	}
	return len(list), nil
}

// complete adds what history knows of the task of a signal. It reports false if a task has ended
// whose jobs are not all in history yet.
func (g *gathering) complete(s *notify.Signal) (bool, error) {
	if s.Task == "" {
		return true, nil
	}
	var total int
	err := g.tx.QueryRowContext(g.ctx, `select runbook, operator, schedule, target, total from tasks
		where id = $1`, string(s.Task)).Scan(&s.Runbook, &s.Operator, &s.Schedule, &s.On, &total)
	if err != nil && !errors.Is(err, sql.ErrNoRows) {
		return false, fmt.Errorf("tasks: %w", err)
	}
	if s.What != notify.TaskEnded {
		return true, nil
	}
	known := 0
	err = each(g.ctx, g.tx, `select customer, outcome, count(*) from jobs where task = $1
		group by customer, outcome order by customer, outcome`, []any{string(s.Task)},
		func(scan func(...any) error) error {
			var c notify.Count
			err := scan(&c.Customer, &c.Outcome, &c.Hosts.Count)
			s.Counts, known = append(s.Counts, c), known+c.Hosts.Count
			return err
		})
	if err != nil {
		return false, fmt.Errorf("jobs: %w", err)
	}
	if known < total {
		if g.Now.Sub(s.At.Time) < patience {
			return false, nil
		}
		s.Counts = append(s.Counts, notify.Count{Hosts: notify.Hosts{Count: total - known}})
	}
	return true, g.names(s)
}

// names adds hosts on which the jobs of a task did not succeed.
func (g *gathering) names(s *notify.Signal) error {
	for i := range s.Counts {
		c := &s.Counts[i]
		if c.Outcome == jobs.Succeeded || c.Outcome == "" {
			continue
		}
		names := notify.Hosts{}
		err := each(g.ctx, g.tx, `select host from jobs where task = $1 and outcome = $2 and
			customer = $3 order by host limit 10`, []any{string(s.Task), string(c.Outcome), c.Customer},
			func(scan func(...any) error) error {
				var host string
				err := scan(&host)
				names.Add(host)
				return err
			})
		if err != nil {
			return fmt.Errorf("jobs: %w", err)
		}
		c.Hosts.Names = names.Names
	}
	return nil
}

// groups writes the groups that the round has changed, and the messages of those that are due.
func (g *gathering) groups() error {
	list := g.desk.Touched()
	known := map[[2]string]bool{}
	for _, o := range list {
		known[[2]string{o.Rule, o.Name}] = true
	}
	due, err := openGroups(g.ctx, g.tx, "due <= $1 order by due limit 500",
		int64(jobs.MicrosOf(g.Now)))
	if err != nil {
		return err
	}
	for _, o := range due {
		if !known[[2]string{o.Rule, o.Name}] {
			list = append(list, o)
		}
	}
	for _, o := range list {
		if o.Due.After(g.Now) {
			err = g.keep(o)
		} else {
			err = g.close(o)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (g *gathering) keep(o *notify.Open) error {
	text, err := json.Marshal(o)
	if err != nil {
		return err
	}
	_, err = g.tx.ExecContext(g.ctx, `insert into notify_groups (rule, name, task, due, facts)
		values ($1, $2, $3, $4, $5) on conflict (rule, name) do update set due = excluded.due,
		facts = excluded.facts`, o.Rule, clean(o.Name), string(o.Task), micros(o.Due),
		clean(string(text)))
	return wrap("notify_groups", err)
}

// close writes the messages of a group, one for each receiver of its rule. A rule that is there no
// more tells nobody.
func (g *gathering) close(o *notify.Open) error {
	for _, r := range g.Rules.Rules() {
		if r.Name != o.Rule || len(o.Items) == 0 {
			continue
		}
		for _, to := range r.To {
			m := o.Message(to, g.Base, g.Now)
			if err := g.deliver(Delivery{ID: m.ID, Receiver: to, Rule: o.Rule, Whats: o.Kinds(),
				Tasks: o.Tasks, Title: m.Title, Body: string(m.JSON())}); err != nil {
				return err
			}
		}
	}
	_, err := g.tx.ExecContext(g.ctx, "delete from notify_groups where rule = $1 and name = $2",
		o.Rule, clean(o.Name))
	return wrap("notify_groups", err)
}

func (g *gathering) deliver(d Delivery) error {
	n, asked := g.full[d.Receiver]
	if !asked {
		err := g.tx.QueryRowContext(g.ctx, `select count(*) from notify_deliveries where
			state = 'waiting' and receiver = $1`, d.Receiver).Scan(&n)
		if err != nil {
			return wrap("notify_deliveries", err)
		}
	}
	d.State, d.Created, d.Next = Waiting, g.Now, g.Now
	if n >= waitingMax {
		d.State, d.Error = Expired, fmt.Sprintf("%d messages wait for this receiver: no more are kept",
			waitingMax)
	}
	g.full[d.Receiver] = n + 1
	return insert(g.ctx, g.tx, d)
}

// book answers the questions of a desk from the tables.
type book struct {
	ctx context.Context
	tx  *sql.Tx
	now int64
}

// State implements notify.Book.
func (b book) State(name string) (string, error) {
	var state string
	err := b.tx.QueryRowContext(b.ctx, "select state from notify_states where name = $1",
		clean(name)).Scan(&state)
	if errors.Is(err, sql.ErrNoRows) {
		return "", nil
	}
	return state, wrap("notify_states", err)
}

// SetState implements notify.Book.
func (b book) SetState(name, state string) error {
	_, err := b.tx.ExecContext(b.ctx, `insert into notify_states (name, state, at)
		values ($1, $2, $3) on conflict (name) do update set state = excluded.state, at = excluded.at`,
		clean(name), state, b.now)
	return wrap("notify_states", err)
}

// Group implements notify.Book.
func (b book) Group(rule, name string) (*notify.Open, error) {
	list, err := openGroups(b.ctx, b.tx, "rule = $1 and name = $2", rule, clean(name))
	if err != nil || len(list) == 0 {
		return nil, err
	}
	return list[0], nil
}

// OfTask implements notify.Book.
func (b book) OfTask(id jobs.TaskID) ([]*notify.Open, error) {
	return openGroups(b.ctx, b.tx, "task = $1", string(id))
}

func openGroups(ctx context.Context, tx *sql.Tx, where string, args ...any) (out []*notify.Open,
	err error) {
	err = each(ctx, tx, "select facts from notify_groups where "+where, args,
		func(scan func(...any) error) error {
			var text string
			if err := scan(&text); err != nil {
				return err
			}
			var o notify.Open
			err := json.Unmarshal([]byte(text), &o)
			out = append(out, &o)
			return err
		})
	return out, wrap("notify_groups", err)
}

func wrap(table string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s: %w", table, err)
}
