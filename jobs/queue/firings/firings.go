package firings

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"muster/jobs"
	"muster/jobs/queue"
	"muster/jobs/queue/codec"
	"muster/jobs/queue/keys"
	"muster/triggers"
)

// A Record says what a trigger did about an event.
type Record struct {
	Event    string          `json:"event"`
	Trigger  string          `json:"trigger"`
	Source   string          `json:"source"`
	Kind     string          `json:"kind,omitempty"`
	Customer string          `json:"customer,omitempty"`
	At       jobs.Time       `json:"at"` // of the last decision about it
	Result   triggers.Result `json:"result"`
	Why      string          `json:"why,omitempty"`
	Task     jobs.TaskID     `json:"task,omitempty"`
	Hosts    int             `json:"hosts,omitempty"`
	Stems    []string        `json:"stems,omitempty"` // triggers that led to it, this one at the end
}

// id returns the field of a record.
func (r Record) id() string { return idOf(r.Event, r.Trigger) }

func idOf(event, trigger string) string { return event + "/" + trigger }

// The bounds of what is kept.
const (
	// KeepFor is the age from which on records go.
	KeepFor = 7 * 24 * time.Hour
	keepMax = 20_000 // records
	trimMax = 500    // records that one Trim removes
	// taskMark begins the field that leads from a task to its record.
	taskMark = "task/"
	casMax   = 50 // tries of one change while others change the same
)

// A Voucher signs texts that give power, so that a server believes only what a server wrote.
type Voucher interface {
	// Vouch returns the form of a text to be stored under a name.
	Vouch(name, text string) (string, error)

	// Vouched returns the text of a stored form, and why no server has vouched for it.
	Vouched(name, kept string) (text string, doubt error)
}

// Book keeps the records and the memories.
type Book struct {
	c  *queue.Conn
	by Voucher
}

// New returns the book behind a connection.
func New(c *queue.Conn) *Book { return &Book{c, unsigned{}} }

// VouchedBy returns the same book, which v signs.
func (b *Book) VouchedBy(v Voucher) *Book { return &Book{b.c, v} }

// unsigned takes every text, with a MAC or without one.
type unsigned struct{}

func (unsigned) Vouch(_, text string) (string, error) { return text, nil }

func (unsigned) Vouched(_, kept string) (string, error) {
	if i := strings.IndexByte(kept, '{'); i > 0 {
		return kept[i:], nil
	}
	return kept, nil
}

// memoryMark begins the name under which a memory is signed, so that none passes for a record.
const memoryMark = "memory/"

// Memories returns the memory of each trigger. doubts names those that no server has written; they
// are left out.
func (b *Book) Memories(ctx context.Context) (past map[string]triggers.Past, doubts []error,
	err error) {
	all, err := b.c.Redis().HGetAll(ctx, keys.Hub("triggers", "")).Result()
	if err != nil {
		return nil, nil, b.c.Say("triggers", err)
	}
	past = make(map[string]triggers.Past, len(all))
	for name, kept := range all {
		p, err := b.memory(name, kept)
		if errors.Is(err, queue.ErrKeyAway) {
			return nil, nil, err
		}
		if err != nil {
			doubts = append(doubts, err)
			continue
		}
		past[name] = p
	}
	return past, doubts, nil
}

// memory reads a memory; an empty text is an empty one.
func (b *Book) memory(name, kept string) (p triggers.Past, err error) {
	if kept == "" {
		return p, nil
	}
	text, doubt := b.by.Vouched(memoryMark+name, kept)
	if doubt == nil {
		doubt = json.Unmarshal([]byte(text), &p)
	}
	if doubt != nil {
		return triggers.Past{}, fmt.Errorf("what Redis has of trigger %s is not believed: %w", name,
			doubt)
	}
	return p, nil
}

// A Change makes of the memory of a trigger the next one, with records to be written in the same
// step. It may be called several times.
type Change func(past triggers.Past) (to triggers.Past, records []Record)

// Change changes the memory of a trigger and writes records, all or nothing. A memory that no
// server has written counts as empty.
func (b *Book) Change(ctx context.Context, trigger string, f Change) error {
	key := keys.Hub("triggers", "")
	var err error
	for range casMax {
		err = b.c.Redis().Watch(ctx, func(tx *redis.Tx) error {
			kept, err := tx.HGet(ctx, key, trigger).Result()
			if err != nil && !errors.Is(err, redis.Nil) {
				return err
			}
			past, doubt := b.memory(trigger, kept)
			if errors.Is(doubt, queue.ErrKeyAway) {
				return doubt
			}
			if doubt != nil {
				past = triggers.Past{}
			}
			to, records := f(past)
			return b.write(ctx, tx, trigger, to, records)
		}, key)
		if !errors.Is(err, redis.TxFailedErr) {
			break
		}
	}
	return b.c.Say("trigger "+trigger, err)
}

