package chaos

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"regexp"
	"slices"
	"strings"
	"time"

	"muster/jobs"
)

// A task is one that the operator has asked for.
type task struct {
	id      jobs.TaskID
	runbook string
	on      []string // names of hosts
	args    []string // of muster, to ask for it again
	known   bool     // the submit was answered
	paused  bool
	ended   bool
	info    jobs.TaskInfo // once it ended
}

// A span is when nothing may have started.
type span struct{ from, to time.Time }

// An operator gives orders, good ones and hasty ones, and repeats an order without an answer as it
// is.
type operator struct {
	h     *house
	r     *rand.Rand
	done  *tally
	tasks []*task
	// The reasons of orders that muster refused, without names and numbers.
	refused *tally

	halts []span // from the answer to the halt, to before its lift was sent
}

// orders are the kinds of orders.
var orders = []string{"submit", "pause", "resume", "cancel", "halt and lift", "group clear", "fsck",
	"without an answer"}

func newOperator(h *house) *operator {
	return &operator{h: h, r: rand.New(rand.NewPCG(*seed, 2)), done: newTally(orders...),
		refused: newTally()}
}

func (o *operator) counts() []count { return o.done.counts() }

// order gives one to any of the servers, and counts it if it was answered.
func (o *operator) order(ctx context.Context, kind string, args ...string) (string, error) {
	out, err := o.h.muster(ctx, o.server(), args...)
	if err != nil {
		o.done.add("without an answer", 1)
		o.refused.add1(kindOf(err))
		return out, err
	}
	o.done.add(kind, 1)
	return out, nil
}

var particular = regexp.MustCompile(`0w\w{8}|\S*[/:]\S*\d\S*|\d+`)

// kindOf is the beginning of what muster said, without names and numbers.
func kindOf(err error) string {
	_, said, _ := strings.Cut(err.Error(), ": muster: ")
	first, _, _ := strings.Cut(said, "\n")
	return strings.TrimSpace(fmt.Sprintf("%.100s", particular.ReplaceAllString(first, "…")))
}

func (o *operator) server() string { return o.h.servers[o.r.IntN(len(o.h.servers))].url }

// work gives orders until the time is over.
func (o *operator) work(ctx context.Context) {
	for pause(ctx, between(o.r, 100*time.Millisecond, 1500*time.Millisecond)) {
		// An order that was begun is given to its end.
		o.act(context.WithoutCancel(ctx))
	}
}

func (o *operator) act(ctx context.Context) {
	open := slices.DeleteFunc(slices.Clone(o.tasks), func(t *task) bool { return t.ended })
	o.look(ctx, open)
	o.clear(ctx)
	n := o.r.IntN(100)
	if len(open) < 4 || n < 45 && len(open) < 12 {
		o.submit(ctx)
		return
	}
	t := open[o.r.IntN(len(open))]
	switch {
	case !t.known:
		o.ask(ctx, t)
	case n < 60 && !t.paused:
		t.paused = true // also if no answer comes: it may have been heard
		o.order(ctx, "pause", "pause", string(t.id), "--reason", "wait")
	case n < 75 && t.paused:
		_, err := o.order(ctx, "resume", "resume", string(t.id), "--reason", "go on")
		t.paused = err != nil
	case n < 85:
		o.order(ctx, "cancel", "cancel", string(t.id), "--reason", "enough")
	case n < 90:
		o.halt(ctx)
	case n < 95:
		o.fsck(ctx)
	}
}

// fsck finds nothing on a sound queue, also under load.
func (o *operator) fsck(ctx context.Context) {
	out, err := o.h.muster(ctx, o.server(), "fsck", "-o", "json")
	var list []jobs.Fsck
	if json.Unmarshal([]byte(out), &list) != nil {
		o.done.add("without an answer", 1)
		return
	}
	o.done.add("fsck", 1)
	for _, f := range list {
		if len(f.Findings) > 0 {
			o.h.t.Errorf("fsck at %s, amid it all: %+v (%v)", clock(time.Now()), f.Findings, err)
		}
	}
}

