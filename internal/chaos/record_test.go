package chaos

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"muster/internal/fakefleet"
	"muster/jobs"
	"muster/testkit/queuetest"
	"muster/testkit/redistest"
)

// A command is what a host saw of a step.
type command struct {
	job  jobs.ID
	step int // from 1
	fakefleet.Entry
}

// An end is what the queue says of a job.
type end struct {
	at      time.Time
	outcome jobs.Outcome
	err     string
}

// A record is all that is known when it is over, and what is wrong with it.
type record struct {
	tasks    []*task
	halts    []span
	commands []command
	overlaps []fakefleet.Overlap
	events   []jobs.Happening

	ends   map[jobs.ID][]end
	starts map[jobs.ID][]time.Time // takes and checkpoints that were a go

	checked  *tally
	outcomes *tally
	wrong    []string

	mayBeUnknown int
}

// stepMark matches the mark that a step of our runbooks leaves in its command, quoted in a shell
// text that is quoted itself.
var stepMark = regexp.MustCompile(`: ['\\]*([0-9a-z]{10})['\\]*-([12])`)

func (h *house) record(t *testing.T, o *operator) *record {
	t.Helper()
	r := newRecord(o.tasks)
	r.halts, r.overlaps = o.halts, h.fleet.Overlaps()
	for _, e := range h.fleet.Log() {
		m := stepMark.FindStringSubmatch(e.Command)
		if e.Stops {
			continue
		}
		if m == nil {
			t.Errorf("a command on %s that nobody knows: %s", e.Host, e.Command)
			continue
		}
		step, _ := strconv.Atoi(m[2])
		r.commands = append(r.commands, command{jobs.NewID(jobs.TaskID(m[1]), e.Host), step, e})
	}
	real, twice := h.realCommands(t)
	r.commands, r.overlaps = append(r.commands, real...), append(r.overlaps, twice...)
	q, err := queuetest.OpenLazy(h.redis.Config())
	if err != nil {
		t.Fatal(err)
	}
	defer q.Close()
	for after := ""; ; {
		list, last, err := q.Events(context.Background(), "default", after, 5000, 0)
		if err != nil {
			t.Fatal(err)
		}
		if len(list) == 0 {
			break
		}
		for _, e := range list {
			r.note(e)
		}
		after = last
	}
	return r
}

func newRecord(tasks []*task) *record {
	var names []string
	for _, o := range jobs.Outcomes() {
		names = append(names, string(o))
	}
	return &record{tasks: tasks, ends: map[jobs.ID][]end{}, starts: map[jobs.ID][]time.Time{},
		checked: newTally(invariants...), outcomes: newTally(names...)}
}

// note takes in what happened.
func (r *record) note(e jobs.Happening) {
	r.events = append(r.events, e)
	id := jobs.ID(e.Object)
	switch e.Event {
	case "take", "step":
		r.starts[id] = append(r.starts[id], e.At.Time)
	case "end":
		var d struct {
			Outcome jobs.Outcome `json:"outcome"`
			Error   string       `json:"error"`
		}
		text, err := json.Marshal(e.Detail)
		if err == nil {
			err = json.Unmarshal(text, &d)
		}
		if err != nil {
			r.say("the end of %s cannot be read: %v", id, err)
		}
		r.ends[id] = append(r.ends[id], end{e.At.Time, d.Outcome, d.Error})
	}
}

func (r *record) say(format string, args ...any) {
	r.wrong = append(r.wrong, fmt.Sprintf(format, args...))
}

func (r *record) counts() []count {
	list := r.checked.counts()
	for i, c := range list {
		if c.name == unknownOnly {
			list[i].note = fmt.Sprintf("(at most %d)", r.mayBeUnknown)
		}
	}
	return list
}

// save writes what the hosts and the queue saw, for whoever looks for the reason.
func (r *record) save(h *house) {
	var hosts, events strings.Builder
	for _, c := range r.commands {
		fmt.Fprintf(&hosts, "%s %s step %d from %s to %s exit %d %s orphaned %v timed out %v\n", c.job.Host(),
			c.job, c.step, clock(c.Start), clock(c.End), c.Exit, c.Signal, c.Orphaned, c.TimedOut)
	}
	for _, e := range r.events {
		detail, _ := json.Marshal(e.Detail)
		fmt.Fprintf(&events, "%s %s %s %s\n", clock(e.At.Time), e.Event, e.Object, detail)
	}
	h.write("hosts.log", hosts.String())
	h.write("events.log", events.String())
}

func clock(t time.Time) string { return t.UTC().Format("15:04:05.000") }

// judge looks at Redis and at the logs of the processes.
func (h *house) judge(r *record) {
	const sound, quiet = "the queue is sound (fsck)", "no process panicked"
	for _, words := range redistest.Mistakes(context.Background(), h.redis.Config().URL, "default") {
		r.say("check: %s", words)
	}
	q, err := queuetest.OpenLazy(h.redis.Config())
	if err != nil {
		r.say("%v", err)
		return
	}
	defer q.Close()
	f, err := q.Fsck(context.Background(), "default", false, "")
	if err != nil {
		r.say("fsck: %v", err)
	}
	for _, x := range f.Findings {
		r.say("fsck: %s: %s: %s", x.Object, x.What, x.Detail)
	}
	r.checked.add(sound, f.Jobs)
	logs, _ := filepath.Glob(filepath.Join(h.dir, "*", "*.log"))
	for _, name := range logs {
		text, err := os.ReadFile(name)
		if err != nil {
			r.say("%v", err)
		}
		for _, word := range []string{"panic", "a mistake in muster", "fatal error"} {
			if i := strings.Index(string(text), word); i >= 0 {
				r.say("%s says %q", name, string(text)[i:min(i+300, len(text))])
			}
		}
		r.checked.add(quiet, 1)
	}
}
