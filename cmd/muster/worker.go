package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"sync"
	"syscall"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/spf13/cobra"

	"muster/cli"
	"muster/fleet/remote"
	"muster/internal/proc"
	"muster/internal/seal"
	"muster/internal/settings"
	"muster/jobs"
	"muster/jobs/queue"
	"muster/jobs/queue/blobs"
	"muster/jobs/queue/care"
	"muster/jobs/queue/hub"
	"muster/jobs/queue/work"
	"muster/worker"
	"muster/worker/agreed"
	"muster/worker/attempt"
	"muster/worker/cache"
	"muster/worker/memory"
	"muster/worker/plays"
	"muster/worker/secrets"
	"muster/worker/warden"
)

// childArgs are the arguments with which a master starts a child.
var childArgs = []string{"worker"}

func newWorker() *cobra.Command {
	c := &cobra.Command{
		Use:     "worker",
		GroupID: "roles",
		Short:   "Work on jobs, as a child of a master",
		Long: `worker is the child process of a master, which alone starts it: it gets its
configuration and its first jobs on an inherited socket.`,
		Hidden: true,
		Args:   cobra.NoArgs,
		RunE:   func(c *cobra.Command, _ []string) error { return runWorker(c.Context()) },

		SilenceUsage:  true,
		SilenceErrors: true,
	}
	c.SetArgs([]string{})
	return c
}

func runWorker(ctx context.Context) error {
	conn, err := proc.Inherited()
	if err != nil {
		return cli.Exit(cli.ExitUsage, err)
	}
	var h jobs.Handover
	if err := conn.Receive(&h); err != nil {
		return cli.Exit(cli.ExitNotAll, fmt.Errorf("hand-over: %w", err))
	}
	cfg, err := settings.ParseChild(h.Config)
	if err != nil {
		return cli.Exit(cli.ExitUsage, err)
	}
	// The first TERM comes from the master after its drain: stop the jobs in hand and report them. INT
	// of a terminal is not for children. Standard error may be a pipe that nobody reads any more.
	signal.Ignore(syscall.SIGINT, syscall.SIGHUP, syscall.SIGUSR2, syscall.SIGPIPE)
	ctx, cancel := signal.NotifyContext(ctx, syscall.SIGTERM)
	defer cancel()
	return workOn(ctx, conn, h, cfg)
}

func workOn(ctx context.Context, conn *proc.Conn, h jobs.Handover, cfg settings.Child) error {
	log := newLogger(cfg.Log, "worker").With("node", h.Node, "pid", os.Getpid(),
		"slot", h.Slot)
	cfg.Redis.Role, cfg.Redis.Node, cfg.Redis.Slot = cfg.As, h.Node, h.Slot
	q, err := queue.OpenLazy(cfg.Redis)
	if err != nil {
		return cli.Exit(cli.ExitUsage, err)
	}
	defer q.Close()
	q.Hand.Hold(h)
	// This comes before everything else: a child that dies without this report has touched nothing,
	// and its jobs are released. If the master is gone the report is lost, and the jobs in hand are
	// done all the same.
	_ = conn.Send(jobs.Report{Ready: true, Jobs: jobIDs(h.Reply.Jobs)})
	stay := stayHeard(ctx, q, h.Zone)
	defer stay()
	client, err := remote.New(cfg.SSH)
	if err != nil {
		return cli.Exit(cli.ExitUsage, err)
	}
	sources := secrets.New(h.Node, settings.SourcesOf(cfg.References), cfg.Credentials)
	defer giveBack(ctx, sources)
	decides, proves, times := trusted(cfg, h.Zone, q, log)
	held := doors{work.NewWork(q).ProvedBy(proves), care.NewFair(q)}
	w, err := worker.New(cfg.Worker, worker.Doors{Queue: held, Clock: proc.Boot, Log: log,
		Times: times,
		Steps: attempt.Doors{Queue: held, Kin: work.NewKin(q), Committed: held.Committed,
			Answer: held.AnswerAsk, Dial: attempt.SSH(client),
			Blobs:  cache.New(cfg.Cache, blobs.NewStore(q)).Open,
			Play:   plays.New(cfg.Plays()).Play,
			Unseal: unseal(cfg.SecretsKey), Fetch: sources.Fetch, Synchronised: proc.ClockKept,
			Trust: decides}})
	if err != nil {
		return cli.Exit(cli.ExitUsage, err)
	}
	orders := make(chan jobs.Order)
	go receive(conn, orders)
	err = w.Run(ctx, h, worker.Master{Orders: orders, Report: func(r jobs.Report) {
		// The report is lost if the master is gone; Redis has the truth.
		if err := conn.Send(r); err != nil {
			log.Debug("report", "error", err)
		}
	}})
	if err != nil && !errors.Is(err, context.Canceled) {
		return cli.Exit(cli.ExitNotAll, err)
	}
	return nil
}

