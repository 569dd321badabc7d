package scripts

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"muster/fleet"
)

// template is a text with placeholders, split into parts.
type template []part

// part is a piece of plain text or, if ref is set, a placeholder.
type part struct {
	text       string
	ref        string // what the placeholder names
	start, end int    // of the placeholder, braces included, in bytes of the text
}

// fault is a mistake at a byte of a text.
type fault struct {
	offset int
	text   string
}

var refMust = regexp.MustCompile(`^[a-z0-9][A-Za-z0-9_./-]*$`)

// cut finds the placeholders of a text. Four opening braces stand for two literal ones.
func cut(text string) (template, []fault) {
	var t template
	var faults []fault
	done := 0 // the text up to here is in t
	for {
		open := strings.Index(text[done:], "{{")
		if open < 0 {
			return append(t, part{text: text[done:]}), faults
		}
		open += done
		t = append(t, part{text: text[done:open]})
		if strings.HasPrefix(text[open:], "{{{{") {
			t = append(t, part{text: "{{"})
			done = open + len("{{{{")
			continue
		}

		ref, _, closed := strings.Cut(text[open+len("{{"):], "}}")
		if !closed || !refMust.MatchString(ref) {
			faults = append(faults, fault{open, "no placeholder follows \"{{\": write {{name}} " +
				"without blanks, or {{{{ for two braces"})
			done = open + len("{{")
			continue
		}
		done = open + len(ref) + len("{{}}")
		t = append(t, part{ref: ref, start: open, end: done})
	}
}

// placeholders returns the parts that stand for values.
func (t template) placeholders() []part {
	var list []part
	for _, p := range t {
		if p.ref != "" {
			list = append(list, p)
		}
	}
	return list
}

// fill replaces placeholders by their values, each converted by as. It reports every
// placeholder without a value.
func (t template) fill(s scope, as func(string) (string, error)) (string, error) {
	var b strings.Builder
	var errs []error
	for _, p := range t {
		if p.ref == "" {
			b.WriteString(p.text)
			continue
		}
		v, secret := s.secrets.word(p.ref)
		var err error
		if !secret {
			if v, err = s.value(p.ref); err == nil {
				v, err = as(v)
			}
		}
		if err != nil {
			errs = append(errs, fmt.Errorf("{{%s}}: %w", p.ref, err))
			continue
		}
		b.WriteString(v)
		if b.Len() > shellMax {
			return "", fmt.Errorf("more than %d bytes with its values", shellMax)
		}
	}
	return b.String(), errors.Join(errs...)
}

// plain returns a value unchanged.
func plain(v string) (string, error) { return v, nil }

// scope holds the values for placeholders.
type scope struct {
	args    map[string]string
	host    fleet.Host
	context Context
	secrets *secrets // nil: secrets are not allowed here
}

// labelPrefix begins placeholders for labels; the label's key follows.
const labelPrefix = "host.label."

// given is a placeholder that exists without being an argument.
type given struct {
	name string
	get  func(s scope) (string, error)
}

func givens() []given {
	return []given{
		{"host.name", func(s scope) (string, error) { return s.host.Name, nil }},
		{"host.address", func(s scope) (string, error) { return s.host.Address, nil }},
		{"host.customer", func(s scope) (string, error) {
			if s.host.Customer == "" {
				return "", fmt.Errorf("host %s has no customer: give it one in the inventory",
					s.host.Name)
			}
			return s.host.Customer, nil
		}},
		{"task.id", func(s scope) (string, error) { return s.context.Task, nil }},
		{"job.attempt", func(s scope) (string, error) {
			return strconv.Itoa(s.context.Attempt), nil
		}},
	}
}

// value returns the value of a placeholder.
func (s scope) value(ref string) (string, error) {
	if label, ok := strings.CutPrefix(ref, labelPrefix); ok {
		v, ok := s.host.Labels[label]
		if !ok {
			return "", fmt.Errorf("host %s has no label %q: give it one in the inventory, "+
				"or leave the host out", s.host.Name, label)
		}
		return v, nil
	}
	if name, ok := strings.CutPrefix(ref, savedPrefix); ok {
		v, ok := s.context.Saved[name]
		if !ok && !s.context.planned {
			return "", errNotSaved
		}
		return v, nil
	}
	for _, g := range givens() {
		if g.name == ref {
			return g.get(s)
		}
	}
	if v, ok := s.args[ref]; ok {
		return v, nil
	}
	return "", fmt.Errorf("no such argument")
}

// errNotSaved means that the step which should have saved a value was skipped.
var errNotSaved = errors.New("it was not saved: the step that does it was skipped")

// isGiven reports whether a placeholder exists without being an argument.
func isGiven(ref string) bool {
	if label, ok := strings.CutPrefix(ref, labelPrefix); ok {
		return label != ""
	}
	return slices.ContainsFunc(givens(), func(g given) bool { return g.name == ref })
}
