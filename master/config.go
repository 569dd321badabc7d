package master

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"time"

	"muster/fleet"
	"muster/internal/proc"
)

// The bounds of a Config.
const (
	maxChildren = 1000
	maxSlots    = 64
	minPoll     = 10 * time.Millisecond
	maxBeat     = 7 * time.Second
)

// Config says what a master is to do.
type Config struct {
	Node     string        // name of the node
	Dir      string        // folder of the locks; made if it is missing
	Zones    []string      // zones to work for, at least one
	Children int           // children at a time, at most
	Slots    int           // jobs that a child works on at a time
	Poll     time.Duration // between two looks at a zone, at most
	Beat     time.Duration // between two signs of life
	Drain    time.Duration // how long children may work on after Drain
	Turn     time.Duration // a zone without a child gets a child of another zone after so long
	Version  string        // version of this binary
	Identity string        // identifies this machine and Dir in the node's record

	Path   string          // path of this binary, under which children are called; see proc.Path
	Image  string          // file that children are started from; proc.Self: always this version
	Args   []string        // arguments of a child
	Env    []string        // environment of a child, all of it
	Worker json.RawMessage // configuration of a child, part of its hand-over

	// Try reports whether the binary at Path can take the place of this one now, with the
	// configuration that it will find. The master calls it before each Exec and works on
	// meanwhile. If Try is nil, no binary is tried.
	Try func(ctx context.Context) error

	// Exec puts the binary at Path in the place of this one and keeps the given files open,
	// as proc.Exec does. It returns only if that fails. If Exec is nil, Upgrade is refused.
	Exec func(kept []*os.File) error

	// Pulse is called at each turn of the master's loop, the first time when it works, and returns
	// the longest time until the next call. If Pulse is nil, nobody is told that the loop turns.
	Pulse func(Sign) time.Duration

	// Kept are the files that the previous binary has kept open, as proc.Kept returns them.
	// Without them the master starts afresh.
	Kept []*os.File
}

// A Sign describes a master at a turn of its loop.
type Sign struct {
	State    string // as in the node's record
	Children int    // at work
	Limit    int    // of children
}

// pulse reports a turn of the loop, and returns how soon it must turn again.
func (c Config) pulse(s stage, children int) time.Duration {
	if c.Pulse == nil {
		return c.Poll
	}
	return c.Pulse(Sign{s.String(), children, c.Children})
}

// Default returns a Config that lacks only Node, Dir and Path.
func Default() Config {
	return Config{
		Zones:    []string{"default"},
		Children: 4,
		Slots:    1,
		Poll:     10 * time.Second,
		Beat:     5 * time.Second,
		Drain:    5 * time.Minute,
		Turn:     10 * time.Second,
		Image:    proc.Self,
		Args:     []string{"worker"},
	}
}

// Validate reports all mistakes at once, one a line.
func (c Config) Validate() error {
	var errs []error
	bad := func(is bool, format string, args ...any) {
		if is {
			errs = append(errs, fmt.Errorf(format, args...))
		}
	}
	// The names are parts of keys and of lists in Redis.
	named := func(key string, err error) { bad(err != nil, "%s: %w", key, err) }
	named("node.name", fleet.CheckName(c.Node))
	bad(c.Dir == "", "node.dir is empty: want a folder for locks")
	bad(len(c.Zones) == 0, "master.zones is empty: want at least one zone, such as default")
	for i, z := range c.Zones {
		named("master.zones", fleet.CheckZone(z))
		bad(slices.Contains(c.Zones[:i], z), "master.zones: %s is there twice", z)
	}
	bad(c.Children < 1 || c.Children > maxChildren,
		"master.children = %d: want 1 to %d", c.Children, maxChildren)
	bad(c.Slots < 1 || c.Slots > maxSlots, "master.slots = %d: want 1 to %d", c.Slots, maxSlots)
	bad(c.Poll < minPoll, "master.poll = %s: want %s or more", c.Poll, minPoll)
	bad(c.Beat < minPoll || c.Beat > maxBeat,
		"master.beat = %s: want %s to %s", c.Beat, minPoll, maxBeat)
	bad(c.Drain < 0, "master.drain = %s: want 0 or more", c.Drain)
	bad(c.Turn < minPoll, "master.turn = %s: want %s or more", c.Turn, minPoll)
	bad(c.Path == "" || c.Image == "", "the path of the binary is empty")
	return errors.Join(errs...)
}

// checkReload reports all reasons why next cannot follow c without a restart.
func (c Config) checkReload(next Config) error {
	errs := []error{next.Validate()}
	if next.Node != c.Node {
		errs = append(errs, fmt.Errorf("node.name changes from %s to %s: only a restart can do that",
			c.Node, next.Node))
	}
	if next.Dir != c.Dir {
		errs = append(errs, fmt.Errorf("node.dir changes from %s to %s: only a restart can do that",
			c.Dir, next.Dir))
	}
	return errors.Join(errs...)
}
