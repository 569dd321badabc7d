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
	// maxBeat leaves time for one beat to fail before the node is taken for dead.
	maxBeat = 7 * time.Second
)

// Config says what a master is to do.
type Config struct {
	Node     string        // name of the node
	Dir      string        // of the locks; made if it is missing
	Zones    []string      // to work for, at least one
	Children int           // at most at a time
	Slots    int           // jobs that a child works on at a time
	Poll     time.Duration // between two looks at a zone, at most
	Beat     time.Duration // between two signs of life
	Drain    time.Duration // how long children may go on after Drain
	Turn     time.Duration // after so long a zone without a child gets one of another's
	Version  string        // of this binary
	Identity string        // of this machine and Dir, for the node's record

	Path   string          // of this binary, as children are called; see proc.Path
	Image  string          // file that they are started from; proc.Self: never another version
	Args   []string        // its arguments
	Env    []string        // its environment, all of it
	Worker json.RawMessage // handed to each child: its configuration

	// Try tells whether the binary at Path could take the place of this one, now
	// and with the configuration that it would find. It is called before each Exec,
	// while the node works on. Without it nothing is tried.
	Try func(ctx context.Context) error

	// Exec puts the binary at Path in the place of this one, with the files kept,
	// as proc.Exec does. It returns only if that fails. Without it there is no
	// Upgrade.
	Exec func(kept []*os.File) error

	// Kept are the files that the binary before this one has kept: what proc.Kept
	// gives. Without them the master starts afresh.
	Kept []*os.File
}

// Default is a Config that lacks only Node, Dir and Path.
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

// Validate tells all that is wrong, one line each.
func (c Config) Validate() error {
	var errs []error
	bad := func(is bool, format string, args ...any) {
		if is {
			errs = append(errs, fmt.Errorf(format, args...))
		}
	}
	// The names stand in keys and in lists of Redis.
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

// checkReload tells what is wrong with next as the successor of c.
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
