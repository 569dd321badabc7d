package triggers

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"
	"time"

	"muster/events"
	"muster/internal/wording"
)

// A Result names the outcome of an event at a trigger.
type Result string

// The results.
const (
	Passes   Result = "passes"   // the event does not concern the trigger
	Fires    Result = "fires"    // a task is submitted now
	Collects Result = "collects" // it is kept, and fires later unless another event replaces it
	Limited  Result = "limited"  // it would fire, and has fired as often as it may
	Refused  Result = "refused"  // it concerns the trigger, and must not or cannot fire
)

// A Decision is what one trigger does about one event.
type Decision struct {
	Trigger string
	Result  Result
	Why     []string // why it does not fire, one reason for each condition that does not hold
	Bound   Bound    // what the task would have of the event, if it fires or collects
	Key     string   // events with the same one are collected together
	Due     time.Time
}

// Words returns the reasons on one line.
func (d Decision) Words() string { return strings.Join(d.Why, "; ") }

// Bound holds the values that the task of a trigger takes from an event: data only.
type Bound struct {
	Event    string            `json:"event"` // its id
	Source   string            `json:"source"`
	Kind     string            `json:"kind,omitempty"`
	Customer string            `json:"customer,omitempty"`
	At       time.Time         `json:"at"`
	Args     map[string]string `json:"args,omitempty"`
	Hosts    []string          `json:"hosts,omitempty"` // exact names; none: all that the selector picks
	Labels   map[string]string `json:"labels,omitempty"`
	// Stems are the triggers whose tasks led to this event, the first one first, with the trigger
	// itself at the end.
	Stems []string `json:"stems,omitempty"`
}

// A Past holds the memory of one trigger.
type Past struct {
	// Fired has the times that still count, in their order, for events of the whole house; Of has
	// them for events of each customer: those of one do not count for another.
	Fired []time.Time            `json:"fired,omitempty"`
	Of    map[string][]time.Time `json:"of,omitempty"`
	Held  map[string]Held        `json:"held,omitempty"` // by key
}

// Held is an event that was collected and has not fired.
type Held struct {
	Bound Bound     `json:"bound"`
	First time.Time `json:"first"` // when the first event of these came
	Due   time.Time `json:"due"`
}

// A Memory is all that a decision must know beside the event.
type Memory struct {
	Now  time.Time
	Past map[string]Past // by trigger

	// Stems are the triggers whose tasks led to the event, the first one first. Of an event from
	// elsewhere nothing is known of that, so there are none.
	Stems []string
	// Doubt says why the descent of the event is not known; empty: it is.
	Doubt string
}

// The bounds of what follows from each other, and of what is kept.
const (
	// DepthMax bounds chains: triggers whose tasks fire triggers.
	DepthMax = 3
	// heldMax bounds the groups of events that one trigger collects at a time.
	heldMax = 200
)

// Decide says what each trigger does about an event, in the order of the file.
func (s *Set) Decide(e events.Event, m Memory) []Decision {
	it := see(e)
	var out []Decision
	for _, t := range s.All() {
		out = append(out, t.decide(it, m))
	}
	return out
}

// Decide says what the trigger does about an event.
func (t Trigger) Decide(e events.Event, m Memory) Decision { return t.decide(see(e), m) }

func (t Trigger) decide(s seen, m Memory) Decision {
	d := Decision{Trigger: t.Name, Result: Passes}
	if d.Why = t.passes(s); len(d.Why) > 0 {
		return d
	}
	d.Result = Refused
	if why := t.deadEnd(m); why != "" {
		d.Why = []string{why}
		return d
	}
	if d.Bound, d.Why = t.bind(s, m); len(d.Why) > 0 {
		return d
	}
	past := m.Past[t.Name]
	if t.Debounce != nil {
		return t.collect(d, s, past, m.Now)
	}
	if why := t.limited(past, d.Bound.Customer, m.Now); why != "" {
		d.Result, d.Why = Limited, []string{why}
		return d
	}
	d.Result = Fires
	return d
}

// passes returns all reasons why an event does not concern the trigger.
func (t Trigger) passes(s seen) (why []string) {
	note := func(format string, args ...any) { why = append(why, fmt.Sprintf(format, args...)) }
	if !t.Enabled {
		note("the trigger is not enabled")
	}
	for _, c := range []struct {
		what, is string
		globs    []string
	}{{"source", s.event.Source, t.Match.Sources}, {"kind", s.event.Kind, t.Match.Kinds},
		{"customer", s.event.Customer, t.Match.Customers}} {
		if len(c.globs) > 0 && !fitsAny(c.globs, c.is) {
			note("%s: the event has %s, and the trigger wants %s", c.what, shown(c.is),
				wording.ClipList(strings.Join(c.globs, ", ")))
		}
	}
	for _, c := range t.Match.When {
		if text := c.fails(s); text != "" {
			note("%s: %s", c.Field, text)
		}
	}
	return why
}

