package scripts

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"muster/internal/wording"
)

// Mistake is one error in a runbook, with its position.
type Mistake struct {
	File string
	Line int // from 1
	Col  int // from 1, in characters
	Text string
}

// Error returns the position and the mistake, on one line.
func (m Mistake) Error() string {
	return fmt.Sprintf("%s:%d:%d: %s", m.File, m.Line, m.Col, m.Text)
}

// Mistakes lists all errors in some runbooks, in the order of the text.
type Mistakes []Mistake

// Error returns all mistakes, one a line.
func (m Mistakes) Error() string {
	lines := make([]string, len(m))
	for i, one := range m {
		lines[i] = one.Error()
	}
	return strings.Join(lines, "\n")
}

// sorted sorts mistakes by position and keeps only the first hundred, because nobody needs
// more at once.
func (m Mistakes) sorted() Mistakes {
	slices.SortStableFunc(m, func(a, b Mistake) int {
		return cmp.Or(
			cmp.Compare(a.File, b.File), cmp.Compare(a.Line, b.Line), cmp.Compare(a.Col, b.Col),
		)
	})
	if len(m) <= mistakesMax {
		return m
	}
	last := m[mistakesMax-1]
	last.Text += " (and more mistakes)"
	return append(m[:mistakesMax-1:mistakesMax-1], last)
}

// Instead suggests a replacement for an unknown word: the nearest known word, or all of
// them.
func Instead(word string, known []string) string {
	if near := wording.Nearest(word, known); near != "" {
		return fmt.Sprintf("did you mean %q?", near)
	}
	if len(known) == 0 {
		return "there is none"
	}
	return "known: " + strings.Join(known, ", ")
}

// insteadOfKey is Instead for the keys of a runbook. It also recognizes keys that people know
// from Ansible.
func insteadOfKey(name string, known []string) string {
	if name == "become" || name == "become_user" {
		return "whom commands run as is said of the host, with become: sudo in the inventory (an " +
			"override does it for many); a single command can say sudo -n"
	}
	return Instead(name, known)
}

// brief quotes a value for a message and shortens it if it is long.
func brief(s string) string { return wording.Quote(s) }
