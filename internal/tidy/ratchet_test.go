package tidy

import (
	"cmp"
	"flag"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// ratchets holds today's number of what exceeds a limit: a line each of the rule, the subject
// and the number. A number may only fall. TestHouse -update writes the lower ones.
const ratchets = "internal/tidy/ratchets.txt"

var update = flag.Bool("update", false, "lower the numbers of ratchets.txt to what they are now")

// A measure is a number of the tree that has a limit.
type measure struct {
	subject string // a word without blanks, as "jobs/queue.Queue"
	file    *file
	line    int
	value   int
	limit   int
	unit    string // of the number, as "methods"
	advice  string // why the limit is there, and what to do
}

func (m measure) mistake(format string, values ...any) mistake {
	return m.file.atLine(m.line, m.subject, "%s", fmt.Sprintf(format, values...)+m.advice)
}

// ratchetRows reads the table of a tree: rule and subject to number.
func ratchetRows(t *tree) map[string]int {
	rows := map[string]int{}
	for line := range strings.Lines(t.text(ratchets)) {
		if i := strings.LastIndex(line, " "); i > 0 && line[0] != '#' {
			rows[line[:i]], _ = strconv.Atoi(strings.TrimSpace(line[i:]))
		}
	}
	return rows
}

// hold compares what was measured for one rule with its limit and with the table.
func hold(t *tree, rule string, found []measure) []mistake {
	var out []mistake
	rows, used := ratchetRows(t), map[string]bool{}
	for _, m := range found {
		key := rule + " " + m.subject
		row, known := rows[key]
		used[key] = used[key] || m.value > m.limit
		switch {
		case m.value <= m.limit:
		case !known:
			out = append(out, m.mistake("%d %s, at most %d: ", m.value, m.unit, m.limit))
		case m.value > row:
			out = append(out, m.mistake("%d %s, %d when it was measured last, and that may only fall: ",
				m.value, m.unit, row))
		case m.value < row:
			hint := m.mistake("%d %s, fewer than the %d of %s; go test ./internal/tidy -update: ",
				m.value, m.unit, row, ratchets)
			hint.soft = true
			out = append(out, hint)
		}
	}
	for key := range rows {
		if strings.HasPrefix(key, rule+" ") && !used[key] {
			out = append(out, mistake{path: ratchets, subject: strings.TrimPrefix(key, rule+" "),
				text: "this is within its limit or gone, and the row would let it grow again: " +
					"go test ./internal/tidy -update takes it out"})
		}
	}
	slices.SortFunc(out, func(a, b mistake) int { return strings.Compare(a.String(), b.String()) })
	return out
}

// ratcheted makes a rule of what it measures.
func ratcheted(name string, take func(*tree) []measure) rule {
	return rule{name, func(t *tree) []mistake { return hold(t, name, take(t)) }}
}

// measures holds the measures of all rules with a ratchet.
var measures = map[string]func(*tree) []measure{
	"methods of a type":    typeMethods,
	"lines of a type":      typeLines,
	"files of a type":      typeFiles,
	"fields in all":        allFields,
	"methods of a user":    interfaceMethods,
	"lines of a package":   packageLines,
	"files of a folder":    folderFiles,
	"plain words":          plainWords,
	"paragraphs in docs":   longParagraphs,
	"cells in docs":        longCells,
	"line length of pages": longLines,
}

var ratchetRules = func() []rule {
	var list []rule
	for name, take := range measures {
		list = append(list, ratcheted(name, take))
	}
	slices.SortFunc(list, func(a, b rule) int { return cmp.Compare(a.name, b.name) })
	return list
}()

// lowered is the table of a tree with numbers that are not higher than they were; a new row is
// only made where there was no table yet.
func lowered(t *tree) string {
	rows := ratchetRows(t)
	var list []string
	for name, take := range measures {
		for _, m := range take(t) {
			key := name + " " + m.subject
			row, known := rows[key]
			switch {
			case m.value <= m.limit:
			case known:
				list = append(list, fmt.Sprintf("%s %d\n", key, min(row, m.value)))
			case len(rows) == 0:
				list = append(list, fmt.Sprintf("%s %d\n", key, m.value))
			}
		}
	}
	slices.Sort(list)
	return "# Today's number of what exceeds a limit; it may only fall (go test ./internal/tidy -update).\n" +
		strings.Join(list, "")
}

// TestTheTableOfRatchetsIsReadAsItIsWritten also writes it, with -update.
func TestTheTableOfRatchetsIsReadAsItIsWritten(t *testing.T) {
	tree, err := loadTree("../..")
	if err != nil {
		t.Fatal(err)
	}
	text := lowered(tree)
	if *update {
		if err := os.WriteFile("ratchets.txt", []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	again, err := parseTree(map[string]string{ratchets: text})
	if err != nil {
		t.Fatal(err)
	}
	if got, want := len(ratchetRows(again)), strings.Count(text, "\n")-1; got != want {
		t.Errorf("%d of %d rows can be read", got, want)
	}
}

func TestANumberOfTheTableOnlyFalls(t *testing.T) {
	t.Parallel()
	package2 := func(n int) map[string]string {
		return map[string]string{"jobs/a.go": "package jobs\n" + lines(n, "// a"),
			ratchets: "lines of a package jobs 2600\nlines of a package gone 2700\n"}
	}
	for n, want := range map[int]string{2700: "jobs 2600\n", 2549: "jobs 2550\n", 2000: ""} {
		tree, err := parseTree(package2(n))
		if err != nil {
			t.Fatal(err)
		}
		_, got, _ := strings.Cut(lowered(tree), "\n")
		if strings.TrimPrefix(got, "lines of a package ") != want {
			t.Errorf("with %d lines the table is %q, want %q", n, got, want)
		}
	}
}
