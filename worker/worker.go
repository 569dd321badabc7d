package worker

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	randv2 "math/rand/v2"
	"time"

	"github.com/hashicorp/go-hclog"

	"muster/fleet/remote"
	"muster/jobs"
	"muster/worker/agreed"
	"muster/worker/attempt"
)

// Config says how a worker works.
type Config struct {
	Slots     int           // jobs at a time
	Call      time.Duration // one try of a call to the queue
	Poll      time.Duration // the pause before a free slot asks again, beside running jobs
	GiveUp    time.Duration // how long to wait for an answer if no result can get lost
	LastWords time.Duration // how long to report the stopped jobs after a stop
	Orphan    time.Duration // how long to wait without a master, after the locks have ended
	Linger    time.Duration // how long to stay idle for the next order of the master; 0: not at all
	OutputMax int           // bytes kept of the output of one attempt
	RecordDir string        // the folder of records on hosts, as in remote.Config
	Overload  jobs.Overload // when and how to reorder a queue whose jobs come late

	// RequireNTP refuses jobs that need a window on a node without NTP.
	RequireNTP bool
}

// Default returns the configuration without any setting of the operator.
func Default() Config {
	return Config{
		Slots:     1,
		Call:      5 * time.Second,
		Poll:      10 * time.Second,
		GiveUp:    30 * time.Second,
		LastWords: 10 * time.Second,
		Orphan:    time.Hour,
		OutputMax: 64 << 10,
		RecordDir: remote.Default().RecordDir,
		Overload:  jobs.DefaultOverload(),
	}
}

// Limits of a Config. One call carries the results of all slots, each with its output: 64 slots
// with 64 kB each make 4 MB.
const (
	slotsMax     = 64
	timeMax      = time.Hour
	outputMin    = 1 << 10
	outputMax    = 1 << 20
	outputAllMax = 16 << 20
)

// Validate returns all mistakes in c.
func (c Config) Validate() error {
	var errs []error
	if c.Slots < 1 || c.Slots > slotsMax {
		errs = append(errs, fmt.Errorf("slots = %d: want 1 to %d", c.Slots, slotsMax))
	}
	for _, d := range []struct {
		name  string
		value time.Duration
	}{{"call", c.Call}, {"poll", c.Poll}, {"give_up", c.GiveUp}, {"last_words", c.LastWords},
		{"orphan", c.Orphan}} {
		if d.value <= 0 || d.value > timeMax {
			errs = append(errs, fmt.Errorf("%s = %s: want more than 0, at most %s",
				d.name, d.value, timeMax))
		}
	}
	if c.OutputMax < outputMin || c.OutputMax > outputMax || c.OutputMax*c.Slots > outputAllMax {
		errs = append(errs, fmt.Errorf("output_max = %d: want %d to %d bytes, and at most %d for "+
			"all slots together", c.OutputMax, outputMin, outputMax, outputAllMax))
	}
	if c.Linger < 0 || c.Linger > timeMax {
		errs = append(errs, fmt.Errorf("linger = %s: want 0 to %s", c.Linger, timeMax))
	}
	errs = append(errs, c.Overload.Validate())
	return errors.Join(errs...)
}

// Queue hands out jobs and takes their results. An error of a call means that there was no answer:
// the queue may have carried out the call or not.
type Queue interface {
	// Step reports results and asks for new jobs.
	Step(ctx context.Context, zone string, s jobs.Step) (jobs.Reply, error)

	// Stops returns a note for each of these jobs that is cancelled: who cancelled it, and why.
	Stops(ctx context.Context, zone string, ids []jobs.ID) (map[jobs.ID]string, error)

	Listener
	Reorderer
}

// Doors connects a worker with the world around it. Log may be missing, and parts of Steps; see
// attempt.Doors.
type Doors struct {
	Queue Queue
	Times agreed.Times
	Steps attempt.Doors
	Clock func() time.Duration // CLOCK_BOOTTIME
	Log   hclog.Logger
}

// Worker works on the jobs of one zone, as one child of a master.
type Worker struct {
	cfg Config
	Doors
	env *attempt.Env
}

// New makes a worker, or returns all mistakes in c.
func New(c Config, d Doors) (*Worker, error) {
	if err := c.Validate(); err != nil {
		return nil, fmt.Errorf("worker: %w", err)
	}
	if d.Log == nil {
		d.Log = hclog.NewNullLogger()
	}
	if d.Steps.Chance == nil {
		d.Steps.Chance = randv2.Float64
	}
	env := &attempt.Env{
		Config: attempt.Config{Call: c.Call, OutputMax: c.OutputMax, RecordDir: c.RecordDir,
			RequireNTP: c.RequireNTP},
		Doors: d.Steps, Agreed: agreed.New(d.Times, d.Clock), Clock: d.Clock, Log: d.Log,
	}
	return &Worker{cfg: c, Doors: d, env: env}, nil
}

// Master is the line to the master that started this worker.
type Master struct {
	// Orders brings the orders of the master. It is closed when the master is gone.
	Orders <-chan jobs.Order

	// Report sends the state of the worker to the master. It may block: the work continues
	// meanwhile, and the latest report follows.
	Report func(jobs.Report)
}

// Run works on the jobs of the handover, and takes further jobs, until nothing is due, the master
// says drain, or the master is gone. Then it brings the jobs in hand to their end, reports them to
// the queue, says bye and returns nil.
//
// When ctx is done, Run stops the jobs in hand at once and reports them. It returns an error if it
// gave up because the queue was away: the jobs that the queue may have handed out are lost then.
func (w *Worker) Run(ctx context.Context, h jobs.Handover, m Master) error {
	if h.Node == "" || h.Slot == "" || h.Zone == "" {
		return fmt.Errorf("worker: handover without node, slot or zone: %q, %q, %q",
			h.Node, h.Slot, h.Zone)
	}
	c := newClerk(w, h, m)
	err := c.work(ctx, h)
	bye := jobs.Report{Jobs: c.jobs(), Done: c.done, Bye: true, Looked: c.idle.looked,
		Next: c.idle.next, Asked: c.idle.sent, Doubt: c.env.Agreed.Why()}
	if err != nil {
		bye.Error = err.Error()
	}
	c.reporter.bye(bye)
	return err
}

// requestPrefix returns the beginning of the request ids of this process, unlike that of any other.
func requestPrefix() string { return rand.Text()[:13] + "-" }
