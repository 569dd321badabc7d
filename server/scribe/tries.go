package scribe

import (
	"sync"

	"muster/audit"
)

// triesMax bounds the orders whose tries are remembered.
const triesMax = 1000

// tries are orders of duties that are written and not done yet, by task.
type tries struct {
	mu   sync.Mutex
	list map[string]try
}

// try is an order with its entry.
type try struct {
	id    string
	order string // hash of what was ordered
	draft audit.Draft
}

// outcome returns the entry that says how the order ended.
func (t try) outcome(result string) audit.Draft {
	return audit.Draft{Name: t.draft.Name, Entry: audit.Entry{Kind: audit.KindOutcome,
		Proof: t.draft.Entry.Proof, Verb: t.draft.Entry.Verb, Object: t.draft.Entry.Object,
		End: &audit.End{Of: t.id, Result: result}}}
}

// of returns the earlier try of an order; false: there is none, or it ordered something else.
func (t *tries) of(o Order) (try, bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	one, known := t.list[o.Task]
	return one, known && one.order == o.What.Order
}

func (t *tries) keep(o Order, one try) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.list == nil || len(t.list) >= triesMax {
		t.list = map[string]try{}
	}
	t.list[o.Task] = one
}

func (t *tries) forget(o Order) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.list, o.Task)
}
