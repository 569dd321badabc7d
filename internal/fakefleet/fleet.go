package fakefleet

import (
	"cmp"
	"context"
	"crypto/ed25519"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/crypto/ssh"

	"muster/internal/fakefleet/machine"
)

// Config says how many hosts to pretend and how they behave. Zero values get the defaults.
type Config struct {
	Hosts int    // 1 to 65,000
	Port  int    // one for all hosts; 0: a free one
	Seed  uint64 // decides keys and latencies: the same seed, the same fleet
	User  string // the only login name; default root

	// Watch is called when a command starts, is orphaned and ends, from many
	// goroutines. It must be quick.
	Watch func(e Entry)

	// Personality says how host i, counted from 0, behaves. Default: all normal.
	Personality func(i int) Personality

	// Latency is the delay of a host before it runs a command. Each host has its own, from half to one
	// and a half of this; BootTakes varies in the same way.
	Latency time.Duration

	SlowFactor    int           // factor for Slow; default 10
	ThrottleEvery int           // Throttle resets the first of so many connections; default 2
	DripEvery     time.Duration // the pause of Drip after each byte; default 1 s
	CutAfter      time.Duration // run time of a command before Cut; default 10 ms
	BootTakes     time.Duration // time for which a host that reboots is away; default 10 s
	FloodBytes    int64         // output of Flood; default 100 MB
	DiskBytes     int64         // the file system of each host; default 1 MiB
	LogEntries    int           // number of commands in the log; default 500,000
}

// hostsMax keeps all addresses inside 127.77.0.0/16.
const hostsMax = 65_000

func (c Config) withDefaults() Config {
	if c.Personality == nil {
		c.Personality = func(int) Personality { return Normal }
	}
	c.User = cmp.Or(c.User, "root")
	c.SlowFactor = cmp.Or(c.SlowFactor, 10)
	c.ThrottleEvery = cmp.Or(c.ThrottleEvery, 2)
	c.DripEvery = cmp.Or(c.DripEvery, time.Second)
	c.CutAfter = cmp.Or(c.CutAfter, 10*time.Millisecond)
	c.BootTakes = cmp.Or(c.BootTakes, 10*time.Second)
	c.FloodBytes = cmp.Or(c.FloodBytes, 100<<20)
	c.DiskBytes = cmp.Or(c.DiskBytes, 1<<20)
	c.LogEntries = cmp.Or(c.LogEntries, 500_000)
	return c
}

func (c Config) validate() error {
	var errs []error
	want := func(what string, n, least, most int64) {
		if n < least || n > most {
			errs = append(errs, fmt.Errorf("%s = %d: want %d to %d", what, n, least, most))
		}
	}
	wait := func(what string, d time.Duration) {
		if d < 0 || d > time.Hour {
			errs = append(errs, fmt.Errorf("%s = %s: want 0 to 1h", what, d))
		}
	}
	want("hosts", int64(c.Hosts), 1, hostsMax)
	want("port", int64(c.Port), 0, 65_535)
	want("slow factor", int64(c.SlowFactor), 1, 10_000)
	want("throttle every", int64(c.ThrottleEvery), 1, 1_000_000)
	want("flood bytes", c.FloodBytes, 1, 1<<30)
	want("disk bytes", c.DiskBytes, 1, 1<<30)
	want("log entries", int64(c.LogEntries), 1, 10_000_000)
	wait("latency", c.Latency)
	wait("drip every", c.DripEvery)
	wait("cut after", c.CutAfter)
	wait("boot takes", c.BootTakes)
	return errors.Join(errs...)
}

// Fleet is a running fleet of pretended hosts.
type Fleet struct {
	config  Config
	hosts   []*host
	models  map[string]*machine.Model
	log     *journal
	login   ed25519.PrivateKey
	allowed []byte // the public half of login, in its wire format
	port    int
	closed  int // a port on which nothing listens, for Refuse
	keyPath atomic.Pointer[string]

	ctx  context.Context // done when the fleet is closed
	stop context.CancelFunc
	held []io.Closer    // the listener, and the socket that keeps the closed port closed
	work sync.WaitGroup // every goroutine of the fleet
}

// host is one pretended host. There are thousands, so parts that few of them need are made at their
// first use.
type host struct {
	fleet       *Fleet
	index       int
	name        string
	personality Personality
	latency     time.Duration

	connections atomic.Int64
	key         func() ssh.Signer // the key that it shows
	machine     *machine.Machine
	running     []*record // guarded by the journal
	power       power
}

// Start makes a fleet and serves it until Close.
func Start(c Config) (*Fleet, error) {
	f, err := newFleet(c)
	if err == nil {
		err = f.listen()
	}
	if err != nil {
		return nil, fmt.Errorf("pretended fleet: %w", err)
	}
	return f, nil
}

// newFleet makes everything but the sockets.
func newFleet(c Config) (*Fleet, error) {
	c = c.withDefaults()
	if err := c.validate(); err != nil {
		return nil, err
	}
	f := &Fleet{config: c, models: map[string]*machine.Model{}, log: newJournal(c)}
	for _, m := range machine.Models() {
		f.models[m.Name] = m
	}
	f.ctx, f.stop = context.WithCancel(context.Background())
	return f, errors.Join(f.makeHosts(), f.makeLogin())
}

func (f *Fleet) listen() error {
	closed, held, err := holdClosedPort()
	if err != nil {
		return err
	}
	listener, err := listenOnLoopback(f.ctx, f.config.Port)
	if err != nil {
		return errors.Join(err, held.Close())
	}
	f.closed, f.port = closed, listener.Addr().(*net.TCPAddr).Port
	f.held = []io.Closer{listener, held}
	f.work.Go(func() { f.accept(listener) })
	return nil
}

func (f *Fleet) makeHosts() error {
	var errs []error
	f.hosts = make([]*host, f.config.Hosts)
	for i := range f.hosts {
		h := &host{fleet: f, index: i, name: nameOf(i), personality: f.config.Personality(i)}
		h.latency = f.latencyOf(h)
		h.key = sync.OnceValue(h.makeKey)
		h.machine = machine.New(machine.Config{Model: f.models[h.model()], Name: h.name,
			User: f.config.User, ID: f.digest("machine", i), DiskBytes: f.config.DiskBytes, Down: h.goDown})
		f.hosts[i] = h
		if err := h.personality.check(); err != nil {
			errs = append(errs, fmt.Errorf("host %s: %w", h.name, err))
		}
	}
	return errors.Join(errs...)
}

// slowest is the latency of Slow hosts if the fleet has none.
const slowest = 50 * time.Millisecond

func (f *Fleet) latencyOf(h *host) time.Duration {
	l := f.config.Latency
	if h.personality == Slow {
		l = cmp.Or(l, slowest) * time.Duration(f.config.SlowFactor)
	}
	spread := f.digest("latency", h.index)
	return l/2 + l*time.Duration(spread[0])/255
}

// Close ends all connections and all commands and waits until nothing of the fleet is left. It may
// be called more than once.
func (f *Fleet) Close() error {
	f.stop()
	var errs []error
	for _, c := range f.held {
		err := c.Close()
		if err != nil && !errors.Is(err, net.ErrClosed) && !errors.Is(err, os.ErrClosed) {
			errs = append(errs, err)
		}
	}
	f.work.Wait()
	for _, h := range f.hosts {
		h.machine.Close()
	}
	return errors.Join(errs...)
}
