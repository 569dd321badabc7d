// Package warden decides for a worker whether people and servers whom its node trusts have ordered
// the jobs that the queue hands out. It reads the signed order of a task once, and each share of
// its hosts once; package trust judges them.
//
// A warden believes nothing else that Redis says about a job, but for its place in the queue:
// runbook, values and host must be as they were signed, and the state of a job that has begun has a
// MAC of the nodes.
//
// [Times] is the timetable as far as servers have signed it.
//
// Floor 3: may import jobs, trust, windows and what is below.
package warden

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"sync"
	"time"

	"github.com/hashicorp/go-hclog"

	"muster/internal/serverkey"
	"muster/internal/wording"
	"muster/jobs"
	"muster/trust"
)

// Orders reads what is stored beside a task.
type Orders interface {
	// SignedOrder returns the bytes of the order of a task and its signatures; none: it has none.
	SignedOrder(ctx context.Context, zone string, id jobs.TaskID) (order []byte, signatures []string,
		err error)

	// Share returns the lines of a share of the hosts of an order; empty: there are none.
	Share(ctx context.Context, zone string, id jobs.TaskID, share int) (string, error)

	// Alert tells people who watch a zone.
	Alert(ctx context.Context, zone string, a jobs.Alert) error
}

const (
	// tasksMax bounds the tasks that a warden remembers. A worker takes jobs of a few in turn.
	tasksMax = 16

	// examineEvery is the time after which the signatures of an order are checked again, because
	// keys expire.
	examineEvery = time.Minute
)

// A Warden checks jobs. Its methods may be called by several goroutines.
type Warden struct {
	orders Orders
	rules  func() (*trust.Rules, error)
	now    func() time.Time
	log    hclog.Logger

	mu     sync.Mutex
	tasks  []*known // the latest last
	proves stamps
	times  time.Time // since when the last timetable is in force that servers spoke of
}

// New returns a warden. rules returns the rules in force; nil: the node trusts whatever Redis says.
func New(o Orders, rules func() (*trust.Rules, error), now func() time.Time,
	log hclog.Logger) *Warden {
	return &Warden{orders: o, rules: rules, now: now, log: log}
}

// known holds the examined order of a task.
type known struct {
	zone     string
	id       jobs.TaskID
	rules    *trust.Rules // under which it was examined
	at       time.Time
	standing *trust.Standing
	why      error // nil: the signatures hold
	shares   map[int]share
	told     bool // people know that it does not hold

	toldGlass bool // people know that the glass was broken for it
}

// A share holds the records of hosts of an order, by name, and those of their kin.
type share struct{ hosts, kin map[string]string }

// A Doubt is the error of a job that must not run, because its order does not hold.
type Doubt struct{ Why error }

// Error says what is wrong with the order, in one line.
func (d *Doubt) Error() string {
	return "the order does not hold: " + wording.ErrorLine(d.Why)
}

// Unwrap returns the reason.
func (d *Doubt) Unwrap() error { return d.Why }

// Check returns an error unless a job may run as the queue describes it. The error is a *Doubt if
// the job must not run, a *trust.EarlyError if it must wait; any other error leaves that open.
func (w *Warden) Check(ctx context.Context, zone string, g jobs.Grant, spec jobs.Spec) error {
	rules, err := w.rules()
	if err != nil {
		return fmt.Errorf("%s: %w", trust.Unread, err)
	}
	if rules == nil || g.Host == nil { // without its host a job does nothing
		return nil
	}
	k, ruling, err := w.judge(ctx, zone, question{g, spec, rules})
	if err != nil {
		return err
	}
	if early := new(trust.EarlyError); ruling.Refused() && errors.As(ruling.Why, &early) {
		return early
	}
	if ruling.Refused() || ruling.Doubted() {
		w.tell(ctx, g.Job, k, ruling)
	}
	if ruling.Refused() {
		return &Doubt{ruling.Why}
	}
	if ruling.Broken != "" {
		w.tellOfGlass(ctx, g.Job, k, ruling.Broken)
	}
	return nil
}

// Holds returns an error unless a signed order holds for a job, whatever the policy does about one
// that does not. The error is a *Doubt if none holds; any other error leaves that open.
func (w *Warden) Holds(ctx context.Context, zone string, g jobs.Grant, spec jobs.Spec) error {
	rules, err := w.rules()
	switch {
	case err != nil:
		return fmt.Errorf("this node cannot read whom it trusts: %w", err)
	case rules == nil || g.Host == nil:
		return &Doubt{errors.New("nobody has looked at it")}
	}
	_, ruling, err := w.judge(ctx, zone, question{g, spec, rules})
	if err == nil && ruling.Why != nil {
		err = &Doubt{ruling.Why}
	}
	return err
}

