package ledger

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"
	"time"

	"muster/audit"
	"muster/history"
	"muster/jobs"
)

// ErrNotFound says that there is no such entry, name or checkpoint.
var ErrNotFound = errors.New("there is none")

// A Filter picks entries. A field that is empty picks all.
type Filter struct {
	Who        string // name, or reference
	Verb       string // a star at its end stands for any rest
	Object     string // the same
	From, To   time.Time
	Before     int64 // only entries before this one; 0: all
	Outcomes   bool  // also the entries that say how a request ended
	ID         string
	EntriesMax int
}

// Row is an entry with its record.
type Row struct {
	audit.Entry
	Record audit.Record
	Ended  *audit.End // of an order; nil: its outcome is not known
}

const columns = `select e.seq, e.leaf, e.signature, e.id, e.at, e.who, e.verb, e.object, e.ends,
	e.salt, e.origin, e.reason, n.name, n.salt from audit_entries e
	left join audit_names n on n.ref = e.who`

// Page returns entries, the newest first, each order with its outcome.
func (l *Ledger) Page(ctx context.Context, f Filter) ([]Row, error) {
	where, args := f.where()
	list, err := l.rows(ctx, fmt.Sprintf("%s where %s order by e.seq desc limit %d", columns, where,
		max(1, f.EntriesMax)), args)
	if err != nil || len(list) == 0 {
		return list, err
	}
	return list, l.addEnds(ctx, list)
}

func (f Filter) where() (string, []any) {
	list, args := []string{"1 = 1"}, []any(nil)
	add := func(text string, value any) {
		args = append(args, value)
		list = append(list, fmt.Sprintf(text, len(args)))
	}
	like := func(column, text string) {
		if head, star := strings.CutSuffix(text, "*"); star {
			add("substr(e."+column+", 1, "+fmt.Sprint(len([]rune(head)))+") = $%d", head)
		} else if text != "" {
			add("e."+column+" = $%d", text)
		}
	}
	if f.Who != "" {
		args = append(args, f.Who)
		n := len(args)
		list = append(list, fmt.Sprintf("(e.who in (select ref from audit_names where name = $%d) "+
			"or e.who = $%d)", n, n))
	}
	like("verb", f.Verb)
	like("object", f.Object)
	if !f.From.IsZero() {
		add("e.at >= $%d", int64(jobs.MicrosOf(f.From)))
	}
	if !f.To.IsZero() {
		add("e.at < $%d", int64(jobs.MicrosOf(f.To)))
	}
	if f.Before > 0 {
		add("e.seq < $%d", f.Before)
	}
	if f.ID != "" {
		add("e.id = $%d", f.ID)
	}
	if !f.Outcomes {
		list = append(list, "e.ends = ''")
	}
	return strings.Join(list, " and "), args
}

func (l *Ledger) rows(ctx context.Context, query string, args []any) (list []Row, err error) {
	err = l.h.Rows(ctx, "audit: read entries", query, args, func(scan func(...any) error) error {
		r, err := rowOf(scan)
		list = append(list, r)
		return err
	})
	return list, err
}

// rowOf reads a row. A leaf that cannot be read is left to who examines it.
func rowOf(scan func(...any) error) (Row, error) {
	var r Row
	var c copied
	var name, salt sql.NullString
	rec := &r.Record
	err := scan(&rec.Seq, &rec.Leaf, &rec.Signature, &c.id, &c.at, &c.who, &c.verb, &c.object, &c.ends,
		&rec.Salt, &rec.Private.From, &rec.Private.Reason, &name, &salt)
	if err != nil {
		return r, err
	}
	if name.Valid {
		rec.Person = &audit.Person{Ref: c.who, Name: name.String, Salt: salt.String}
	}
	e, err := audit.Parse([]byte(rec.Leaf))
	if err != nil {
		r.Entry = audit.Entry{Seq: rec.Seq, Verb: "damaged", Object: c.object}
		return r, nil
	}
	r.Entry, rec.Odd = e, c.differs(e)
	return r, nil
}

// copied has the columns that repeat what is in the leaf.
type copied struct {
	id                      string
	at                      int64
	who, verb, object, ends string
}

// differs names the first column that says something else than the leaf.
func (c copied) differs(e audit.Entry) string {
	for _, one := range []struct {
		name string
		same bool
	}{{"id", c.id == e.ID}, {"at", c.at == int64(jobs.MicrosOf(e.At.Time))}, {"who", c.who == e.Who},
		{"verb", c.verb == e.Verb}, {"object", c.object == e.Object}, {"ends", c.ends == endsOf(e)}} {
		if !one.same {
			return one.name
		}
	}
	return ""
}

// addEnds adds to orders how they ended.
func (l *Ledger) addEnds(ctx context.Context, list []Row) error {
	at, ids := map[string]int{}, []any(nil)
	for i, r := range list {
		if r.Kind == audit.KindOrder {
			at[r.ID] = i
			ids = append(ids, r.ID)
		}
	}
	if len(ids) == 0 {
		return nil
	}
	ends, err := l.rows(ctx, columns+" where e.ends in "+marks(1, len(ids)), ids)
	for _, r := range ends {
		if i, known := at[endsOf(r.Entry)]; known {
			list[i].Ended = r.End
		}
	}
	return err
}

