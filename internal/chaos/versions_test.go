package chaos

import (
	"bytes"
	"cmp"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

var previous = flag.String("chaos.previous", "", "a commit whose muster works beside this one: nodes "+
	"and servers go from one to the other and back; release: the newest tag, or the commit in previous.txt")

// previousFile names the commit of the release before this one, until there is a tag.
const previousFile = "internal/chaos/previous.txt"

// commitOf returns the commit that -chaos.previous names, of the clone in a folder.
func commitOf(root, name string) (string, error) {
	if name == "release" {
		text, err := exec.Command("git", "-C", root, "describe", "--tags", "--abbrev=0", "HEAD^").Output()
		if name = strings.TrimSpace(string(text)); err != nil {
			if name, err = named(filepath.Join(root, previousFile)); err != nil {
				return "", fmt.Errorf("no tag is before HEAD, and %s names no commit: %w", previousFile, err)
			}
		}
	}
	hash, err := exec.Command("git", "-C", root, "rev-parse", "--verify", "--quiet", name+"^{commit}").Output()
	if err != nil {
		return "", fmt.Errorf("the previous version, %s, is not in this clone (%w). Get it with `git fetch --tags "+
			"--unshallow`, or name another commit: -chaos.previous COMMIT", name, err)
	}
	return strings.TrimSpace(string(hash)), nil
}

// named returns the first line of a file that is no comment.
func named(path string) (string, error) {
	text, err := os.ReadFile(path)
	for line := range strings.Lines(string(text)) {
		if line = strings.TrimSpace(line); line != "" && !strings.HasPrefix(line, "#") {
			return line, nil
		}
	}
	return "", cmp.Or(err, errors.New("it has no line of its own"))
}

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
	commit := ""
	if *previous != "" { // before anything is built, which takes minutes
		if commit, err = commitOf(root, *previous); err != nil {
			h.t.Fatal(err)
		}
		fmt.Printf("chaos: the previous version is %s\n", commit)
	}
	list := []version{h.build(versionNow, root)}
	if commit == "" {
		return list
	}
	return append(list, h.before(root, commit))
}

// before builds the muster of a commit, or takes the one that an earlier run has built and kept in
// bin.
func (h *house) before(root, commit string) version {
	h.t.Helper()
	kept := filepath.Join(root, "bin", "muster-before-"+commit)
	if _, err := os.Stat(kept); err != nil {
		h.keep(h.build(versionBefore, h.tree(root, commit)), kept)
	}
	v := version{versionBefore, filepath.Join(h.dir, "muster-"+versionBefore)}
	h.copy(kept, v.path)
	return v
}

// tree unpacks the source of a commit.
func (h *house) tree(root, commit string) string {
	h.t.Helper()
	tree := filepath.Join(h.dir, "tree-"+versionBefore)
	if err := os.Mkdir(tree, 0o755); err != nil {
		h.t.Fatal(err)
	}
	archive, err := exec.Command("git", "-C", root, "archive", commit).Output()
	if err != nil {
		h.t.Fatalf("git archive %s: %v", commit, err)
	}
	unpack := exec.Command("tar", "-x", "-C", tree)
	unpack.Stdin = bytes.NewReader(archive)
	if out, err := unpack.CombinedOutput(); err != nil {
		h.t.Fatalf("tar: %v: %s", err, out)
	}
	return tree
}

// keep keeps a binary for later runs, whole or not at all.
func (h *house) keep(v version, at string) {
	h.t.Helper()
	if err := os.MkdirAll(filepath.Dir(at), 0o755); err != nil {
		h.t.Fatal(err)
	}
	h.copy(v.path, at+".new")
	if err := os.Rename(at+".new", at); err != nil {
		h.t.Fatal(err)
	}
}

func (h *house) copy(from, to string) {
	h.t.Helper()
	data, err := os.ReadFile(from)
	if err == nil {
		err = os.WriteFile(to, data, 0o755)
	}
	if err != nil {
		h.t.Fatal(err)
	}
}

func (h *house) build(name, tree string) version {
	h.t.Helper()
	v := version{name, filepath.Join(h.dir, "muster-"+name)}
	build := exec.Command("go", "build", "-trimpath", "-ldflags", "-X muster/cli.Version="+name, "-o", v.path,
		"./cmd/muster")
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

// The release before is the newest tag before HEAD, else the commit in the file. An error says how to
// get a commit that the clone lacks: no test is left out for it.
func TestTheReleaseBeforeIsFound(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	git := func(args ...string) string {
		t.Helper()
		cmd := exec.Command("git", append([]string{"-C", root, "-c", "user.name=a", "-c", "user.email=a@b",
			"-c", "commit.gpgsign=false", "-c", "tag.gpgsign=false"}, args...)...)
		text, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("git %v: %v: %s", args, err, text)
		}
		return strings.TrimSpace(string(text))
	}
	git("init", "-q")
	var commits []string
	for _, name := range []string{"one", "two", "three"} {
		git("commit", "-q", "--allow-empty", "-m", name)
		commits = append(commits, git("rev-parse", "HEAD"))
	}
	file := filepath.Join(root, previousFile)
	if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
		t.Fatal(err)
	}
	write := func(text string) {
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	wants := func(name, want, words string) {
		t.Helper()
		got, err := commitOf(root, name)
		if got != want || (err != nil) != (words != "") || err != nil && !strings.Contains(err.Error(), words) {
			t.Errorf("%s: %q, %v; want %q, %q", name, got, err, want, words)
		}
	}
	wants("release", "", "names no commit")
	write("# nothing yet\n")
	wants("release", "", "names no commit")
	write("# a word\n\n" + commits[0] + "\n")
	wants("release", commits[0], "")
	git("tag", "-m", "v1", "v1", commits[1])
	wants("release", commits[1], "")
	wants(commits[2], commits[2], "")
	wants("0123456789", "", "git fetch --tags --unshallow")
}
