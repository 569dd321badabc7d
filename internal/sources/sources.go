package sources

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"time"

	"muster/fleet"
	"muster/fleet/ansible"
)

// Config says where the inventory is.
type Config struct {
	List  []string      // files, folders, programs, URLs; at least one
	Every time.Duration // between two runs of a program or calls of a URL
	// KnownHosts are files in which the keys of hosts are looked up that name
	// neither keys nor a file. One that is missing is as good as empty.
	KnownHosts []string
	Home       string       // what "~" means in paths of keys of Ansible
	Away       bool         // known_hosts files that the inventory names may be missing or broken here
	More       []fleet.Part // what was read already
}

// Validate reports every mistake.
func (c Config) Validate() error {
	var errs []error
	if c.Every < time.Second {
		errs = append(errs, fmt.Errorf("inventory_every = %s: want 1s or more", c.Every))
	}
	for _, name := range c.List {
		if isURL(name) {
			_, err := parseURL(name)
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}

// Sources are those of one inventory. All methods may be called at the same time.
type Sources struct {
	cfg Config

	mu      sync.Mutex
	stamps  map[string]stamp  // of the files that were read
	answers map[string]answer // of programs and URLs
	again   time.Time         // files that changed just before the last Read are looked at then
	due     time.Time         // when the first program or URL is asked again
	last    *fleet.Inventory
}

// New makes sources of which nothing is read yet.
func New(c Config) *Sources {
	return &Sources{cfg: c, answers: map[string]answer{}}
}

// settled bounds the time after a change in which a further change may leave no trace, because
// file systems keep coarse times.
const settled = time.Second

// Read reads all sources and looks up host keys. Programs and URLs are asked only
// if it is time. The error has every mistake; those of what the files say are of
// type fleet.Mistakes.
func (s *Sources) Read(ctx context.Context, now time.Time) (*fleet.Inventory, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	g := &gatherer{cfg: s.cfg, now: now, old: s.answers, answers: map[string]answer{},
		stamps: map[string]stamp{}}
	parts, err := g.parts(ctx)
	s.answers, s.due = g.answers, g.due
	if err == nil && s.last != nil && !g.fresh && s.again.IsZero() && s.untouched(g.stamps) {
		return s.last, nil
	}
	s.stamps, s.last = g.stamps, nil
	var inv *fleet.Inventory
	if err == nil {
		inv, err = fleet.Join(append(parts, s.cfg.More...)...)
	}
	if err == nil {
		err = g.resolveKeys(inv)
	}
	s.again = time.Time{}
	for _, p := range g.stamps {
		if p.changed.After(now.Add(-settled)) {
			s.again = now.Add(settled)
		}
	}
	if err != nil {
		return nil, err
	}
	s.last = inv
	return inv, nil
}

// Found is all that there is to be said of an inventory.
type Found struct {
	Hosts    int
	Mistakes fleet.Mistakes // with any of these it is refused
	Looks    fleet.Mistakes // what is no mistake, but wants a look
	Notes    fleet.Mistakes // what of a foreign form was not taken over
}

// Check reads all sources as Read does, and reports all mistakes at once. The error concerns
// sources that cannot be read; mistakes in other sources are in the result.
func (s *Sources) Check(ctx context.Context, now time.Time) (Found, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	g := &gatherer{cfg: s.cfg, now: now, old: s.answers, answers: map[string]answer{},
		stamps: map[string]stamp{}}
	parts, err := g.parts(ctx)
	parts = append(parts, s.cfg.More...)
	if err != nil { // who stands in a file that is not there is missed by others
		var f Found
		for _, p := range parts {
			f.Mistakes = append(f.Mistakes, p.Wrong()...)
			f.Notes = append(f.Notes, p.Notes...)
		}
		return f, err
	}
	seen := fleet.Look(parts...)
	inv := seen.Inventory
	err = g.resolveKeys(inv)
	f := Found{Hosts: inv.Len(), Mistakes: seen.Mistakes, Notes: inv.Notes(), Looks: inv.Warnings()}
	wrong := map[fleet.Mistake]bool{} // places of which more is wrong
	for _, m := range f.Mistakes {
		wrong[fleet.Mistake{File: m.File, Line: m.Line}] = true
	}
	for _, m := range WithoutKey(inv) {
		if !wrong[fleet.Mistake{File: m.File, Line: m.Line}] {
			f.Looks = append(f.Looks, m)
		}
	}
	f.Looks = append(f.Looks, keysInTheOpen(inv)...)
	f.Looks.Sort(seen.Files)
	return f, err
}

// untouched reports whether files look as at the last Read: the ones that were read now, and the
// ones that would be read after them.
func (s *Sources) untouched(read map[string]stamp) bool {
	for path, now := range read {
		if was, known := s.stamps[path]; !known || was != now {
			return false
		}
	}
	for path, was := range s.stamps {
		if _, read := read[path]; !read && stampOf(path) != was {
			return false
		}
	}
	return true
}

// Changed reports whether Read may return another result than the last time.
func (s *Sources) Changed(now time.Time) bool {
	if !s.mu.TryLock() { // it is being read
		return false
	}
	defer s.mu.Unlock()
	switch {
	case s.stamps == nil:
		return true
	case !s.due.IsZero() && !now.Before(s.due), !s.again.IsZero() && !now.Before(s.again):
		return true
	}
	for path, was := range s.stamps {
		if stampOf(path) != was {
			return true
		}
	}
	return false
}

// WithoutKey says where the hosts of an inventory stand that have no key, and where
// one was looked for.
func WithoutKey(inv *fleet.Inventory) fleet.Mistakes {
	var list fleet.Mistakes
	for _, name := range inv.WithoutKey() {
		h, _ := inv.Host(name)
		file, line := inv.Place(name)
		list = append(list, fleet.Mistake{File: file, Line: line, Text: fmt.Sprintf("host %s has no "+
			"host key, so its jobs fail: %s has none of %s port %d. Give host_key, or run "+
			"`muster hosts enroll`", name, cmp.Or(inv.KnownHosts(name), "known_hosts"), h.Address, h.Port)})
	}
	return list
}

// gatherer reads the sources once.
type gatherer struct {
	cfg     Config
	now     time.Time
	old     map[string]answer
	answers map[string]answer
	stamps  map[string]stamp
	due     time.Time
	fresh   bool // a program or URL has said something new
}

// parts reads each source.
func (g *gatherer) parts(ctx context.Context) ([]fleet.Part, error) {
	var parts []fleet.Part
	var errs []error
	for _, name := range g.cfg.List {
		found, err := g.source(ctx, name)
		parts = append(parts, found...)
		errs = append(errs, err)
	}
	return parts, errors.Join(errs...)
}

func (g *gatherer) source(ctx context.Context, name string) ([]fleet.Part, error) {
	if isURL(name) {
		data, err := g.ask(name, func() ([]byte, error) { return fetch(ctx, name) })
		if err != nil {
			return nil, err
		}
		return g.sort(tree{files: []ansible.File{{Name: title(name), Data: data}}})
	}
	info, err := os.Stat(name)
	if err != nil {
		g.stamps[name] = stampOf(name)
		return nil, fmt.Errorf("inventory: %w", err)
	}
	t := tree{base: dirOf(name, info)}
	if err := g.read(ctx, name, info, &t); err != nil {
		return nil, err
	}
	return g.sort(t)
}

// tree are the files of one source.
type tree struct {
	base  string // where group_vars and host_vars are; empty: nowhere
	files []ansible.File
}

// isBinary reports whether a file is no text. Texts have no NUL, unless in UTF-16.
func isBinary(data []byte) bool {
	return bytes.IndexByte(data[:min(len(data), 8<<10)], 0) >= 0
}

// sort tells our own files from those of Ansible, which are one inventory.
func (g *gatherer) sort(t tree) ([]fleet.Part, error) {
	var own []fleet.Source
	theirs := ansible.Tree{}
	for _, f := range t.files {
		if isBinary(f.Data) {
			return nil, fmt.Errorf("inventory: %s is a binary file: want text in UTF-8, as YAML, INI or "+
				"JSON", f.Name)
		}
		if ansible.FormOf(f.Name, f.Data) == ansible.FormOwn {
			own = append(own, fleet.Source{Name: f.Name, Data: f.Data})
		} else {
			theirs.Files = append(theirs.Files, f)
		}
	}
	var parts []fleet.Part
	if len(own) > 0 {
		parts = append(parts, fleet.Read(own...))
	}
	if len(theirs.Files) > 0 {
		for _, folder := range []string{"group_vars", "host_vars"} {
			if t.base == "" {
				break
			}
			vars, err := g.vars(t.base, folder)
			if err != nil {
				return nil, err
			}
			theirs.Vars = append(theirs.Vars, vars...)
		}
		parts = append(parts, ansible.Read(theirs, ansible.Options{Home: g.cfg.Home}))
	}
	return parts, nil
}

// answer is the answer of a program or a URL.
type answer struct {
	data []byte
	err  error
	due  time.Time // when it is asked again
}

// ask asks a program or a URL if it is time, else it repeats the last answer.
func (g *gatherer) ask(name string, call func() ([]byte, error)) ([]byte, error) {
	a, known := g.old[name]
	if !known || !g.now.Before(a.due) {
		data, err := call()
		if err == nil && ansible.FormOf("", data) == ansible.FormINI {
			err = errors.New("prints neither JSON nor YAML")
		}
		if err != nil {
			err = fmt.Errorf("inventory: %s: %w", title(name), err)
		}
		g.fresh = g.fresh || !known || string(data) != string(a.data) || (err == nil) != (a.err == nil)
		a = answer{data, err, g.now.Add(g.cfg.Every)}
	}
	g.answers[name] = a
	if g.due.IsZero() || a.due.Before(g.due) {
		g.due = a.due
	}
	return a.data, a.err
}

// title returns the name of a source in messages: a URL without the part from '#' on.
func title(name string) string {
	if isURL(name) {
		name, _, _ = strings.Cut(name, "#")
	}
	return cmp.Or(name, "inventory")
}
