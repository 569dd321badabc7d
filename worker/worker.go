package worker

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/hashicorp/go-hclog"

	"muster/fleet"
	"muster/fleet/remote"
	"muster/internal/seal"
	"muster/jobs"
	"muster/worker/agreed"
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

// Queue is what a worker needs of the queue. An error of a call means that
// there was no answer: the call may have been carried out or not.
type Queue interface {
	// Step says what became of jobs and asks for new ones.
	Step(ctx context.Context, zone string, s jobs.Step) (jobs.Reply, error)

	// Checkpoint asks whether a further step of a job may start.
	Checkpoint(ctx context.Context, zone string, c jobs.Checkpoint) (jobs.Verdict, error)

	// Stops tells which of these jobs an operator cancelled, and of each who and why.
	Stops(ctx context.Context, zone string, ids []jobs.ID) (map[jobs.ID]string, error)

	// Reorder makes what is overdue fair, if it is worth it and nobody else does.
	Reorder(ctx context.Context, zone string, o jobs.Overload) (jobs.Reordering, error)

	Listener
	Gates
}

// Gates is where a worker learns how a person has answered.
type Gates interface {
	// Gate returns the answer to a gate of a job; without a word nobody has answered.
	Gate(ctx context.Context, zone string, id jobs.ID, step int) (jobs.GateAnswer, error)

	// CloseGate ends the wait at a gate of a job, unless somebody has answered.
	CloseGate(ctx context.Context, zone string, id jobs.ID, step int) (jobs.GateAnswer, error)
}

// Conn is a connection to a host. Its errors are those of package remote.
type Conn interface {
	Run(ctx context.Context, c remote.Command) (remote.Result, error)
	Upload(ctx context.Context, u remote.Upload) error
	Mark(ctx context.Context, m remote.Marker) (remote.Marking, error)
	Close() error
}

// Doors are the ways of a worker to the world around it. All must be there, but for Log, Blobs,
// Answer, Unseal and Synchronised.
type Doors struct {
	Queue Queue
	Times agreed.Times
	Kin   Kin
	Dial  func(ctx context.Context, h fleet.Host) (Conn, error)
	Clock func() time.Duration // CLOCK_BOOTTIME

	// Committed is when a task was committed, by the clock of Redis; nil: nobody knows.
	Committed func(ctx context.Context, zone string, task jobs.TaskID) (jobs.Micros, error)

	// Answer tells what a host said of a job that ended unknown; nil: nobody wants to know.
	Answer func(ctx context.Context, zone string, r jobs.Reading) error
	Log    hclog.Logger

	// Blobs opens a stored content of so many bytes by its SHA-256. nil: there are none.
	Blobs func(ctx context.Context, sum string, size int64) (io.ReadSeekCloser, error)

	// Unseal opens a secret argument of a task. nil: this node cannot.
	Unseal func(task, argument, sealed string) (seal.Text, error)

	// Synchronised says why the clock of this machine may be wrong; nil: it is kept right.
	Synchronised func() error
}

// SSH makes connections with a client of package remote.
func SSH(client *remote.Client) func(context.Context, fleet.Host) (Conn, error) {
	return func(ctx context.Context, h fleet.Host) (Conn, error) {
		conn, err := client.Connect(ctx, h)
		if err != nil {
			return nil, err // not conn: a nil *remote.Conn is no nil Conn
		}
		return conn, nil
	}
}

// Worker works on the jobs of one zone, as one child of a master.
type Worker struct {
	cfg Config
	Doors
	agreed *agreed.Agreed
	groups groups
}

// New makes a worker, or tells all that is wrong with c.
func New(c Config, d Doors) (*Worker, error) {
	if err := c.Validate(); err != nil {
		return nil, fmt.Errorf("worker: %w", err)
	}
	if d.Log == nil {
		d.Log = hclog.NewNullLogger()
	}
	return &Worker{cfg: c, Doors: d, agreed: agreed.New(d.Times, d.Clock)}, nil
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
	bye := jobs.Report{Jobs: c.jobs(), Done: c.done, Bye: true, Next: c.next, Doubt: c.agreed.Why()}
	if err != nil {
		bye.Error = err.Error()
	}
	c.reporter.bye(bye)
	return err
}

// requestPrefix makes the ids of this process' calls unlike those of any other.
func requestPrefix() string { return rand.Text()[:13] + "-" }
