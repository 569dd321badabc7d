package firing

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/hashicorp/go-hclog"

	"muster/access"
	"muster/api"
	"muster/events"
	"muster/internal/wording"
	"muster/jobs"
	"muster/jobs/queue"
	"muster/jobs/queue/firings"
	"muster/scripts"
	"muster/server/stock"
	"muster/server/web"
	"muster/triggers"
)

// A Book keeps what triggers did. Its method OfTask wraps queue.ErrNotFound.
type Book interface {
	Memories(ctx context.Context) (map[string]triggers.Past, []error, error)
	Change(ctx context.Context, trigger string, f firings.Change) error
	Records(ctx context.Context, event string, names []string) (map[string]firings.Record, error)
	OfTask(ctx context.Context, task jobs.TaskID) (firings.Record, error)
	List(ctx context.Context, from, most int) ([]firings.Record, bool, error)
	Trim(ctx context.Context, now time.Time) error
}

// Tasks reads tasks. Its errors wrap queue.ErrNotFound if there is no such task.
type Tasks interface {
	Task(ctx context.Context, id jobs.TaskID) (jobs.TaskInfo, error)
}

// A Request is a task that a trigger submits.
type Request struct {
	Body      api.Submit
	Principal string
	Reason    string
	Hold      bool // the task waits for signatures of people
}

// Submits takes the tasks of triggers as it takes those of people, with the rights in the context.
type Submits interface {
	SubmitFor(ctx context.Context, r Request) (api.Submitted, error)
}

// Cancels ends what was submitted in part.
type Cancels interface {
	Cancel(ctx context.Context, id jobs.TaskID, note string) (jobs.Cancel, error)
}

// Needs has all that a Firer works with.
type Needs struct {
	Keeper  *Keeper
	Book    Book
	Tasks   Tasks
	Past    Tasks // tasks that Redis may have forgotten; nil: there is no history
	Cancels Cancels
	Submits Submits
	Look    *stock.Looker
	Rights  func() *access.Rights
	Catalog func() *scripts.Catalog
	Log     hclog.Logger
	Now     func() time.Time
}

// A Firer fires triggers.
type Firer struct {
	Needs
	locks sync.Map // by trigger: *sync.Mutex
}

// New returns what fires triggers.
func New(n Needs) *Firer { return &Firer{Needs: n} }

// lock makes one caller at a time decide for a trigger; it returns the end of the lock.
func (f *Firer) lock(trigger string) func() {
	l, _ := f.locks.LoadOrStore(trigger, &sync.Mutex{})
	mu := l.(*sync.Mutex)
	mu.Lock()
	return mu.Unlock
}

// Fire does what triggers say about an event. An error means that it is not known what became of
// the event, or that Redis is away: the same call again completes it, and does nothing twice.
func (f *Firer) Fire(ctx context.Context, e events.Event) (events.Outcome, error) {
	out := events.Outcome{}
	set, err := f.Keeper.Set(ctx)
	if err != nil {
		return out, fmt.Errorf("it is not known which triggers are in force: %w", err)
	}
	if why := f.Keeper.broken(); f.Keeper.File() == nil && why != "" {
		return out, fmt.Errorf("no triggers are in force: %s", why)
	}
	memory := triggers.Memory{Now: f.Now()}
	var names []string
	for _, d := range set.Decide(e, memory) {
		if d.Result != triggers.Passes {
			names = append(names, d.Trigger)
		}
	}
	if len(names) == 0 {
		return out, nil
	}
	if memory.Stems, memory.Doubt, err = f.descent(ctx, e); err != nil {
		return out, err
	}
	for _, name := range names {
		t, _ := set.Find(name)
		r, err := f.one(ctx, t, e, memory)
		if err != nil {
			return out, fmt.Errorf("trigger %s: %w", name, err)
		}
		out.Firings = append(out.Firings, events.Firing{Trigger: name, Task: string(r.Task), Why: r.Why})
	}
	return out, nil
}

