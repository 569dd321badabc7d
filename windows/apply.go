package windows

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

// An Application applies files to a timetable. An entry of a file is added, or replaces the entry
// of the same name. Entries that the files do not name stay, unless they are pruned.
type Application struct {
	Files, Attached []File
	Pruning
	Remove []string // entries that go in any case, as "window acme-sunday"
}

// Pruning says which owners lose the entries that the files do not name.
type Pruning struct {
	// Prune removes entries of the customers who have entries in the files, and entries without a
	// customer if the files have some of these.
	Prune     bool     `json:"prune,omitempty"`
	Customers []string `json:"prune_customers,omitempty"` // remove entries of these customers too
	All       bool     `json:"prune_all,omitempty"`       // remove entries of all owners
}

// Of reports whether entries of an owner are removed if the files do not name them. named holds
// the owners of the entries in the files.
func (p Pruning) Of(owner string, named map[string]bool) bool {
	return p.All || p.Prune && named[owner] || slices.Contains(p.Customers, owner)
}

// Applied holds the effects of an application beside those that [Book.Compare] finds.
type Applied struct {
	// entries that stay although the files have other entries of their owners, and not these
	Left []string
	// identifies the entries that these owners had before: any change of those changes it
	Basis string
}

// item identifies a window or a freeze of a file.
type item struct{ key, owner, hash string }

func (a Agreed) items() []item {
	var all []item
	for _, w := range a.Windows {
		all = append(all, item{"window " + w.Name, w.Owner(), w.Hash() + string(w.OnChange)})
	}
	for _, f := range a.Freezes {
		all = append(all, item{"freeze " + f.Name, f.Owner(), f.hash()})
	}
	return all
}

// Apply returns the timetable with the files applied to it. The error reports all mistakes in
// them, with file and line.
func (t Timetable) Apply(a Application) (Timetable, Applied, error) {
	r := newReader(a.Attached, t.Known)
	r.all(a.Files)
	r.weigh(Agreed{})
	if err := errors.Join(r.errs...); err != nil {
		return t, Applied{}, err
	}
	m := merger{Application: a, names: map[string]item{}, owners: map[string]bool{}, reader: r}
	for _, i := range r.agreed.items() {
		m.names[i.key], m.owners[i.owner] = i, true
	}
	if a.All {
		// The present files need not be readable, because all of them are replaced.
		m.basis, t.Files, t.Attached = []string{fmt.Sprint("version ", t.Version)}, nil, nil
	}
	for _, f := range t.Files {
		m.keep(f, t.Attached)
	}
	m.files = append(m.files, a.Files...)
	for _, f := range a.Attached {
		m.attach(f, "the files that are applied")
	}
	r.weigh(m.stays)
	m.errs = append(m.errs, r.errs...)
	if err := errors.Join(m.errs...); err != nil {
		return t, Applied{}, err
	}
	slices.Sort(m.left)
	slices.Sort(m.basis)
	sum := sha256.Sum256([]byte(strings.Join(m.basis, "\n")))
	t.Files, t.Attached, t.Known = m.files, m.attached, r.parts
	return t, Applied{Left: m.left, Basis: hex.EncodeToString(sum[:8])}, nil
}

// merger merges files with the ones in force.
type merger struct {
	Application
	names  map[string]item // entries that the files name
	owners map[string]bool // owners of these entries
	reader *reader         // reads the files
	stays  Agreed          // the entries in force that stay beside the files

	files, attached []File
	left, basis     []string
	errs            []error
}

