package gitsource

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"unicode"

	"muster/internal/files"
	"muster/internal/lazyregexp"
	"muster/internal/wording"
)

// A Source says where a branch is, and how git reaches it. Paths are absolute.
type Source struct {
	URL        string // https://…, ssh://… or file:///…
	Branch     string
	Path       string // folder in it with the files; empty: all of it
	Key        string // file with the private key for ssh
	KnownHosts string // file with the keys of servers for ssh
	Login      string // file with lines username=… and password=…, for https; empty: none is needed
	CA         string // file with the authorities of servers, for https; empty: those of the system
	Signers    string // file of allowed signers; empty: commits need no signature
	User       *User  // whose rights git has; nil: ours
}

// A User is a user of this machine.
type User struct{ UID, GID uint32 }

// Bounds limit what a repository may have.
type Bounds struct {
	Copy  int64 // bytes of the bare copy
	Loose int   // files of the bare copy; more are packed into one
	Files int   // in the folder
	File  int64 // bytes of a file
	All   int64 // bytes of all files
}

// DefaultBounds returns the usual bounds.
func DefaultBounds() Bounds {
	return Bounds{Copy: 512 << 20, Loose: 2000, Files: 10_000, File: 1 << 20, All: 6 << 20}
}

// A Copy is the bare copy of a branch. Only one caller at a time uses it.
type Copy struct {
	Source Source
	Dir    string // of the copy and its configuration
	Bounds Bounds
}

// A Commit is one commit of a branch.
type Commit struct {
	ID      string
	Subject string // its first line, as its author wrote it, within bounds
}

// The names of what the copy keeps: the newest commit that was seen, and the last one that was put
// in force.
const (
	seenRef  = "refs/muster/seen"
	forceRef = "refs/muster/in-force"
)

// commitID is a full name of a commit, by SHA-1 or by SHA-256.
var commitID = lazyregexp.New(`^([0-9a-f]{40}|[0-9a-f]{64})$`)

// IsCommit reports whether a text is the full name of a commit.
func IsCommit(text string) bool { return commitID().MatchString(text) }

// Short returns the beginning of the name of a commit, for people.
func Short(id string) string { return id[:min(len(id), 12)] }

// Fetch brings the copy up to date and returns the newest commit of the branch.
func (c *Copy) Fetch(ctx context.Context) (Commit, error) {
	for _, path := range []string{c.Source.Key, c.Source.Login} {
		if path == "" {
			continue
		}
		if _, mode, err := files.Private(path, printsMax); err != nil {
			return Commit{}, err
		} else if mode.Perm()&0o077 != 0 {
			return Commit{}, fmt.Errorf("%s has mode %04o, so others can use it: chmod 400 it", path,
				mode.Perm())
		}
	}
	if err := c.prepare(ctx); err != nil {
		return Commit{}, err
	}
	_, err := c.git(ctx, call{time: fetchTime, most: printsMax}, "fetch", "--quiet", "--no-tags",
		"--no-write-fetch-head", "--no-recurse-submodules", "--refmap=", "--", c.Source.URL,
		"+refs/heads/"+c.Source.Branch+":"+seenRef)
	if big := c.keepSmall(ctx, err == nil); big != nil {
		return Commit{}, big
	}
	if err != nil {
		return Commit{}, c.fetchWords(err)
	}
	return c.at(ctx, seenRef)
}

// fetchWords tells a wrong repository from a broken way to it.
func (c *Copy) fetchWords(err error) error {
	text := err.Error()
	switch {
	case strings.Contains(text, "fsck error"), strings.Contains(text, "in fetched pack"):
		return refuse("the repository has an object that git does not accept: %s",
			wording.OneLine(text, saidMax))
	case strings.Contains(text, "couldn't find remote ref"):
		return refuse("it has no branch %s", c.Source.Branch)
	case strings.Contains(text, "died of signal 25"), strings.Contains(text, "File too large"):
		return c.hugeWords()
	}
	return errors.New(wording.OneLine(text, saidMax))
}

