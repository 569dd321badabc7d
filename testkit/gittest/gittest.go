// Package gittest makes git repositories for tests, with commits that are signed by keys of SSH.
package gittest

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// A Repo is a repository with a work tree, whose branch is main.
type Repo struct {
	t   testing.TB
	Dir string
	key string // signs commits; empty: nobody does
}

// New makes a repository without a commit.
func New(t testing.TB) *Repo {
	t.Helper()
	r := &Repo{t: t, Dir: t.TempDir()}
	r.Git("init", "--quiet", "--initial-branch=main")
	return r
}

// Key makes a key of SSH and returns its file.
func Key(t testing.TB, name string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), name)
	out, err := exec.CommandContext(t.Context(), "ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C",
		name, "-f", file).CombinedOutput()
	if err != nil {
		t.Fatalf("ssh-keygen: %v: %s", err, out)
	}
	return file
}

// Signers writes a file of allowed signers, which has these keys, each under the name of its file.
func Signers(t testing.TB, keys ...string) string {
	t.Helper()
	var text strings.Builder
	for _, key := range keys {
		public, err := os.ReadFile(key + ".pub")
		if err != nil {
			t.Fatal(err)
		}
		text.WriteString(filepath.Base(key) + ` namespaces="git" ` + string(public))
	}
	file := filepath.Join(t.TempDir(), "allowed_signers")
	if err := os.WriteFile(file, []byte(text.String()), 0o644); err != nil {
		t.Fatal(err)
	}
	return file
}

// Sign signs the commits that follow by a key; empty: by none.
func (r *Repo) Sign(key string) { r.key = key }

// T returns the test.
func (r *Repo) T() testing.TB { return r.t }

// URL returns the address of the repository.
func (r *Repo) URL() string { return "file://" + r.Dir }

// Git runs git and returns what it prints.
func (r *Repo) Git(args ...string) string { return r.GitIn("", args...) }

// GitIn is Git with a standard input.
func (r *Repo) GitIn(in string, args ...string) string {
	r.t.Helper()
	c := exec.CommandContext(r.t.Context(), "git", append([]string{"-c", "user.name=Test",
		"-c", "user.email=test@example.org", "-c", "gpg.format=ssh", "-c", "gc.auto=0",
		"-c", "user.signingkey=" + r.key}, args...)...)
	c.Dir = r.Dir
	c.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=/nonexistent", "GIT_CONFIG_NOSYSTEM=1",
		"GIT_CONFIG_GLOBAL=/dev/null", "LC_ALL=C"}
	c.Stdin = strings.NewReader(in)
	var out, said bytes.Buffer
	c.Stdout, c.Stderr = &out, &said
	if err := c.Run(); err != nil {
		r.t.Fatalf("git %q: %v: %s", args, err, said.String())
	}
	return strings.TrimSpace(out.String())
}

// Write writes a file of the work tree; an empty content removes it.
func (r *Repo) Write(name, content string) {
	r.t.Helper()
	file := filepath.Join(r.Dir, name)
	err := os.MkdirAll(filepath.Dir(file), 0o755)
	if err == nil && content == "" {
		err = os.Remove(file)
	} else if err == nil {
		err = os.WriteFile(file, []byte(content), 0o644)
	}
	if err != nil {
		r.t.Fatal(err)
	}
}

// Commit commits all of the work tree and returns the name of the commit.
func (r *Repo) Commit(message string) string {
	r.t.Helper()
	r.Git("add", "--all")
	args := []string{"commit", "--quiet", "--allow-empty", "-m", message}
	if r.key != "" {
		args = append(args, "-S")
	}
	r.Git(args...)
	return r.Git("rev-parse", "HEAD")
}

// CommitTree makes a commit of a tree that is given as lines of git mktree, at the branch.
func (r *Repo) CommitTree(tree string) string {
	r.t.Helper()
	id := r.GitIn(tree, "mktree", "--missing", "-z")
	args := []string{"commit-tree", id, "-m", "a tree"}
	if r.key != "" {
		args = append(args, "-S")
	}
	one := r.Git(args...)
	r.Git("update-ref", "refs/heads/main", one)
	return one
}

// Blob stores a content and returns its name.
func (r *Repo) Blob(content string) string {
	r.t.Helper()
	return r.GitIn(content, "hash-object", "-w", "--stdin")
}
