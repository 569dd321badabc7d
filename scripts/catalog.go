package scripts

import (
	"cmp"
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"sync"
)

//go:embed builtin/*.yaml
var builtinFiles embed.FS

// Source is the text of one runbook and the name of its file.
type Source struct {
	File string
	Data []byte
}

// Catalog holds the runbooks that can be run: the built-in ones and the users'.
// It never changes.
type Catalog struct {
	runbooks []*Runbook        // by name
	sources  map[string]string // by hash
	places   map[string]string // by name: the file, or "built in"
	Doubt    error             // why it is not known which others there are; nil: there are none
}

// reading is a file and its runbook, or nil if the file contains none.
type reading struct {
	*Runbook
	*parser
}

// NewCatalog reads the users' runbooks and adds the built-in ones. It reports all mistakes
// of all files at once, as Mistakes, including names that two runbooks share.
func NewCatalog(sources []Source) (*Catalog, error) {
	owner := map[string]string{} // file that first used each name
	c := Catalog{sources: builtinSources(), places: owner}
	var read []reading
	for _, r := range Builtins() {
		c.runbooks = append(c.runbooks, r)
		owner[r.Name] = "built in"
	}
	for _, s := range sources {
		r, p := parse(s.File, s.Data)
		read = append(read, reading{r, p})
		if r == nil {
			continue
		}
		if other, taken := owner[r.Name]; taken {
			p.add(p.name, "the name %q is taken (%s): choose another", r.Name, other)
		} else if r.Name != "" {
			owner[r.Name] = s.File
		}
		c.runbooks = append(c.runbooks, r)
		c.sources[hash(s.Data)] = string(s.Data)
	}
	c.checkUndos(read)
	var mistakes Mistakes
	for _, one := range read {
		mistakes = append(mistakes, one.mistakes.sorted()...)
	}
	if len(mistakes) > 0 {
		return nil, mistakes
	}
	slices.SortFunc(c.runbooks, byName)
	return &c, nil
}

// Lookup finds a runbook by name. Its error suggests the nearest name.
func (c *Catalog) Lookup(name string) (*Runbook, error) {
	var known []string
	for _, r := range c.runbooks {
		if r.Name == name {
			return r, nil
		}
		known = append(known, r.Name)
	}
	if c.Doubt != nil {
		return nil, fmt.Errorf("it is not known whether there is a runbook %s: %w", brief(name), c.Doubt)
	}
	return nil, fmt.Errorf("no runbook %s: %s", brief(name), Instead(name, known))
}

// Place returns the file that has a runbook, or the words "built in"; empty: there is none.
func (c *Catalog) Place(name string) string { return c.places[name] }

// All returns the runbooks by name. The caller owns the list.
func (c *Catalog) All() []*Runbook { return slices.Clone(c.runbooks) }

// Source returns the text of a runbook.
func (c *Catalog) Source(r *Runbook) string { return c.sources[r.Hash] }

// builtinSources returns the texts of the built-in runbooks, by hash.
func builtinSources() map[string]string {
	texts := map[string]string{}
	for _, file := range builtinNames() {
		if data, err := builtinFiles.ReadFile(file); err == nil {
			texts[hash(data)] = string(data)
		}
	}
	return texts
}

func builtinNames() []string {
	names, err := fs.Glob(builtinFiles, "builtin/*.yaml")
	if err != nil {
		panic(err) // the pattern is a valid constant
	}
	return names
}

// Builtin returns a built-in runbook.
func Builtin(name string) (*Runbook, bool) {
	for _, r := range Builtins() {
		if r.Name == name {
			return r, true
		}
	}
	return nil, false
}

// Builtins returns the built-in runbooks by name: parsed once, so nobody may change one.
func Builtins() []*Runbook {
	list, err := builtins()
	if err != nil {
		panic(err) // the files are part of the binary, and a test reads them
	}
	return slices.Clone(list)
}

var builtins = sync.OnceValues(func() ([]*Runbook, error) {
	var list []*Runbook
	var errs []error
	for _, file := range builtinNames() {
		data, err := builtinFiles.ReadFile(file)
		if err != nil {
			return nil, err
		}
		r, err := Parse(file, data)
		if err != nil {
			errs = append(errs, err)
			continue
		}
		list = append(list, r)
	}
	slices.SortFunc(list, byName)
	return list, errors.Join(errs...)
})

func byName(a, b *Runbook) int { return cmp.Compare(a.Name, b.Name) }
