package remote

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Printable makes b harmless for a terminal and for the eyes: what could move
// the cursor, change colours or titles, hide text or turn its direction is shown
// as an escape, like \x1b or \u202e. So are bytes that are not UTF-8. Newline
// and tab stay; carriage return and newline become a newline.
func Printable(b []byte) string {
	var out strings.Builder
	out.Grow(len(b))
	for len(b) > 0 {
		r, size := utf8.DecodeRune(b)
		switch {
		case r == utf8.RuneError && size == 1:
			fmt.Fprintf(&out, `\x%02x`, b[0])
		case r == '\r' && len(b) > 1 && b[1] == '\n':
			// The newline that follows says it all.
		case harmless(r):
			out.WriteRune(r)
		case r <= 0xff:
			fmt.Fprintf(&out, `\x%02x`, r)
		case r <= 0xffff:
			fmt.Fprintf(&out, `\u%04x`, r)
		default:
			fmt.Fprintf(&out, `\U%08x`, r)
		}
		b = b[size:]
	}
	return out.String()
}

// harmless runes are those that show something, or are newline, tab or a blank.
// Letters of no width count as hidden: so two names that look alike are alike.
func harmless(r rune) bool {
	if r == '\n' || r == '\t' {
		return true
	}
	return unicode.IsGraphic(r) &&
		!unicode.In(r, unicode.Variation_Selector, unicode.Other_Default_Ignorable_Code_Point)
}
