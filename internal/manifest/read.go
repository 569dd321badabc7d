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

// Read returns the entries of files. The error reports all mistakes in them, with file and line.
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
		s.Entries = append(s.Entries, entries...)
	}
	if len(wrong) > 0 {
		return Set{}, inOrder(wrong)
	}
	return s, s.locate()
}

// locate gives each entry the place of its document. The entries of a kind are in the order of
// their documents.
func (s *Set) locate() error {
	places := map[string][]string{}
	for _, d := range s.docs {
		places[d.kind] = append(places[d.kind], fmt.Sprintf("%s:%d", d.file, d.at+d.said))
	}
	for i, e := range s.Entries {
		left := places[e.Kind]
		if len(left) == 0 {
			return fmt.Errorf("%s %s: it has no document", e.Kind, e.Name)
		}
		s.Entries[i].Place, places[e.Kind] = left[0], left[1:]
	}
	return nil
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
		return !wanted(names[fmt.Sprintf("%s:%d", d.file, d.at+d.said)])
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