// one does what one trigger says about an event that concerns it.
func (f *Firer) one(ctx context.Context, t triggers.Trigger, e events.Event,
	m triggers.Memory) (firings.Record, error) {
	defer f.lock(t.Name)()
	known, err := f.Book.Records(ctx, e.ID, []string{t.Name})
	if err != nil {
		return firings.Record{}, err
	}
	if r, is := known[t.Name]; is {
		return r, nil
	}
	past, doubts, err := f.Book.Memories(ctx)
	if err != nil {
		return firings.Record{}, err
	}
	for _, doubt := range doubts {
		f.Log.Error("triggers", "doubt", doubt)
	}
	m.Now, m.Past = f.Now(), past
	d := t.Decide(e, m)
	if d.Result == triggers.Collects {
		return f.collect(ctx, t, d)
	}
	return f.carryOut(ctx, t, d)
}

// collect keeps an event that fires later.
func (f *Firer) collect(ctx context.Context, t triggers.Trigger, d triggers.Decision) (
	firings.Record, error) {
	r := f.record(t, d.Bound, d.Result, d.Words())
	return r, f.Book.Change(ctx, t.Name, func(past triggers.Past) (triggers.Past, []firings.Record) {
		to, replaced := past.Hold(d, f.Now())
		list := []firings.Record{r}
		if was, there := past.Held[d.Key]; there && replaced != d.Bound.Event {
			list = append(list, f.record(t, was.Bound, triggers.Collects,
				"event "+d.Bound.Event+" came after it: the trigger fires with that one"))
		}
		return to, list
	})
}

// carryOut submits the task of a decision, if it is to fire, and remembers what became of it.
func (f *Firer) carryOut(ctx context.Context, t triggers.Trigger, d triggers.Decision) (
	firings.Record, error) {
	r := f.record(t, d.Bound, d.Result, d.Words())
	if d.Result == triggers.Fires || d.Result == triggers.Limited {
		// A server that died may have submitted it, and said nothing to the limit.
		made, err := f.made(ctx, t, d.Bound)
		if err != nil {
			return r, err
		}
		if made != "" {
			r.Result, r.Task, r.Why = triggers.Fires, made, ""
		}
	}
	if r.Result == triggers.Fires && r.Task == "" {
		task, why, err := f.submit(ctx, t, d.Bound)
		if err != nil {
			return r, err
		}
		if r.Task, r.Hosts, r.Why = task.Task, task.Total, why; r.Task == "" {
			r.Result = triggers.Refused
		}
	}
	err := f.Book.Change(ctx, t.Name, func(past triggers.Past) (triggers.Past, []firings.Record) {
		if r.Task == "" {
			return past.Drop(r.Event), []firings.Record{r}
		}
		return past.Fire(t, r.Event, r.Customer, f.Now()), []firings.Record{r}
	})
	if err == nil {
		f.Log.Info("trigger", "trigger", t.Name, "event", r.Event, "result", r.Result, "task", r.Task,
			"why", wording.Clip(r.Why))
	}
	return r, err
}

// whyMax bounds the reason of a record, in bytes.
const whyMax = 1000

func (f *Firer) record(t triggers.Trigger, b triggers.Bound, result triggers.Result,
	why string) firings.Record {
	return firings.Record{Event: b.Event, Trigger: t.Name, Source: b.Source,
		Kind: wording.OneLine(b.Kind, 200), Customer: b.Customer, At: jobs.Time{Time: f.Now()},
		Result: result, Why: wording.OneLine(why, whyMax), Stems: b.Stems}
}

// idTries bounds the ids that a firing could have: other tasks may have the first ones.
const idTries = 5

// IDOf returns an id for the task of a firing: the same for the same event and trigger.
func IDOf(b triggers.Bound, trigger string, salt int) jobs.TaskID {
	key := events.Key(b.Event, trigger)
	if salt > 0 {
		key += "/" + strconv.Itoa(salt)
	}
	sum := sha256.Sum256([]byte(key))
	return jobs.NewTaskID(b.At, binary.BigEndian.Uint16(sum[:]))
}

// use is the use of an id that a firing could have.
type use int

