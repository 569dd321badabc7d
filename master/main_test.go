package master

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/rpc"
	"net/rpc/jsonrpc"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"
	"go.uber.org/goleak"

	"muster/internal/proc"
	"muster/jobs"
)

// The first argument that turns the test binary into another program.
const (
	asChild  = "as-child"  // a worker, see beWorker
	asDying  = "as-dying"  // a worker that dies at its start
	asSilent = "as-silent" // a worker that never says anything
	asMaster = "as-master" // a master, see runMaster
)

func TestMain(m *testing.M) {
	programs := map[string]func() error{
		asChild:  beWorker,
		asDying:  func() error { os.Exit(7); return nil },
		asSilent: func() error { <-time.After(patience); return nil },
		asMaster: func() error { return runMaster(os.Args[2]) },
	}
	if len(os.Args) > 1 && programs[os.Args[1]] != nil {
		if err := programs[os.Args[1]](); err != nil {
			fmt.Fprintln(os.Stderr, os.Args[1]+":", err)
			os.Exit(2)
		}
		os.Exit(0)
	}
	goleak.VerifyTestMain(m)
}

// worker is a small worker: it speaks the whole protocol, and the first word of a host's
// name decides what it does with the job.
type worker struct {
	conn    *proc.Conn
	h       jobs.Handover
	queue   *remote
	done    int
	drained chan struct{}
	counted chan struct{} // closed when the test knows of the drain
	looks   chan struct{} // a value for each order to look
	looked  int
	asked   time.Duration
	idles   string // what it does when no job is left: the kind of a host; empty: it ends
}

func beWorker() error {
	conn, err := proc.Inherited()
	if err != nil {
		return err
	}
	w := &worker{conn: conn, drained: make(chan struct{}), counted: make(chan struct{}),
		looks: make(chan struct{}, 9)}
	if err := conn.Receive(&w.h); err != nil {
		return err
	}
	var address string
	if err := json.Unmarshal(w.h.Config, &address); err != nil {
		return err
	}
	if w.queue, err = dial(address); err != nil {
		return err
	}
	go w.listen()
	return w.run()
}

// listen waits for the orders of the master, and for its end.
func (w *worker) listen() {
	for {
		var o jobs.Order
		err := w.conn.Receive(&o)
		if err == nil && o == jobs.OrderLook {
			w.looks <- struct{}{}
			continue
		}
		if errors.Is(err, io.EOF) || o == jobs.OrderDrain {
			close(w.drained)
		}
		if o == jobs.OrderDrain {
			w.queue.drained()
		}
		close(w.counted)
		return
	}
}

func (w *worker) run() error {
	reply, ready := w.h.Reply, true
	for len(reply.Jobs) > 0 {
		r := jobs.Report{Ready: ready, Done: w.done, Looked: w.looked}
		for _, g := range reply.Jobs {
			r.Jobs = append(r.Jobs, g.Job)
			if g.Job.Host() == "late" {
				r.Deadline = proc.Boot() + time.Millisecond
			}
		}
		w.conn.Send(r) // a master that is gone does not stop the work
		ready = false
		var results []jobs.Result
		for _, g := range reply.Jobs {
			w.do(g)
			results = append(results, jobs.Result{Job: g.Job, Token: g.Token, Kind: jobs.KindEnd, Outcome: jobs.Succeeded})
		}
		w.done += len(results)
		want := max(1, len(w.h.Reply.Jobs))
		select {
		case <-w.drained:
			want = 0
		default:
		}
		var err error
		w.asked = proc.Boot()
		reply, err = w.queue.Step(context.Background(), w.h.Zone, jobs.Step{
			Node: w.h.Node, Slot: w.h.Slot, Request: fmt.Sprint(os.Getpid(), "-", w.done), Results: results, Want: want,
		})
		for err == nil && len(reply.Jobs) == 0 && want > 0 && w.idle() {
			w.asked = proc.Boot()
			reply, err = w.queue.Step(context.Background(), w.h.Zone, jobs.Step{Node: w.h.Node, Slot: w.h.Slot,
				Request: fmt.Sprint(os.Getpid(), "-look-", w.looked), Want: want})
			w.looked++
		}
		if err != nil {
			return err
		}
	}
	select {
	case <-w.drained:
		<-w.counted
	default:
	}
	w.conn.Send(jobs.Report{Done: w.done, Bye: true, Looked: w.looked, Next: reply.Next, Asked: w.asked})
	return nil
}

// idle waits for the order to look, and reports whether the worker obeys it.
func (w *worker) idle() bool {
	for w.idles != "" {
		w.conn.Send(jobs.Report{Done: w.done, Idle: true, Looked: w.looked, Asked: w.asked})
		select {
		case <-w.drained:
			return false
		case <-w.looks:
		}
		switch w.idles {
		case "stay":
			return true
		case "leave":
			return false
		case "die":
			os.Exit(3)
		}
	}
	return false
}

