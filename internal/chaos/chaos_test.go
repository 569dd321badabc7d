package chaos

import (
	"bytes"
	"context"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"text/tabwriter"
	"time"

	"muster/jobs/queue/hooks"
)

var (
	length = flag.Duration("chaos.for", 0, "how long faults are given; 0: not at all")
	seed   = flag.Uint64("chaos.seed", 0, "decides who gets which fault when; 0: a new one")
	keep   = flag.Bool("chaos.keep", false, "keep the logs also if all is well")
	netns  = flag.Bool("chaos.netns", true, "use a network namespace, where there can be one")

	serverCount = flag.Int("chaos.servers", 2, "number of servers")
	nodeCount   = flag.Int("chaos.nodes", 3, "number of nodes, each with its master")
)

// From this length on every kind of fault must have been given.
const fullLength = 10 * time.Minute

// endsWithin bounds how long muster may take to come to an end without faults: a
// freeze for the longest lock, and a job that takes three workers with it.
const endsWithin = 6 * time.Minute

func TestMain(m *testing.M) {
	if len(os.Args) == 4 && os.Args[1] == relayMark {
		os.Exit(relayInside(os.Args[2], os.Args[3]))
	}
	hooks.Quiet()
	os.Exit(m.Run())
}

func TestChaos(t *testing.T) {
	if *length == 0 {
		return // it is asked for by make chaos
	}
	if *seed == 0 {
		*seed = rand.Uint64N(1_000_000)
	}
	fmt.Printf("chaos: seed %d, faults for %s\n", *seed, *length)
	dir, err := os.MkdirTemp("", "muster-chaos-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if t.Failed() || *keep {
			fmt.Printf("chaos: seed %d; the logs are in %s\n", *seed, dir)
			return
		}
		os.RemoveAll(dir)
	})
	h := newHouse(t, dir, nil)
	fmt.Printf("chaos: partitions by %s\n", h.partitions())
	w := h.watch(t)

	s, o := newSaboteur(h), newOperator(h)
	interrupted, quiet := signal.NotifyContext(t.Context(), os.Interrupt, syscall.SIGTERM)
	defer quiet()
	ctx, stop := context.WithTimeout(interrupted, *length)
	defer stop()
	var work sync.WaitGroup
	work.Go(func() { s.work(ctx) })
	work.Go(func() { o.work(ctx) })
	work.Wait()

	began := time.Now()
	s.heal()
	if interrupted.Err() != nil {
		t.Fatal("interrupted")
	}
	if err := o.settle(t.Context(), endsWithin); err != nil {
		t.Error(err)
	}
	fmt.Printf("chaos: all ended %.0f s after the last fault\n", time.Since(began).Seconds())
	w.draw(t)
	logs := h.logs()
	h.stop()
	h.judgeVersions(logs)

	r := h.record(t, o)
	table("fault", s.counts(), "given")
	table("order", o.counts(), "given")
	if len(o.refused.counts()) > 0 {
		table("what muster said to orders that it did not carry out", o.refused.counts(), "times")
	}
	r.judge(s.mayBeUnknown())
	h.judge(r)
	table("outcome", r.outcomes.counts(), "jobs")
	table("invariant", r.counts(), "checked")
	for _, words := range r.wrong {
		t.Error(words)
	}
	for _, c := range s.counts() {
		if c.n == 0 && *length >= fullLength {
			t.Errorf("the fault %q was never given", c.name)
		}
	}
	if t.Failed() {
		h.write("judgement.txt", strings.Join(r.wrong, "\n"))
		r.save(h)
	}
}

// A count is a line of a table.
type count struct {
	name string
	n    int
	note string
}

func table(what string, list []count, number string) {
	var b bytes.Buffer
	w := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	fmt.Fprintf(w, "\n%s\t%s\t\n", what, number)
	for _, c := range list {
		fmt.Fprintf(w, "%s\t%d\t%s\n", c.name, c.n, c.note)
	}
	w.Flush()
	for line := range strings.Lines(b.String()) {
		fmt.Println(strings.TrimRight(line, " \n"))
	}
}

// tally counts by name, in the order in which names came first.
type tally struct {
	mu    sync.Mutex
	names []string
	n     map[string]int
}

func newTally(names ...string) *tally {
	return &tally{names: names, n: map[string]int{}}
}

func (c *tally) add(name string, n int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.n[name] += n
}

// add1 counts one more of a name that may be new.
func (c *tally) add1(name string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.n[name]++; c.n[name] == 1 {
		c.names = append(c.names, name)
	}
}

func (c *tally) get(name string) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.n[name]
}

func (c *tally) counts() []count {
	c.mu.Lock()
	defer c.mu.Unlock()
	var out []count
	for _, name := range c.names {
		out = append(out, count{name: name, n: c.n[name]})
	}
	return out
}

// pause waits, and is false if that was cut short.
func pause(ctx context.Context, d time.Duration) bool {
	select {
	case <-time.After(d):
		return true
	case <-ctx.Done():
		return false
	}
}

// between is a random duration.
func between(r *rand.Rand, least, most time.Duration) time.Duration {
	return least + time.Duration(r.Int64N(int64(most-least)))
}

func (h *house) write(name, text string) {
	if err := os.WriteFile(filepath.Join(h.dir, name), []byte(text), 0o600); err != nil {
		h.t.Error(err)
	}
}
