package manifest

import (
	"fmt"
	"path"
	"slices"

	"go.yaml.in/yaml/v3"

	"muster/windows"
)

// A Text is an entry in force as a document.
type Text struct {
	Entry
	Document string
	Attached *windows.File // the iCalendar file that it names; nil: none
}

// WriteTimetable returns the windows and freezes of a timetable as documents, in the words of the
// people who wrote them. Freezes that people ordered by hand are no entries, and not among them.
func WriteTimetable(t windows.Timetable) ([]Text, error) {
	book, err := t.Book()
	if err != nil {
		return nil, err
	}
	entries := map[string]Entry{}
	for _, e := range OfTimetable(t, book) {
		entries[e.ID()] = e
	}
	var out []Text
	for _, f := range t.Files {
		var doc yaml.Node
		if err := yaml.Unmarshal([]byte(f.Content), &doc); err != nil {
			return nil, fmt.Errorf("%s: %w", f.Name, err)
		}
		if len(doc.Content) == 0 {
			continue
		}
		for _, word := range []string{Window, Freeze} {
			k, _ := kindOf(word)
			list := valueOf(doc.Content[0], k.list)
			for i := 0; list != nil && i < len(list.Content); i++ {
				name := valueOf(list.Content[i], "name")
				if name == nil {
					continue
				}
				one := Text{Entry: entries[ID(word, name.Value)]}
				one.write(f, list.Content[i], t.Attached)
				out = append(out, one)
			}
		}
	}
	return out, nil
}

// write sets the document and the attached file of a text.
func (t *Text) write(f windows.File, entry *yaml.Node, attached []windows.File) {
	if ics := valueOf(entry, "ics"); ics != nil {
		for _, known := range []string{windows.Attached(f.Name, ics.Value), ics.Value} {
			i := slices.IndexFunc(attached, func(a windows.File) bool { return a.Name == known })
			if i >= 0 && t.Attached == nil {
				// Of two customers each may have a maintenance.ics, but the names of entries are unique.
				t.Attached = &windows.File{Name: path.Join("ics", t.Kind+"-"+t.Name+".ics"),
					Content: attached[i].Content}
				ics.SetString(t.Attached.Name)
			}
		}
	}
	entry.Style &^= yaml.FlowStyle
	t.Document = encode(t.Kind, entry)
}

// OfTimetable returns the windows and freezes of a timetable that stand in files.
func OfTimetable(t windows.Timetable, book *windows.Book) []Entry {
	byHand := map[string]bool{}
	for _, o := range t.Freezes {
		byHand[o.Name] = true
	}
	var out []Entry
	for _, w := range book.Agreed().Windows {
		out = append(out, OfWindow(w))
	}
	for _, f := range book.Agreed().Freezes {
		if !byHand[f.Name] {
			out = append(out, OfFreeze(f))
		}
	}
	return out
}

// valueOf returns the value of a key of a mapping; nil: it has none.
func valueOf(n *yaml.Node, key string) *yaml.Node {
	for i := 0; n.Kind == yaml.MappingNode && i+1 < len(n.Content); i += 2 {
		if n.Content[i].Value == key {
			return n.Content[i+1]
		}
	}
	return nil
}
