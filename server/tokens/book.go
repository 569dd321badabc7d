package tokens

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"sync"
	"time"

	"muster/access"
	"muster/internal/serverkey"
	"muster/jobs"
	"muster/jobs/queue"
)

// Store keeps the texts of records by id, and when each token was last used.
type Store interface {
	AddToken(ctx context.Context, id, record string) error
	TokenRecord(ctx context.Context, id string) (string, error)
	TokenRecords(ctx context.Context) (map[string]string, error)
	DropToken(ctx context.Context, id string) error
	NoteTokenUse(ctx context.Context, id string, at time.Time) error
	TokenUses(ctx context.Context) (map[string]time.Time, error)
}

// A Book has the tokens of an installation. Several goroutines may use it.
type Book struct {
	store Store
	keys  func() (serverkey.Keys, error)
	now   func() time.Time

	mu     sync.Mutex
	noted  map[string]time.Time // the use of each token that this server has noted last
	scopes map[string]scope     // of each token
}

// scope is the scope of a token, as policies read it. It is the same value for each request.
type scope struct {
	grant *access.Grant
	read  *access.Scope
}

// NewBook returns the book in a store. keys reads the key of servers.
func NewBook(store Store, keys func() (serverkey.Keys, error), now func() time.Time) *Book {
	return &Book{store: store, keys: keys, now: now, noted: map[string]time.Time{},
		scopes: map[string]scope{}}
}

// A Kept is a token as it is listed.
type Kept struct {
	Record
	Used  time.Time // about when, within a minute; zero: it is not known
	Wrong string    // why it proves nobody; empty: it does
}

// errKeyless is the error of a server without the key that was asked for a token.
var errKeyless = errors.New("this server has no key, so tokens that it makes would prove nobody: " +
	"call `muster init` on its machine, copy the key to each server, and start them again")

// A wish says which token somebody wants.
type wish struct {
	name, owner, maker string
	life               time.Duration
	until              time.Time // it holds no longer than that; zero: no such bound
	scope              *access.Grant
}

// tokensMax bounds the tokens of an owner.
const tokensMax = 100

// errMany is wrapped when an owner has that many.
var errMany = fmt.Errorf("an owner has at most %d tokens: remove some first, with `muster token "+
	"rm`", tokensMax)

// mayMake says why a token cannot be made; nil: it can.
func (b *Book) mayMake(ctx context.Context, w wish) error {
	keys, err := b.keys()
	if err != nil {
		return err
	}
	if keys.None() {
		return errKeyless
	}
	all, err := b.list(ctx)
	if err != nil {
		return err
	}
	n := 0
	for _, t := range all {
		if t.Owner != w.owner {
			continue
		}
		if n++; t.Name == w.name {
			return fmt.Errorf("token %s of %s: %w", w.name, w.owner, queue.ErrTokenName)
		}
	}
	if n >= tokensMax {
		return fmt.Errorf("%s: %w", w.owner, errMany)
	}
	return nil
}

// make makes a token and keeps its record.
func (b *Book) make(ctx context.Context, w wish) (Record, string, error) {
	keys, err := b.keys()
	if err != nil {
		return Record{}, "", err
	}
	now := b.now()
	end := now.Add(w.life)
	if !w.until.IsZero() && w.until.Before(end) {
		end = w.until
	}
	r, token := newRecord(Record{Name: w.name, Owner: w.owner, Maker: w.maker, Created: infoTime(now),
		Expires: infoTime(end), Scope: w.scope})
	text, err := r.text(keys)
	if err != nil {
		return Record{}, "", err
	}
	return r, token, b.store.AddToken(ctx, r.ID, text)
}

// Find returns the record of a token that holds now, and notes its use. The error is a *Refusal, or
// Redis is away.
func (b *Book) Find(ctx context.Context, token string) (Record, error) {
	id, secret, err := split(token)
	if err != nil {
		return Record{}, err
	}
	r, err := b.read(ctx, id)
	if err != nil {
		return Record{}, err
	}
	now := b.now()
	if err := r.admits(secret, now); err != nil {
		return Record{}, err
	}
	if b.isNew(id, now) {
		// A token holds whether or not its use could be noted.
		_ = b.store.NoteTokenUse(ctx, id, now)
	}
	return r, nil
}

// read returns the record of an id, whether or not its token has ended.
func (b *Book) read(ctx context.Context, id string) (Record, error) {
	keys, err := b.keys()
	if err != nil {
		return Record{}, err
	}
	text, err := b.store.TokenRecord(ctx, id)
	if errors.Is(err, queue.ErrNotFound) {
		return Record{}, unknown
	}
	if err != nil {
		return Record{}, err
	}
	return open(keys, id, text)
}