// keep keeps the entries of a file in force that neither were replaced nor pruned.
func (m *merger) keep(f File, attached []File) {
	agreed, known, err := m.reader.known.parseKept([]File{f}, attached)
	if err != nil {
		m.errs = append(m.errs, err)
		return
	}
	gone, stay := map[string]bool{}, 0
	for _, old := range agreed.items() {
		pruned := m.Of(old.owner, m.owners) || slices.Contains(m.Remove, old.key)
		its, named := m.names[old.key]
		if m.owners[old.owner] || pruned || named {
			m.basis = append(m.basis, old.key+" "+old.owner+" "+old.hash)
		}
		switch {
		case named && its.owner != old.owner && !pruned:
			m.errs = append(m.errs, fmt.Errorf("%s: %s is there already, and belongs to %s: names are "+
				"unique", m.reader.names[strings.Replace(old.key, " ", "", 1)], old.key,
				ownerWords(old.owner)))
		case named, pruned:
			gone[old.key] = true
			continue
		case m.owners[old.owner]:
			m.left = append(m.left, old.key)
		}
		stay++
	}
	m.stay(agreed, gone)
	if stay == 0 {
		return
	}
	if len(gone) > 0 {
		if f, err = f.without(gone); err == nil {
			err = unchanged(agreed, f, attached, gone)
		}
		if err != nil {
			m.errs = append(m.errs, err)
		}
	}
	m.files = append(m.files, f)
	if p, plain := known[f]; plain {
		m.reader.parts[f] = p
		return
	}
	for _, name := range Attachments(f) {
		for _, known := range []string{Attached(f.Name, name), name} {
			i := slices.IndexFunc(attached, func(f File) bool { return f.Name == known })
			if i >= 0 {
				m.attach(attached[i], f.Name)
				break
			}
		}
	}
}

// stay notes the entries of a file that stay in force.
func (m *merger) stay(agreed Agreed, gone map[string]bool) {
	for _, w := range agreed.Windows {
		if !gone["window "+w.Name] {
			m.stays.Windows = append(m.stays.Windows, w)
		}
	}
	for _, f := range agreed.Freezes {
		if !gone["freeze "+f.Name] {
			m.stays.Freezes = append(m.stays.Freezes, f)
		}
	}
}

// attach adds the file that an entry names in "ics".
func (m *merger) attach(f File, by string) {
	i := slices.IndexFunc(m.attached, func(known File) bool { return known.Name == f.Name })
	switch {
	case i < 0:
		m.attached = append(m.attached, f)
	case m.attached[i].Content != f.Content:
		m.errs = append(m.errs, fmt.Errorf("%s: it is in force with another content for entries that "+
			"are not in %s: apply all files that name it together, or give it another name", f.Name, by))
	}
}

func ownerWords(owner string) string {
	if owner == "" {
		return "no customer"
	}
	return "customer " + owner
}

// without returns the file without some of its entries.
func (f File) without(gone map[string]bool) (File, error) {
	var doc yaml.Node
	if err := yaml.Unmarshal([]byte(f.Content), &doc); err != nil {
		return f, notYAML(f, err)
	}
	for kind, what := range map[string]string{"windows": "window ", "freezes": "freeze "} {
		for _, list := range valuesOf(doc.Content[0], kind) {
			list.Content = slices.DeleteFunc(list.Content, func(n *yaml.Node) bool {
				name := valuesOf(n, "name")
				return len(name) > 0 && gone[what+name[0].Value]
			})
		}
	}
	var text bytes.Buffer
	e := yaml.NewEncoder(&text)
	e.SetIndent(2)
	if err := errors.Join(e.Encode(&doc), e.Close()); err != nil {
		return f, fmt.Errorf("%s: %w", f.Name, err)
	}
	return File{f.Name, text.String()}, nil
}

// unchanged checks that the other entries of a file stay as people approved them.
func unchanged(was Agreed, f File, attached []File, gone map[string]bool) error {
	is, _, err := Known(nil).parseKept([]File{f}, attached)
	if err != nil {
		return err
	}
	want := slices.DeleteFunc(was.items(), func(i item) bool { return gone[i.key] })
	if !slices.Equal(is.items(), want) {
		return fmt.Errorf("%s: without the removed entries its other entries would change: apply the "+
			"whole file again", f.Name)
	}
	return nil
}

// SameTexts reports whether two timetables are made of the same files, in any order.
func (t Timetable) SameTexts(other Timetable) bool {
	sorted := func(files []File) []File {
		return slices.SortedFunc(slices.Values(files), func(a, b File) int {
			return cmp.Or(strings.Compare(a.Name, b.Name), strings.Compare(a.Content, b.Content))
		})
	}
	return slices.Equal(sorted(t.Files), sorted(other.Files)) &&
		slices.Equal(sorted(t.Attached), sorted(other.Attached))
}
