package proc

import (
	"bufio"
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
)

// An oomCounter reports whether the kernel has recently killed a process for memory. The kernel
// does not say which one; a child that died by a SIGKILL that muster did not send takes one of the
// kills on itself.
//
// Children live in the control group of their parent, so the counter of that group is exact.
// Without a control group the counter of the whole machine has to do.
type oomCounter struct {
	path string // of the file with the counter; empty: none

	mu   sync.Mutex
	seen int // kills that are somebody's; guarded by mu
}

// newOOMCounter looks for the counter below root, which is / except in tests.
func newOOMCounter(root string) *oomCounter {
	own, _ := os.ReadFile(filepath.Join(root, "proc/self/cgroup")) // none: the machine's
	for _, name := range oomFiles(own) {
		path := filepath.Join(root, name)
		if n, ok := readOOM(path); ok {
			return &oomCounter{path: path, seen: n}
		}
	}
	return &oomCounter{}
}

// claim takes one kill, if there is one that nobody has taken.
func (c *oomCounter) claim() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	n, ok := readOOM(c.path)
	if !ok || n <= c.seen {
		return false
	}
	c.seen++
	return true
}

// refresh forgets kills that nobody took: they were of other processes.
func (c *oomCounter) refresh() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if n, ok := readOOM(c.path); ok {
		c.seen = n
	}
}

// oomFiles lists where the counter may be, best first, for a process whose
// /proc/self/cgroup is own. A container may see its own group as the root.
func oomFiles(own []byte) []string {
	var files []string
	for line := range strings.Lines(string(own)) {
		parts := strings.SplitN(strings.TrimSuffix(line, "\n"), ":", 3)
		if len(parts) != 3 {
			continue
		}
		controllers, group := parts[1], parts[2]
		switch {
		case controllers == "": // version 2
			files = append(files,
				filepath.Join("sys/fs/cgroup", group, "memory.events.local"),
				filepath.Join("sys/fs/cgroup", group, "memory.events"),
				"sys/fs/cgroup/memory.events.local")
		case slices.Contains(strings.Split(controllers, ","), "memory"): // version 1
			files = append(files,
				filepath.Join("sys/fs/cgroup/memory", group, "memory.oom_control"),
				"sys/fs/cgroup/memory/memory.oom_control")
		}
	}
	return append(files, "proc/vmstat")
}

// readOOM reads the line `oom_kill N`.
func readOOM(path string) (int, bool) {
	text, err := os.ReadFile(path)
	if err != nil {
		return 0, false
	}
	lines := bufio.NewScanner(bytes.NewReader(text))
	for lines.Scan() {
		if value, ok := strings.CutPrefix(lines.Text(), "oom_kill "); ok {
			n, err := strconv.Atoi(strings.TrimSpace(value))
			return n, err == nil
		}
	}
	return 0, false
}
