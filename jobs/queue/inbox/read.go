package inbox

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"muster/events"
	"muster/ingress"
	"muster/jobs"
	"muster/jobs/queue"
	"muster/jobs/queue/keys"
)

// Kept is an event as the inbox has it.
type Kept struct {
	events.Event // Body is empty in lists
	Size         int
	Class        ingress.Class
	By, Again    string // see Arrival
	State        State
	Tries        int
	Error        string // of the last try that failed
	Ended        time.Time
	Outcome      events.Outcome
	Doubt        string // why no server has vouched for it; empty: one has, or it is of a list
}

// A Filter says which events a list has.
type Filter struct {
	Source, Customer, Kind string // empty: all
	State                  State
	Before                 int64 // only events with a lower number; 0: all
	Most                   int
	Sees                   func(customer string) bool
}

func (f Filter) fits(k Kept) bool {
	return (f.Source == "" || f.Source == k.Source) &&
		(f.Customer == "" || f.Customer == k.Customer) &&
		(f.Kind == "" || f.Kind == k.Kind) &&
		(f.State == "" || f.State == k.State) && f.Sees(k.Customer)
}

// The events that are read at once, and for one answer.
const (
	pageEvents = 200
	pagesMax   = 50
)

// List returns events that fit a filter, the newest first, and the number before which the next
// list goes on; 0: there are no more.
func (q *Inbox) List(ctx context.Context, f Filter) (list []Kept, next int64, err error) {
	before := "+inf"
	if f.Before > 0 {
		before = "(" + strconv.FormatInt(f.Before, 10)
	}
	for range pagesMax {
		page, err := q.c.Redis().ZRevRangeByScoreWithScores(ctx, keys.Hub("arrivals", ""),
			&redis.ZRangeBy{Min: "-inf", Max: before, Count: pageEvents}).Result()
		if err != nil || len(page) == 0 {
			return list, 0, q.c.Say("events", err)
		}
		kept, err := q.heads(ctx, page)
		if err != nil {
			return nil, 0, err
		}
		for _, k := range kept {
			if next = k.Seq; f.fits(k) {
				if list = append(list, k); len(list) == f.Most {
					return list, next, nil
				}
			}
		}
		if len(page) < pageEvents {
			return list, 0, nil
		}
		last := page[len(page)-1].Score
		next, before = int64(last), "("+strconv.FormatFloat(last, 'f', 0, 64)
	}
	return list, next, nil
}

// headFields are the fields of an event without its body.
var headFields = strings.Fields("record state class size tries error ended outcome")

// heads reads events without their bodies. One that was dropped meanwhile is left out.
func (q *Inbox) heads(ctx context.Context, page []redis.Z) ([]Kept, error) {
	cmds := make([]*redis.SliceCmd, len(page))
	_, err := q.c.Redis().Pipelined(ctx, func(p redis.Pipeliner) error {
		for i, z := range page {
			cmds[i] = p.HMGet(ctx, keys.Hub("event:", idOf(z)), headFields...)
		}
		return nil
	})
	if err != nil {
		return nil, q.c.Say("events", err)
	}
	list := make([]Kept, 0, len(page))
	for i, z := range page {
		h := map[string]string{}
		for j, field := range headFields {
			h[field], _ = cmds[i].Val()[j].(string)
		}
		if h["record"] != "" {
			list = append(list, q.kept(idOf(z), int64(z.Score), h, nil))
		}
	}
	return list, nil
}

func idOf(z redis.Z) string {
	id, _ := z.Member.(string)
	return id
}

// kept makes an event of its fields. Without a body the record is not held against it.
func (q *Inbox) kept(id string, seq int64, h map[string]string, body *string) Kept {
	text, doubt := q.by.Vouched(id, h["record"])
	var r record
	if json.Unmarshal([]byte(text), &r) != nil && doubt == nil {
		doubt = errors.New("its record cannot be read")
	}
	r.ID = id
	k := Kept{Event: r.event(seq, ""), Class: ingress.Class(h["class"]), By: r.By, Again: r.Again,
		State: State(h["state"]), Error: h["error"]}
	if body != nil {
		_, doubt = q.open(id, h["record"], *body)
		k.Body = []byte(*body)
	}
	if doubt != nil {
		k.Doubt = doubt.Error()
	}
	k.Size, _ = strconv.Atoi(h["size"])
	k.Tries, _ = strconv.Atoi(h["tries"])
	if micros, err := strconv.ParseInt(h["ended"], 10, 64); err == nil {
		k.Ended = jobs.Micros(micros).Time()
	}
	// An outcome that cannot be read is left out: nothing is done by it.
	_ = json.Unmarshal([]byte(h["outcome"]), &k.Outcome)
	return k
}

// Event returns an event with its body. The error wraps queue.ErrNotFound if it is not kept.
func (q *Inbox) Event(ctx context.Context, id string) (Kept, error) {
	h, err := q.c.Redis().HGetAll(ctx, keys.Hub("event:", id)).Result()
	if err != nil {
		return Kept{}, q.c.Say("event", err)
	}
	if h["record"] == "" {
		return Kept{}, fmt.Errorf("event %s: %w", id, queue.ErrNotFound)
	}
	seq, _ := strconv.ParseInt(h["seq"], 10, 64)
	body := h["body"]
	return q.kept(id, seq, h, &body), nil
}

// A Tally counts the events of a source.
type Tally struct {
	Source  string
	Taken   int64 // since this installation began
	Again   int64 // repeated deliveries
	Flood   int64 // refused beyond the bounds
	Done    int64
	Stuck   int64
	Doubted int64
	Waiting int64 // now
	Bytes   int64 // of those
}

// Tallies counts the events of each source that ever sent one, by name.
func (q *Inbox) Tallies(ctx context.Context) ([]Tally, error) {
	h, err := q.c.Redis().HGetAll(ctx, keys.Hub("inbox", "")).Result()
	if err != nil {
		return nil, q.c.Say("inbox", err)
	}
	all := map[string]Tally{}
	for field, text := range h {
		word, source, named := strings.Cut(field, ":")
		n, err := strconv.ParseInt(text, 10, 64)
		if !named || err != nil {
			continue
		}
		t := all[source]
		t.Source = source
		switch word {
		case "taken":
			t.Taken = n
		case "again":
			t.Again = n
		case "flood":
			t.Flood = n
		case "done":
			t.Done = n
		case "stuck":
			t.Stuck = n
		case "doubted":
			t.Doubted = n
		case "waiting":
			t.Waiting = n
		case "bytes":
			t.Bytes = n
		}
		all[source] = t
	}
	return slices.SortedFunc(maps.Values(all), func(a, b Tally) int {
		return strings.Compare(a.Source, b.Source)
	}), nil
}