// at returns the commit of a reference.
func (c *Copy) at(ctx context.Context, ref string) (Commit, error) {
	id, err := c.git(ctx, call{time: readTime, most: printsMax}, "rev-parse", "--verify", "--quiet",
		"--end-of-options", ref+"^{commit}")
	if err != nil {
		return Commit{}, err
	}
	one := Commit{ID: strings.TrimSpace(string(id))}
	if !IsCommit(one.ID) {
		return Commit{}, fmt.Errorf("git rev-parse prints %s: want the name of a commit",
			wording.Quote(one.ID))
	}
	head, err := c.head(ctx, one.ID)
	one.Subject = subjectOf(head)
	return one, err
}

// headMax bounds a commit with its message.
const headMax = 256 << 10

// head returns a commit as git stores it.
func (c *Copy) head(ctx context.Context, id string) (string, error) {
	out, err := c.git(ctx, call{time: readTime, most: headMax}, "cat-file", "commit", id)
	if tooMuch(err) {
		err = refuse("commit %s has more than %d bytes without its files: want a shorter message",
			Short(id), headMax)
	}
	return string(out), err
}

// subjectMax bounds the first line of a message.
const subjectMax = 100 // bytes

func subjectOf(head string) string {
	_, message, _ := strings.Cut(head, "\n\n")
	line, _, _ := strings.Cut(strings.TrimSpace(message), "\n")
	line = strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) {
			return '?' // a message gives no orders to a terminal
		}
		return r
	}, strings.ToValidUTF8(line, "?"))
	return wording.ClipTo(strings.TrimSpace(line), subjectMax)
}

var goodSignature = lazyregexp.New(`(?m)^Good "git" signature for (.+) with \S+ key \S+$`)

// Signer returns who has signed a commit, by the file of allowed signers.
func (c *Copy) Signer(ctx context.Context, one Commit) (string, error) {
	head, err := c.head(ctx, one.ID)
	if err != nil {
		return "", err
	}
	above, _, _ := strings.Cut(head, "\n\n")
	if !strings.Contains(above, "\ngpgsig") {
		return "", refuse("commit %s is not signed: sign it (git commit -S) and push it again",
			Short(one.ID))
	}
	if info, err := files.Stat(c.Source.Signers); err != nil {
		return "", err
	} else if info.Mode().Perm()&0o022 != 0 {
		return "", fmt.Errorf("signers: %s has mode %04o, so others can say whose signatures count: "+
			"chmod go-w it", c.Source.Signers, info.Mode().Perm())
	}
	out, err := c.git(ctx, call{time: readTime, most: printsMax, both: true}, "verify-commit", "--raw",
		one.ID)
	if err != nil && ctx.Err() != nil {
		return "", err
	}
	found := goodSignature().FindSubmatch(out)
	if err != nil || found == nil {
		return "", refuse("commit %s is signed by nobody whom %s names", Short(one.ID),
			c.Source.Signers)
	}
	return string(found[1]), nil
}

// Descends returns an error unless a commit is the earlier one, or has it in its history.
func (c *Copy) Descends(ctx context.Context, one Commit, earlier string) error {
	if earlier == "" || earlier == one.ID {
		return nil
	}
	back := refuse("history goes back: commit %s does not descend from %s, which is in force",
		Short(one.ID), Short(earlier))
	known, err := c.git(ctx, call{time: readTime, most: printsMax, in: []byte(earlier + "\n")},
		"cat-file", "--batch-check")
	if err != nil {
		return err
	}
	if !strings.HasPrefix(string(known), earlier+" commit ") {
		return back
	}
	left, err := c.git(ctx, call{time: readTime, most: printsMax}, "rev-list", "--max-count=1",
		earlier, "^"+one.ID)
	if err == nil && len(left) > 0 {
		err = back
	}
	return err
}

// InForce returns the last commit that Remember was told; empty: none.
func (c *Copy) InForce(ctx context.Context) (string, error) {
	out, err := c.git(ctx, call{time: readTime, most: printsMax}, "for-each-ref",
		"--format=%(objectname)", forceRef)
	return strings.TrimSpace(string(out)), err
}

// Remember keeps in the copy that a commit is in force, so that a later one must descend from it
// whatever is lost elsewhere. Empty: any commit may be next.
func (c *Copy) Remember(ctx context.Context, id string) error {
	args := []string{"update-ref", forceRef, id}
	if id == "" {
		args = []string{"update-ref", "-d", forceRef}
	}
	_, err := c.git(ctx, call{time: readTime, most: printsMax}, args...)
	return err
}

// saidMax bounds what git says of an error.
const saidMax = 400 // bytes
