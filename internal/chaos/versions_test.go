package chaos

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"
)

var previous = flag.String("chaos.previous", "", "a commit whose muster works beside this one: nodes "+
	"and servers go from one to the other and back")

// The names of the two versions.
const (
	versionNow    = "this"
	versionBefore = "previous"
)

// A version of muster is a binary.
type version struct{ name, path string }

// versions builds this tree and, if one is named, the commit before it.
func (h *house) versions() []version {
	h.t.Helper()
	root, err := filepath.Abs(filepath.Join("..", ".."))
	if err != nil {
		h.t.Fatal(err)
	}
	list := []version{h.build(versionNow, root)}
	if *previous == "" {
		return list
	}
	tree := filepath.Join(h.dir, "tree-"+versionBefore)
	if err := os.Mkdir(tree, 0o755); err != nil {
		h.t.Fatal(err)
	}
	archive, err := exec.Command("git", "-C", root, "archive", *previous).Output()
	if err != nil {
		h.t.Fatalf("git archive %s: %v", *previous, err)
	}
	unpack := exec.Command("tar", "-x", "-C", tree)
	unpack.Stdin = bytes.NewReader(archive)
	if out, err := unpack.CombinedOutput(); err != nil {
		h.t.Fatalf("tar: %v: %s", err, out)
	}
	return append(list, h.build(versionBefore, tree))
}

func (h *house) build(name, tree string) version {
	h.t.Helper()
	v := version{name, filepath.Join(h.dir, "muster-"+name)}
	build := exec.Command("go", "build", "-ldflags", "-X muster/cli.Version="+name, "-o", v.path, "./cmd/muster")
	build.Dir = tree
	if out, err := build.CombinedOutput(); err != nil {
		h.t.Fatalf("go build in %s: %v: %s", tree, err, out)
	}
	return v
}

// An installed is the binary of one process, which is replaced by another version as a package does
// it: by rename.
type installed struct {
	path string
	list []version

	mu sync.Mutex
	at int
}

// install puts the version at an index in place.
func (i *installed) install(at int) error {
	i.mu.Lock()
	defer i.mu.Unlock()
	fresh := i.path + ".new"
	if err := os.RemoveAll(fresh); err != nil {
		return err
	}
	if err := os.Link(i.list[at].path, fresh); err != nil {
		return err
	}
	i.at = at
	return os.Rename(fresh, i.path)
}

// other puts the next version in place.
func (i *installed) other() error { return i.install((i.at + 1) % len(i.list)) }

// changeNode gives a node the other version under load. Its children end after the job in hand.
func (s *saboteur) changeNode() bool {
	n := s.node()
	if err := n.binary.other(); err != nil {
		s.h.t.Error(err)
		return false
	}
	n.signal(syscall.SIGUSR2, again)
	return true
}

// changeServer gives a server the other version.
func (s *saboteur) changeServer() bool {
	n := s.server()
	if err := n.binary.other(); err != nil {
		s.h.t.Error(err)
		return false
	}
	n.signal(syscall.SIGTERM, again)
	return true
}

// changes are the faults of a house with two versions.
func changes() []fault {
	return []fault{
		{"give a node the other version", 6, 3 * time.Second, 0, (*saboteur).changeNode},
		{"give a server the other version", 3, 3 * time.Second, 0, (*saboteur).changeServer},
	}
}

// logs are the files of the logs of all processes.
func (h *house) logs() (list []string) {
	for _, n := range append(slices.Clone(h.nodes), h.servers...) {
		list = append(list, n.log.Name())
	}
	return list
}

// judgeVersions reports a version that never worked, by the logs of all processes.
func (h *house) judgeVersions(logs []string) {
	h.t.Helper()
	if *previous == "" {
		return
	}
	worked := map[string]int{}
	for _, path := range logs {
		text, err := os.ReadFile(path)
		if err != nil {
			h.t.Error(err)
			continue
		}
		for _, v := range []string{versionNow, versionBefore} {
			worked[v] += strings.Count(string(text), "version="+v)
		}
	}
	fmt.Printf("chaos: starts by version: %v\n", worked)
	for _, v := range []string{versionNow, versionBefore} {
		if worked[v] < 3 {
			h.t.Errorf("version %s was started %d times", v, worked[v])
		}
	}
}
