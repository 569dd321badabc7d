package scribe

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/hashicorp/go-hclog"

	"muster/audit"
	"muster/history/ledger"
)

const (
	// sqlPatience is the usual Needs.Patience. A caller waits for it.
	sqlPatience = 3 * time.Second
	// sqlPause is the time for which SQL is not tried after it has failed.
	sqlPause = 5 * time.Second
	// batchMax bounds the entries of one transaction.
	batchMax = 200
	// memoryMax bounds the entries that wait in memory.
	memoryMax = 10_000
)

// Book keeps entries in SQL.
type Book interface {
	Append(ctx context.Context, list []audit.Draft, sign ledger.Sign) error
	Size(ctx context.Context) (int64, error)
}

// Needs has all that a Scribe works with.
type Needs struct {
	Book Book
	Dir  string        // of the spool
	Sign ledger.Sign   // nil: this server has no key
	Who  func() string // returns the name of this server
	Log  hclog.Logger
	Now  func() time.Time

	// Patience bounds the time in which SQL must take entries; 0: 3 s. A test that reads its
	// entries from SQL at once must not depend on the speed of the machine.
	Patience time.Duration
}

// Scribe writes entries. Its methods may be called at the same time.
type Scribe struct {
	needs    Needs
	spool    *spool
	logins   flood // of strangers
	requests flood // of people and programs that were let in
	tries    tries // of this server's duties

	mu     sync.Mutex
	queue  []*item
	busy   bool          // a goroutine stores the queue
	idle   chan struct{} // closed when it has; nil: nobody waits for that
	memory []audit.Draft // that neither SQL nor the spool took
	lost   int64         // entries that memory had no place for
	sqlNot time.Time     // SQL is not tried before
	state  State
}

// State says how the log is written.
type State struct {
	Away    string    // why SQL does not take entries; empty: it does
	Since   time.Time // when that began
	Spool   string    // why the spool cannot be written; empty: it can, or was not needed
	Spooled int       // entries in the spool
	Memory  int       // entries in memory
	Lost    int64     // entries that were lost
}

// item is an entry on its way.
type item struct {
	draft  audit.Draft
	stops  bool // the order is carried out even if no store takes its entry
	waits  bool
	stored chan error // has the result once, if waits
}

// New returns a Scribe. The spool of an earlier process is brought into the tree by the first
// entry, or by Tend.
func New(n Needs) *Scribe {
	return &Scribe{needs: n, spool: &spool{dir: n.Dir}, logins: flood{now: n.Now, most: loginLines},
		requests: flood{now: n.Now, most: requestLines}}
}

// An Undurable error says why an entry could not be made durable, so that its order is refused.
type Undurable struct{ SQL, Spool error }

func (e *Undurable) Error() string {
	return fmt.Sprintf("nothing was done: an order must be in the audit log first, and neither its "+
		"tables nor its spool can be written (tables: %s; spool: %s). Pause, halt, cancel, drain and "+
		"freeze work also now", e.SQL, e.Spool)
}

// Unwrap returns both causes.
func (e *Undurable) Unwrap() []error { return []error{e.SQL, e.Spool} }

// Write makes an entry durable, and returns its id. The error is an *Undurable, or that of the
// context. If the order stops work and neither SQL nor the spool takes its entry, Write keeps the
// entry in memory.
func (s *Scribe) Write(ctx context.Context, d audit.Draft, stops bool) (id string, err error) {
	d = s.complete(d)
	it := &item{draft: d, stops: stops, waits: true, stored: make(chan error, 1)}
	s.put(it)
	select {
	case err = <-it.stored:
	case <-ctx.Done():
		// The log may still get the entry, but the server does not carry out the order; the
		// outcome says so.
		err = ctx.Err()
		s.Keep(audit.Draft{Name: d.Name, Entry: audit.Entry{Kind: audit.KindOutcome,
			Proof: d.Entry.Proof, Verb: d.Entry.Verb, Object: d.Entry.Object,
			End: &audit.End{Of: d.Entry.ID, Result: audit.Refused}}})
	}
	return d.Entry.ID, err
}

// Keep writes an entry for which no caller waits: an outcome, a refusal, a note.
func (s *Scribe) Keep(d audit.Draft) { s.put(&item{draft: s.complete(d), stops: true}) }

// complete adds what the scribe knows: id, salts, time and server.
func (s *Scribe) complete(d audit.Draft) audit.Draft {
	var id [16]byte
	var salt, name [32]byte
	for _, b := range [][]byte{id[:], salt[:], name[:]} {
		rand.Read(b) // never fails
	}
	d.Entry.ID, d.Salt, d.NewName = audit.NewID(id), audit.NewSalt(salt), audit.NewSalt(name)
	if d.Entry.At.IsZero() {
		d.Entry.At = audit.TimeOf(s.needs.Now())
	}
	d.Entry.Server = s.needs.Who()
	return d.Cleaned()
}

func (s *Scribe) put(it *item) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !it.waits && len(s.queue) >= memoryMax {
		s.lost++
		return
	}
	s.queue = append(s.queue, it)
	s.begin()
}

// begin starts to store the queue, unless that is under way. The caller has the lock.
func (s *Scribe) begin() {
	if !s.busy {
		s.busy, s.idle = true, make(chan struct{})
		go s.work()
	}
}

