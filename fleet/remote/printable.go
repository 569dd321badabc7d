package remote

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Printable makes bytes of a host harmless for a terminal and its reader. Characters that could
// move the cursor, change colours or titles, hide text or reverse its direction become escapes
// such as \x1b or \u202e, and so do bytes that are not UTF-8. Newline and tab stay; carriage
// return with newline becomes a newline.
//
// An escape always stands for a byte or rune that the host sent: if the host itself wrote the
// characters of an escape, their backslash becomes \x5c. So a text must not go through
// Printable twice; use [Harmless] for a text that has passed it once.
func Printable(b []byte) string {
	var out strings.Builder
	out.Grow(len(b))
	for len(b) > 0 {
		if escapeIn(b) > 0 {
			out.WriteString(`\x5c`)
			b = b[1:]
			continue
		}
		b = b[show(&out, b):]
	}
	return out.String()
}

// Harmless does for a text of our own what Printable does for bytes of a host. Parts of it may
// come from Printable or Quote, so it leaves backslashes alone and does not change a text that
// is already harmless.
func Harmless(text string) string {
	var out strings.Builder
	out.Grow(len(text))
	for b := []byte(text); len(b) > 0; {
		b = b[show(&out, b):]
	}
	return out.String()
}

// Quote returns the words of a host in double quotes, on one line of at most the given bytes;
// behind the quotes, a mark shows that the end was cut off. As in Go and JSON, a backslash
// precedes each quote and backslash of the host, so no host can end its quotation. Quote
// returns "" if the host said nothing.
func Quote(b []byte, most int) string {
	const mark = "…"
	var out strings.Builder
	for b := []byte(strings.Join(strings.Fields(string(b)), " ")); len(b) > 0; {
		var one strings.Builder
		size := 1
		if b[0] == '"' || b[0] == '\\' {
			one.WriteByte('\\')
			one.WriteByte(b[0])
		} else {
			size = show(&one, b)
		}
		if out.Len()+one.Len()+len(`""`)+len(mark) > most {
			return `"` + out.String() + `"` + mark
		}
		out.WriteString(one.String())
		b = b[size:]
	}
	if out.Len() == 0 {
		return ""
	}
	return `"` + out.String() + `"`
}

// Unfinished returns how many bytes at the end of p may look different together with the bytes
// that follow: the beginning of a character or an escape, or a carriage return before a
// newline. A caller that shows bytes in pieces holds these back.
func Unfinished(p []byte) int {
	if len(p) > 0 && p[len(p)-1] == '\r' {
		return 1
	}
	for n := 1; n < len(`\U00000000`) && n <= len(p); n++ {
		rest := p[len(p)-n:]
		if rest[0] == '\\' && beginsEscape(rest) {
			return n
		}
		letter := n < utf8.UTFMax && rest[0] >= utf8.RuneSelf && utf8.RuneStart(rest[0])
		if letter && !utf8.FullRune(rest) {
			return n
		}
	}
	return 0
}

// show writes the first rune of b, or its escape. It returns the size of that rune.
func show(out *strings.Builder, b []byte) int {
	r, size := utf8.DecodeRune(b)
	switch {
	case r == utf8.RuneError && size == 1:
		fmt.Fprintf(out, `\x%02x`, b[0])
	case r == '\r' && len(b) > 1 && b[1] == '\n':
		// The newline that follows is shown instead.
	case harmless(r):
		out.WriteRune(r)
	case r < utf8.RuneSelf:
		fmt.Fprintf(out, `\x%02x`, r)
	case r <= 0xffff:
		fmt.Fprintf(out, `\u%04x`, r)
	default:
		fmt.Fprintf(out, `\U%08x`, r)
	}
	return size
}

// escapeIn returns the length of the escape at the beginning of b, or 0 if there is none.
func escapeIn(b []byte) int {
	size := escapeSize(b)
	if size == 0 || len(b) < size || !hexDigits(b[2:size]) {
		return 0
	}
	return size
}

// beginsEscape reports whether b is an incomplete escape.
func beginsEscape(b []byte) bool {
	size := escapeSize(b)
	return len(b) == 1 || size > len(b) && hexDigits(b[2:])
}

// escapeSize returns the length of the escape that begins with the first two bytes of b.
func escapeSize(b []byte) int {
	if len(b) < 2 || b[0] != '\\' {
		return 0
	}
	switch b[1] {
	case 'x':
		return len(`\x00`)
	case 'u':
		return len(`\u0000`)
	case 'U':
		return len(`\U00000000`)
	}
	return 0
}

func hexDigits(b []byte) bool {
	for _, c := range b {
		if (c < '0' || c > '9') && (c < 'a' || c > 'f') && (c < 'A' || c > 'F') {
			return false
		}
	}
	return true
}

// harmless reports whether a rune is visible, or a newline, tab or blank. Characters without
// width count as hidden, so that names which look alike are alike.
func harmless(r rune) bool {
	if r == '\n' || r == '\t' {
		return true
	}
	return unicode.IsGraphic(r) &&
		!unicode.In(r, unicode.Variation_Selector, unicode.Other_Default_Ignorable_Code_Point)
}