// A question is a job as the queue describes it, and the rules by which it is judged.
type question struct {
	grant jobs.Grant
	spec  jobs.Spec
	rules *trust.Rules
}

// judge holds a job against the policy. An error says that Redis has not answered.
func (w *Warden) judge(ctx context.Context, zone string, q question) (*known, trust.Ruling, error) {
	g, rules := q.grant, q.rules
	k, err := w.task(ctx, zone, g.Job.Task(), rules)
	if err != nil {
		return nil, trust.Ruling{}, err
	}
	d := trust.Deed{Installation: rules.Keys.Installation(), Job: g.Job, Zone: zone, Host: *g.Host,
		Now: w.now(), Asks: g.Mode.Looks(), Continues: g.Step > 0 || g.Saved != ""}
	why := k.why
	if why == nil {
		if d.Record, why = w.record(ctx, zone, g.Job, k); isAway(why) {
			return nil, trust.Ruling{}, why
		}
	}
	if why == nil {
		why = k.invented(g, q.spec, d)
	}
	return k, rules.Policy.Judge(k.standing, why, d), nil
}

// tellOfGlass tells people once for each task that one person runs it alone. The server has told
// them; a node tells them in spite of a taken server.
func (w *Warden) tellOfGlass(ctx context.Context, id jobs.ID, k *known, reason string) {
	w.mu.Lock()
	first := !k.toldGlass
	k.toldGlass = true
	w.mu.Unlock()
	if !first {
		return
	}
	who := k.standing.Spec.Operator
	w.log.Warn("glass was broken: one person runs what more must sign", "task", id.Task(), "job", id,
		"operator", who, "reason", reason)
	err := w.orders.Alert(ctx, k.zone, jobs.Alert{Event: "glass-used", Object: string(id),
		Detail: map[string]any{"operator": who, "note": wording.OneLine(reason, noteMax)}})
	if err != nil {
		w.log.Warn("nobody could be told that glass was broken", "task", id.Task(), "job", id, "error",
			err)
	}
}

// noteMax bounds the reason in an event, in bytes.
const noteMax = 500

// invented returns an error if the queue says of a job what nobody has signed.
func (k *known) invented(g jobs.Grant, spec jobs.Spec, d trust.Deed) error {
	if !reflect.DeepEqual(spec, k.standing.Spec) {
		return errors.New("the queue has another runbook, other values or other terms than were " +
			"signed: somebody has changed the task in Redis; submit it anew")
	}
	if d.Asks {
		return nil
	}
	return trust.State{Job: g.Job, Step: g.Step, Saved: g.Saved}.Check(k.rules.Keys, d.Now)
}

// Answered returns a *Doubt if the answer at a gate of a job does not count. Check was called for
// the job before.
func (w *Warden) Answered(ctx context.Context, zone string, id jobs.ID, step int,
	a jobs.GateAnswer) error {
	rules, err := w.rules()
	if err != nil || rules == nil {
		return err
	}
	why := trust.AnswerOf(id, step, a).Check(rules.Keys.Installation(), a.Proof, w.signers(rules))
	k := w.find(zone, id.Task())
	if why == nil || k == nil {
		return why
	}
	ruling := rules.Policy.Judge(k.standing, why, trust.Deed{})
	if ruling.Refused() || ruling.Doubted() {
		w.tell(ctx, id, k, ruling)
	}
	if ruling.Refused() {
		return &Doubt{why}
	}
	return nil
}

// Seal returns the state of a job with the MAC of this node.
func (w *Warden) Seal(id jobs.ID, step int, saved string) string {
	rules, err := w.rules()
	if err != nil || rules == nil || rules.Keys.None() {
		return saved
	}
	return trust.State{Job: id, Step: step, Saved: saved}.Seal(rules.Keys, w.now())
}

// Prove returns the proof of this node for what it says of a job; empty: it has no key.
func (w *Warden) Prove(t trust.Testimony) string {
	rules, err := w.rules()
	if err != nil || rules == nil || rules.Keys.None() {
		return ""
	}
	w.mu.Lock()
	if w.proves.rules != rules {
		w.proves.rules, w.proves.by = rules, rules.Keys.Stamps(serverkey.Results)
	}
	by := w.proves.by
	w.mu.Unlock()
	return t.Prove(by, w.now())
}

