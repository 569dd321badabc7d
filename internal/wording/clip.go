package wording

import (
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"
)

const (
	clipMax = 60  // bytes that a message repeats of a text
	listMax = 200 // bytes that a message shows of a list

	mark = "…" // stands where something was left out
)

// Clip returns what a message repeats of a text that somebody gave: all of a short one, else
// its beginning and a mark. The text may be hostile, but Clip only bounds it: quote the result
// where control characters could do harm.
func Clip(text string) string { return ClipTo(text, clipMax) }

// ClipTo returns the text if it has at most so many bytes, else its beginning and a mark. It
// never cuts a letter in two; the mark is not counted.
func ClipTo(text string, most int) string {
	if len(text) <= most {
		return text
	}
	return strings.ToValidUTF8(text[:most], "") + mark
}

// Quote returns a text as Clip does, in Go's double quotes; the mark stands behind the quotes,
// so that it cannot be taken for a part of the text.
func Quote(text string) string {
	if clipped := ClipTo(text, clipMax); clipped != text {
		return strconv.Quote(strings.TrimSuffix(clipped, mark)) + mark
	}
	return strconv.Quote(text)
}

// ClipList returns what a message shows of a list with commas: all of a short one, else as many
// whole items as fit and a mark.
func ClipList(list string) string {
	if len(list) <= listMax {
		return list
	}
	if end := strings.LastIndexByte(list[:listMax], ','); end >= 0 {
		return list[:end] + "," + mark
	}
	return ClipTo(list, listMax)
}

// OneLine returns a text as valid UTF-8 on one line of at most so many bytes, with the mark if
// something was left out: it can be stored in a JSON text and be an item of a list.
func OneLine(text string, most int) string {
	isBreak := func(r rune) bool { return r == '\n' || r == '\r' }
	text = strings.ToValidUTF8(strings.Join(strings.FieldsFunc(text, isBreak), " "), "\uFFFD")
	if len(text) <= most {
		return text
	}
	end := max(0, most-len(mark))
	for !utf8.RuneStart(text[end]) {
		end--
	}
	return text[:end] + mark
}

// ErrorLine returns the text of an error on one line: errors that were joined have semicolons
// between them.
func ErrorLine(err error) string { return strings.ReplaceAll(err.Error(), "\n", "; ") }

// Count returns a number with its noun: "1 host", "2 hosts". The noun takes an s.
func Count(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}

// Join returns words with a text between each two of them.
func Join[T ~string](words []T, between string) string {
	texts := make([]string, len(words))
	for i, w := range words {
		texts[i] = string(w)
	}
	return strings.Join(texts, between)
}
