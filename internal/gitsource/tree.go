package gitsource

import (
	"bytes"
	"context"
	"path"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"muster/internal/wording"
)

// A File is a file of a commit.
type File struct {
	Name    string // its path in the repository
	Content string
}

// A Tree has the files in the folder of a commit, by their paths in the repository.
type Tree struct {
	commit Commit
	blobs  map[string]blob
}

type blob struct {
	id   string
	size int64
}

// pathMax bounds the path of a file.
const pathMax = 400 // bytes

// entryMax bounds the line of a file in a list.
const entryMax = 512 // bytes

// The modes of what is no plain file.
const (
	linkMode   = "120000"
	moduleMode = "160000"
)

// Tree lists the folder of a commit. The error names what must not be there.
func (c *Copy) Tree(ctx context.Context, one Commit) (Tree, error) {
	t := Tree{one, map[string]blob{}}
	if err := c.hasFolder(ctx, one); err != nil {
		return t, err
	}
	out, err := c.git(ctx, call{time: readTime, most: c.Bounds.Files * entryMax}, "ls-tree", "-r",
		"-z", "-l", one.ID+":"+c.Source.Path)
	if tooMuch(err) {
		err = c.tooMany()
	}
	if err != nil {
		return t, err
	}
	var wrong []string
	for line := range strings.SplitSeq(strings.TrimSuffix(string(out), "\x00"), "\x00") {
		if line == "" {
			continue
		}
		if text := t.add(c, line); text != "" {
			wrong = append(wrong, text)
		}
		if len(t.blobs) > c.Bounds.Files {
			return t, c.tooMany()
		}
	}
	if len(wrong) > 0 {
		return t, refuse("commit %s has %s", Short(one.ID), someOf(wrong))
	}
	return t, nil
}

// someOf joins mistakes, the first ten of them.
func someOf(wrong []string) string {
	slices.Sort(wrong)
	if more := len(wrong) - 10; more > 0 {
		wrong = append(wrong[:10:10], "and "+strconv.Itoa(more)+" more")
	}
	return strings.Join(wrong, "; ")
}

func (c *Copy) tooMany() error {
	return refuse("its folder has more than %d files", c.Bounds.Files)
}

// hasFolder refuses a commit without the folder.
func (c *Copy) hasFolder(ctx context.Context, one Commit) error {
	out, err := c.git(ctx, call{time: readTime, most: printsMax,
		in: []byte(one.ID + ":" + c.Source.Path + "\n")}, "cat-file", "--batch-check")
	if err == nil && !bytes.Contains(out, []byte(" tree ")) {
		err = refuse("commit %s has no folder %s", Short(one.ID), wording.Quote(c.Source.Path))
	}
	return err
}

// add takes a line of the list; it returns what is wrong with it.
func (t Tree) add(c *Copy, line string) (wrong string) {
	head, name, found := strings.Cut(line, "\t")
	f := strings.Fields(head) // mode, type, id, size
	if !found || len(f) != 4 {
		return "a line in its list that nobody understands"
	}
	if text := badName(name); text != "" {
		return text
	}
	parts := strings.Split(name, "/")
	if slices.ContainsFunc(parts[:len(parts)-1], hidden) {
		return "" // as muster apply, nobody looks there
	}
	name = path.Join(c.Source.Path, name)
	switch {
	case f[0] == linkMode:
		return "a symbolic link " + wording.Quote(name)
	case f[0] == moduleMode:
		return "a submodule " + wording.Quote(name)
	case path.Ext(name) == ".yml":
		return "a file " + wording.Quote(name) + ": name it *.yaml"
	}
	size, err := strconv.ParseInt(f[3], 10, 64)
	if err != nil || f[1] != "blob" {
		return "something that is no file: " + wording.Quote(name)
	}
	t.blobs[name] = blob{f[2], size}
	return ""
}

func hidden(part string) bool { return strings.HasPrefix(part, ".") }

// badName says what is wrong with a path.
func badName(name string) string {
	switch {
	case len(name) > pathMax:
		return "a path of " + strconv.Itoa(len(name)) + " bytes, where " + strconv.Itoa(pathMax) +
			" are the most: " + wording.Quote(name)
	case !utf8.ValidString(name), strings.ContainsFunc(name, func(r rune) bool {
		return r == '\\' || !unicode.IsPrint(r)
	}):
		return "a path with characters that are no letters: " + wording.Quote(name)
	case slices.ContainsFunc(strings.Split(name, "/"), func(part string) bool {
		return part == "" || part == "." || part == ".." || strings.EqualFold(part, ".git")
	}):
		return "a path that leads elsewhere: " + wording.Quote(name)
	}
	return ""
}

// Names returns the paths of the files of entries: all *.yaml.
func (t Tree) Names() []string {
	var out []string
	for name := range t.blobs {
		if path.Ext(name) == ".yaml" {
			out = append(out, name)
		}
	}
	slices.Sort(out)
	return out
}

// Has reports whether a file is there.
func (t Tree) Has(name string) bool {
	_, is := t.blobs[name]
	return is
}

// Read returns files of a tree, which has them.
func (c *Copy) Read(ctx context.Context, t Tree, names []string) ([]File, error) {
	var ask bytes.Buffer
	var all int64
	var wrong []string
	for _, name := range names {
		b := t.blobs[name]
		if b.size > c.Bounds.File {
			wrong = append(wrong, wording.Quote(name)+" of "+strconv.FormatInt(b.size, 10)+
				" bytes: want at most "+strconv.FormatInt(c.Bounds.File, 10))
		}
		all += b.size
		ask.WriteString(b.id + "\n")
	}
	switch {
	case len(wrong) > 0:
		return nil, refuse("commit %s has a file %s", Short(t.commit.ID), someOf(wrong))
	case all > c.Bounds.All:
		return nil, refuse("commit %s has files with %d bytes: want at most %d together",
			Short(t.commit.ID), all, c.Bounds.All)
	case len(names) == 0:
		return nil, nil
	}
	out, err := c.git(ctx, call{time: readTime, most: int(all) + len(names)*entryMax,
		in: ask.Bytes()}, "cat-file", "--batch")
	if err != nil {
		return nil, err
	}
	var list []File
	for _, name := range names {
		b := t.blobs[name]
		head := b.id + " blob " + strconv.FormatInt(b.size, 10) + "\n"
		end := len(head) + int(b.size)
		if len(out) <= end || string(out[:len(head)]) != head || out[end] != '\n' {
			return nil, refuse("file %s of commit %s cannot be read", wording.Quote(name),
				Short(t.commit.ID))
		}
		list = append(list, File{name, string(out[len(head):end])})
		out = out[end+1:]
	}
	return list, nil
}
