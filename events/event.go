// Package events says what an event is: something that happened elsewhere, or inside of muster,
// and may start work here. It carries data and never an order: what is done about it is said by
// triggers, which are configured.
//
// Floor 0: may import internal/wording.
package events

import (
	"slices"
	"time"
)

// Own is the source of the events of muster itself. No other source can have its name.
const Own = "muster"

// An Event is one thing that happened, as it was stored before its sender had an answer.
type Event struct {
	ID       string    // of this event; the same again when it is worked on again
	Seq      int64     // grows with each event of the installation
	Source   string    // the configured source that it came from
	Kind     string    // what the source calls it, such as push; may be empty
	Customer string    // the customer whose event it is; empty: it concerns the whole house
	At       time.Time // when it was stored
	Body     []byte    // as the sender wrote it: hostile until it is parsed
}

// A Firing is what became of an event at one trigger.
type Firing struct {
	Trigger string `json:"trigger"`
	// Task is the task that was submitted. Its key is derived from the event and the trigger (Key),
	// so that an event which is worked on twice makes one task. Empty: none was submitted.
	Task string `json:"task,omitempty"`
	// Why says in words why no task was submitted, or why it is another than was asked for.
	Why string `json:"why,omitempty"`
}

// An Outcome says what was done about an event. Without firings nothing matched it.
type Outcome struct {
	Firings []Firing `json:"firings,omitempty"`
}

// Tasks returns the tasks that an outcome names.
func (o Outcome) Tasks() []string {
	var tasks []string
	for _, f := range o.Firings {
		if f.Task != "" && !slices.Contains(tasks, f.Task) {
			tasks = append(tasks, f.Task)
		}
	}
	return tasks
}

// Key returns the key under which a task for an event and a trigger is submitted: the same words
// make the same key, whoever works on the event and how often.
func Key(event, trigger string) string { return "event/" + event + "/" + trigger }
