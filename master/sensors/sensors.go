package sensors

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"strings"
	"syscall"

	"muster/internal/files"
	"muster/master/governor"
)

// A Machine is where to measure.
type Machine struct {
	Root string   // "/" of a real machine; tests have another one
	Dirs []string // folders whose file systems must not be full
	Core float64  // number of cores
}

// fileMax bounds each file that is read.
const fileMax = 256 << 10 // bytes: mountinfo of a machine with many mounts

// read returns the text of a file; empty: there is none.
func (m Machine) read(path string) (string, error) {
	data, err := files.Read(filepath.Join(m.Root, path), fileMax)
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENODEV) ||
		errors.Is(err, syscall.EOPNOTSUPP) {
		return "", nil // pressure may be switched off in the kernel
	}
	return string(data), err
}

// sensors read one file each.
var sensors = []struct {
	path  string
	parse func(m Machine, text string) ([]governor.Reading, error)
}{
	{"proc/loadavg", func(m Machine, text string) ([]governor.Reading, error) {
		load, err := parseLoad(text)
		return one(governor.Load, load/m.Core, 0), err
	}},
	{"proc/meminfo", func(_ Machine, text string) ([]governor.Reading, error) {
		free, total, err := parseMemory(text)
		return one(governor.Memory, free, total), err
	}},
	{"proc/pressure/memory", func(_ Machine, text string) ([]governor.Reading, error) {
		percent, err := parsePressure(text)
		return one(governor.Pressure, percent, 0), err
	}},
	{"proc/sys/fs/file-nr", func(_ Machine, text string) ([]governor.Reading, error) {
		free, total, err := parseFiles(text)
		return one(governor.Files, free, total), err
	}},
}

func one(k governor.Kind, value, total float64) []governor.Reading {
	return []governor.Reading{{Kind: k, Value: value, Total: total}}
}

// Read measures. The error names each file that could not be read; the rest was measured.
func (m Machine) Read() ([]governor.Reading, error) {
	m.Core = max(m.Core, 1)
	var all []governor.Reading
	var errs []error
	take := func(path string, list []governor.Reading, err error) {
		if err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", filepath.Join("/", path), err))
			return
		}
		all = append(all, list...)
	}
	for _, s := range sensors {
		text, err := m.read(s.path)
		var list []governor.Reading
		if err == nil && text != "" {
			list, err = s.parse(m, text)
		}
		take(s.path, list, err)
	}
	list, err := m.pids()
	take("proc", list, err)
	for _, g := range m.groups() {
		list, err := m.group(g)
		take(g.dir, list, err)
	}
	for _, dir := range m.Dirs {
		list, err := disk(dir)
		take(dir, list, err)
	}
	return all, errors.Join(errs...)
}

// pids measures how many processes and threads the whole machine can still begin.
func (m Machine) pids() ([]governor.Reading, error) {
	load, err := m.read("proc/loadavg")
	if err != nil || load == "" {
		return nil, err
	}
	now, err := parseThreads(load)
	if err != nil {
		return nil, err
	}
	most := 0.0
	for _, path := range []string{"proc/sys/kernel/pid_max", "proc/sys/kernel/threads-max"} {
		text, err := m.read(path)
		if err != nil || text == "" {
			return nil, err
		}
		n, err := parseNumber(text)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
		if most == 0 || n < most {
			most = n
		}
	}
	return one(governor.Pids, most-now, most), nil
}

// disk measures the file system of a folder. A folder that is not there yet is left out.
func disk(dir string) ([]governor.Reading, error) {
	var s syscall.Statfs_t
	err := syscall.Statfs(dir, &s)
	if errors.Is(err, syscall.ENOENT) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	size := float64(s.Bsize)
	list := []governor.Reading{{Kind: governor.Disk, Where: dir, Value: float64(s.Bavail) * size,
		Total: float64(s.Blocks) * size}}
	if s.Files > 0 { // some file systems make inodes as they need them
		list = append(list, governor.Reading{Kind: governor.Inodes, Where: dir, Value: float64(s.Ffree),
			Total: float64(s.Files)})
	}
	return list, nil
}

// A group is the folder of one controller of a control group, below Root.
type group struct {
	dir string
	two bool            // version 2
	of  []governor.Kind // that are limited here: memory, pids
}

// groups returns the control groups of this process and those above them, as far as they are
// mounted: a limit of any of them holds.
func (m Machine) groups() []group {
	own, err := m.read("proc/self/cgroup")
	if err != nil {
		return nil
	}
	mounts, err := m.read("proc/self/mountinfo")
	if err != nil {
		return nil
	}
	var all []group
	for _, g := range parseGroups(own, parseMounts(mounts)) {
		for dir := g.dir; ; dir = filepath.Dir(dir) {
			all = append(all, group{strings.TrimPrefix(dir, "/"), g.two, g.of})
			if dir == g.root || len(dir) <= len(g.root) || len(all) > groupsMax {
				break
			}
		}
	}
	return all
}

// groupsMax bounds the groups of a process.
const groupsMax = 64

// group measures what is left of a control group. Names of files differ between the versions.
func (m Machine) group(g group) ([]governor.Reading, error) {
	var all []governor.Reading
	for _, kind := range g.of {
		used, most := "pids.current", "pids.max"
		switch {
		case kind == governor.Memory && g.two:
			used, most = "memory.current", "memory.max"
		case kind == governor.Memory:
			used, most = "memory.usage_in_bytes", "memory.limit_in_bytes"
		}
		limit, err := m.read(filepath.Join(g.dir, most))
		if err != nil || limit == "" {
			continue // the root group has no such file; others may be hidden in a container
		}
		total, err := parseLimit(limit)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", most, err)
		}
		if total == 0 {
			continue
		}
		text, err := m.read(filepath.Join(g.dir, used))
		if err != nil || text == "" {
			continue
		}
		now, err := parseNumber(text)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", used, err)
		}
		if kind == governor.Memory {
			now = max(0, now-m.cached(g.dir))
		}
		all = append(all, governor.Reading{Kind: kind, Where: filepath.Join("/", g.dir),
			Value: max(0, total-now), Total: total})
	}
	return all, nil
}

// cached returns the bytes of a group that the kernel can take back at once: files in memory that
// nobody has used for a while.
func (m Machine) cached(dir string) float64 {
	text, err := m.read(filepath.Join(dir, "memory.stat"))
	if err != nil {
		return 0
	}
	return parseReclaimable(text)
}
