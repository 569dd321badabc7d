package packaged

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// The test binary plays muster for tools/packages.sh, which asks it for pages and completion:
// the real one would take a minute to build. What is in its pages is tested in cli/man.
func TestMain(m *testing.M) {
	if filepath.Base(os.Args[0]) != "muster" {
		os.Exit(m.Run())
	}
	switch os.Args[1] {
	case "man":
		page := filepath.Join(os.Args[2], "muster.1")
		if os.MkdirAll(os.Args[2], 0o755) != nil || os.WriteFile(page, []byte(".TH MUSTER 1\n"), 0o644) != nil {
			os.Exit(1)
		}
	case "completion":
		fmt.Println("# completion for", os.Args[2])
	}
}

// tree is a copy of what packages are made of, with a commit of its own, in a folder of its own.
func tree(t *testing.T, change func(dir string)) string {
	t.Helper()
	dir := t.TempDir()
	sh(t, "../..", `tar -cf - etc docs README.md LICENSE CHANGELOG.md tools/packages.sh tools/release.sh tools/go.mod \
		tools/go.sum tools/cmd/sbom | tar -xf - -C "$1"`, dir)
	if change != nil {
		change(dir)
	}
	sh(t, dir, `git init -q && git add -A && GIT_AUTHOR_DATE='2026-11-01T10:00:00+0100' \
		GIT_COMMITTER_DATE='2026-11-01T10:00:00+0100' git -c user.name=x -c user.email=x@localhost \
		-c commit.gpgsign=false commit -q -m x`)
	bin := filepath.Join(dir, "bin")
	if err := os.Mkdir(bin, 0o755); err != nil {
		t.Fatal(err)
	}
	// The tool is built once, for this tree and for the target `make packages`.
	sh(t, "..", `[ ../bin/nfpm -nt go.sum ] || go build -o ../bin/nfpm github.com/goreleaser/nfpm/v2/cmd/nfpm
		cp ../bin/nfpm "$1/nfpm"`, bin)
	return dir
}

// packed builds packages of a tree, and returns their paths by the ends of their names.
func packed(t *testing.T, tree, version string) (deb, rpm string) {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	sh(t, tree, `tools/packages.sh -v "$1" -o out -b "$2" amd64`, version, self)
	for end, path := range map[string]*string{"deb": &deb, "rpm": &rpm} {
		found, err := filepath.Glob(filepath.Join(tree, "out", "*."+end))
		if err != nil || len(found) != 1 {
			t.Fatalf("packages: %q, %v; want one .%s", found, err, end)
		}
		*path = found[0]
	}
	return deb, rpm
}

func sh(t *testing.T, dir, script string, args ...string) string {
	t.Helper()
	c := exec.CommandContext(t.Context(), "sh", append([]string{"-euc", script, "sh"}, args...)...)
	c.Dir = dir
	out, err := c.CombinedOutput()
	if err != nil {
		t.Fatalf("%s: %v\n%s", script, err, out)
	}
	return string(out)
}

// needRoot says whether this test can change what a namespace sees as the machine.
func needRoot(t *testing.T) {
	t.Helper()
	if os.Getuid() != 0 {
		t.Skip("only root can make a root of its own")
	}
	if testing.Short() {
		t.Skip("-short: packages are built")
	}
	for _, program := range []string{"dpkg", "rpm", "rpm2cpio", "unshare"} {
		if _, err := exec.LookPath(program); err != nil {
			t.Fatalf("there is no %s: run `make test`, which installs it", program)
		}
	}
}

