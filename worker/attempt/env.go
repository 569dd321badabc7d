package attempt

import (
	"context"
	"io"
	"time"

	"github.com/hashicorp/go-hclog"

	"muster/fleet"
	"muster/fleet/remote"
	"muster/internal/seal"
	"muster/jobs"
	"muster/worker/agreed"
	"muster/worker/playbook"
	"muster/worker/said"
	sources "muster/worker/secrets"
	"muster/worker/verdict"
)

// Config says how the attempts of a worker work.
type Config struct {
	Call       time.Duration // one try of a call to the queue
	OutputMax  int           // bytes kept of the output of one attempt
	RecordDir  string        // where hosts keep their records, as in remote.Config
	RequireNTP bool          // refuses a job that needs a window if nobody keeps the clock right
}

// Queue answers an attempt. An error means that there was no answer: the queue may have carried out
// the call or not.
type Queue interface {
	// Checkpoint asks whether a further step of a job may start.
	Checkpoint(ctx context.Context, zone string, c jobs.Checkpoint) (jobs.Verdict, error)

	// Stops returns a note for each of these jobs that is cancelled: who cancelled it, and why.
	Stops(ctx context.Context, zone string, ids []jobs.ID) (map[jobs.ID]string, error)

	// Gate returns the answer at a gate of a job; its word is empty if nobody has answered.
	Gate(ctx context.Context, zone string, id jobs.ID, step int) (jobs.GateAnswer, error)

	// CloseGate ends the wait at a gate of a job, and returns the answer if there was one before.
	CloseGate(ctx context.Context, zone string, id jobs.ID, step int) (jobs.GateAnswer, error)
}

// Conn is a connection to a host. Its errors are those of package remote.
type Conn interface {
	Run(ctx context.Context, c remote.Command) (remote.Result, error)
	Upload(ctx context.Context, u remote.Upload) error
	Mark(ctx context.Context, m remote.Marker) (remote.Marking, error)
	Close() error
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

// Doors connects an attempt with the world around it. Only Queue and Dial must be there.
type Doors struct {
	Queue Queue
	Kin   Kin
	Dial  func(ctx context.Context, h fleet.Host) (Conn, error)
	Play  playbook.Player // nil: this node runs no playbooks

	// Committed returns when a task was committed, by the clock of Redis.
	Committed func(ctx context.Context, zone string, task jobs.TaskID) (jobs.Micros, error)

	// Answer takes what a host said of a job that ended unknown.
	Answer func(ctx context.Context, zone string, r jobs.Reading) error

	// Blobs opens a stored content of so many bytes by its SHA-256.
	Blobs func(ctx context.Context, sum string, size int64) (io.ReadSeekCloser, error)

	// Unseal opens a secret argument of a task.
	Unseal func(task, argument, sealed string) (seal.Text, error)

	// Fetch finds the secret of a reference; nil: this node resolves none.
	Fetch func(ctx context.Context, a sources.Ask) (seal.Text, error)

	// Trust decides by whose word a job runs; nil: this node trusts the queue.
	Trust Trust

	// Chance returns numbers from 0 to 1, which spread retries; nil: random ones, of package worker.
	Chance func() float64

	// Synchronised returns why the clock of this machine may be wrong; nil: it is kept right.
	Synchronised func() error
}

// Trust decides by whose word jobs run.
type Trust interface {
	// Check returns an error unless a job may run as the queue describes it. The error is a
	// *warden.Doubt if the job must not run, a *trust.EarlyError if it must wait; any other error
	// leaves that open.
	Check(ctx context.Context, zone string, g jobs.Grant, spec jobs.Spec) error

	// Holds returns an error unless a signed order holds for a job, whatever the rules are for jobs
	// without. The error is a *warden.Doubt if none holds; any other error leaves that open.
	Holds(ctx context.Context, zone string, g jobs.Grant, spec jobs.Spec) error

	// Kin reports whether the order of a job is for a host, too, that is in the redundancy group of
	// its own. The error is a *warden.Doubt if the node must not connect to that host.
	Kin(ctx context.Context, zone string, id jobs.ID, h fleet.Host) (in bool, err error)

	// Answered returns an error if the answer at a gate of a job, at a step, does not count.
	Answered(ctx context.Context, zone string, id jobs.ID, step int, a jobs.GateAnswer) error

	// Seal returns the state of a job with a proof that it is of this node.
	Seal(id jobs.ID, step int, saved string) string
}

// Env holds what all attempts of a worker share.
type Env struct {
	Config Config
	Doors
	Agreed *agreed.Agreed
	Clock  func() time.Duration // CLOCK_BOOTTIME
	Log    hclog.Logger

	groups groups
}

// New makes an attempt at a job that was handed out in a zone.
func (e *Env) New(zone string, g jobs.Grant, p Plan) *Attempt {
	if p.Spec.Retry.Tries < 1 {
		p.Spec.Retry = jobs.DefaultPolicy()
	}
	a := &Attempt{
		env:        e,
		zone:       zone,
		grant:      g,
		plan:       p,
		progress:   progress{step: g.Step, memory: verdict.Recall(g.Saved)},
		transcript: said.NewTranscript(e.Config.OutputMax, said.NewVoice(g, e.Config.OutputMax)),
		timed:      timing{clocks: stopwatch{ledger: verdict.SpentBefore(g)}},
	}
	a.group, a.times = &groupMarks{at: a}, &admission{at: a}
	a.memory.Why = "" // of the attempt before
	return a
}