func (w *worker) do(g jobs.Grant) {
	switch kind, _, _ := strings.Cut(g.Job.Host(), "-"); kind {
	case "ok":
	case "stay", "leave", "die", "deaf":
		w.idles = kind
	case "rest": // waits for the test, and stays then
		w.idles = "stay"
		w.queue.wait(g.Job)
	case "hold":
		w.queue.wait(g.Job)
	case "exit":
		os.Exit(3)
	case "nonsense":
		w.conn.Send("nonsense")
		<-time.After(patience)
	case "stubborn":
		signal.Ignore(syscall.SIGTERM)
		w.queue.wait(g.Job)
	case "late", "brief":
		w.queue.wait(g.Job)
	}
}

// masterSpec is the configuration of a master process, in a file.
type masterSpec struct {
	Address  string // of the world
	Dir      string
	Children int
	Version  string
}

// runMaster does the same with a master as cmd: it reads a file, turns signals into calls,
// and replaces itself.
func runMaster(file string) error {
	cfg, queue, err := readMasterSpec(file)
	if err != nil {
		return err
	}
	signals := make(chan os.Signal, 8)
	listen := func() { signal.Notify(signals, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGUSR2) }
	listen()
	if cfg.Kept, err = proc.Kept(os.Getenv(proc.KeptEnv)); err != nil {
		return err
	}
	cfg.Exec = func(kept []*os.File) error {
		defer listen()
		signal.Ignore(syscall.SIGHUP, syscall.SIGUSR2) // until the next binary listens
		return proc.Exec(cfg.Path, os.Args, os.Environ(), kept)
	}
	m, err := New(cfg, queue, queue, hclog.New(&hclog.LoggerOptions{Level: hclog.Error + 1}))
	if err != nil {
		return err
	}
	go func() {
		stop := m.Drain
		for s := range signals {
			switch s {
			case syscall.SIGTERM:
				stop()
				stop = m.Stop
			case syscall.SIGUSR2:
				m.Upgrade()
			case syscall.SIGHUP:
				next, _, err := readMasterSpec(file)
				if err != nil {
					m.Refuse(err)
					continue
				}
				m.Reload(next)
			}
		}
	}()
	return m.Run(context.Background())
}

func readMasterSpec(file string) (Config, *remote, error) {
	var spec masterSpec
	text, err := os.ReadFile(file)
	if err == nil {
		err = json.Unmarshal(text, &spec)
	}
	if err != nil {
		return Config{}, nil, err
	}
	path, err := proc.Path(os.Args[0])
	if err != nil {
		return Config{}, nil, err
	}
	cfg := testConfig(path, spec.Dir, spec.Address)
	cfg.Children, cfg.Version = spec.Children, spec.Version
	queue, err := dial(spec.Address)
	return cfg, queue, err
}

// remote gives another process access to the world of a test.
type remote struct {
	c *rpc.Client
}

func dial(address string) (*remote, error) {
	c, err := jsonrpc.Dial("unix", address)
	if err != nil {
		return nil, err
	}
	return &remote{c}, nil
}

// remoteCall returns the answer of the world, or nothing if ctx ends first.
func remoteCall[T any](ctx context.Context, r *remote, method string, args any) (T, error) {
	reply, none := new(T), *new(T)
	c := r.c.Go("Gate."+method, args, reply, nil)
	select {
	case <-c.Done:
		return *reply, c.Error
	case <-ctx.Done():
		return none, ctx.Err() // the answer may still be written to reply
	}
}

func (r *remote) Step(ctx context.Context, zone string, s jobs.Step) (jobs.Reply, error) {
	return remoteCall[jobs.Reply](ctx, r, "Step", StepArgs{zone, s})
}

func (r *remote) Lose(ctx context.Context, zone string, l jobs.Loss) ([]jobs.ID, error) {
	return remoteCall[[]jobs.ID](ctx, r, "Lose", LoseArgs{zone, l})
}

func (r *remote) Held(ctx context.Context, zone, _ string) (map[string][]jobs.ID, error) {
	return remoteCall[map[string][]jobs.ID](ctx, r, "Held", zone)
}

func (r *remote) Beat(ctx context.Context, n jobs.Node) error {
	_, err := remoteCall[bool](ctx, r, "Beat", n)
	return err
}

func (r *remote) Gone(ctx context.Context, node string) error {
	_, err := remoteCall[bool](ctx, r, "Gone", node)
	return err
}

// Wake gives no hints: a master in a process of its own relies on its poll.
func (r *remote) Wake(context.Context, []string) (<-chan struct{}, func(), error) {
	return nil, func() {}, nil
}

// wait returns when the test lets the job end.
func (r *remote) wait(id jobs.ID) {
	remoteCall[bool](context.Background(), r, "Wait", id)
}

// drained tells the test that the child will take nothing new.
func (r *remote) drained() {
	remoteCall[bool](context.Background(), r, "Drained", 0)
}

// patience bounds the wait of a test for events that must happen at once. Only a failing
// test uses it up.
const patience = 30 * time.Second
