package sessions

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"muster/access"
	"muster/internal/serverkey"
	"muster/jobs"
	"muster/jobs/queue"
	"muster/server/idp"
	"muster/server/tokens"
	"muster/server/web"
)

// Store keeps the texts of records by id, and one about the last use of each session.
type Store interface {
	AddSession(ctx context.Context, id, record string) error
	SessionRecord(ctx context.Context, id string) (record, used string, err error)
	SessionRecords(ctx context.Context) (records, uses map[string]string, err error)
	DropSession(ctx context.Context, ids ...string) (bool, error)
	NoteSessionUse(ctx context.Context, id, text string) error
}

// Tokens knows the tokens by which sessions are begun.
type Tokens interface {
	Held(ctx context.Context, id string) (tokens.Record, error)
	ScopeOf(r tokens.Record) (*access.Scope, error)
}

// A Book has the sessions of an installation. Several goroutines may use it.
type Book struct {
	store  Store
	tokens Tokens
	keys   func() (serverkey.Keys, error)
	now    func() time.Time

	mu    sync.Mutex
	noted map[string]time.Time // the use of each session that this server has noted last
}

// NewBook returns the book in a store. keys reads the key of servers.
func NewBook(store Store, t Tokens, keys func() (serverkey.Keys, error),
	now func() time.Time) *Book {
	return &Book{store: store, tokens: t, keys: keys, now: now, noted: map[string]time.Time{}}
}

// errKeyless is the error of a server without the key that was asked for a session.
var errKeyless = errors.New("this server has no key, so sessions that it begins would prove " +
	"nobody: call `muster init` on its machine, copy the key to each server, and start them again")

// usable returns the keys of the server, of which there is at least one.
func (b *Book) usable() (serverkey.Keys, error) {
	keys, err := b.keys()
	if err == nil && keys.None() {
		err = errKeyless
	}
	return keys, err
}

// add stores the record of something that begins now and ends after life, or with what it was begun
// by, which ends at until (zero: it does not). add removes what has ended.
func (b *Book) add(ctx context.Context, r Record, life time.Duration, until time.Time) (
	Record, string, error) {
	keys, err := b.usable()
	if err != nil {
		return Record{}, "", err
	}
	if err := b.sweep(ctx, keys, r.Owner); err != nil {
		return Record{}, "", err
	}
	now := b.now()
	end := now.Add(life)
	if !until.IsZero() && until.Before(end) {
		end = until
	}
	r.Created, r.Expires = jobs.Time{Time: now}, jobs.Time{Time: end}
	r, secret := newRecord(r)
	text, err := r.text(keys)
	if err != nil {
		return Record{}, "", err
	}
	return r, secret, b.store.AddSession(ctx, r.ID, text)
}

// ownerMax bounds the sessions and links of an owner: a new one ends the oldest.
const ownerMax = 50

// sweep removes the records that have ended, or that no server wrote, and the oldest ones of an
// owner who has too many.
func (b *Book) sweep(ctx context.Context, keys serverkey.Keys, owner string) error {
	all, err := b.all(ctx, keys)
	if err != nil {
		return err
	}
	var gone []string
	var own []Kept
	for _, k := range all {
		switch {
		case k.Wrong != "" || k.Record.holds(k.Used, b.now()) != nil:
			gone = append(gone, k.field)
		case k.Owner == owner:
			own = append(own, k)
		}
	}
	slices.SortFunc(own, func(a, b Kept) int { return a.Created.Compare(b.Created.Time) })
	for i := 0; i+ownerMax <= len(own); i++ {
		gone = append(gone, own[i].field)
	}
	_, err = b.store.DropSession(ctx, gone...)
	return err
}

// A Kept is a record as it is listed.
type Kept struct {
	Record
	Used  time.Time // within a minute
	Wrong string    // why it proves nobody; empty: it does
	field string    // in Redis
}

// all returns all records, in the order of their beginning. Those that do not hold are last.
func (b *Book) all(ctx context.Context, keys serverkey.Keys) ([]Kept, error) {
	texts, uses, err := b.store.SessionRecords(ctx)
	if err != nil {
		return nil, err
	}
	var out []Kept
	for id, text := range texts {
		out = append(out, kept(keys, id, text, uses[id]))
	}
	slices.SortFunc(out, func(a, b Kept) int {
		return cmp.Or(cmp.Compare(a.Wrong, b.Wrong), a.Created.Compare(b.Created.Time),
			cmp.Compare(a.ID, b.ID))
	})
	return out, nil
}

// kept reads a record of any kind.
func kept(keys serverkey.Keys, id, text, used string) Kept {
	var wrong error
	for _, kind := range []Kind{Browser, Program, Link, Code} {
		r, err := open(keys, kind, id, text)
		if err == nil {
			return Kept{Record: r, Used: r.usedAt(keys, used), field: id}
		}
		wrong = err
	}
	k := Kept{Wrong: wrong.Error(), field: id}
	if isID(id) {
		k.ID = id
	}
	return k
}

// read returns a record whose secret somebody shows, and when it was used last. The error is a
// *Refusal, or Redis is away.
func (b *Book) read(ctx context.Context, kind Kind, text string) (Record, time.Time, error) {
	id, secret, whole := split(text)
	if !whole {
		return Record{}, time.Time{}, unknown
	}
	r, used, err := b.byID(ctx, kind, id)
	if err == nil && !r.matches(secret) {
		err = unknown // the same words as for an unknown id: nobody shall learn which ids there are
	}
	if err == nil {
		err = r.holds(used, b.now())
	}
	return r, used, err
}

