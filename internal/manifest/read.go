package manifest

import (
	"fmt"
	"slices"
	"strings"

	"muster/windows"
)

// Input has the files that people hand to an apply.
type Input struct {
	Files    []windows.File
	Attached []windows.File // the iCalendar files that windows and freezes name in "ics"

	// Rollout says what is wrong with the rollout of a schedule; nil: nothing is.
	Rollout windows.RolloutCheck
}

// Set has the entries of files.
type Set struct {
	Entries []Entry
	docs    []document
}

// Read returns the entries of files. The error reports all mistakes in them, with file and line;
// beside it the set has the entries that could be read.
func Read(in Input) (Set, error) {
	var s Set
	var wrong []error
	named := map[string]bool{}
	for _, f := range in.Files {
		if named[f.Name] {
			wrong = append(wrong, fmt.Errorf("%s: the file is there twice", f.Name))
			continue
		}
		named[f.Name] = true
		docs, errs := split(f)
		s.docs, wrong = append(s.docs, docs...), append(wrong, errs...)
	}
	for _, k := range kinds {
		entries, err := k.read(lists(s.docs, k), in)
		wrong = append(wrong, flat(err)...)
		if err != nil {
			// Which documents the entries are of is not known, so they have no place.
			s.Entries = append(s.Entries, entries...)
			continue
		}
		located, err := s.locate(entries)
		s.Entries, wrong = append(s.Entries, located...), append(wrong, flat(err)...)
	}
	return s, inOrder(append(wrong, twice(s.Entries)...))
}

// twice returns the mistakes of entries whose name an earlier one has.
func twice(list []Entry) (wrong []error) {
	first := map[string]string{}
	for _, e := range list {
		if place, is := first[e.ID()]; is && e.Place != "" {
			wrong = append(wrong, fmt.Errorf("%s: %s %s is there already, at %s: choose another name",
				e.Place, e.Kind, e.Name, place))
		}
		first[e.ID()] = e.Place
	}
	return wrong
}

// locate gives each entry of a kind the place and the text of its document. The entries of a kind
// are in the order of their documents.
func (s *Set) locate(list []Entry) ([]Entry, error) {
	if len(list) == 0 {
		return nil, nil
	}
	var docs []document
	for _, d := range s.docs {
		if d.kind == list[0].Kind {
			docs = append(docs, d)
		}
	}
	if len(docs) != len(list) {
		return nil, fmt.Errorf("%s: of %d documents %d entries were read", docs[0].place(), len(docs),
			len(list))
	}
	for i := range list {
		list[i].Place, list[i].Document = docs[i].place(), docs[i].text()
	}
	return list, nil
}

func (d document) place() string { return fmt.Sprintf("%s:%d", d.file, d.at+d.said) }

// text returns a document as its author wrote it.
func (d document) text() string {
	lines := slices.Clone(d.body)
	lines[d.said] = "kind: " + d.kind
	return strings.TrimSpace(strings.Join(lines, "\n")) + "\n"
}

// Files returns the documents of some entries as files with a list, as the commands of their kind
// read them.
func (s Set) Files(word string, wanted func(name string) bool) []windows.File {
	k, _ := kindOf(word)
	names := map[string]string{}
	for _, e := range s.Entries {
		if e.Kind == word {
			names[e.Place] = e.Name
		}
	}
	docs := slices.DeleteFunc(slices.Clone(s.docs), func(d document) bool {
		return !wanted(names[d.place()])
	})
	files := lists(docs, k)
	for i := range files {
		files[i].Content = strings.TrimLeft(files[i].Content, "\n")
	}
	return files
}

// flat takes a joined error apart.
func flat(err error) []error {
	if err == nil {
		return nil
	}
	if joined, is := err.(interface{ Unwrap() []error }); is {
		return joined.Unwrap()
	}
	return []error{err}
}
