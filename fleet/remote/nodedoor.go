package remote

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"time"

	"muster/internal/proc"
)

// nodeDoors are doors that all processes of a node pace together: those of jump hosts,
// where every process has a connection of its own. A place at a door is a lock on a file,
// which ends with its process, however that ends. What was learned of a door is in a file
// beside.
type nodeDoors struct {
	dir   string // empty: each process paces on its own
	first int
	most  int
	limit time.Duration // the longest wait: who stands at a door may be stopped
	pause func(ctx context.Context, d time.Duration) error
}

// A nodePlace is one at a door of a node.
type nodePlace struct {
	door *nodeDoors
	at   string
	lock *proc.LockFile // nil: there was none to be had
}

// doorPoll is how often a process looks for a place; nobody could tell it.
const doorPoll = 20 * time.Millisecond

// enter waits until there is room at a door. What cannot be locked does not keep anybody
// from a host, nor does a wait that was too long: pacing is for politeness. Whoever has
// entered must leave. The error is the end of ctx.
func (n *nodeDoors) enter(ctx context.Context, name string) (*nodePlace, error) {
	p := &nodePlace{door: n, at: n.path(name)}
	if n.dir == "" {
		return p, nil
	}
	limited, cancel := context.WithTimeout(ctx, n.limit)
	defer cancel()
	for {
		known, err := p.learn(nil)
		if err == nil {
			for i := range known.width {
				if p.lock, err = proc.Lock(fmt.Sprintf("%s-%d", p.at, i)); err == nil {
					return p, nil
				}
			}
		}
		if !isLocked(err) {
			return p, nil
		}
		wait := doorPoll/2 + rand.N(doorPoll)
		if err := n.pause(limited, wait); err != nil {
			return p, ended(ctx) // nil: it took too long
		}
	}
}

// path is what the files of a door begin with.
func (n *nodeDoors) path(name string) string {
	sum := sha256.Sum256([]byte(name))
	return filepath.Join(n.dir, fmt.Sprintf("dial-%x", sum[:8]))
}

func isLocked(err error) bool {
	var locked *proc.LockedError
	return errors.As(err, &locked)
}

// leave gives the place back and tells how it went.
func (p *nodePlace) leave(kind Kind) {
	if p.lock == nil {
		return
	}
	for range noteTries {
		_, err := p.learn(func(d *pace) { d.after(kind, p.door.most) })
		if !isLocked(err) {
			break
		}
		_ = p.door.pause(context.Background(), time.Millisecond) // never ends early
	}
	_ = p.lock.Close() // a lock ends in any case
}

// noteTries is how often it is tried to note how it went, while others read. What is not
// noted is learned by the next one.
const noteTries = 20

// learn reads what is known of a door, and changes it.
func (p *nodePlace) learn(change func(*pace)) (pace, error) {
	state, err := proc.Lock(p.at)
	if err != nil {
		return pace{}, err
	}
	defer state.Close()
	n := p.door
	d := parsePace(state.Holder().Text, pace{width: n.first, ceiling: n.most}, n.most)
	if change != nil {
		change(&d)
		err = state.Sign(proc.Holder{Text: d.String()})
	}
	return d, err
}

// String is for the file of a door.
func (d pace) String() string {
	return fmt.Sprintf("%d of %d, calm %d", d.width, d.ceiling, d.calm)
}

// parsePace reads what String wrote; other is what holds if it was not that.
func parsePace(text string, other pace, most int) pace {
	var d pace
	n, err := fmt.Sscanf(text, "%d of %d, calm %d", &d.width, &d.ceiling, &d.calm)
	if n != 3 || err != nil || d.width < 1 || d.ceiling < d.width || d.ceiling > most || d.calm < 0 {
		return other
	}
	return d
}