// submit asks for a new task.
func (o *operator) submit(ctx context.Context) {
	t := &task{id: jobs.NewTaskID(time.Now(), uint16(o.r.Uint32()))}
	from, to := 0, hostCount
	t.runbook = []string{"calm", "calm", "twice", "rough", "rough", "image", "once"}[o.r.IntN(7)]
	switch {
	case t.runbook == "rough":
		to = pairHosts
	case o.r.IntN(3) == 0:
		from, to = siteFrom, siteTo
	}
	name := nameOf
	if t.runbook == "once" {
		from, to, name = 0, realCount, realName
	}
	n := 1 + o.r.IntN(30)
	for _, i := range o.r.Perm(to - from)[:min(n, to-from)] {
		t.on = append(t.on, name(from+i))
	}
	nap := fmt.Sprintf("%.1f", 0.1+o.r.Float64()*1.4)
	t.args = []string{"run", t.runbook, "--on", strings.Join(t.on, ","), "--arg", "nap=" + nap,
		"--arg", "task=" + string(t.id), "--id", string(t.id), "--detach"}
	switch o.r.IntN(8) {
	case 0:
		t.args = append(t.args, "--expire", "15s")
	case 1, 2:
		t.args = append(t.args, "--supersedes", t.runbook)
	}
	o.tasks = append(o.tasks, t)
	o.ask(ctx, t)
}

func nameOf(i int) string { return fmt.Sprintf("fw%04d", i+1) }

// ask submits, or completes a submit that was not answered.
func (o *operator) ask(ctx context.Context, t *task) {
	_, err := o.order(ctx, "submit", t.args...)
	t.known = err == nil
}

// halt stops everything for a while.
func (o *operator) halt(ctx context.Context) {
	if _, err := o.order(ctx, "halt and lift", "halt", "--reason", "fire"); err == nil {
		from := time.Now()
		pause(ctx, between(o.r, 8*time.Second, 14*time.Second))
		o.halts = append(o.halts, span{from, time.Now()})
	}
	o.lift(ctx)
}

func (o *operator) lift(ctx context.Context) {
	for range 20 {
		if _, err := o.order(ctx, "halt and lift", "resume", "--all", "--reason", "it is out"); err == nil {
			return
		}
	}
}

// clear looks at the hosts of frozen groups, as a person should, and clears those
// on which nothing runs.
func (o *operator) clear(ctx context.Context) {
	out, err := o.h.muster(ctx, o.server(), "group", "ls", "-o", "json")
	var list []jobs.Group
	if err != nil || json.Unmarshal([]byte(out), &list) != nil {
		return
	}
	for _, g := range list {
		if g.Frozen != "" && !o.busy(g.Name) {
			o.order(ctx, "group clear", "group", "clear", g.Name, "--reason", "nothing runs there")
		}
	}
}

// busy reports whether a command runs on a host of a group.
func (o *operator) busy(group string) bool {
	for _, e := range o.h.fleet.Log() {
		if i := indexOf(e.Host); e.Running() && i < pairHosts && groupOf(i) == group {
			return true
		}
	}
	return false
}

func indexOf(host string) int {
	var n int
	fmt.Sscanf(host, "fw%04d", &n)
	return n - 1
}

// look finds out which tasks have ended.
func (o *operator) look(ctx context.Context, open []*task) {
	for _, t := range open {
		out, err := o.h.muster(ctx, o.server(), "task", string(t.id), "-o", "json")
		var i jobs.TaskInfo
		if err == nil && json.Unmarshal([]byte(out), &i) == nil && i.State == jobs.TaskEnded {
			t.ended, t.info = true, i
		}
	}
}

// settle brings everything to an end: what is paused goes on, what is frozen is
// cleared, what was not answered is asked again.
func (o *operator) settle(ctx context.Context, most time.Duration) error {
	o.lift(ctx)
	for late := time.Now().Add(most); ; {
		var open []*task
		for _, t := range o.tasks {
			switch {
			case t.ended:
				continue
			case !t.known:
				o.ask(ctx, t)
			case t.paused:
				_, err := o.order(ctx, "resume", "resume", string(t.id), "--reason", "the end")
				t.paused = err != nil
			}
			open = append(open, t)
		}
		if len(open) == 0 {
			return nil
		}
		o.look(ctx, open)
		o.clear(ctx)
		if time.Now().After(late) {
			return o.left(ctx, open)
		}
		if !pause(ctx, 500*time.Millisecond) {
			return ctx.Err()
		}
	}
}

// left says what did not come to an end.
func (o *operator) left(ctx context.Context, open []*task) error {
	var errs []error
	for _, t := range open {
		out, err := o.h.muster(ctx, o.server(), "jobs", "--task", string(t.id))
		errs = append(errs, fmt.Errorf("task %s does not come to an end:\n%s%v", t.id, out, err))
	}
	return errors.Join(errs...)
}
