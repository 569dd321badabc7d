package tidy

import (
	"path"
	"regexp"
	"strings"
	"unicode/utf8"
)

const (
	paragraphMax = 120 // words
	cellMax      = 40  // words
	pageLineMax  = 160 // columns, outside of tables
)

// riddles are forms that a reader must decipher: a relative clause without its noun.
var riddles = regexp.MustCompile(`^// \w+ (is|are) (what|how|when|where|who|whose|why)\b|` +
	`\btells? (whether|that|what|how)\b|` +
	`(^// |^-- |[.;:] )(Who|Whoever|What|Of (one|what|those|whom)) |` +
	`\bno matter (if|whether)\b|\bis about\b|\bis (looked after|none of its business)\b`)

// plainWords counts riddles in the comments of each folder.
func plainWords(t *tree) []measure {
	count, first := map[string]int{}, map[string]measure{}
	for _, f := range t.files {
		if f.syntax == nil && path.Ext(f.path) != ".lua" {
			continue
		}
		for _, l := range f.comments() {
			if path.Ext(f.path) == ".lua" && !strings.HasPrefix(strings.TrimSpace(l.text), "--") {
				continue
			}
			n := len(riddles.FindAllString(l.text, -1))
			if n > 0 && count[f.dir()] == 0 {
				first[f.dir()] = measure{file: f, line: l.line}
			}
			count[f.dir()] += n
		}
	}
	var found []measure
	for dir, n := range count {
		m := first[dir]
		if n == 0 {
			continue
		}
		m.subject, m.value, m.limit, m.unit = dir, n, 0, "riddling forms, the first of them here"
		m.advice = "each sentence has a noun and an active verb, as in \"X reports whether …\""
		found = append(found, m)
	}
	return found
}

// A paragraph is a paragraph, an item of a list or a row of a table on a page.
type paragraph struct {
	line  int
	text  string
	table bool
}

// paragraphs splits a page; what stands in a code block is none.
func paragraphs(text string) []paragraph {
	var found []paragraph
	open, code := false, false
	for i, line := range strings.Split(text, "\n") {
		trimmed := strings.TrimSpace(line)
		fence, row := strings.HasPrefix(trimmed, "```"), strings.HasPrefix(trimmed, "|")
		switch {
		case fence:
			code, open = !code, false
		case code || trimmed == "" || strings.HasPrefix(trimmed, "#"):
			open = false
		case row:
			found, open = append(found, paragraph{i + 1, trimmed, true}), false
		case !open || isItem.MatchString(trimmed):
			found, open = append(found, paragraph{i + 1, trimmed, false}), true
		default:
			found[len(found)-1].text += " " + trimmed
		}
	}
	return found
}

var isItem = regexp.MustCompile(`^([-*]|\d+\.) `)

// eachPage counts the places of each page at which something is too long.
func eachPage(t *tree, m measure, places func(text string) []int) []measure {
	var found []measure
	for _, f := range t.files {
		if path.Ext(f.path) != ".md" || strings.HasPrefix(f.path, "bench/") {
			continue
		}
		at := places(f.text)
		if len(at) == 0 {
			continue
		}
		m.subject, m.file, m.line, m.value = f.path, f, at[0], len(at)
		found = append(found, m)
	}
	return found
}

func longParagraphs(t *tree) []measure {
	return eachPage(t, measure{unit: "paragraphs of more than 120 words, the first of them here",
		advice: "a wall is not read; make two of it, each with its first sentence"},
		func(text string) (at []int) {
			for _, p := range paragraphs(text) {
				if !p.table && len(strings.Fields(p.text)) > paragraphMax {
					at = append(at, p.line)
				}
			}
			return at
		})
}

func longCells(t *tree) []measure {
	return eachPage(t, measure{unit: "cells of more than 40 words, the first of them here",
		advice: "a table is looked at, not read; put the explanation below it, under a heading"},
		func(text string) (at []int) {
			for _, p := range paragraphs(text) {
				for cell := range strings.SplitSeq(p.text, " | ") {
					if p.table && len(strings.Fields(cell)) > cellMax {
						at = append(at, p.line)
					}
				}
			}
			return at
		})
}

func longLines(t *tree) []measure {
	return eachPage(t, measure{unit: "lines of more than 160 columns, the first of them here",
		advice: "nobody can compare two versions of them; break the line"},
		func(text string) (at []int) {
			for i, line := range strings.Split(text, "\n") {
				if utf8.RuneCountInString(line) > pageLineMax && !strings.HasPrefix(strings.TrimSpace(line), "|") {
					at = append(at, i+1)
				}
			}
			return at
		})
}
