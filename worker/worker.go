package worker

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
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
	Poll      time.Duration // with a slot free beside running jobs: ask again after so long
	GiveUp    time.Duration // without an answer, and with nothing that could get lost
	LastWords time.Duration // after a stop: to report what was stopped
	Orphan    time.Duration // without a master and an answer: after the locks have ended
	OutputMax int           // bytes kept of what a host said in one attempt
	RecordDir string        // where hosts keep what they remember, as in remote.Config
	Overload  jobs.Overload // what is done about a queue whose jobs come late

	// RequireNTP refuses what needs a window on a node whose clock nobody keeps right.
	RequireNTP bool
}

// Default is the configuration that is used when nothing else is said.
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

// Limits of a Config. The results of all slots travel in one call, each with its
// output: 64 slots with 64 kB each are 4 MB.
const (
	slotsMax     = 64
	timeMax      = time.Hour
	outputMin    = 1 << 10
	outputMax    = 1 << 20
	outputAllMax = 16 << 20
)

// Validate tells all that is wrong with c.
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
	errs = append(errs, c.Overload.Validate())
	return errors.Join(errs...)
}

// Queue hands out jobs and takes their results. An error of a call means that there was no answer:
// the queue may have carried out the call or not.
type Queue interface {
	// Step says what became of jobs and asks for new ones.
	Step(ctx context.Context, zone string, s jobs.Step) (jobs.Reply, error)

	// Stops returns the notes of those of these jobs that are cancelled: who cancelled, and why.
	Stops(ctx context.Context, zone string, ids []jobs.ID) (map[jobs.ID]string, error)

	Listener
	Orderer
}

// Doors are the ways of a worker to the world around it. All must be there, but for Log.
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

// New makes a worker, or returns all that is wrong with c.
func New(c Config, d Doors) (*Worker, error) {
	if err := c.Validate(); err != nil {
		return nil, fmt.Errorf("worker: %w", err)
	}
	if d.Log == nil {
		d.Log = hclog.NewNullLogger()
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
	// Orders brings what the master says. It is closed when the master is gone.
	Orders <-chan jobs.Order

	// Report tells the master where the worker stands. It may block: the work
	// goes on meanwhile, and the latest report follows.
	Report func(jobs.Report)
}

// Run works on the jobs that were handed over, and takes further ones, until
// nothing is due, the master says drain, or the master is gone. Then it ends
// what is in hand, reports that to the queue, says bye and returns nil.
//
// When ctx is done it stops what is in hand at once and reports that. It returns
// an error if it gave up: then the queue was away, and jobs it may have handed
// out are to be reported as lost.
func (w *Worker) Run(ctx context.Context, h jobs.Handover, m Master) error {
	if h.Node == "" || h.Slot == "" || h.Zone == "" {
		return fmt.Errorf("worker: handover without node, slot or zone: %q, %q, %q",
			h.Node, h.Slot, h.Zone)
	}
	c := newClerk(w, h, m)
	err := c.work(ctx, h)
	bye := jobs.Report{Jobs: c.jobs(), Done: c.done, Bye: true, Next: c.next,
		Doubt: c.env.Agreed.Why()}
	if err != nil {
		bye.Error = err.Error()
	}
	c.reporter.bye(bye)
	return err
}

// requestPrefix makes the ids of this process' calls unlike those of any other.
func requestPrefix() string { return rand.Text()[:13] + "-" }
