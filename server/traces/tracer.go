package traces

import (
	"context"
	"strings"
	"sync"
	"time"

	"github.com/hashicorp/go-hclog"

	"muster/api"
	"muster/history"
	"muster/jobs"
	"muster/jobs/trace"
	"muster/server/spans"
)

const (
	queueMax = 8192 // tasks and jobs that wait to be sent
	batchMax = 200  // of them in one request
	// overMax bounds the tasks that are remembered as sent: a task ends in each of its zones.
	overMax = 1000
	// stopTime bounds what a server that stops still sends.
	stopTime = 3 * time.Second
)

// The results of a trace, as they are counted.
const (
	Sent    = "sent"
	Partly  = "partly"  // the collector refused some spans of its request
	Refused = "refused" // by the collector, for good
	Dropped = "dropped" // the queue was full
	Lost    = "lost"    // the collector was away for too long, or until this server stopped
)

// Needs has what a tracer works with.
type Needs struct {
	Config  Config
	Version string        // of this program
	Name    func() string // of this server
	Past    Past
	Meters  Meters
	Log     hclog.Logger
}

// Meters count traces by their result, and those that wait.
type Meters interface {
	Traced(result string, n int)
	Wait(n int)
}

// Past reads what history has of tasks and jobs.
type Past interface {
	Courses(ctx context.Context, task jobs.TaskID, hosts []string) (map[string]api.Course, error)
	Committed(ctx context.Context, task jobs.TaskID) (time.Time, error)
}

// A Tracer sends traces. A nil one sends none.
type Tracer struct {
	Needs
	queue chan item
	to    sender
	pause pauses

	mu    sync.Mutex
	over  map[jobs.TaskID]bool
	words string // what is wrong; empty: nothing
}

// An item is a task or a job, of which spans are made later.
type item struct {
	job    *api.PastJob
	settle time.Time // when an order to ask its host has settled the outcome; zero: never
	task   *spans.Task
}

// New makes a tracer; nil if the configuration names no collector.
func New(n Needs) (*Tracer, error) {
	if n.Config.Endpoint == "" {
		return nil, nil
	}
	to, err := newSender(n)
	if err != nil {
		return nil, err
	}
	return &Tracer{Needs: n, to: to, queue: make(chan item, queueMax), pause: usual,
		over: map[jobs.TaskID]bool{}}, nil
}

// IsWanted reports whether the trace of a job with an outcome is sent: always if the job ended
// badly, else if the caller of its task keeps its own trace, or the task is in the sample.
func (c Config) IsWanted(task jobs.TaskID, traceparent string, bad bool) bool {
	if bad {
		return true
	}
	if caller, err := trace.Parse(traceparent); err == nil {
		return caller.Sampled
	}
	return trace.IsPicked(task, c.OneIn)
}

// Hear takes what history has stored. It never waits.
func (t *Tracer) Hear(b history.Batch) {
	if t == nil {
		return
	}
	ended, settled := map[jobs.ID]bool{}, map[jobs.ID]time.Time{}
	over := map[jobs.TaskID]bool{}
	for _, e := range b.Events {
		switch id := history.TaskOf(e.Object); {
		case id == "":
		case !strings.Contains(e.Object, ":"):
			over[id] = over[id] || e.Event == "task"
		case e.Event == "end":
			ended[jobs.ID(e.Object)] = true
		case e.Event == "settle":
			settled[jobs.ID(e.Object)] = e.At.Time
		}
	}
	for _, j := range b.Ended {
		at := settled[j.ID]
		if ended[j.ID] {
			at = time.Time{}
		}
		if t.Config.IsWanted(j.ID.Task(), parentOf(askedOf(j)), spans.IsBad(j.Outcome) || !at.IsZero()) {
			t.put(item{job: &j, settle: at})
		}
	}
	for _, task := range b.Tasks {
		if over[task.Task] && task.State == jobs.TaskEnded {
			t.end(task)
		}
	}
}

// end takes a task that has ended, once.
func (t *Tracer) end(task jobs.TaskInfo) {
	parent := parentOf(task.Ran)
	if !t.Config.IsWanted(task.Task, parent, spans.AnyBad(task.Outcomes)) {
		return
	}
	t.mu.Lock()
	known := t.over[task.Task]
	if len(t.over) >= overMax {
		clear(t.over)
	}
	t.over[task.Task] = true
	t.mu.Unlock()
	if !known {
		t.put(item{task: &spans.Task{Info: task, Traceparent: parent}})
	}
}

func (t *Tracer) put(one item) {
	select {
	case t.queue <- one:
		t.Meters.Wait(len(t.queue))
	default:
		t.Meters.Traced(Dropped, 1)
	}
}

func askedOf(j api.PastJob) *jobs.Ran {
	if j.Asked == nil {
		return nil
	}
	return j.Asked.Ran
}

func parentOf(r *jobs.Ran) string {
	if r == nil {
		return ""
	}
	return r.Trace
}

// Words says what keeps traces from the collector; empty: nothing.
func (t *Tracer) Words() string {
	if t == nil {
		return ""
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.words
}

// say logs once what is wrong, and when it is over.
func (t *Tracer) say(err error) {
	words := ""
	if err != nil {
		words = "traces are not sent: " + err.Error()
	}
	t.mu.Lock()
	was := t.words
	t.words = words
	t.mu.Unlock()
	switch {
	case words != "" && words != was:
		t.Log.Warn("traces are not sent: what does not fit into the queue is dropped", "to", t.to.place,
			"error", err)
	case words == "" && was != "":
		t.Log.Info("traces are sent again", "to", t.to.place)
	}
}

// Run sends traces until ctx is done, and then what is left for a short time.
func (t *Tracer) Run(ctx context.Context) {
	if t == nil {
		return
	}
	defer t.to.close()
	for ctx.Err() == nil {
		b := t.gather(ctx)
		if len(b) > 0 && !t.deliver(ctx, b) {
			t.rest(ctx, b)
			return
		}
	}
	t.rest(ctx, nil)
}

// gather waits for tasks and jobs, and for a moment for more of them.
func (t *Tracer) gather(ctx context.Context) []item {
	var b []item
	select {
	case one := <-t.queue:
		b = append(b, one)
	case <-ctx.Done():
		return nil
	}
	timer := time.NewTimer(t.pause.linger)
	defer timer.Stop()
	for len(b) < batchMax {
		select {
		case one := <-t.queue:
			b = append(b, one)
		case <-timer.C:
			return b
		case <-ctx.Done():
			return b
		}
	}
	return b
}

// rest sends what is left when the server stops: each request once, within a bound.
func (t *Tracer) rest(ctx context.Context, b []item) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), stopTime)
	defer cancel()
	for {
		for len(b) < batchMax && len(t.queue) > 0 {
			b = append(b, <-t.queue)
		}
		if len(b) == 0 {
			return
		}
		r := reply{err: ctx.Err(), again: true}
		if r.err == nil {
			r = t.to.send(ctx, t.spansOf(ctx, b))
		}
		t.count(r, len(b))
		b = b[:0]
	}
}
