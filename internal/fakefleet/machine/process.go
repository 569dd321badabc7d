package machine

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"
)

// Status is the end of a process: an exit status, or a signal.
type Status struct {
	Code   int
	Signal string // such as TERM; empty if it exited
}

// The signals that can end a pretended process, and their numbers.
const (
	sigTerm = "TERM"
	sigKill = "KILL"
	sigPipe = "PIPE"
)

var signals = map[string]int{sigTerm: 15, sigKill: 9, sigPipe: 13}

// seen returns the status of a child as a shell shows it.
func (s Status) seen() int {
	if s.Signal != "" {
		return 128 + signals[s.Signal]
	}
	return s.Code
}

// A signal is the cause of the end of a process's context. A machine that is turned off gives no
// such cause, and kills.
type signal string

func (s signal) Error() string { return string(s) }

// diedOf returns the signal that ended a context; empty: none did.
func diedOf(ctx context.Context) string {
	var s signal
	switch {
	case ctx.Err() == nil:
		return ""
	case errors.As(context.Cause(ctx), &s):
		return string(s)
	}
	return sigKill
}

// stepsMax bounds the calls of one command, and the blocks of 8 KiB that its floods print, 2 GB: a
// command without an end takes a core only for a moment.
const stepsMax = 250_000

// process is a command with all processes that it starts: a process group of its own.
type process struct {
	machine *Machine
	pid     int
	cmd     Command
	asides  asides // processes left in the background

	ctx      context.Context
	die      context.CancelCauseFunc
	steps    atomic.Int64
	timedOut atomic.Bool
	over     chan struct{} // closed when no process of it is alive
}

func (m *Machine) newProcess(ctx context.Context, c Command) *process {
	p := &process{machine: m, cmd: c, over: make(chan struct{})}
	p.ctx, p.die = context.WithCancelCause(ctx)
	m.processes.add(p)
	return p
}

// kill sends TERM or KILL to the whole group.
func (p *process) kill(s signal) {
	if !p.cmd.Stuck && (s != sigTerm || !p.cmd.Deaf) {
		p.die(s)
	}
}

// gone waits until no process of it is alive, at most for a time.
func (p *process) gone(within time.Duration) bool {
	return !Pause(p.over, within)
}

// bound holds the arguments of GNU timeout.
type bound struct {
	after, grace time.Duration
	hard         bool // send KILL at once
}

// bounded runs a function under GNU timeout: the status is 124 if the bound was reached, and KILL
// if it, or another process, sends KILL to its own group.
func (p *process) bounded(ctx context.Context, b bound, run func(context.Context) Status) Status {
	if b.after == 0 {
		return run(ctx)
	}
	// Processes left behind are not bounded: the context lasts as long as the process.
	ctx, cancel := context.WithCancelCause(ctx)
	var fired atomic.Bool
	send := func(s signal) {
		fired.Store(true)
		if !p.cmd.Stuck && (s != sigTerm || !p.cmd.Deaf) {
			cancel(s)
		}
	}
	first := signal(sigTerm)
	if b.hard {
		first = sigKill
	}
	soft := time.AfterFunc(b.after, func() { send(first) })
	defer soft.Stop()
	if b.grace > 0 {
		last := time.AfterFunc(b.after+b.grace, func() { send(sigKill) })
		defer last.Stop()
	}
	st := run(ctx)
	if fired.Load() {
		p.timedOut.Store(true)
		if st.Signal != sigKill {
			return Status{Code: 124}
		}
	}
	return st
}

// asides are the background processes of a command, which ends only after them.
type asides struct {
	count atomic.Int64
	group sync.WaitGroup
}

func (a *asides) run(f func()) {
	a.count.Add(1)
	a.group.Go(func() {
		defer a.count.Add(-1)
		f()
	})
}

func (a *asides) busy() bool { return a.count.Load() > 0 }
func (a *asides) wait()      { a.group.Wait() }

// table holds the live processes, by their numbers.
type table struct {
	mu    sync.Mutex
	last  int
	known map[int]*process
}

// firstProcess is the first number: a system keeps the lower ones.
const firstProcess = 1000

// add gives a process a number. The next number belongs to the shell which it starts.
func (t *table) add(p *process) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.known == nil {
		t.known = map[int]*process{}
	}
	t.last += 2
	p.pid = firstProcess + t.last
	t.known[p.pid] = p
}

func (t *table) drop(p *process) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.known, p.pid)
	close(p.over)
	p.die(nil)
}

// find returns the process with this number; nil if it is gone.
func (t *table) find(pid int) *process {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.known[pid]
}

// Pause waits and reports whether the time has passed: false if done was closed before.
func Pause(done <-chan struct{}, d time.Duration) bool {
	if d <= 0 {
		return true
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-done:
		return false
	}
}
