package scripts

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"muster/internal/wording"
)

// Mistake is one thing that is wrong in a runbook, and where.
type Mistake struct {
	File string
	Line int // from 1
	Col  int // from 1, in characters
	Text string
}

// Error tells the place and the mistake, on one line.
func (m Mistake) Error() string {
	return fmt.Sprintf("%s:%d:%d: %s", m.File, m.Line, m.Col, m.Text)
}

// Mistakes is all that is wrong with some runbooks, in the order of the text.
type Mistakes []Mistake

// Error tells them all, one a line.
func (m Mistakes) Error() string {
	lines := make([]string, len(m))
	for i, one := range m {
		lines[i] = one.Error()
	}
	return strings.Join(lines, "\n")
}

// sorted orders mistakes by place and keeps the first ones: a reader who sees a
// hundred has enough to do.
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

// Instead says what to write for a word that is not known: the nearest known
// one, or all of them.
func Instead(word string, known []string) string {
	if near := wording.Nearest(word, known); near != "" {
		return fmt.Sprintf("did you mean %q?", near)
	}
	if len(known) == 0 {
		return "there is none"
	}
	return "known: " + strings.Join(known, ", ")
}

// insteadOfKey is Instead for the keys of a runbook, with a word for one that people know from
// Ansible.
func insteadOfKey(name string, known []string) string {
	if name == "become" || name == "become_user" {
		return "whom commands run as is said of the host, with become: sudo in the inventory (an " +
			"override does it for many); a single command can say sudo -n"
	}
	return Instead(name, known)
}

// brief quotes a value for a message and cuts it if it is long.
func brief(s string) string { return wording.Quote(s) }
