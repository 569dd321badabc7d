package machine

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
)

// table is the processes that have a number: shells, and the leaders of the groups
// that timeout makes. Others are not seen.
type table struct {
	mu    sync.Mutex
	last  int // the highest number so far
	known map[int]process
}

// process is one that can be found by its number.
type process struct {
	group  int
	family *family
	signal func(kill bool) // sends TERM or KILL to the group; nil: it leads none
}

// firstProcess is where numbers begin: not with those that a system keeps.
const firstProcess = 1000

// number gives out a number.
func (t *table) number() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.last++
	return firstProcess + t.last
}

func (t *table) add(pid int, p process) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.known == nil {
		t.known = map[int]process{}
	}
	t.known[pid] = p
}

func (t *table) drop(pid int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.known, pid)
}

// dropFamily forgets what is left of an exec.
func (t *table) dropFamily(f *family) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for pid, p := range t.known {
		if p.family == f {
			delete(t.known, pid)
		}
	}
}

// leader finds what leads a group.
func (t *table) leader(group int) (process, bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	p, ok := t.known[group]
	return p, ok && p.signal != nil
}

// list is what ps prints: number and group, in order.
func (t *table) list() [][2]int {
	t.mu.Lock()
	defer t.mu.Unlock()
	var all [][2]int
	for pid, p := range t.known {
		all = append(all, [2]int{pid, p.group})
	}
	slices.SortFunc(all, func(a, b [2]int) int { return a[0] - b[0] })
	return all
}

// runKill knows TERM, KILL and 0, for groups.
func runKill(c *call) Status {
	if len(c.args) != 2 || !strings.HasPrefix(c.args[1], "-") {
		return c.fail(2, "want a signal and a process group")
	}
	number, err := strconv.Atoi(c.args[1][1:])
	if err != nil {
		return c.fail(2, "Illegal number: %s", c.args[1])
	}
	p, ok := c.sh.machine.processes.leader(number)
	if !ok {
		return c.fail(1, "No such process")
	}
	switch strings.TrimPrefix(c.args[0], "-") {
	case "0":
	case "TERM", "15":
		p.signal(false)
	case "KILL", "9":
		p.signal(true)
	default:
		return c.fail(1, "%s is beyond a pretended machine", c.args[0])
	}
	return Status{}
}

// runPs knows one way to be asked. What is dead is buried at once here.
func runPs(c *call) Status {
	if asked := strings.Join(c.args, " "); asked != "-A -o pid= -o pgid= -o stat=" {
		return c.fail(1, "%s is beyond a pretended machine", asked)
	}
	for _, p := range c.sh.machine.processes.list() {
		if _, err := fmt.Fprintf(c.out, "%5d %5d S\n", p[0], p[1]); err != nil {
			return Status{Code: 1}
		}
	}
	return Status{}
}
