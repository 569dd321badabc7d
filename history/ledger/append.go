package ledger

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"

	"muster/audit"
	"muster/history"
	"muster/jobs"
)

// Ledger is the audit log in the database of a history.
type Ledger struct{ h history.Handle }

// New returns the ledger of a history.
func New(s *history.Store) *Ledger { return &Ledger{history.HandleOf(s)} }

// Sign signs the leaf of an entry; nil: this server has no key.
type Sign func(leaf []byte) (string, error)

// Append adds entries in their order, all or none of them, and leaves out those that are there by
// their id already: an earlier call may have added them although its answer was lost.
func (l *Ledger) Append(ctx context.Context, list []audit.Draft, sign Sign) error {
	return l.h.Tx(ctx, "audit: add entries", func(tx *sql.Tx) error {
		a := adding{ctx: ctx, tx: tx, sign: sign, people: map[string]audit.Person{}}
		// The change of the row locks it until the end, so that no other server adds meanwhile.
		err := tx.QueryRowContext(ctx, "update audit_tree set size = size where one = 1 returning size").
			Scan(&a.size)
		if err != nil {
			return fmt.Errorf("audit_tree: %w", err)
		}
		fresh, err := a.fresh(list)
		if err != nil || len(fresh) == 0 {
			return err
		}
		return a.add(fresh)
	})
}

// adding is one call of Append.
type adding struct {
	ctx    context.Context
	tx     *sql.Tx
	sign   Sign
	size   int64
	people map[string]audit.Person // by name
}

// fresh returns the drafts that are not there yet.
func (a *adding) fresh(list []audit.Draft) ([]audit.Draft, error) {
	ids := make([]any, len(list))
	for i, d := range list {
		ids[i] = d.Entry.ID
	}
	known := map[string]bool{}
	err := each(a.ctx, a.tx, "select id from audit_entries where id in "+marks(1, len(ids)), ids,
		func(scan func(...any) error) error {
			var id string
			err := scan(&id)
			known[id] = true
			return err
		})
	if err != nil {
		return nil, fmt.Errorf("audit_entries: %w", err)
	}
	var out []audit.Draft
	for _, d := range list {
		if !known[d.Entry.ID] {
			known[d.Entry.ID] = true
			out = append(out, d)
		}
	}
	return out, nil
}

func (a *adding) add(list []audit.Draft) error {
	g := audit.Grow(a.size, func(places []int64) ([]audit.Hash, error) {
		return hashes(places, func(query string, args []any, f func(func(...any) error) error) error {
			return each(a.ctx, a.tx, query, args, f)
		})
	})
	first := g.First
	for _, d := range list {
		r, e, err := a.place(d, g.Size)
		if err != nil {
			return err
		}
		if err := a.entry(r, e); err != nil {
			return fmt.Errorf("audit_entries: %w", err)
		}
		if err := g.Add(audit.LeafHash([]byte(r.Leaf))); err != nil {
			return fmt.Errorf("audit_hashes: %w", err)
		}
	}
	if err := a.hashes(first, g.New); err != nil {
		return fmt.Errorf("audit_hashes: %w", err)
	}
	_, err := a.tx.ExecContext(a.ctx, "update audit_tree set size = $1 where one = 1", g.Size)
	return err
}

// place gives a draft its place, its person and its signature.
func (a *adding) place(d audit.Draft, seq int64) (audit.Record, audit.Entry, error) {
	p, err := a.person(d)
	if err != nil {
		return audit.Record{}, audit.Entry{}, fmt.Errorf("audit_names: %w", err)
	}
	r, e, err := d.Place(seq, p)
	if err == nil && a.sign != nil {
		r.Signature, err = a.sign([]byte(r.Leaf))
	}
	return r, e, err
}

// person returns the person of a draft's name, and keeps a new one.
func (a *adding) person(d audit.Draft) (audit.Person, error) {
	p, known := a.people[d.Name]
	if known || d.Name == "" {
		return p, nil
	}
	err := a.tx.QueryRowContext(a.ctx, "select ref, name, salt from audit_names where name = $1",
		d.Name).Scan(&p.Ref, &p.Name, &p.Salt)
	if errors.Is(err, sql.ErrNoRows) {
		p = audit.NewPerson(d.Name, d.NewName)
		_, err = a.tx.ExecContext(a.ctx, "insert into audit_names (ref, name, salt) values ($1, $2, $3)",
			p.Ref, p.Name, p.Salt)
	}
	if err == nil {
		a.people[d.Name] = p
	}
	return p, err
}

func (a *adding) entry(r audit.Record, e audit.Entry) error {
	_, err := a.tx.ExecContext(a.ctx, `insert into audit_entries (seq, id, leaf, signature, at, who,
		verb, object, ends, salt, origin, reason)
		values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12)`,
		r.Seq, e.ID, r.Leaf, r.Signature, int64(jobs.MicrosOf(e.At.Time)), e.Who, e.Verb, e.Object,
		endsOf(e), r.Salt, r.Private.From, r.Private.Reason)
	return err
}

func endsOf(e audit.Entry) string {
	if e.End == nil {
		return ""
	}
	return e.End.Of
}

// hashes keeps new hashes, many in a statement.
func (a *adding) hashes(first int64, list []audit.Hash) error {
	const most = 100
	for from := 0; from < len(list); from += most {
		part := list[from:min(from+most, len(list))]
		var text strings.Builder
		text.WriteString("insert into audit_hashes (place, hash) values ")
		args := make([]any, 0, 2*len(part))
		for i, h := range part {
			if i > 0 {
				text.WriteString(", ")
			}
			fmt.Fprintf(&text, "($%d, $%d)", 2*i+1, 2*i+2)
			args = append(args, first+int64(from+i), h[:])
		}
		if _, err := a.tx.ExecContext(a.ctx, text.String(), args...); err != nil {
			return err
		}
	}
	return nil
}

// marks returns so many parameters in brackets, from a number on.
func marks(first, n int) string {
	list := make([]string, n)
	for i := range list {
		list[i] = fmt.Sprintf("$%d", first+i)
	}
	return "(" + strings.Join(list, ", ") + ")"
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

// hashes reads stored hashes by their places, with a query.
func hashes(places []int64, query func(string, []any, func(func(...any) error) error) error) (
	[]audit.Hash, error) {
	args, at := make([]any, len(places)), map[int64]int{}
	for i, p := range places {
		args[i], at[p] = p, i
	}
	out, found := make([]audit.Hash, len(places)), 0
	err := query("select place, hash from audit_hashes where place in "+marks(1, len(args)), args,
		func(scan func(...any) error) error {
			var place int64
			var h []byte
			if err := scan(&place, &h); err != nil {
				return err
			}
			if len(h) != len(audit.Hash{}) {
				return fmt.Errorf("hash %d has %d bytes", place, len(h))
			}
			copy(out[at[place]][:], h)
			found++
			return nil
		})
	if err == nil && found != len(at) {
		err = fmt.Errorf("%w: %d of %d hashes are missing", ErrHashes, len(at)-found, len(at))
	}
	return out, err
}

// ErrHashes says that stored hashes of the tree are missing.
var ErrHashes = errors.New("the tree is damaged")