// Held returns the record of a token that holds now, by its id: somebody has shown the token
// earlier, and what it began shall not outlive it. The error is a *Refusal, or Redis is away.
func (b *Book) Held(ctx context.Context, id string) (Record, error) {
	r, err := b.read(ctx, id)
	if err == nil {
		err = r.holds(b.now())
	}
	return r, err
}

// useEvery is the time between two notes of the use of a token.
const useEvery = time.Minute

// isNew reports whether the server must note this use of a token. If so, it remembers the time as
// if the note were written.
func (b *Book) isNew(id string, now time.Time) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if last, found := b.noted[id]; found && now.Sub(last) < useEvery {
		return false
	}
	b.noted[id] = now
	return true
}

// ScopeOf returns the scope of a token that Find has found; nil: it may do all that its owner may.
func (b *Book) ScopeOf(r Record) (*access.Scope, error) {
	if r.Scope == nil {
		return nil, nil
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if s, found := b.scopes[r.ID]; found && reflect.DeepEqual(s.grant, r.Scope) {
		return s.read, nil
	}
	read, err := access.NewScope(*r.Scope)
	if err != nil {
		return nil, err
	}
	b.scopes[r.ID] = scope{r.Scope, read}
	return read, nil
}

// Any reports whether there is any record of a token.
func (b *Book) Any(ctx context.Context) (bool, error) {
	all, err := b.store.TokenRecords(ctx)
	return len(all) > 0, err
}

// list returns all tokens, by owner and name. Those whose record does not hold come last, with an
// id that remove accepts.
func (b *Book) list(ctx context.Context) ([]Kept, error) {
	keys, err := b.keys()
	if err != nil {
		return nil, err
	}
	texts, err := b.store.TokenRecords(ctx)
	if err != nil {
		return nil, err
	}
	uses, err := b.store.TokenUses(ctx)
	if err != nil {
		return nil, err
	}
	out := make([]Kept, 0, len(texts))
	now := b.now()
	for id, text := range texts {
		r, err := open(keys, id, text)
		k := Kept{Record: r, Used: uses[id]}
		switch {
		case err != nil:
			k = Kept{Record: Record{ID: badID(id)}, Wrong: wrongOf(id, err)}
		case !now.Before(r.Expires.Time):
			k.Wrong = "it has ended"
		}
		out = append(out, k)
	}
	slices.SortFunc(out, func(a, b Kept) int {
		return cmp.Or(-cmp.Compare(min(1, len(a.Owner)), min(1, len(b.Owner))),
			cmp.Compare(a.Owner, b.Owner), cmp.Compare(a.Name, b.Name), cmp.Compare(a.ID, b.ID))
	})
	return out, nil
}

// wrongOf says why a record does not hold, in few words.
func wrongOf(id string, err error) string {
	if len(id) == hex.EncodedLen(sha256.Size) {
		return "an earlier version of muster made it"
	}
	return err.Error()
}

// badID returns the id under which the list shows a record that fails its check. Redis may have any
// text in the place of an id.
func badID(id string) string {
	if isID(id) {
		return id
	}
	return "bad-" + hash(id)[:idLength]
}

// named finds a token by its id or its name. If owner is empty, it searches the tokens of all
// owners. The error wraps queue.ErrNotFound if there is none, and errAmbiguous if several owners
// have the name.
func (b *Book) named(ctx context.Context, owner, name string) (Record, error) {
	all, err := b.list(ctx)
	if err != nil {
		return Record{}, err
	}
	var found []Kept
	for _, t := range all {
		if owner != "" && t.Owner != owner {
			continue
		}
		if t.ID == name {
			return t.Record, nil
		}
		if t.Name == name && name != "" {
			found = append(found, t)
		}
	}
	switch len(found) {
	case 0:
		return Record{}, fmt.Errorf("token %s: %w", name, queue.ErrNotFound)
	case 1:
		return found[0].Record, nil
	}
	return Record{}, fmt.Errorf("%w: %s has %s, %s has %s", errAmbiguous, found[0].Owner, found[0].ID,
		found[1].Owner, found[1].ID)
}

// errAmbiguous is wrapped when several owners have a token of the same name.
var errAmbiguous = errors.New("several tokens have this name, so name one by its id")

// drop removes the record that the list shows under this id.
func (b *Book) drop(ctx context.Context, id string) error {
	if isID(id) {
		return b.store.DropToken(ctx, id)
	}
	texts, err := b.store.TokenRecords(ctx)
	if err != nil {
		return err
	}
	for field := range texts {
		if badID(field) == id {
			return b.store.DropToken(ctx, field)
		}
	}
	return nil // somebody else was faster
}

// infoTime returns a moment as answers have it.
func infoTime(t time.Time) jobs.Time { return jobs.Time{Time: t} }