func (b *Book) byID(ctx context.Context, kind Kind, id string) (Record, time.Time, error) {
	keys, err := b.usable()
	if err != nil {
		return Record{}, time.Time{}, &Refusal{Forged, err.Error()}
	}
	text, used, err := b.store.SessionRecord(ctx, id)
	if errors.Is(err, queue.ErrNotFound) {
		return Record{}, time.Time{}, unknown
	}
	if err != nil {
		return Record{}, time.Time{}, err
	}
	r, err := open(keys, kind, id, text)
	return r, r.usedAt(keys, used), err
}

// Find returns the caller who shows the secret of a session with a request, and notes its use. The
// error is a *Refusal, or Redis is away.
func (b *Book) Find(req *http.Request, kind Kind, text string) (web.Caller, error) {
	ctx := req.Context()
	r, _, err := b.read(ctx, kind, text)
	if err == nil && kind == Browser {
		err = r.boundTo(userOf(req))
	}
	if err != nil {
		return web.Caller{}, err
	}
	who := web.Caller{Name: r.Owner, Session: r.ID, Groups: r.Groups, Until: r.Expires.Time}
	if who.Scope, err = b.origin(ctx, r); err != nil {
		return web.Caller{}, err
	}
	if now := b.now(); b.isNew(r.ID, now) {
		if keys, err := b.usable(); err == nil {
			// A session holds whether or not its use could be noted.
			_ = b.store.NoteSessionUse(ctx, r.ID, useText(keys, r.ID, now))
		}
	}
	return who, nil
}

// origin checks that what began a session holds still, and returns the scope that it has.
func (b *Book) origin(ctx context.Context, r Record) (*access.Scope, error) {
	if r.Parent != "" {
		p, used, err := b.byID(ctx, Program, r.Parent)
		if err == nil {
			err = p.holds(used, b.now())
		}
		if err != nil {
			return nil, endedWith("session", err)
		}
	}
	if r.Token == "" {
		return nil, nil
	}
	t, err := b.tokens.Held(ctx, r.Token)
	if err != nil {
		return nil, endedWith("token", err)
	}
	return b.tokens.ScopeOf(t)
}

// endedWith returns the refusal of a session that has ended with what it was begun by.
func endedWith(what string, err error) error {
	var session *Refusal
	var token *tokens.Refusal
	if errors.As(err, &session) || errors.As(err, &token) {
		return &Refusal{Ended, fmt.Sprintf("this session ended with the %s by which it was begun: %s",
			what, err)}
	}
	return err
}

// boundTo says that a session is in other hands than those of the user who got it. uid returns the
// user whose program calls over plain loopback; nil: the call came over TLS. The error is a
// *Refusal.
func (r Record) boundTo(uid func() (int, error)) error {
	if r.User == nil {
		if uid == nil {
			return nil
		}
		return &Refusal{Moved, "this session was begun over TLS, and holds over TLS only"}
	}
	if uid == nil {
		return &Refusal{Moved, "this session was begun on a port of this machine without TLS, and " +
			"holds there only"}
	}
	is, err := uid()
	if err != nil || is != *r.User {
		return &Refusal{Moved, "this session belongs to another user of this machine"}
	}
	return nil
}

// useEvery is the time between two notes of the use of a session.
const useEvery = time.Minute

// isNew reports whether the server must note this use of a session. If so, it remembers the time as
// if the note were written.
func (b *Book) isNew(id string, now time.Time) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if last, found := b.noted[id]; found && now.Sub(last) < useEvery {
		return false
	}
	for other, last := range b.noted {
		if now.Sub(last) > idleMax {
			delete(b.noted, other)
		}
	}
	b.noted[id] = now
	return true
}

// offer makes a link by which a caller's browser begins a session.
func (b *Book) offer(ctx context.Context, who web.Caller) (Record, string, error) {
	r := Record{Kind: Link, Owner: who.Name, Proof: who.Proof(), Token: who.Token,
		Parent: who.Session, Until: jobs.Time{Time: who.Until}}
	if strings.HasPrefix(who.Name, idp.Prefix) {
		r.Groups = who.Groups // those of the machine are looked up at each request
	}
	return b.add(ctx, r, linkLife, who.Until)
}

// peek returns the record of a link or code that holds, and leaves it as it is.
func (b *Book) peek(ctx context.Context, kind Kind, text string) (Record, error) {
	r, _, err := b.read(ctx, kind, text)
	if errors.Is(err, unknown) {
		err = usedLink
	}
	var no *Refusal
	if errors.As(err, &no) && no.Reason == Ended {
		err = usedLink
	}
	return r, err
}

// take takes a link or code away. Of several who take it, one gets no error.
func (b *Book) take(ctx context.Context, kind Kind, text string) (Record, error) {
	r, err := b.peek(ctx, kind, text)
	if err != nil {
		return r, err
	}
	first, err := b.store.DropSession(ctx, r.ID)
	if err == nil && !first {
		err = usedLink
	}
	return r, err
}

// begin begins a session. It ends at until at the latest (zero: by its own time).
func (b *Book) begin(ctx context.Context, r Record, until time.Time) (Record, string, error) {
	return b.add(ctx, r, lifeMax, until)
}

// end ends the session of an id.
func (b *Book) end(ctx context.Context, id string) error {
	_, err := b.store.DropSession(ctx, id)
	return err
}