func shown(text string) string {
	if text == "" {
		return "none"
	}
	return wording.Quote(text)
}

// fails says why a condition does not hold; empty: it holds.
func (c Condition) fails(s seen) string {
	if c.Op == Exists {
		if want := c.Values[0] == "true"; s.has(c.Field) != want {
			return map[bool]string{true: "the event does not have it", false: "the event has it"}[want]
		}
		return ""
	}
	values, err := s.values(c.Field)
	if err != nil {
		return err.Error()
	}
	holds := func(v string) bool { return slices.Contains(c.Values, v) }
	if c.Op == Glob {
		holds = func(v string) bool { return fits(c.Values[0], v) }
	}
	if slices.ContainsFunc(values, holds) {
		return ""
	}
	return fmt.Sprintf("the event has %s, and the trigger wants %s %s",
		wording.ClipList(quoted(values)), c.Op, wording.ClipList(quoted(c.Values)))
}

func quoted(list []string) string {
	out := make([]string, 0, min(len(list), 10))
	for _, one := range list[:min(len(list), 10)] {
		out = append(out, wording.Quote(one))
	}
	return strings.Join(out, ", ")
}

// deadEnd says why an event that stems from tasks of triggers must not fire this one.
func (t Trigger) deadEnd(m Memory) string {
	switch {
	case m.Doubt != "":
		return "it is not known which triggers led to the event, so it fires none: " + m.Doubt
	case slices.Contains(m.Stems, t.Name):
		return fmt.Sprintf("the event stems from a task of this trigger (%s): it would fire itself",
			strings.Join(m.Stems, " → "))
	case len(m.Stems) >= DepthMax:
		return fmt.Sprintf("the event stems from a chain of %d triggers (%s), which is the most",
			len(m.Stems), strings.Join(m.Stems, " → "))
	}
	return ""
}

// bind finds the values that the task has of the event, or all reasons why it cannot.
func (t Trigger) bind(s seen, m Memory) (Bound, []string) {
	e := s.event
	b := Bound{Event: e.ID, Source: e.Source, Kind: e.Kind, Customer: e.Customer, At: e.At,
		Stems: append(slices.Clone(m.Stems), t.Name)}
	var why []string
	size := 0
	take := func(what string, f Field) []string {
		list, err := s.values(f)
		if err != nil {
			why = append(why, fmt.Sprintf("%s: %v", what, err))
		}
		for _, one := range list {
			size += len(one)
		}
		return list
	}
	one := func(what string, f Field, into *map[string]string, name string) {
		list := take(what, f)
		if len(list) > 1 {
			why = append(why, fmt.Sprintf("%s: the event has %d values at %s: want one", what,
				len(list), f))
		}
		if len(list) == 1 {
			if *into == nil {
				*into = map[string]string{}
			}
			(*into)[name] = list[0]
		}
	}
	for _, a := range t.Work.Args {
		if a.Field != nil {
			one("argument "+a.Name, *a.Field, &b.Args, a.Name)
		}
	}
	for _, l := range t.Work.Aim.Labels {
		one("label "+l.Label, l.Field, &b.Labels, l.Label)
		if value, found := b.Labels[l.Label]; found && value == "" {
			why = append(why, fmt.Sprintf("label %s: the event has an empty text at %s, which would mean "+
				"hosts without the label", l.Label, l.Field))
		}
	}
	if h := t.Work.Aim.Host; h != nil {
		b.Hosts = take("host", *h)
		slices.Sort(b.Hosts)
		b.Hosts = slices.Compact(b.Hosts)
	}
	if size > boundMax {
		why = append(why, fmt.Sprintf("the values of the event have %d bytes: at most %d", size,
			boundMax))
	}
	return b, why
}