// doors are the handles of the queue that a worker uses for jobs.
type doors struct {
	*work.Work
	*care.Fair
}

// agreements reads windows and durations of runbooks, and alerts people.
type agreements struct {
	*hub.Timetable
	*hub.Estimates
	*queue.Conn
}

// trusted returns what decides by whose word jobs run, what proves the words of this node, and the
// timetable that it believes; nil: the node believes Redis, and proves nothing.
func trusted(cfg settings.Child, zone string, q *queue.Conn, log hclog.Logger) (attempt.Trust,
	work.Prover, agreed.Times) {
	timetable := hub.NewTimetable(q)
	plain := agreements{timetable, hub.NewEstimates(q), q}
	rules := settings.TrustRules(cfg.TrustDir)
	if rules == nil {
		return nil, nil, plain
	}
	w := warden.New(work.NewSigned(q), rules, time.Now, log)
	return w, w.Prove, w.Times(plain, timetable, warden.TimesOptions{Zone: zone, Age: cfg.TimesAge,
		Memory: memory.NewTimes(cfg.NodeDir)})
}

// giveBackTime is the time in which a child that ends gives back the token of Vault.
const giveBackTime = 2 * time.Second

func giveBack(ctx context.Context, s *secrets.Sources) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), giveBackTime)
	defer cancel()
	s.Close(ctx)
}

// unseal opens secrets with the keys of a file; nil: there is no file.
func unseal(path string) func(task, argument, sealed string) (seal.Text, error) {
	keys := settings.KeysOf(path)
	if keys == nil {
		return nil
	}
	return func(task, argument, sealed string) (seal.Text, error) {
		k, err := keys()
		if err != nil {
			return "", err
		}
		return k.Open(task, argument, sealed)
	}
}

// heardEvery is the time between two reports of a child with jobs in hand.
const heardEvery = 3 * time.Second

// stayHeard registers the child in its zone while its first job begins, and then notices a restart
// of Redis within seconds: the new connection reports the jobs in hand, which the others wait for.
// It returns a function that ends that.
func stayHeard(ctx context.Context, q *queue.Conn, zone string) (end func()) {
	ctx, cancel := context.WithCancel(ctx)
	var wait sync.WaitGroup
	wait.Go(func() {
		_ = q.Enter(ctx, zone) // the first step tries again
		for tick := time.Tick(heardEvery); ; {
			select {
			case <-tick:
				_ = q.Ping(ctx) // if Redis is away the next step handles that
			case <-ctx.Done():
				return
			}
		}
	})
	return func() {
		cancel()
		wait.Wait()
	}
}

func jobIDs(list []jobs.Grant) []jobs.ID {
	ids := make([]jobs.ID, len(list))
	for i, g := range list {
		ids[i] = g.Job
	}
	return ids
}

// receive passes the orders of the master on until it is gone.
func receive(conn *proc.Conn, orders chan<- jobs.Order) {
	defer close(orders)
	for {
		var o jobs.Order
		if err := conn.Receive(&o); err != nil {
			return
		}
		orders <- o
	}
}
