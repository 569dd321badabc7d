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

// nodeDoors paces the logins of all processes of a node together, at the doors of jump hosts,
// to which every process has a connection of its own. A place at a door is a lock on a file,
// which the kernel releases when its process ends in any way. Another file holds the pace of
// the door.
type nodeDoors struct {
	dir   string // empty: each process paces only itself
	first int
	most  int
	limit time.Duration // the longest wait, because a process that holds a place may be stopped
	pause func(ctx context.Context, d time.Duration) error
}

// A nodePlace is a place at a door of a node.
type nodePlace struct {
	door *nodeDoors
	at   string
	lock *proc.LockFile // nil: no lock was available
}

// doorPoll is the pause between two searches for a free place, as files cannot notify anybody.
const doorPoll = 20 * time.Millisecond

// enter waits for room at a door. If locking fails or the wait takes too long, it lets the
// caller pass all the same, because pacing is only politeness. The caller must call leave on
// the place. The error says why ctx ended.
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
			return p, ended(ctx) // nil: only the wait took too long
		}
	}
}

// path returns the beginning of the names of a door's files.
func (n *nodeDoors) path(name string) string {
	sum := sha256.Sum256([]byte(name))
	return filepath.Join(n.dir, fmt.Sprintf("dial-%x", sum[:8]))
}

func isLocked(err error) bool {
	var locked *proc.LockedError
	return errors.As(err, &locked)
}

// leave frees the place and records how the login went.
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
	_ = p.lock.Free() // if this fails, closing the file has freed it
}

// noteTries bounds how often leave tries to record the result while others hold the file. If
// it gives up, the next process learns the same by itself.
const noteTries = 20

// learn reads the pace of a door and applies change to it, unless change is nil.
func (p *nodePlace) learn(change func(*pace)) (pace, error) {
	state, err := proc.Lock(p.at)
	if err != nil {
		return pace{}, err
	}
	defer state.Free()
	n := p.door
	d := parsePace(state.Holder().Text, pace{width: n.first, ceiling: n.most}, n.most)
	if change != nil {
		change(&d)
		err = state.Sign(proc.Holder{Text: d.String()})
	}
	return d, err
}

// String returns the pace in the format of a door's file.
func (d pace) String() string {
	return fmt.Sprintf("%d of %d, calm %d", d.width, d.ceiling, d.calm)
}

// parsePace reads the result of String. It returns other if the text is invalid.
func parsePace(text string, other pace, most int) pace {
	var d pace
	n, err := fmt.Sscanf(text, "%d of %d, calm %d", &d.width, &d.ceiling, &d.calm)
	if n != 3 || err != nil || d.width < 1 || d.ceiling < d.width || d.ceiling > most || d.calm < 0 {
		return other
	}
	return d
}
