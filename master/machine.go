package master

import (
	"math/rand/v2"
	"os"
	"time"

	"muster/internal/proc"
)

// A Machine is the computer of a master, as far as the master acts on it. ThisMachine returns the
// real one; the simulation has its own.
type Machine struct {
	Boot   func() time.Duration // CLOCK_BOOTTIME
	Lock   func(path string) (*proc.LockFile, error)
	Start  func(proc.Spec) (Process, error)
	Adopt  func(pid int, conn *os.File, unread []byte) (Process, error)
	Chance func() float64 // numbers from 0 to 1, which spread what is tried again
}

// A Process is a child as its master sees it.
type Process interface {
	PID() int
	Line() Line
	Wait() (proc.Exit, error)
	Kill() error
	Terminate() error
	Detach() (conn *os.File, unread []byte, err error)
}

// A Line is the connection of a master with a child.
type Line interface {
	Send(v any) error
	Receive(v any) error
	Expire()
	Close() error
}

// ThisMachine returns the machine that this process runs on.
func ThisMachine() Machine {
	parent := proc.NewParent()
	return Machine{
		Boot: proc.Boot,
		Lock: proc.Lock,
		Start: func(s proc.Spec) (Process, error) {
			c, err := parent.Start(s)
			if err != nil {
				return nil, err
			}
			return ownChild{c}, nil
		},
		Adopt: func(pid int, conn *os.File, unread []byte) (Process, error) {
			c, err := parent.Adopt(pid, conn, unread)
			if err != nil {
				return nil, err
			}
			return ownChild{c}, nil
		},
		Chance: rand.Float64,
	}
}

// ownChild is a real child.
type ownChild struct{ *proc.Child }

// PID returns its number.
func (p ownChild) PID() int { return p.Child.PID }

// Line returns the connection with it.
func (p ownChild) Line() Line { return p.Conn }
