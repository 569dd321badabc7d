package entries

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"muster/internal/manifest"
	"muster/jobs/queue/entries"
	"muster/scripts"
)

// Runbooks has the runbooks of files, and those that were applied.
type Runbooks struct {
	follower *Follower
	files    func() *scripts.Catalog

	mu      sync.Mutex
	of      *scripts.Catalog // of files
	parts   []*entries.Part
	made    *scripts.Catalog
	trouble string
}

// NewRunbooks returns the runbooks of files and of the entries that a follower knows.
func NewRunbooks(f *Follower, files func() *scripts.Catalog) *Runbooks {
	return &Runbooks{follower: f, files: files}
}

// Catalog returns the runbooks in force; the same pointer means that they have not changed. If it
// is not known which were applied, the catalog of the files says so.
func (r *Runbooks) Catalog() *scripts.Catalog {
	files := r.files()
	v, err := r.follower.Now(context.Background())
	if err != nil {
		doubting := *files
		doubting.Doubt = err
		return &doubting
	}
	parts := v.Of(manifest.Runbook)
	if len(parts) == 0 {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.trouble = ""
		return files
	}
	list, err := r.follower.Of(v, manifest.Runbook)
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.of == files && same(r.parts, parts) {
		return r.made
	}
	var wrong []string
	if err != nil {
		wrong = append(wrong, err.Error())
	}
	made, mistakes := With(files, SourcesOf(list))
	if len(mistakes) > 0 {
		wrong = append(wrong, mistakes.Error())
	}
	r.of, r.parts, r.made = files, parts, made
	if r.trouble = strings.Join(wrong, "; "); r.trouble != "" {
		r.follower.log.Error("runbooks: some that were applied are not in force", "error", r.trouble)
	}
	return made
}

// With returns the runbooks of files with some more. It leaves out those with mistakes, such as a
// name that is taken, and returns the mistakes.
func With(files *scripts.Catalog, more []scripts.Source) (*scripts.Catalog, scripts.Mistakes) {
	var given []scripts.Source
	for _, r := range files.All() {
		if place := files.Place(r.Name); place != manifest.BuiltIn {
			given = append(given, scripts.Source{File: place, Data: []byte(files.Source(r))})
		}
	}
	var wrong scripts.Mistakes
	for {
		out, err := scripts.NewCatalog(slices.Concat(given, more))
		if err == nil {
			return out, wrong
		}
		var found scripts.Mistakes
		if !errors.As(err, &found) {
			found = scripts.Mistakes{{Text: err.Error()}}
		}
		if wrong == nil {
			wrong = found // what follows from them is no mistake of its own
		}
		left := slices.DeleteFunc(slices.Clone(more), func(s scripts.Source) bool {
			return slices.ContainsFunc(found, func(m scripts.Mistake) bool { return m.File == s.File })
		})
		if len(left) == len(more) { // the mistakes are in none of them
			return files, wrong
		}
		more = left
	}
}

func same(a, b []*entries.Part) bool {
	if len(a) != len(b) {
		return false
	}
	for i := range a {
		if a[i] != b[i] {
			return false
		}
	}
	return true
}

// SourcesOf returns the texts of runbooks that are in force.
func SourcesOf(list []manifest.Entry) (out []scripts.Source) {
	for _, e := range list {
		if b, is := e.Value.(manifest.Book); is {
			out = append(out, scripts.Source{File: "runbook " + e.Name + ", applied", Data: []byte(b.Text)})
		}
	}
	return out
}

// Words says which runbooks are not in force; empty: all are.
func (r *Runbooks) Words() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.trouble == "" {
		return ""
	}
	return fmt.Sprintf("some applied runbooks are not in force: %s", r.trouble)
}
