package tidy

import (
	"path"
	"regexp"
	"slices"
	"strings"
)

// textRules look at every text file, Go or not.
var textRules = []rule{
	{"unfinished", checkUnfinished},
	{"silenced", checkSilenced},
	{"short documents", checkDocuments},
	{"machine paths", checkMachinePaths},
}

// The words are put together here so that this file does not break its own rules.
var (
	unfinished = regexp.MustCompile(`\b(TO` + `DO|FIX` + `ME|XX` + `X)\b`)
	withIssue  = regexp.MustCompile(`\(?#\d+`)
	silenced   = regexp.MustCompile(`//\s*(no` + `lint|lint` + `:ignore|lint` + `:file-ignore)`)
)

// machinePath is a folder of the machines on which this project is written.
var machinePath = regexp.MustCompile(`/(work|farm)/[A-Za-z.]`)

func checkUnfinished(t *tree) []mistake {
	var found []mistake
	for _, f := range t.files {
		for _, l := range f.comments() {
			if word := unfinished.FindString(l.text); word != "" && !withIssue.MatchString(l.text) {
				found = append(found, f.atLine(l.line, word, "without the number of an issue nobody will ever "+
					"come back to it: do it now, or open an issue and write its number here, as in (#12)"))
			}
		}
	}
	return found
}

type textLine struct {
	line int
	text string
}

// comments gives the lines of a file that speak to a reader: the comments of Go,
// every line of a script, a configuration or a page.
func (f *file) comments() []textLine {
	var found []textLine
	switch {
	case f.syntax != nil:
		for _, group := range f.syntax.Comments {
			for _, c := range group.List {
				for i, text := range strings.Split(c.Text, "\n") {
					found = append(found, textLine{f.line(c.Pos()) + i, text})
				}
			}
		}
	case slices.Contains([]string{".lua", ".sh", ".yaml", ".md", ""}, path.Ext(f.path)):
		for i, text := range strings.Split(f.text, "\n") {
			found = append(found, textLine{i + 1, text})
		}
	}
	return found
}

func checkSilenced(t *tree) []mistake {
	var found []mistake
	for _, f := range t.goFiles() {
		for _, l := range f.comments() {
			if word := silenced.FindString(l.text); word != "" {
				found = append(found, f.atLine(l.line, word, "a linter is silenced where nobody looks: correct "+
					"the code; if the linter is wrong for all of the house, switch that check off in "+
					"staticcheck.conf with the reason"))
			}
		}
	}
	return found
}

// documents are the pages and files that must stay short to be read at all.
var documents = map[string]int{
	"README.md":       120,
	"CONTRIBUTING.md": 80,
	"Makefile":        80,
	".ci/run":         80,
}

func checkDocuments(t *tree) []mistake {
	var found []mistake
	for _, f := range t.files {
		want, ok := documents[f.path]
		if n := countLines(f.text); ok && n > want {
			found = append(found, f.atLine(0, "", "%d lines, at most %d: what is long is not read; move the "+
				"detail into docs/ or tools/ and link it", n, want))
		}
	}
	return found
}

func checkMachinePaths(t *tree) []mistake {
	var found []mistake
	for _, f := range t.files {
		for i, line := range strings.Split(f.text, "\n") {
			if p := machinePath.FindString(line); p != "" {
				found = append(found, f.atLine(i+1, p, "a path of the machine on which this was written, which "+
					"no reader has: make it relative to the root of the tree, or take an example that is free, "+
					"such as /srv or /tmp"))
			}
		}
	}
	return found
}
