package bundle

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"strings"
	"time"

	"muster/cli"
	"muster/jobs"
)

// partMax bounds a part. The rest of a longer one is cut off, and the manifest says so.
const partMax = 4 << 20 // bytes

// Manifest says what is in a bundle, and what is not.
type Manifest struct {
	File    string    `json:"file,omitempty"` // empty: nothing was written
	Made    jobs.Time `json:"made"`
	Version string    `json:"version"` // of the muster that made it
	Parts   []Part    `json:"parts"`
	LeftOut []LeftOut `json:"left_out"`
	Covered int       `json:"covered"` // secrets, or what looks like one, that were covered
}

// Part is a file of a bundle.
type Part struct {
	Name   string `json:"name"`
	What   string `json:"what"`
	Bytes  int    `json:"bytes"`
	SHA256 string `json:"sha256"`
	Cut    bool   `json:"cut,omitempty"` // it had more than a part may have
}

// LeftOut is a part that could not be read.
type LeftOut struct {
	Name string `json:"name"`
	Why  string `json:"why"`
}

// A collection is what was found.
type collection struct {
	Manifest
	texts map[string][]byte
}

// add adds a part.
func (c *collection) add(name, what string, text []byte) {
	cut := len(text) > partMax
	if cut {
		text = text[:partMax]
	}
	sum := sha256.Sum256(text)
	c.Parts = append(c.Parts, Part{name, what, len(text), hex.EncodeToString(sum[:]), cut})
	c.texts[name] = text
}

// leave says that a part is missing.
func (c *collection) leave(name string, why string) {
	c.LeftOut = append(c.LeftOut, LeftOut{name, cli.Cell(why)})
}

// archive returns the bundle, in a folder of its own.
func (c *collection) archive(scrub *scrubber) ([]byte, error) {
	manifest, err := scrub.json(c.Manifest)
	if err != nil {
		return nil, err
	}
	var out bytes.Buffer
	zip := gzip.NewWriter(&out)
	tape := tar.NewWriter(zip)
	folder, made := folderOf(c.Made), c.Made.Time
	write := func(name string, text []byte) {
		err = errors.Join(err, tape.WriteHeader(&tar.Header{Name: path.Join(folder, name), Mode: 0o600,
			Size: int64(len(text)), ModTime: made, Format: tar.FormatPAX}))
		_, wrong := tape.Write(text)
		err = errors.Join(err, wrong)
	}
	write("manifest.json", manifest)
	for _, p := range c.Parts {
		write(p.Name, c.texts[p.Name])
	}
	err = errors.Join(err, tape.Close(), zip.Close())
	return out.Bytes(), err
}

// folderOf returns the name of the folder in a bundle, and of its file.
func folderOf(made jobs.Time) string {
	return "muster-support-" + made.UTC().Format("20060102T150405Z")
}

// save writes a new file that only its owner can read.
func save(path string, text []byte) error {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if errors.Is(err, fs.ErrExist) {
		return fmt.Errorf("--out %s: it is there already, and stays as it is: name a new file", path)
	} else if err != nil {
		return fmt.Errorf("--out: %w", err)
	}
	_, err = f.Write(text)
	if err = errors.Join(err, f.Sync(), f.Close()); err != nil {
		return errors.Join(fmt.Errorf("--out %s: %w", path, err), os.Remove(path))
	}
	return nil
}

// table shows the parts to people.
func (m Manifest) table() cli.Grid {
	g := cli.NewGrid("PART", ">BYTES", "WHAT")
	for _, p := range m.Parts {
		what := p.What
		if p.Cut {
			what += " (cut off)"
		}
		g.Add(p.Name, fmt.Sprint(p.Bytes), what)
	}
	return g
}

// words lists what was left out.
func (m Manifest) words() string {
	var b strings.Builder
	for _, l := range m.LeftOut {
		fmt.Fprintf(&b, "left out: %s: %s\n", l.Name, l.Why)
	}
	return b.String()
}

// now returns the present time in whole seconds.
func now(s *cli.Session) jobs.Time {
	return jobs.Time{Time: s.Now().UTC().Truncate(time.Second)}
}