// Entry returns one entry.
func (l *Ledger) Entry(ctx context.Context, seq int64) (Row, error) {
	list, err := l.rows(ctx, columns+" where e.seq = $1", []any{seq})
	if err != nil {
		return Row{}, err
	}
	if len(list) == 0 {
		return Row{}, fmt.Errorf("entry %d: %w", seq, ErrNotFound)
	}
	if err := l.addEnds(ctx, list); err != nil {
		return Row{}, err
	}
	h, err := l.leafHashes(ctx, seq, seq+1)
	list[0].Record.Hash = h[seq]
	return list[0], err
}

// chunk is the number of entries that Each reads at a time.
const chunk = 500

// Each calls f for each entry from one on, in their order, until before; 0: to the end. For a place
// in the tree without an entry it calls f with a record that has only the stored hash.
func (l *Ledger) Each(ctx context.Context, from, before int64, f func(audit.Record) error) error {
	end, err := l.end(ctx)
	if err != nil {
		return err
	}
	if before > 0 {
		end = min(end, before)
	}
	for ; from < end; from += chunk {
		to := min(from+chunk, end)
		list, err := l.rows(ctx, columns+" where e.seq >= $1 and e.seq < $2 order by e.seq",
			[]any{from, to})
		if err != nil {
			return err
		}
		stored, err := l.leafHashes(ctx, from, to)
		if err != nil {
			return err
		}
		for seq := from; seq < to; seq++ {
			r := audit.Record{Seq: seq, Hash: stored[seq]}
			if len(list) > 0 && list[0].Record.Seq == seq {
				r, list = list[0].Record, list[1:]
				r.Hash = stored[seq]
			}
			if r.Leaf == "" && r.Hash == "" {
				continue
			}
			if err := f(r); err != nil {
				return err
			}
		}
	}
	return nil
}

// end returns the number behind the last entry or the last hash.
func (l *Ledger) end(ctx context.Context) (end int64, err error) {
	err = l.h.Rows(ctx, "audit: read entries", `select coalesce(max(seq) + 1, 0), (select size from
		audit_tree) from audit_entries`, nil, func(scan func(...any) error) error {
		var size sql.NullInt64
		err := scan(&end, &size)
		end = max(end, size.Int64)
		return err
	})
	return end, err
}

// leafHashes returns the stored hashes of leaves, those that are there.
func (l *Ledger) leafHashes(ctx context.Context, from, to int64) (map[int64]string, error) {
	at, args := map[int64]int64{}, []any(nil)
	for seq := from; seq < to; seq++ {
		at[audit.LeafPlace(seq)] = seq
		args = append(args, audit.LeafPlace(seq))
	}
	out := map[int64]string{}
	err := l.h.Rows(ctx, "audit: read hashes", "select place, hash from audit_hashes where place in "+
		marks(1, len(args)), args, func(scan func(...any) error) error {
		var place int64
		var data []byte
		if err := scan(&place, &data); err != nil {
			return err
		}
		var h audit.Hash
		if copy(h[:], data) == len(h) {
			out[at[place]] = h.String()
		}
		return nil
	})
	return out, err
}

// Hashes reads stored hashes, for proofs.
func (l *Ledger) Hashes(ctx context.Context) audit.HashReader {
	return func(places []int64) ([]audit.Hash, error) {
		return hashes(places, func(query string, args []any, f func(func(...any) error) error) error {
			return l.h.Rows(ctx, "audit: read hashes", query, args, f)
		})
	}
}

// Size returns the number of entries, as the tree has them.
func (l *Ledger) Size(ctx context.Context) (size int64, err error) {
	found := false
	err = l.h.Rows(ctx, "audit: size", "select size from audit_tree where one = 1", nil,
		func(scan func(...any) error) error {
			found = true
			return scan(&size)
		})
	if err == nil && !found {
		err = fmt.Errorf("audit_tree has no row: %w", ErrHashes)
	}
	return size, err
}

// PersonNamed returns the person of a name.
func (l *Ledger) PersonNamed(ctx context.Context, name string) (p audit.Person, err error) {
	err = l.h.Rows(ctx, "audit: read names", `select ref, name, salt from audit_names where name = $1
		or ref = $1`, []any{name}, func(scan func(...any) error) error {
		return scan(&p.Ref, &p.Name, &p.Salt)
	})
	if err == nil && p.Ref == "" {
		err = fmt.Errorf("no entry names %q: %w", name, ErrNotFound)
	}
	return p, err
}

// Erase takes a name away, with the reasons and addresses of that person's entries.
func (l *Ledger) Erase(ctx context.Context, ref string) error {
	return l.h.Exec(ctx, "audit: erase a name",
		history.Statement{Text: "update audit_names set name = '', salt = '' where ref = $1",
			Args: []any{ref}},
		history.Statement{Text: erase + "who = $1", Args: []any{ref}})
}

// EraseEntry takes reason and address of one entry away.
func (l *Ledger) EraseEntry(ctx context.Context, seq int64) error {
	return l.h.Exec(ctx, "audit: erase a reason",
		history.Statement{Text: erase + "seq = $1", Args: []any{seq}})
}

const erase = "update audit_entries set salt = '', origin = '', reason = '' where "