// stamps make proofs under some rules.
type stamps struct {
	rules *trust.Rules
	by    serverkey.Stamps
}

// signers returns those whose signatures count now.
func (w *Warden) signers(r *trust.Rules) trust.Signers { return r.At(w.now()) }

// away is the error of a question that Redis has not answered.
type away struct{ error }

func (a away) Unwrap() error { return a.error }

func isAway(err error) bool { return errors.As(err, new(away)) }

// task returns what is known of a task. An error says that Redis has not answered.
func (w *Warden) task(ctx context.Context, zone string, id jobs.TaskID, rules *trust.Rules) (*known,
	error) {
	now := w.now()
	if k := w.find(zone, id); k != nil && k.rules == rules && now.Sub(k.at).Abs() < examineEvery {
		return k, nil
	}
	order, signatures, err := w.orders.SignedOrder(ctx, zone, id)
	if err != nil {
		return nil, away{err}
	}
	k := &known{zone: zone, id: id, rules: rules, at: now, shares: map[int]share{}}
	k.standing, k.why = trust.Examine(order, signatures, w.signers(rules))
	w.keep(k)
	if times := k.timesOf(rules); !times.After(now.Add(trust.TimesAhead)) {
		w.sawTimes(times)
	}
	return k, nil
}

// timesOf returns since when the timetable has been in force that a server knew; zero: none.
func (k *known) timesOf(rules *trust.Rules) time.Time {
	if k.why != nil || !k.standing.Server ||
		k.standing.Order.Installation != rules.Keys.Installation() {
		return time.Time{}
	}
	return k.standing.Order.Times
}

// sawTimes notes that a server spoke of a timetable that is in force since a time.
func (w *Warden) sawTimes(since time.Time) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if since.After(w.times) {
		w.times = since
	}
}

// timesSeen returns the latest such time.
func (w *Warden) timesSeen() time.Time {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.times
}

func (w *Warden) find(zone string, id jobs.TaskID) *known {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, k := range w.tasks {
		if k.zone == zone && k.id == id {
			return k
		}
	}
	return nil
}

// keep remembers a task, in place of what was known of it before.
func (w *Warden) keep(k *known) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.tasks = slices.DeleteFunc(w.tasks, func(old *known) bool {
		same := old.zone == k.zone && old.id == k.id
		k.told = k.told || same && old.told
		k.toldGlass = k.toldGlass || same && old.toldGlass
		return same
	})
	if len(w.tasks) == tasksMax {
		w.tasks = slices.Delete(w.tasks, 0, 1)
	}
	w.tasks = append(w.tasks, k)
}

// record returns the hash of a job's host in the order; empty: the order is not for it.
func (w *Warden) record(ctx context.Context, zone string, id jobs.ID, k *known) (string, error) {
	s, err := w.share(ctx, zone, id.Host(), k)
	return s.hosts[id.Host()], err
}

// share returns the share of an order that a host is in; an empty one: the order is not for it.
func (w *Warden) share(ctx context.Context, zone, host string, k *known) (share, error) {
	order := k.standing.Order
	n, ok := order.ShareOf(zone, host)
	if !ok {
		return share{}, nil
	}
	w.mu.Lock()
	s, read := k.shares[n]
	w.mu.Unlock()
	if !read {
		lines, err := w.orders.Share(ctx, zone, k.id, n)
		if err != nil {
			return share{}, away{err}
		}
		if s.hosts, s.kin, err = order.ShareAndKin(zone, n, lines); err != nil {
			return share{}, err
		}
		w.mu.Lock()
		k.shares[n] = s
		w.mu.Unlock()
	}
	return s, nil
}

// tell tells people once for each task that an order does not hold.
func (w *Warden) tell(ctx context.Context, id jobs.ID, k *known, r trust.Ruling) {
	w.mu.Lock()
	first := !k.told
	k.told = true
	w.mu.Unlock()
	w.log.Error("the order of a job does not hold", "task", id.Task(), "job", id, "mode",
		string(r.Mode), "why", r.Why)
	if !first {
		return
	}
	err := w.orders.Alert(ctx, k.zone, jobs.Alert{Event: "order-doubted", Object: string(id),
		Detail: map[string]any{"mode": string(r.Mode), "note": wording.ErrorLine(r.Why)}})
	if err != nil {
		w.log.Warn("nobody could be told that the order of a job does not hold", "task", id.Task(), "job",
			id, "error", err)
	}
}
