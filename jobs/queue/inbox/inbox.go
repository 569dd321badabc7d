package inbox

import (
	"context"
	"crypto/sha256"
	_ "embed"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/redis/go-redis/v9"

	"muster/events"
	"muster/ingress"
	"muster/jobs"
	"muster/jobs/queue"
	"muster/jobs/queue/codec"
	"muster/jobs/queue/keys"
)

//go:embed inbox.lua
var luaText string

// script keeps the inbox in order.
var script = queue.Alone("inbox", luaText)

// Duty is the duty of the server that works on events; inbox.lua checks which one has it.
const Duty = "events"

// A Voucher signs the records of events, so that a server believes only what a server wrote.
type Voucher interface {
	// Vouch returns the form of a text to be stored under a name.
	Vouch(name, text string) (string, error)

	// Vouched returns the text of a stored form, and why no server has vouched for it.
	Vouched(name, kept string) (text string, doubt error)
}

// Inbox keeps events in the hub.
type Inbox struct {
	c  *queue.Conn
	by Voucher
}

// New returns the inbox behind a connection, whose records v signs.
func New(c *queue.Conn, v Voucher) *Inbox { return &Inbox{c, v} }

// record is the part of an event that a MAC protects.
type record struct {
	ID       string        `json:"id"`
	Source   string        `json:"source"`
	Kind     string        `json:"kind,omitempty"`
	Customer string        `json:"customer,omitempty"`
	Class    ingress.Class `json:"class"`
	At       time.Time     `json:"at"`
	Sum      string        `json:"sum"`             // SHA-256 of the body
	By       string        `json:"by,omitempty"`    // the person who sent it by hand
	Again    string        `json:"again,omitempty"` // the event whose body it repeats
}

// An Arrival is an event that is to be taken.
type Arrival struct {
	events.Event // without a number
	Class        ingress.Class
	Bounds       ingress.Bounds
	By           string // the person who sent it by hand; empty: a source has
	Again        string // the event whose body it repeats by hand; empty: none
}

// Taken says what became of an arrival.
type Taken struct {
	Seq   int64 // number of the event
	Again bool  // it was there already
}

// A Flood is the error of an arrival beyond the bounds of its source.
type Flood struct {
	Wait  time.Duration // after which another try makes sense
	Waits bool          // too many events wait; else too many came in this minute
	Tell  bool          // nobody was told of the flood in the last hour
}

// Error says which bound was reached.
func (f *Flood) Error() string {
	if f.Waits {
		return "too many events of this source wait"
	}
	return "this source has sent too many events in this minute"
}

// Take stores an event before its sender gets an answer. A repeated one is there already. The error
// is a *Flood, wraps queue.ErrFewer if fewer replicas than asked for have confirmed it, or Redis
// cannot be used. After every error the sender may send the same again.
func (q *Inbox) Take(ctx context.Context, a Arrival) (Taken, error) {
	kept, err := q.vouched(a)
	if err != nil {
		return Taken{}, err
	}
	b := a.Bounds
	answer, err := q.lasting(ctx, "take", a.ID, a.Source, a.Customer, string(a.Class), kept, a.Body,
		b.Remember.Milliseconds(), b.PerMinute, b.Waiting, b.Bytes)
	if err != nil && !errors.Is(err, queue.ErrFewer) {
		return Taken{}, err
	}
	status, n, bad := reply(answer)
	if bad != nil {
		return Taken{}, bad
	}
	return Taken{n, status == "again"}, err
}

// reply reads the answer to events that were to be taken. The error is a *Flood, or the answer
// cannot be read.
func reply(r codec.Reader) (status string, n int64, err error) {
	status, n = r.Text(), int64(r.Micros())
	switch {
	case r.Err != nil:
		return "", 0, fmt.Errorf("event: %w", r.Err)
	case status == "flood" || status == "full":
		return "", 0, &Flood{time.Duration(n) * time.Millisecond, status == "full", r.Text() == "1"}
	}
	return status, n, nil
}

// vouched returns the record of an arrival, signed.
func (q *Inbox) vouched(a Arrival) (string, error) {
	sum := sha256.Sum256(a.Body)
	text, err := json.Marshal(record{ID: a.ID, Source: a.Source, Kind: a.Kind, Customer: a.Customer,
		Class: a.Class, At: a.At.UTC(), Sum: hex.EncodeToString(sum[:]), By: a.By, Again: a.Again})
	if err != nil {
		return "", err
	}
	return q.by.Vouch(a.ID, string(text))
}

// lasting calls the script once, and waits for as many replicas as the configuration asks for. All
// verbs that change something write something, so a repetition waits as the first call did.
func (q *Inbox) lasting(ctx context.Context, args ...any) (codec.Reader, error) {
	cfg := q.c.Config()
	if cfg.Durable == 0 {
		return q.c.HubScript(ctx, script, args...)
	}
	c, _, err := q.c.At(ctx, keys.HubZone)
	if err != nil {
		return codec.Reader{}, err
	}
	var answer, acked *redis.Cmd
	once := func() error {
		_, err := c.Pipelined(ctx, func(p redis.Pipeliner) error {
			answer = script.Redis().EvalSha(ctx, p, []string{keys.Hub("zone", "")}, args...)
			acked = p.Do(ctx, "WAIT", cfg.Durable, (cfg.Timeout / 4).Milliseconds())
			return nil
		})
		return err
	}
	err = once()
	if redis.HasErrorPrefix(err, "NOSCRIPT") {
		if err = script.Redis().Load(ctx, c).Err(); err == nil {
			err = once()
		}
	}
	if err != nil {
		q.c.Elsewhere(ctx)
		return codec.Reader{}, q.c.Say("inbox", err)
	}
	list, err := answer.Slice()
	if err != nil {
		return codec.Reader{}, q.c.Say("inbox", err)
	}
	n, err := acked.Int()
	if err != nil {
		return codec.Reader{}, q.c.Say("inbox", err)
	}
	if why := cfg.Fewer(n); why != "" {
		err = fmt.Errorf("%w: %s the event: send it again", queue.ErrFewer, why)
	}
	return codec.Reader{Left: list}, err
}

