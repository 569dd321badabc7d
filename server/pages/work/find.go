package work

import (
	"fmt"
	"regexp"
	"strings"
	"unicode/utf8"
)

const (
	findMax    = 200 // bytes of a text that is looked for
	linesMax   = 200 // lines with the text that a page shows
	linesRound = 2   // lines before and behind each
	lineMax    = 400 // bytes of a line that are shown, around its first hit
)

// A logLine is a line of a log near one that has the text.
type logLine struct {
	n      int  // its number, from 1
	apart  bool // lines between it and the one before are left out
	pieces []logPiece
}

// number returns the number of a line, so wide that the lines of most logs stand in a column.
func (l logLine) number() string { return fmt.Sprintf("%5d", l.n) }

// A logPiece is a part of a line: the text that was looked for, or what stands between.
type logPiece struct {
	text string
	hit  bool
}

// A logFind is what a search in a log has found.
type logFind struct {
	word  string
	lines []logLine
	hits  int // lines that have the text
	shown int // of them
}

// findIn looks for a text in a log, whatever the case of its letters.
func findIn(log, word string) logFind {
	word = strings.ToValidUTF8(word[:min(findMax, len(word))], "")
	f := logFind{word: word}
	if word == "" {
		return f
	}
	look := regexp.MustCompile("(?i)" + regexp.QuoteMeta(word))
	all := strings.Split(strings.TrimSuffix(log, "\n"), "\n")
	last := -1 // the last line that is shown
	for i, line := range all {
		if !look.MatchString(line) {
			continue
		}
		if f.hits++; f.hits > linesMax {
			continue
		}
		f.shown++
		for k := max(last+1, i-linesRound); k <= min(i+linesRound, len(all)-1); k++ {
			f.lines = append(f.lines, logLine{k + 1, last >= 0 && k > last+1, piecesOf(all[k], look)})
			last = k
		}
	}
	return f
}

// piecesOf parts a line by the text in it. A long line is cut around its first hit.
func piecesOf(line string, look *regexp.Regexp) []logPiece {
	if at := look.FindStringIndex(line); len(line) > lineMax {
		from := 0
		if at != nil {
			from = max(0, at[0]-lineMax/2)
		}
		line = clipFrom(line, from)
	}
	var out []logPiece
	end := 0
	for _, at := range look.FindAllStringIndex(line, -1) {
		out = append(out, logPiece{line[end:at[0]], false}, logPiece{line[at[0]:at[1]], true})
		end = at[1]
	}
	return append(out, logPiece{line[end:], false})
}

// clipFrom returns the part of a line from a byte on that is shown, with a sign for what is left
// out. No letter is cut in two.
func clipFrom(line string, from int) string {
	for from < len(line) && !utf8.RuneStart(line[from]) {
		from++
	}
	to := min(len(line), from+lineMax)
	for to < len(line) && !utf8.RuneStart(line[to]) {
		to--
	}
	text := line[from:to]
	if from > 0 {
		text = "…" + text
	}
	if to < len(line) {
		text += "…"
	}
	return text
}
