package gitsource_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"muster/internal/gitsource"
	"muster/testkit/gittest"
)

// copyOf returns a copy of the branch main of a repository.
func copyOf(t *testing.T, r *gittest.Repo) *gitsource.Copy {
	t.Helper()
	return &gitsource.Copy{Source: gitsource.Source{URL: r.URL(), Branch: "main"},
		Dir: filepath.Join(t.TempDir(), "rules"), Bounds: gitsource.DefaultBounds()}
}

func fetch(t *testing.T, c *gitsource.Copy) gitsource.Commit {
	t.Helper()
	one, err := c.Fetch(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return one
}

// refused asserts that a commit is refused, in words.
func refused(t *testing.T, err error, words string) {
	t.Helper()
	if !errors.Is(err, gitsource.ErrRefused) || !strings.Contains(err.Error(), words) {
		t.Errorf("got %v, want a refusal with %q", err, words)
	}
}

func TestFilesOfACommitAreRead(t *testing.T) {
	t.Parallel()
	r := gittest.New(t)
	r.Write("conf/a.yaml", "a: 1\n")
	r.Write("conf/deep/b.yaml", "no end of line")
	r.Write("conf/deep/c.ics", "BEGIN")
	r.Write("conf/.ci/build.yml", "ignored")
	r.Write("other/d.yaml", "elsewhere")
	id := r.Commit("the first one\n\nand more")
	c := copyOf(t, r)
	c.Source.Path = "conf"
	one := fetch(t, c)
	if one.ID != id || one.Subject != "the first one" {
		t.Errorf("%+v, want %s", one, id)
	}
	tree, err := c.Tree(t.Context(), one)
	if err != nil {
		t.Fatal(err)
	}
	names := tree.Names()
	if got := strings.Join(names, " "); got != "conf/a.yaml conf/deep/b.yaml" ||
		!tree.Has("conf/deep/c.ics") || tree.Has("other/d.yaml") {
		t.Errorf("names %q", got)
	}
	list, err := c.Read(t.Context(), tree, append(names, "conf/deep/c.ics"))
	if err != nil || len(list) != 3 || list[0].Content != "a: 1\n" ||
		list[1].Content != "no end of line" || list[2].Content != "BEGIN" {
		t.Errorf("%+v, %v", list, err)
	}
	c.Source.Path = "nowhere"
	_, err = c.Tree(t.Context(), one)
	refused(t, err, `has no folder "nowhere"`)
	c.Source.Branch = "nobranch"
	_, err = c.Fetch(t.Context())
	refused(t, err, "it has no branch nobranch")
}

func TestOnlySignaturesOfKnownPeopleCount(t *testing.T) {
	t.Parallel()
	r := gittest.New(t)
	alice, mallory := gittest.Key(t, "alice"), gittest.Key(t, "mallory")
	c := copyOf(t, r)
	c.Source.Signers = gittest.Signers(t, alice)

	r.Write("a.yaml", "a: 1\n")
	r.Sign(alice)
	r.Commit("signed")
	if who, err := c.Signer(t.Context(), fetch(t, c)); err != nil || who != "alice" {
		t.Errorf("signed by %q, %v; want alice", who, err)
	}
	r.Sign(mallory)
	r.Commit("signed by another")
	_, err := c.Signer(t.Context(), fetch(t, c))
	refused(t, err, "is signed by nobody whom")

	r.Sign("")
	r.Commit("unsigned\n\ngpgsig is only a word here")
	_, err = c.Signer(t.Context(), fetch(t, c))
	refused(t, err, "is not signed")

	// The signature of an earlier commit, on another one.
	r.Sign(alice)
	r.Commit("good")
	text := r.Git("cat-file", "commit", "HEAD") + "\n"
	forged := r.GitIn(strings.Replace(text, "good", "evil", 1), "hash-object", "-t", "commit", "-w",
		"--stdin")
	r.Git("update-ref", "refs/heads/main", forged)
	_, err = c.Signer(t.Context(), fetch(t, c))
	refused(t, err, "is signed by nobody whom")

	// A file that others may write says nothing.
	r.Sign(alice)
	r.Write("b.yaml", "b: 2\n")
	r.Git("reset", "--quiet", "--soft", "HEAD~1")
	r.Commit("good again")
	if err := os.Chmod(c.Source.Signers, 0o666); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Signer(t.Context(), fetch(t, c)); err == nil || errors.Is(err, gitsource.ErrRefused) ||
		!strings.Contains(err.Error(), "chmod go-w") {
		t.Errorf("got %v, want an error about its mode", err)
	}

	// Without the file nobody is known, and that is no word about the commit.
	if err := os.Remove(c.Source.Signers); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Signer(t.Context(), fetch(t, c)); err == nil || errors.Is(err, gitsource.ErrRefused) {
		t.Errorf("got %v, want an error about the file", err)
	}
}

func TestHistoryThatGoesBackIsRefused(t *testing.T) {
	t.Parallel()
	r := gittest.New(t)
	r.Write("a.yaml", "a: 1\n")
	first := r.Commit("one")
	r.Write("a.yaml", "a: 2\n")
	second := r.Commit("two")
	c := copyOf(t, r)
	one := fetch(t, c)
	for _, earlier := range []string{"", first, second} {
		if err := c.Descends(t.Context(), one, earlier); err != nil {
			t.Errorf("from %q: %v", earlier, err)
		}
	}
	if err := c.Remember(t.Context(), second); err != nil {
		t.Fatal(err)
	}
	r.Git("reset", "--quiet", "--hard", first)
	back := fetch(t, c)
	refused(t, c.Descends(t.Context(), back, second), "history goes back")
	r.Write("a.yaml", "a: 3\n")
	r.Commit("beside")
	refused(t, c.Descends(t.Context(), fetch(t, c), second), "history goes back")
	// A new copy does not know the commit in force at all.
	fresh := copyOf(t, r)
	refused(t, fresh.Descends(t.Context(), fetch(t, fresh), second), "history goes back")
	if was, err := c.InForce(t.Context()); err != nil || was != second {
		t.Errorf("in force %q, %v", was, err)
	}
	if was, err := fresh.InForce(t.Context()); err != nil || was != "" {
		t.Errorf("in force %q, %v", was, err)
	}
}

func TestHostileContentsAreRefusedInWords(t *testing.T) {
	t.Parallel()
	r := gittest.New(t)
	r.Write("a.yaml", "a: 1\n")
	r.Commit("one")
	blob, small := r.Blob("/etc/shadow"), gitsource.DefaultBounds()
	small.File, small.All, small.Files = 30, 50, 3
	big := "100644 blob " + r.Blob(strings.Repeat("x", 31)) + "\t"
	fits := "100644 blob " + r.Blob(strings.Repeat("x", 30)) + "\t"
	sub := r.GitIn("100644 blob "+blob+"\ta.yaml\x00", "mktree", "-z")
	for _, k := range []struct{ name, tree, words string }{
		{"a link", "120000 blob " + blob + "\ta.yaml\x00", `a symbolic link "a.yaml"`},
		{"a submodule", "160000 commit " + strings.Repeat("1", 40) + "\tmod\x00", `a submodule "mod"`},
		{"a new line", "100644 blob " + blob + "\ta\nb.yaml\x00", `no letters: "a\nb.yaml"`},
		{"an escape", "100644 blob " + blob + "\ta\x1b[2J.yaml\x00", `no letters`},
		{"a long path", "100644 blob " + blob + "\t" + strings.Repeat("d", 401) + ".yaml\x00", `a path of 406 bytes`},
		{"no UTF-8", "100644 blob " + blob + "\ta\xff.yaml\x00", `no letters`},
		{"the way up", "040000 tree " + sub + "\t..\x00", "hasDotdot"},
		{".git", "040000 tree " + sub + "\t.GIT\x00", "hasDotgit"},
		{"another ending", "100644 blob " + blob + "\ta.yml\x00", "name it *.yaml"},
		{"a big file", big + "a.yaml\x00", `"a.yaml" of 31 bytes: want at most 30`},
		{"big files", fits + "a.yaml\x00" + fits + "b.yaml\x00", "60 bytes: want at most 50 together"},
		{"many files", fits + "a\x00" + fits + "b\x00" + fits + "c\x00" + fits + "d\x00", "more than 3 files"},
	} {
		t.Run(k.name, func(t *testing.T) {
			r.CommitTree(k.tree)
			c := copyOf(t, r)
			c.Bounds = small
			one, err := c.Fetch(t.Context())
			var tree gitsource.Tree
			if err == nil {
				tree, err = c.Tree(t.Context(), one)
			}
			if err == nil {
				_, err = c.Read(t.Context(), tree, tree.Names())
			}
			refused(t, err, k.words)
		})
	}
}

// A tree that has itself ten times, ten times, …: its list would have no end.
func TestATreeWithoutEndIsRefused(t *testing.T) {
	t.Parallel()
	r := gittest.New(t)
	id, kind := r.Blob("x"), "100644 blob "
	for range 8 {
		var tree strings.Builder
		for i := range 10 {
			tree.WriteString(kind + id + "\t" + string(rune('a'+i)) + "\x00")
		}
		id, kind = r.GitIn(tree.String(), "mktree", "-z"), "040000 tree "
	}
	r.CommitTree("040000 tree " + id + "\tbomb\x00")
	c := copyOf(t, r)
	c.Bounds.Files = 100
	_, err := c.Tree(t.Context(), fetch(t, c))
	refused(t, err, "more than 100 files")
}

func TestAHugeHistoryIsRefusedAndNotKept(t *testing.T) {
	t.Parallel()
	r := gittest.New(t)
	r.Write("noise", random(3<<20))
	r.Commit("big")
	c := copyOf(t, r)
	c.Bounds.Copy = 1 << 20
	_, err := c.Fetch(t.Context())
	refused(t, err, "more than 1 MiB")
	if left := filepath.Join(c.Dir, "copy.git"); size(t, left) > 1<<20 {
		t.Errorf("%s has %d bytes", left, size(t, left))
	}
}

func size(t *testing.T, dir string) (n int64) {
	t.Helper()
	err := filepath.Walk(dir, func(_ string, info os.FileInfo, err error) error {
		if err == nil && !info.IsDir() {
			n += info.Size()
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// Neither hooks nor the configuration of others have a say, and a broken copy is mended.
func TestNobodyElseConfiguresGit(t *testing.T) {
	r := gittest.New(t)
	r.Write("a.yaml", "a: 1\n")
	r.Commit("one")
	ran := filepath.Join(t.TempDir(), "ran")
	home := t.TempDir()
	evil := "[core]\n\tsshCommand = touch " + ran + "\n\tfsmonitor = touch " + ran + "\n[alias]\n" +
		"\tfetch = !touch " + ran + "\n[url \"file:///nowhere\"]\n\tinsteadOf = file://\n"
	if err := os.WriteFile(filepath.Join(home, ".gitconfig"), []byte(evil), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("HOME", home)
	t.Setenv("GIT_CONFIG_GLOBAL", filepath.Join(home, ".gitconfig"))
	t.Setenv("GIT_DIR", "/nowhere")
	c := copyOf(t, r)
	fetch(t, c)
	hook := filepath.Join(c.Dir, "copy.git", "hooks")
	if err := os.MkdirAll(hook, 0o755); err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{"hooks/reference-transaction": "#!/bin/sh\ntouch " + ran,
		"refs/muster/seen.lock": "", "objects/pack/tmp_pack_x": "half"} {
		if err := os.WriteFile(filepath.Join(c.Dir, "copy.git", name), []byte(text), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	r.Write("a.yaml", "a: 2\n")
	if id := r.Commit("two"); fetch(t, c).ID != id {
		t.Error("the second commit was not fetched")
	}
	if _, err := os.Stat(ran); err == nil {
		t.Error("somebody else's program ran")
	}
	// Another protocol than that of the URL is not spoken.
	c.Source.URL = "ext::touch " + ran
	if _, err := c.Fetch(t.Context()); err == nil {
		t.Error("ext:: was fetched")
	}
	if _, err := os.Stat(ran); err == nil {
		t.Error("a URL ran a program")
	}
}

// Git has the rights of a user of its own, and nothing that this user can do to the copy turns what
// the server does elsewhere.
func TestGitHasTheRightsOfAnotherUser(t *testing.T) {
	t.Parallel()
	if os.Geteuid() != 0 {
		t.Log("only root can give other rights: the words are tried")
	}
	r := gittest.New(t)
	r.Write("a.yaml", "a: 1\n")
	id := r.Commit("one")
	above, err := os.MkdirTemp("", "copies")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(above) })
	c := copyOf(t, r)
	c.Dir = filepath.Join(above, "repositories", "rules")
	c.Source.User = &gitsource.User{UID: 65534, GID: 65534}
	if _, err := c.Fetch(t.Context()); err == nil || !strings.Contains(err.Error(), "chmod o+x") &&
		!strings.Contains(err.Error(), "not permitted") {
		t.Errorf("below a folder that it may not pass: %v", err)
	}
	if os.Geteuid() != 0 {
		return
	}
	for dir := r.Dir; dir != os.TempDir(); dir = filepath.Dir(dir) {
		if err := os.Chmod(dir, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Chmod(above, 0o711); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Fetch(t.Context()); err == nil || !strings.Contains(err.Error(), "dubious ownership") {
		t.Errorf("a repository of somebody else: %v", err)
	}
	give(t, r.Dir)
	if one := fetch(t, c); one.ID != id {
		t.Errorf("fetched %s, want %s", one.ID, id)
	}
	if info, err := os.Stat(c.Dir); err != nil || info.Mode().Perm()&0o022 != 0 {
		t.Errorf("%v, %v: that user may change the folder with the configuration", info, err)
	}
	precious := filepath.Join(t.TempDir(), "precious.lock")
	if err := os.WriteFile(precious, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	refs := filepath.Join(c.Dir, "copy.git", "refs", "muster")
	if err := errors.Join(os.RemoveAll(refs), os.Symlink(filepath.Dir(precious), refs)); err != nil {
		t.Fatal(err)
	}
	_, err = c.Fetch(t.Context())
	if _, gone := os.Stat(precious); gone != nil {
		t.Errorf("a link in the copy led to %v, after %v", gone, err)
	}
}

// give makes files those of the user nobody.
func give(t *testing.T, dir string) {
	t.Helper()
	err := filepath.Walk(dir, func(path string, _ os.FileInfo, err error) error {
		return errors.Join(err, os.Lchown(path, 65534, 65534))
	})
	if err != nil {
		t.Fatal(err)
	}
}

// The message of a commit has bounds, and gives no orders to terminals.
func TestMessagesOfCommitsAreHostile(t *testing.T) {
	t.Parallel()
	r := gittest.New(t)
	c := copyOf(t, r)
	r.Commit("a \x1b[2J\u202eb")
	if one := fetch(t, c); one.Subject != "a ?[2J?b" {
		t.Errorf("subject %q", one.Subject)
	}
	tree, parent := r.Git("rev-parse", "HEAD^{tree}"), r.Git("rev-parse", "HEAD")
	r.Git("update-ref", "refs/heads/main", r.GitIn(strings.Repeat("much\n", 60_000), "commit-tree", tree, "-p",
		parent))
	_, err := c.Fetch(t.Context())
	refused(t, err, "want a shorter message")
}
