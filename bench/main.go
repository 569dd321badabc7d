package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"
	"time"

	"muster/jobs/queue/hooks"
	"muster/jobs/queue/work"
)

// A section measures one kind of thing and returns its rows of the table.
type section struct {
	name  string
	about string
	run   func(ctx context.Context, b *bench) ([]row, error)
	extra bool // only if it is asked for
}

func sections() []section {
	return []section{
		{"drain", "no-op jobs a second, 16 at a time", drain, false},
		{"proven", "the same, each end with the proof of its node", proven, false},
		{"calls", "Redis calls for a job of one step", calls, false},
		{"cpu", "time in Redis' scripts for a job, one caller", cpu, false},
		{"bytes", "memory of Redis for a job", bytesOfJobs, false},
		{"submit", "submit of 100,000 jobs", submit, false},
		{"ssh", "`true` on 3,000 pretended hosts, 64 at a time", overSSH, false},
		{"record", "what the record of a host costs a step", records, false},
		{"inventory", "inventories and selectors", readings, false},
		{"child", "a child process", child, false},
		{"sessions", "memory of a node with many sessions open", sessions, false},
		{"idle", "calls of an idle node", idle, false},
		{"reorder", "an overloaded queue is reordered", reorder, false},
		{"fair", "a small task behind a big one", fair, false},
		{"scale", "up to a million jobs wait", scale, false},
		{"wake", "a job comes to an idle node", wake, false},
		{"webhooks", "events come in beside a drain", webhooks, false},
		{"plans", "ends of tasks, planned and real", plans, false},
		{"big", "a million hosts, a million queued jobs", big, true},
		{"inside", "what a step calls inside Redis", inside, true},
	}
}

// bench is what the sections share.
type bench struct {
	rounds int
	small  bool          // smaller numbers, for a look
	quiet  time.Duration // how long the idle node is watched
	muster string        // path of the binary
	bullmq string        // folder with drain.mjs
	dir    string        // for files; removed at the end
	redis  *redisServer
	prove  work.Prover // of the workers; nil: none
	say    io.Writer   // for the person who waits
}

// size is n, or a tenth of it in a short run.
func (b *bench) size(n int) int {
	if b.small {
		return n / 10
	}
	return n
}

type options struct {
	bench
	only   string
	format string
}

func parse(args []string) (options, error) {
	o := options{bench: bench{say: os.Stderr}}
	f := flag.NewFlagSet("bench", flag.ContinueOnError)
	f.IntVar(&o.rounds, "rounds", 5, "rounds of every section; the medians are printed")
	f.StringVar(&o.only, "only", "", "`sections`, with commas between: "+
		strings.Join(names(true), ","))
	f.StringVar(&o.format, "o", "table", "table, markdown or json")
	f.BoolVar(&o.small, "short", false, "a tenth of the jobs and hosts: no figures to keep")
	f.DurationVar(&o.quiet, "idle", time.Minute, "how long an idle node is watched")
	f.StringVar(&o.muster, "muster", "../bin/muster", "`path` of the binary")
	f.StringVar(&o.bullmq, "bullmq", "bullmq", "`folder` with drain.mjs")
	if err := f.Parse(args); err != nil {
		return o, err
	}
	if o.small && o.quiet == time.Minute {
		o.quiet = 20 * time.Second
	}
	return o, o.check(f.Args())
}

func (o options) check(rest []string) error {
	var errs []error
	if len(rest) > 0 {
		errs = append(errs, fmt.Errorf("%q: want flags only, see -h", rest[0]))
	}
	if o.rounds < 1 || o.rounds > 100 {
		errs = append(errs, fmt.Errorf("-rounds %d: want 1 to 100", o.rounds))
	}
	if o.quiet < time.Second {
		errs = append(errs, fmt.Errorf("-idle %s: want 1s or more", o.quiet))
	}
	if printers[o.format] == nil {
		errs = append(errs, fmt.Errorf("-o %s: want table, markdown or json", o.format))
	}
	for _, name := range o.wanted() {
		if !slices.Contains(names(true), name) {
			errs = append(errs, fmt.Errorf("-only %s: want some of %s", name,
				strings.Join(names(true), ",")))
		}
	}
	return errors.Join(errs...)
}

// names lists the sections.
func names(extra bool) []string {
	var out []string
	for _, s := range sections() {
		if extra || !s.extra {
			out = append(out, s.name)
		}
	}
	return out
}

// wanted lists the sections that were asked for.
func (o options) wanted() []string {
	if o.only == "" {
		return names(false)
	}
	return strings.Split(o.only, ",")
}

func main() {
	if err := run(os.Args[1:]); err != nil {
		if errors.Is(err, flag.ErrHelp) {
			return
		}
		for line := range strings.Lines(err.Error()) {
			fmt.Fprintln(os.Stderr, "bench: "+strings.TrimRight(line, "\n"))
		}
		os.Exit(1)
	}
}

func run(args []string) error {
	hooks.Quiet()
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	if len(args) > 0 && args[0] == fleetRole {
		return serveFleet(args[1:], os.Stdin, os.Stdout)
	}
	if len(args) > 0 && args[0] == bareRole {
		return serveBare(args[1:])
	}
	o, err := parse(args)
	if err != nil {
		return err
	}
	return o.measure(ctx)
}

// measure goes through the sections and prints the table.
func (o *options) measure(ctx context.Context) (err error) {
	if o.dir, err = os.MkdirTemp("", "muster-bench-"); err != nil {
		return err
	}
	defer os.RemoveAll(o.dir)
	if o.redis, err = startRedis(o.dir); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, o.redis.stop()) }()

	t := table{Machine: aboutMachine(o), wanted: o.wanted()}
	if err := o.begin(ctx, &t.Machine); err != nil {
		return err
	}
	half := len(t.wanted) / 2
	for i, s := range o.sections() {
		if i > 0 && i == half {
			if err := o.floor(ctx, &t.Machine.Calm, "in the middle"); err != nil {
				return err
			}
		}
		began := time.Now()
		rows, failed := s.run(ctx, &o.bench)
		if failed != nil {
			// What the others have measured is not lost by it.
			err = errors.Join(err, fmt.Errorf("%s: %w", s.name, failed))
			t.wanted = slices.DeleteFunc(t.wanted, func(name string) bool { return name == s.name })
			if ctx.Err() != nil {
				break
			}
			continue
		}
		fmt.Fprintf(o.say, "%s took %s\n", s.name, time.Since(began).Round(time.Second))
		t.add(s, rows)
	}
	if ctx.Err() == nil {
		err = errors.Join(err, o.floor(ctx, &t.Machine.Calm, "at the end"))
	}
	return errors.Join(err, printers[o.format](os.Stdout, t))
}

// begin says whether the machine is quiet enough for what follows.
func (o *options) begin(ctx context.Context, m *machine) error {
	m.Calm.Load = loadAverage()
	if err := o.floor(ctx, &m.Calm, "at the start"); err != nil {
		return err
	}
	if !m.Calm.quiet(m.Cores) {
		fmt.Fprintf(o.say, "the machine is not quiet: its load is %s\n", number(m.Calm.Load))
	}
	return nil
}

// sections returns those that were asked for, in the order in which they are measured.
func (o *options) sections() []section {
	return slices.DeleteFunc(sections(), func(s section) bool {
		return !slices.Contains(o.wanted(), s.name)
	})
}