func (b *Book) write(ctx context.Context, tx *redis.Tx, trigger string, to triggers.Past,
	records []Record) error {
	text, err := json.Marshal(to)
	if err != nil {
		return err
	}
	memory, err := b.by.Vouch(memoryMark+trigger, string(text))
	if err != nil {
		return err
	}
	lines := make([]string, len(records))
	for i, r := range records {
		text, err := json.Marshal(r)
		if err != nil {
			return err
		}
		if lines[i], err = b.by.Vouch(r.id(), string(text)); err != nil {
			return err
		}
	}
	_, err = tx.TxPipelined(ctx, func(p redis.Pipeliner) error {
		if len(to.Fired) == 0 && len(to.Of) == 0 && len(to.Held) == 0 {
			p.HDel(ctx, keys.Hub("triggers", ""), trigger)
		} else {
			p.HSet(ctx, keys.Hub("triggers", ""), trigger, memory)
		}
		for i, r := range records {
			p.HSet(ctx, keys.Hub("firings", ""), r.id(), lines[i])
			if r.Task != "" {
				p.HSet(ctx, keys.Hub("firings", ""), taskMark+string(r.Task), r.id())
			}
			p.ZAdd(ctx, keys.Hub("firedat", ""),
				redis.Z{Score: float64(r.At.UnixMicro()), Member: r.id()})
		}
		return nil
	})
	return err
}

// Records returns the records of an event at some triggers, by trigger. One that no server has
// written is left out.
func (b *Book) Records(ctx context.Context, event string, names []string) (map[string]Record,
	error) {
	out := map[string]Record{}
	if len(names) == 0 {
		return out, nil
	}
	ids := make([]string, len(names))
	for i, name := range names {
		ids[i] = idOf(event, name)
	}
	list, err := b.read(ctx, ids)
	for _, r := range list {
		out[r.Trigger] = r
	}
	return out, err
}

// read returns the records with these ids, as far as they are there and believed.
func (b *Book) read(ctx context.Context, ids []string) ([]Record, error) {
	kept, err := b.c.Redis().HMGet(ctx, keys.Hub("firings", ""), ids...).Result()
	if err != nil {
		return nil, b.c.Say("firings", err)
	}
	var out []Record
	for i, v := range kept {
		text, _ := v.(string)
		if text == "" {
			continue
		}
		var r Record
		plain, doubt := b.by.Vouched(ids[i], text)
		if errors.Is(doubt, queue.ErrKeyAway) {
			return nil, doubt
		}
		if doubt == nil && codec.Strictly(plain, &r) == nil && r.id() == ids[i] {
			out = append(out, r)
		}
	}
	return out, nil
}

// OfTask returns the record of the firing that made a task. The error wraps queue.ErrNotFound if
// there is none that a server has written.
func (b *Book) OfTask(ctx context.Context, task jobs.TaskID) (Record, error) {
	id, err := b.c.Redis().HGet(ctx, keys.Hub("firings", ""), taskMark+string(task)).Result()
	if err != nil && !errors.Is(err, redis.Nil) {
		return Record{}, b.c.Say("firings", err)
	}
	if id != "" {
		list, err := b.read(ctx, []string{id})
		if err != nil {
			return Record{}, err
		}
		if len(list) == 1 && list[0].Task == task {
			return list[0], nil
		}
	}
	return Record{}, fmt.Errorf("the firing of task %s: %w", task, queue.ErrNotFound)
}

// List returns records, the newest first, from a place on; more reports whether others follow.
func (b *Book) List(ctx context.Context, from, most int) (list []Record, more bool, err error) {
	ids, err := b.c.Redis().ZRevRange(ctx, keys.Hub("firedat", ""), int64(from),
		int64(from+most)).Result()
	if err != nil || len(ids) == 0 {
		return nil, false, b.c.Say("firings", err)
	}
	more = len(ids) > most
	list, err = b.read(ctx, ids[:min(len(ids), most)])
	return list, more, err
}

// Trim removes some of the records that are too old or too many.
func (b *Book) Trim(ctx context.Context, now time.Time) error {
	key, firings := keys.Hub("firedat", ""), keys.Hub("firings", "")
	old, err := b.c.Redis().ZRangeByScore(ctx, key, &redis.ZRangeBy{Min: "-inf",
		Max: strconv.FormatInt(now.Add(-KeepFor).UnixMicro(), 10), Count: trimMax}).Result()
	if err != nil {
		return b.c.Say("firings", err)
	}
	n, err := b.c.Redis().ZCard(ctx, key).Result()
	if err == nil && len(old) == 0 && n > keepMax {
		old, err = b.c.Redis().ZRange(ctx, key, 0, min(n-keepMax, trimMax)-1).Result()
	}
	if err != nil || len(old) == 0 {
		return b.c.Say("firings", err)
	}
	list, err := b.read(ctx, old)
	if err != nil {
		return err
	}
	fields, members := append([]string{}, old...), make([]any, len(old))
	for i, id := range old {
		members[i] = id
	}
	for _, r := range list {
		if r.Task != "" {
			fields = append(fields, taskMark+string(r.Task))
		}
	}
	_, err = b.c.Redis().TxPipelined(ctx, func(p redis.Pipeliner) error {
		p.HDel(ctx, firings, fields...)
		p.ZRem(ctx, key, members...)
		return nil
	})
	return b.c.Say("firings", err)
}