// Work is an event that waits to be worked on.
type Work struct {
	events.Event
	Class ingress.Class
	Tries int   // that failed before
	Doubt error // why no server has vouched for it: nothing may be done about it
}

// Next returns the first event of a customer that waits: of the classes in their order, and in each
// by number. It passes over events of some sources, among the first 200 of each class. ok is false
// if no other waits.
func (q *Inbox) Next(ctx context.Context, customer string, without ...string) (w Work, ok bool,
	err error) {
	args := []any{"next", customer}
	for _, source := range without {
		args = append(args, source)
	}
	r, err := q.c.HubScript(ctx, script, args...)
	if err != nil || len(r.Left) == 0 {
		return Work{}, false, err
	}
	id, kept, body := r.Text(), r.Text(), r.Text()
	seq, tries := int64(r.Micros()), int(r.Micros())
	if r.Err != nil {
		return Work{}, false, fmt.Errorf("event: %w", r.Err)
	}
	rec, doubt := q.open(id, kept, body)
	if errors.Is(doubt, queue.ErrKeyAway) {
		return Work{}, false, doubt
	}
	return Work{rec.event(seq, body), rec.Class, tries, doubt}, true, nil
}

// open reads a record, and says why no server has vouched for it.
func (q *Inbox) open(id, kept, body string) (record, error) {
	text, doubt := q.by.Vouched(id, kept)
	var r record
	err := json.Unmarshal([]byte(text), &r)
	sum := sha256.Sum256([]byte(body))
	switch {
	case doubt != nil:
	case err != nil:
		doubt = errors.New("its record cannot be read")
	case r.ID != id:
		doubt = errors.New("its record is that of another event")
	case r.Sum != hex.EncodeToString(sum[:]):
		doubt = errors.New("its body is another")
	}
	r.ID = id
	return r, doubt
}

func (r record) event(seq int64, body string) events.Event {
	return events.Event{ID: r.ID, Seq: seq, Source: r.Source, Kind: r.Kind, Customer: r.Customer,
		At: r.At, Body: []byte(body)}
}

// A State is that of an event.
type State string

// The states.
const (
	Waiting State = "waiting"
	Done    State = "done"
	Stuck   State = "stuck"   // it was tried in vain, and set aside
	Doubted State = "doubted" // no server has vouched for it
)

// States returns all states.
func States() []State { return []State{Waiting, Done, Stuck, Doubted} }

// The events of a source that are kept after their end.
const (
	pastMax   = 1000
	pastBytes = 32 << 20
	// PastKept is the time after which they are dropped.
	PastKept = 7 * 24 * time.Hour
)

// End ends an event, for the leader of a term. It reports whether the event waited until now. The
// error wraps queue.ErrDeposed if another server leads.
func (q *Inbox) End(ctx context.Context, term int64, id string, to State, o events.Outcome) (bool,
	error) {
	text, err := json.Marshal(o)
	if err != nil {
		return false, err
	}
	status, _, err := q.lead(ctx, "done", term, id, string(to), string(text), pastMax, pastBytes)
	return status == "ok", err
}

// Tried notes that work on an event failed, for the leader of a term, and returns how often it has.
func (q *Inbox) Tried(ctx context.Context, term int64, id, why string) (int, error) {
	_, tries, err := q.lead(ctx, "tried", term, id, codec.OneLine(why))
	return tries, err
}

// Turned ends the turn of a customer, for the leader of a term: all others come before its next.
func (q *Inbox) Turned(ctx context.Context, term int64, customer string) error {
	_, _, err := q.lead(ctx, "turn", term, customer)
	return err
}

// lead calls a verb that only the leader may.
func (q *Inbox) lead(ctx context.Context, verb string, term int64, args ...any) (status string,
	n int, err error) {
	all := append([]any{verb, strconv.FormatInt(term, 10)}, args...)
	r, err := q.c.HubScript(ctx, script, all...)
	if err != nil {
		return "", 0, err
	}
	status, n = r.Text(), int(r.Micros())
	if r.Err != nil {
		return "", 0, fmt.Errorf("event: %w", r.Err)
	}
	if status == "deposed" {
		return status, 0, fmt.Errorf("events: %w", queue.ErrDeposed)
	}
	return status, n, nil
}

// turnsMax bounds the customers that are read at once.
const turnsMax = 200

// Turns returns customers with events that wait, the one whose last turn was longest ago first.
func (q *Inbox) Turns(ctx context.Context) ([]string, error) {
	list, err := q.c.Redis().ZRange(ctx, keys.Hub("turns", ""), 0, turnsMax-1).Result()
	return list, q.c.Say("turns", err)
}

// Trim drops the events of a source that ended before a time, at most 100 of them, and returns
// their number.
func (q *Inbox) Trim(ctx context.Context, source string, before time.Time) (int, error) {
	r, err := q.c.HubScript(ctx, script, "trim", source, jobs.MicrosOf(before).String())
	if err != nil {
		return 0, err
	}
	n := int(r.Micros())
	return n, r.Err
}
