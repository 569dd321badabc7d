package machine

import (
	"context"
	"crypto/sha256"
	"sync"
)

// Config distinguishes machines.
type Config struct {
	Model     *Model
	Name      string
	User      string
	ID        [32]byte // any bytes: its machine id, boot id and uptime are derived from them
	DiskBytes int64    // size of its file system

	// Down is called at a reboot, before anything ends. May be nil.
	Down func()
}

// Machine is one pretended machine. Commands may run on it at the same time.
type Machine struct {
	config    Config
	disk      func() *disk // made when it is first used: most machines never need one
	processes table
	filter    filter
	records   records

	mu      sync.Mutex
	on      context.Context // guarded by mu; done when it is turned off, or boots again
	off     context.CancelFunc
	boots   byte           // guarded by mu
	daemons sync.WaitGroup // processes that outlive their starter
}

// New makes a machine. It is small until it is used.
func New(c Config) *Machine {
	m := &Machine{config: c}
	m.on, m.off = context.WithCancel(context.Background())
	m.disk = sync.OnceValue(m.newDisk)
	return m
}

// Close turns it off: it kills processes in the background and waits for them.
func (m *Machine) Close() {
	m.mu.Lock()
	m.off()
	m.mu.Unlock()
	m.daemons.Wait()
}

// power returns a context that is done when the machine is turned off, or boots again.
func (m *Machine) power() context.Context {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.on
}

// reboot ends all processes and changes the boot id. Files, rules and records stay.
func (m *Machine) reboot() {
	if m.config.Down != nil {
		m.config.Down()
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.on.Err() != nil {
		return // for good
	}
	m.off()
	m.on, m.off = context.WithCancel(context.Background())
	m.boots++
	id := sha256.Sum256(append(m.config.ID[:], m.boots))
	m.disk().boot(uuidText(id[:16]))
	m.records.crash()
}

// Command is a command for a machine, with its input and output.
type Command struct {
	Line     string // for the login shell
	In       Source
	Out, Err Sink

	// Left is called if the shell has ended but processes that it left behind still run. May be nil.
	Left func(Status)

	// Began is called with the text of a step with a record, when the step begins. May be nil.
	Began func(text string)

	Deaf  bool  // its processes ignore TERM
	Stuck bool  // no signal ends its processes, like processes that wait for a disk
	Flood int64 // number of bytes to print before the output of the line
}

// Result is the end of a command.
type Result struct {
	Status
	TimedOut bool // a timeout command in it reached its bound
}

// Run runs a command until its last process has ended. If ctx ends, all of them are killed.
func (m *Machine) Run(ctx context.Context, c Command) Result {
	ctx, end := context.WithCancel(ctx)
	defer end()
	defer context.AfterFunc(m.power(), end)()

	p := m.newProcess(ctx, c)
	defer m.processes.drop(p)
	st := p.login(c.Line)
	if c.Left != nil && p.asides.busy() {
		c.Left(st)
	}
	p.asides.wait()
	return Result{st, p.timedOut.Load()}
}

// Touch makes an empty file, like a process that nobody sees.
func (m *Machine) Touch(path string) error {
	_, err := m.disk().create(path, true, 0o644)
	return err
}