// work stores the queue until it is empty: entries that came meanwhile go together.
func (s *Scribe) work() {
	for {
		s.mu.Lock()
		if len(s.queue) == 0 {
			s.busy = false
			close(s.idle)
			s.mu.Unlock()
			return
		}
		n := min(batchMax, len(s.queue))
		batch := s.queue[:n:n]
		s.queue = s.queue[n:]
		s.mu.Unlock()
		s.store(batch)
	}
}

// Idle waits until all entries that were given are stored.
func (s *Scribe) Idle(ctx context.Context) error {
	for {
		s.mu.Lock()
		busy, idle := s.busy, s.idle
		s.mu.Unlock()
		if !busy {
			return nil
		}
		select {
		case <-idle:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// Close stores what was given, and leaves the spool to the next process.
func (s *Scribe) Close(ctx context.Context) error {
	if err := s.Idle(ctx); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.spool.f == nil {
		return nil
	}
	return s.spool.close()
}

// Tend brings into the tree what lies in the spool or in memory, and what floods have left to say.
func (s *Scribe) Tend(context.Context) error {
	for _, d := range append(s.logins.rest(), s.requests.rest()...) {
		s.Keep(d)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.queue = append(s.queue, &item{})
	s.begin()
	if s.state.Away != "" {
		return errors.New("the audit log is not written to its tables: " + s.state.Away)
	}
	return nil
}

// State returns how the log is written.
func (s *Scribe) State() State {
	s.mu.Lock()
	defer s.mu.Unlock()
	st := s.state
	st.Spooled, st.Memory, st.Lost = s.spool.len(), len(s.memory), s.lost
	return st
}

// store stores a batch, and tells those who wait.
func (s *Scribe) store(batch []*item) {
	var list []audit.Draft
	for _, it := range batch {
		if it.draft.Entry.ID != "" { // one of Tend has none
			list = append(list, it.draft)
		}
	}
	err := s.keep(list)
	var undurable *Undurable
	for _, it := range batch {
		if it.draft.Entry.ID == "" {
			continue
		}
		if errors.As(err, &undurable) && it.stops {
			s.remember(it.draft)
			if it.waits {
				it.stored <- nil
			}
			continue
		}
		if it.waits {
			it.stored <- err
		}
	}
}

// remember keeps an entry in memory.
func (s *Scribe) remember(d audit.Draft) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.memory) >= memoryMax {
		s.lost++
		return
	}
	d.Entry.Late = audit.LateMemory
	s.memory = append(s.memory, d)
}

// keep makes entries durable, in SQL or in the spool.
func (s *Scribe) keep(list []audit.Draft) error {
	sql := s.toSQL(list)
	if sql == nil || len(list) == 0 && len(s.waiting()) == 0 {
		return nil
	}
	all := s.waiting()
	for _, d := range list {
		d.Entry.Late = audit.LateSpool
		all = append(all, d)
	}
	if err := s.spool.add(all); err != nil {
		s.note(func(st *State) { st.Spool = err.Error() })
		return &Undurable{SQL: sql, Spool: err}
	}
	s.forget()
	s.note(func(st *State) { st.Spool = "" })
	return nil
}

// waiting returns the entries in memory. Only the goroutine that stores takes any away.
func (s *Scribe) waiting() []audit.Draft {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]audit.Draft(nil), s.memory...)
}

func (s *Scribe) forget() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.memory = nil
}

func (s *Scribe) note(change func(*State)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	change(&s.state)
}

// errPause says that SQL has just failed.
var errPause = errors.New("it has failed a moment ago")

// toSQL brings entries into the tree: first those of the spool, then those of memory.
func (s *Scribe) toSQL(list []audit.Draft) error {
	if now := s.needs.Now(); now.Before(s.sqlNot) {
		if away := s.State().Away; away != "" {
			return errors.New(away)
		}
		return errPause
	}
	ctx, cancel := context.WithTimeout(context.Background(), cmp.Or(s.needs.Patience, sqlPatience))
	defer cancel()
	add := func(part []audit.Draft) error {
		if len(part) == 0 {
			return nil
		}
		return s.needs.Book.Append(ctx, part, s.needs.Sign)
	}
	drained, err := s.spool.drain(add)
	all := append(s.waiting(), list...)
	if err == nil {
		err = add(all)
	}
	if err == nil && drained+len(all) == 0 && s.State().Away != "" {
		_, err = s.needs.Book.Size(ctx)
	}
	if err != nil {
		s.sqlNot = s.needs.Now().Add(sqlPause)
		s.failed(err)
		return err
	}
	s.forget()
	s.healed(drained)
	return nil
}

func (s *Scribe) failed(err error) {
	first := false
	s.note(func(st *State) {
		if first = st.Away == ""; first {
			st.Since = s.needs.Now()
		}
		st.Away = err.Error()
	})
	if first {
		s.needs.Log.Error("the audit log goes to its spool: its tables cannot be written", "error", err,
			"spool", s.needs.Dir)
	}
}

func (s *Scribe) healed(drained int) {
	was := State{}
	s.note(func(st *State) { was, st.Away, st.Since = *st, "", time.Time{} })
	if was.Away != "" || drained > 0 {
		s.needs.Log.Info("the audit log is in its tables again", "from the spool", drained)
	}
}
