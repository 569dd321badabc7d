package triggers

import (
	"fmt"
	"slices"
	"strings"

	"muster/internal/wording"
	"muster/scripts"
)

// A Schema says which arguments a runbook has.
type Schema struct{ runbook *scripts.Runbook }

// SchemaOf returns the schema of a runbook.
func SchemaOf(r *scripts.Runbook) Schema { return Schema{r} }

// Missing returns the names of required arguments that are not given.
func (s Schema) Missing(given map[string]bool) (names []string) {
	for _, a := range s.runbook.Arguments {
		if a.Required && !given[a.Name] {
			names = append(names, a.Name)
		}
	}
	return names
}

// Takes reports whether an argument is of type file: a value of it is a content.
func (s Schema) Takes(name string) bool {
	a, found := s.find(name)
	return found && a.Type == scripts.TypeFile
}

// Secret reports whether an argument is a secret, or the password of become.
func (s Schema) Secret(name string) bool {
	a, found := s.find(name)
	return found && a.Type == scripts.TypeSecret || name == scripts.BecomePassword
}

func (s Schema) find(name string) (scripts.Argument, bool) {
	for _, a := range s.runbook.Arguments {
		if a.Name == name {
			return a, true
		}
	}
	return scripts.Argument{}, false
}

// wrong says what is wrong with an argument of a trigger before any event; empty: nothing.
func (s Schema) wrong(a Argument) string {
	has, found := s.find(a.Name)
	var known []string
	for _, one := range s.runbook.Arguments {
		known = append(known, one.Name)
	}
	switch {
	case s.Secret(a.Name):
		return fmt.Sprintf("argument %s is a secret, which no trigger can give: name a reference to it "+
			"in the runbook", a.Name)
	case !found && len(known) == 0:
		return fmt.Sprintf("runbook %s has no arguments, so it has no %s", s.runbook.Name,
			wording.Quote(a.Name))
	case !found:
		return fmt.Sprintf("runbook %s has no argument %s: want one of %s", s.runbook.Name,
			wording.Quote(a.Name), wording.ClipList(strings.Join(known, ", ")))
	case a.File != "" && has.Type != scripts.TypeFile:
		return fmt.Sprintf("argument %s is of type %s: only one of type file takes a file", a.Name,
			has.Type)
	case a.Text != nil && has.Type == scripts.TypeFile && !isStored(*a.Text):
		return fmt.Sprintf("argument %s is of type file: want {file: PATH}, {field: PATH}, or the name "+
			"of a stored content as sha256:…", a.Name)
	case a.Text != nil && has.Type != scripts.TypeFile:
		only := *s.runbook
		only.Arguments = slices.Clone([]scripts.Argument{has})
		_, err := only.BindGiven(scripts.Given{Args: map[string]string{a.Name: *a.Text}, Unsaid: true})
		if err != nil {
			return wording.ErrorLine(err)
		}
	}
	return ""
}

func isStored(text string) bool {
	_, err := scripts.ParseBlob(text)
	return err == nil
}