const (
	idFree  use = iota // or the firing's own, submitted in part
	idTaken            // another task's, or given up
	idDone             // the firing's own task
)

// find says what an id is used for.
func (f *Firer) find(ctx context.Context, id jobs.TaskID, t triggers.Trigger,
	b triggers.Bound) (use, error) {
	own := func(i jobs.TaskInfo) bool {
		return i.Operator == t.Principal() && i.Reason == b.Reason()
	}
	i, err := f.Tasks.Task(ctx, id)
	switch {
	case errors.Is(err, queue.ErrNotFound):
		if f.Past == nil {
			return idFree, nil
		}
		if i, err := f.Past.Task(ctx, id); err == nil {
			return map[bool]use{true: idDone, false: idTaken}[own(i)], nil
		}
		return idFree, nil // it is not there; or history is away, which stops nobody
	case err != nil:
		return idFree, err
	case !own(i):
		return idTaken, nil
	case i.CancelledInSubmit && !strings.Contains(i.Cancelled, givenUp):
		return idDone, nil // a person did not want it
	case i.CancelledInSubmit:
		return idTaken, nil
	case i.State != jobs.TaskSubmitting:
		return idDone, nil
	case i.Cancelled != "":
		return idTaken, nil
	}
	return idFree, nil
}

// givenUp is the reason of a cancel by which a trigger gives an id up.
const givenUp = "submitted in part by a server that is gone"

// made returns the task of a firing that is there; empty: none is.
func (f *Firer) made(ctx context.Context, t triggers.Trigger, b triggers.Bound) (jobs.TaskID,
	error) {
	for salt := range idTries {
		id := IDOf(b, t.Name, salt)
		is, err := f.find(ctx, id, t, b)
		if err != nil || is == idFree {
			return "", err
		}
		if is == idDone {
			return id, nil
		}
	}
	return "", nil
}

// submit makes the task of a firing. why is the reason if there can be none; an error means that
// it is not known whether there is one.
func (f *Firer) submit(ctx context.Context, t triggers.Trigger, b triggers.Bound) (
	task jobs.TaskInfo, why string, err error) {
	for salt := range idTries {
		id := IDOf(b, t.Name, salt)
		is, err := f.find(ctx, id, t, b)
		if err != nil {
			return task, "", err
		}
		if is == idTaken {
			continue
		}
		s, err := f.ask(ctx, t, b, id, false)
		if err == nil {
			return s.TaskInfo, "", nil
		}
		if status(err) != statusConflict {
			if why := refusal(err); why != "" {
				return task, why, nil
			}
			return task, "", err
		}
		// An earlier server got half way with other hosts: nothing of that may come any more.
		if is, again := f.find(ctx, id, t, b); again != nil || is != idFree {
			if again != nil {
				return task, "", again
			}
			continue
		}
		if _, again := f.Tasks.Task(ctx, id); errors.Is(again, queue.ErrNotFound) {
			return task, refusal(err), nil // the conflict is with something else
		}
		if _, err := f.Cancels.Cancel(ctx, id, t.Principal()+": "+givenUp); err != nil {
			return task, "", err
		}
	}
	return task, "other tasks have all the ids that this firing could have", nil
}

const statusConflict = 409

// status returns the status of an answer; 0: it is none.
func status(err error) int {
	if s := huma.StatusError(nil); errors.As(web.Problem(err), &s) {
		return s.GetStatus()
	}
	return 0
}

// refusal returns the words of an answer that refuses a request for good; empty: the same request
// may be carried out later.
func refusal(err error) string {
	if n := status(err); n < 400 || n >= 499 {
		return ""
	}
	err = web.Problem(err)
	m := (*huma.ErrorModel)(nil)
	if !errors.As(err, &m) {
		return wording.ErrorLine(err)
	}
	words := []string{}
	for _, d := range m.Errors {
		words = append(words, strings.TrimPrefix(d.Location, "body.")+": "+d.Message)
	}
	if len(words) == 0 {
		words = []string{m.Detail}
	}
	return strings.ReplaceAll(strings.Join(words, "; "), "\n", "; ")
}