func TestPackages(t *testing.T) {
	needRoot(t)
	old := tree(t, nil)
	next := tree(t, func(dir string) {
		sh(t, dir, "printf '\\n# new in this version\\n' >> etc/muster.yaml")
	})
	oldDeb, oldRPM := packed(t, old, "1.0.0")
	nextDeb, nextRPM := packed(t, next, "1.1.0-rc1")

	t.Run("two builds are the same bytes", func(t *testing.T) {
		deb, rpm := packed(t, tree(t, nil), "1.0.0")
		for _, pair := range [][2]string{{oldDeb, deb}, {oldRPM, rpm}} {
			if one, two := hash(t, pair[0]), hash(t, pair[1]); one != two {
				t.Errorf("%s has hash %s, then %s", filepath.Base(pair[0]), one, two)
			}
		}
	})
	t.Run("what is in them", func(t *testing.T) {
		deb := sh(t, ".", `dpkg-deb -c "$1"`, oldDeb)
		rpm := sh(t, ".", `rpm -K --nosignature "$1" >&2 && rpm2cpio "$1" | cpio -t --quiet`, oldRPM)
		for _, path := range []string{"/usr/bin/muster", "/usr/share/man/man1/muster.1.gz",
			"/usr/share/bash-completion/completions/muster", "/_muster", "/muster.fish",
			"/usr/lib/systemd/system/muster-server.service", "/usr/lib/systemd/system/muster-server.socket",
			"/usr/lib/systemd/system/muster-master.service", "/usr/lib/sysusers.d/muster.conf",
			"/usr/lib/tmpfiles.d/muster.conf", "/etc/muster/muster.yaml", "/usr/share/doc/muster/changelog.gz",
			"/usr/share/doc/muster/copyright", "/usr/share/doc/muster/sbom.json",
			"/usr/share/doc/muster/examples/fleet.yaml", "/usr/share/doc/muster/docs/INSTALL.md",
			"/usr/share/muster/monitoring/muster.rules.yml", "/usr/share/muster/monitoring/muster.dashboard.json"} {
			for kind, list := range map[string]string{"deb": deb, "rpm": rpm} {
				if !strings.Contains(list, path+"\n") {
					t.Errorf("the %s lacks %s", kind, path)
				}
			}
		}
		for line := range strings.Lines(deb) {
			if !strings.Contains(line, " root/root ") {
				t.Errorf("not of root: %s", line)
			}
			if mode := line[:10]; mode[8] == 'w' || strings.ContainsAny(mode, "sSt") {
				t.Errorf("others may write it, or it changes the user: %s", line)
			}
		}
		if got := sh(t, ".", `dpkg-deb -f "$1" Version; rpm -qp --nosignature --qf '%{VERSION}' "$2"`, nextDeb,
			nextRPM); got != "1.1.0~rc1-1\n1.1.0~rc1" {
			t.Errorf("versions are %q: a candidate must be older than its release", got)
		}
	})
	for _, s := range []struct{ name, old, next string }{{"deb", oldDeb, nextDeb}, {"rpm", oldRPM, nextRPM}} {
		for _, story := range []string{"fresh", "running", "stopped", "edited", "forbidden", "gone"} {
			t.Run(s.name+" "+story, func(t *testing.T) {
				t.Parallel()
				out := sh(t, ".", `unshare --mount --propagation private sh -eu testdata/root.sh "$@"`,
					s.name, story, s.old, s.next)
				t.Log(out)
			})
		}
	}
}

func hash(t *testing.T, path string) string {
	t.Helper()
	raw, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return fmt.Sprintf("%x", sha256.Sum256(raw))
}

// A release is refused unless it is what the tree and the list of changes say.
func TestAReleaseIsRefused(t *testing.T) {
	if testing.Short() {
		t.Skip("-short: a tree is copied")
	}
	dir := tree(t, func(dir string) {
		if err := os.WriteFile(filepath.Join(dir, ".gitignore"), []byte("/bin\n"), 0o644); err != nil {
			t.Fatal(err)
		}
	})
	for _, c := range []struct{ spoil, version, want string }{
		{"", "7.0.0", "CHANGELOG.md has no section 7.0.0"},
		{"", "7", "want three numbers"},
		{"", "", "which version?"},
		{"echo x >> README.md", "7.0.0", "README.md"},
	} {
		sh(t, dir, c.spoil)
		cmd := exec.CommandContext(t.Context(), "tools/release.sh", c.version)
		cmd.Dir = dir
		out, err := cmd.CombinedOutput()
		if err == nil || !bytes.Contains(out, []byte(c.want)) {
			t.Errorf("release %q after %q: %v\n%s\nwant %q", c.version, c.spoil, err, out, c.want)
		}
		if _, err := os.Stat(filepath.Join(dir, "dist")); err == nil {
			t.Error("a refused release leaves something in dist")
		}
	}
}