// collect keeps an event until no other one like it has come for a while.
func (t Trigger) collect(d Decision, s seen, past Past, now time.Time) Decision {
	if by := t.Debounce.By; by != nil {
		list, err := s.values(*by)
		if err != nil {
			d.Why = []string{"debounce: " + err.Error()}
			return d
		}
		d.Key = strings.Join(list, "\x00")
	}
	// Events of one customer say nothing of those of another, and fill nobody else's room.
	sum := sha256.Sum256([]byte(d.Bound.Customer + "\x00" + d.Key))
	d.Key = hex.EncodeToString(sum[:])
	held, there := past.Held[d.Key]
	groups := 0
	for _, one := range past.Held {
		if one.Bound.Customer == d.Bound.Customer {
			groups++
		}
	}
	if !there && groups >= heldMax {
		d.Why = []string{fmt.Sprintf("debounce: the trigger collects %d groups of events of the "+
			"customer already, which is the most", groups)}
		return d
	}
	d.Result, d.Due = Collects, now.Add(t.Debounce.Quiet)
	if last := held.First.Add(t.Debounce.Longest); there && last.Before(d.Due) {
		d.Due = last
	}
	d.Why = []string{fmt.Sprintf("it fires at %s, unless another event comes before",
		d.Due.UTC().Format(time.RFC3339))}
	return d
}

// limited says why the trigger must not fire now for a customer; empty: it may.
func (t Trigger) limited(past Past, customer string, now time.Time) string {
	recent := since(past.times(customer), now.Add(-t.Limit.Per))
	if t.Limit.Most == 0 || len(recent) < t.Limit.Most {
		return ""
	}
	whose := ""
	if customer != "" {
		whose = " for customer " + customer
	}
	return fmt.Sprintf("limit: it has fired %d times%s within %s, which is the most; it may again at "+
		"%s", len(recent), whose, t.Limit.Per, recent[0].Add(t.Limit.Per).UTC().Format(time.RFC3339))
}

// times returns when the trigger fired for a customer; empty: for the whole house.
func (p Past) times(customer string) []time.Time {
	if customer == "" {
		return p.Fired
	}
	return p.Of[customer]
}

// since returns the times after another one, in their order.
func since(list []time.Time, from time.Time) []time.Time {
	out := slices.DeleteFunc(slices.Clone(list), func(t time.Time) bool { return !t.After(from) })
	slices.SortFunc(out, time.Time.Compare)
	return out
}

// Ripe returns the held event of a trigger that is due first, with its key; nothing is due if it is
// not found.
func (p Past) Ripe(now time.Time) (key string, h Held, found bool) {
	for k, one := range p.Held {
		if one.Due.After(now) || found && !one.Due.Before(h.Due) {
			continue
		}
		key, h, found = k, one, true
	}
	return key, h, found
}

// Release decides about a held event that is due: it fires now, or it is limited.
func (t Trigger) Release(h Held, past Past, now time.Time) Decision {
	d := Decision{Trigger: t.Name, Result: Fires, Bound: h.Bound}
	if !t.Enabled {
		d.Result, d.Why = Refused, []string{"the trigger is not enabled any more"}
	} else if why := t.limited(past, h.Bound.Customer, now); why != "" {
		d.Result, d.Why = Limited, []string{why}
	}
	return d
}

// Hold returns what is remembered once a decision to collect is in force, and the event that this
// one replaces; empty: none.
func (p Past) Hold(d Decision, now time.Time) (to Past, replaced string) {
	to = p.clone()
	h := Held{Bound: d.Bound, First: now, Due: d.Due}
	if was, there := to.Held[d.Key]; there {
		h.First, replaced = was.First, was.Bound.Event
	}
	to.Held[d.Key] = h
	return to, replaced
}

// Fire returns what is remembered once the trigger has fired for a customer. An event that was held
// goes.
func (p Past) Fire(t Trigger, event, customer string, now time.Time) Past {
	to, from := p.Drop(event), now.Add(-t.Limit.Per)
	to.Fired = since(to.Fired, from)
	for name, list := range to.Of {
		if to.Of[name] = since(list, from); len(to.Of[name]) == 0 {
			delete(to.Of, name)
		}
	}
	switch {
	case t.Limit.Most == 0:
		to.Fired, to.Of = nil, nil
	case customer == "":
		to.Fired = append(to.Fired, now)
	default:
		to.Of[customer] = append(to.Of[customer], now)
	}
	return to
}

// Drop returns what is remembered without a held event.
func (p Past) Drop(event string) Past {
	to := p.clone()
	for key, h := range to.Held {
		if h.Bound.Event == event {
			delete(to.Held, key)
		}
	}
	return to
}

func (p Past) clone() Past {
	to := Past{Fired: slices.Clone(p.Fired), Of: make(map[string][]time.Time, len(p.Of)+1),
		Held: make(map[string]Held, len(p.Held)+1)}
	for customer, list := range p.Of {
		to.Of[customer] = slices.Clone(list)
	}
	for k, h := range p.Held {
		to.Held[k] = h
	}
	return to
}
