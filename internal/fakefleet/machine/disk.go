package machine

import (
	"fmt"
	"path"
	"slices"
	"strings"
	"sync"
	"time"
)

// trouble is an error in the words of the C library of a machine.
type trouble string

func (t trouble) Error() string { return string(t) }

const (
	noEntry  trouble = "No such file or directory"
	noSpace  trouble = "No space left on device"
	noMemory trouble = "Cannot allocate memory"
	notDir   trouble = "Not a directory"
	isDir    trouble = "Is a directory"
	notEmpty trouble = "Directory not empty"
	hasEntry trouble = "File exists"
	badArg   trouble = "Invalid argument"
)

// nodeBytes is the size of an empty file on a disk, so that the number of files is bounded.
const nodeBytes = 256

// disk is the file system of one machine, in memory and bounded. Paths are
// absolute and clean.
type disk struct {
	mu    sync.Mutex
	nodes map[string]*node
	used  int64
	max   int64

	since time.Time // time of the boot
}

const (
	uptimeFile = "/proc/uptime" // its content differs each time it is read
	bootFile   = "/proc/sys/kernel/random/boot_id"
)

// boot resets the disk for a machine that has just booted.
func (d *disk) boot(id string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.since, d.nodes[bootFile] = time.Now(), &node{mode: 0o444, data: []byte(id + "\n")}
}

// uptime returns the content of uptimeFile.
func (d *disk) uptime() string {
	up := time.Since(d.since).Seconds()
	return fmt.Sprintf("%.2f %.2f\n", up, up)
}

// node is a file or a directory. Its bytes are only appended to or replaced, so readers may keep
// them.
type node struct {
	dir  bool
	mode uint32
	data []byte
	gone bool // has no name any more; later writes are lost
}

func (m *Machine) newDisk() *disk {
	d := &disk{nodes: map[string]*node{}, since: time.Now().Add(-m.uptime())}
	for _, dir := range []string{
		"/", "/dev", "/etc", "/home", "/opt", "/proc", "/proc/sys", "/proc/sys/kernel",
		"/proc/sys/kernel/random", "/root", "/run", "/tmp", "/usr", "/var", "/var/lib", "/var/tmp",
	} {
		d.nodes[dir] = &node{dir: true, mode: 0o755}
	}
	id := m.config.ID
	for name, text := range map[string]string{
		"/etc/hostname":   m.config.Name + "\n",
		"/etc/machine-id": fmt.Sprintf("%x\n", id[:16]),
		"/etc/os-release": m.config.Model.release,
		uptimeFile:        "",
		bootFile:          uuidText(id[16:]) + "\n",
	} {
		d.nodes[name] = &node{mode: 0o644, data: []byte(text)}
	}
	for _, n := range d.nodes {
		d.used += nodeBytes + int64(len(n.data))
	}
	d.max = d.used + m.config.DiskBytes
	return d
}

func uuidText(b []byte) string {
	return fmt.Sprintf("%x-%x-%x-%x-%x", b[:4], b[4:6], b[6:8], b[8:10], b[10:16])
}

func (d *disk) read(name string) ([]byte, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	n, err := d.file(name)
	if err != nil {
		return nil, err
	}
	return n.data, nil
}

func (d *disk) file(name string) (*node, error) {
	n := d.nodes[name]
	switch {
	case n != nil && name == uptimeFile:
		return &node{mode: n.mode, data: []byte(d.uptime())}, nil
	case n == nil:
		return nil, noEntry
	case n.dir:
		return nil, isDir
	}
	return n, nil
}

// stat copies what it finds.
func (d *disk) stat(name string) (node, bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	n := d.nodes[name]
	if n == nil {
		return node{}, false
	}
	return *n, true
}

// create opens a file for writing: empty, or unchanged for appending.
func (d *disk) create(name string, more bool, mode uint32) (*node, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	n, err := d.file(name)
	switch {
	case err == isDir:
		return nil, err
	case err == nil && !more:
		d.used -= int64(len(n.data))
		n.data = nil
	case err != nil:
		n = &node{mode: mode}
		if err := d.add(name, n); err != nil {
			return nil, err
		}
	}
	return n, nil
}

func (d *disk) add(name string, n *node) error {
	parent := d.nodes[path.Dir(name)]
	switch {
	case parent == nil:
		return noEntry
	case !parent.dir:
		return notDir
	case d.used+nodeBytes > d.max:
		return noSpace
	}
	d.used += nodeBytes
	d.nodes[name] = n
	return nil
}

func (d *disk) append(n *node, b []byte) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	switch {
	case n.gone:
		return nil
	case d.used+int64(len(b)) > d.max:
		return noSpace
	}
	d.used += int64(len(b))
	n.data = append(n.data, b...)
	return nil
}

func (d *disk) mkdir(name string) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.nodes[name] != nil {
		return hasEntry
	}
	return d.add(name, &node{dir: true, mode: 0o755})
}

func (d *disk) chmod(name string, mode uint32) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.nodes[name] == nil {
		return noEntry
	}
	d.nodes[name].mode = mode
	return nil
}

// rename replaces the file with the new name at once, as rename(2) does.
func (d *disk) rename(from, to string) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	n, parent := d.nodes[from], d.nodes[path.Dir(to)]
	switch {
	case n == nil || parent == nil:
		return noEntry
	case !parent.dir:
		return notDir
	case from == to:
		return nil
	case n.dir:
		return d.renameDir(from, to)
	}
	if old := d.nodes[to]; old != nil {
		if old.dir {
			return isDir
		}
		d.drop(to)
	}
	delete(d.nodes, from)
	d.nodes[to] = n
	return nil
}

func (d *disk) renameDir(from, to string) error {
	switch {
	case d.nodes[to] != nil:
		return hasEntry
	case from == "/" || strings.HasPrefix(to, from+"/"):
		return badArg
	}
	for name, n := range d.nodes {
		if name == from || strings.HasPrefix(name, from+"/") {
			delete(d.nodes, name)
			d.nodes[to+name[len(from):]] = n
		}
	}
	return nil
}

// remove removes a file or an empty directory, or everything below a name.
func (d *disk) remove(name string, all bool) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.nodes[name] == nil {
		return noEntry
	}
	if name == "/" {
		return badArg
	}
	below := d.below(name)
	if len(below) > 0 && !all {
		return notEmpty
	}
	for _, b := range append(below, name) {
		d.drop(b)
	}
	return nil
}

func (d *disk) drop(name string) {
	n := d.nodes[name]
	d.used -= nodeBytes + int64(len(n.data))
	n.gone = true
	delete(d.nodes, name)
}

// list returns the names directly in a directory.
func (d *disk) list(dir string) []string {
	d.mu.Lock()
	defer d.mu.Unlock()
	var names []string
	for _, b := range d.below(dir) {
		if path.Dir(b) == dir {
			names = append(names, path.Base(b))
		}
	}
	slices.Sort(names)
	return names
}

func (d *disk) below(dir string) []string {
	prefix := strings.TrimSuffix(dir, "/") + "/"
	var names []string
	for name := range d.nodes {
		if strings.HasPrefix(name, prefix) && name != prefix {
			names = append(names, name)
		}
	}
	return names
}
