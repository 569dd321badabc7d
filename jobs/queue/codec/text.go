package codec

import (
	"muster/internal/wording"
)

// TextOf returns one field of an answer, or "" if it is missing.
func TextOf(v []any, i int) string {
	s, _ := v[i].(string)
	return s
}

// errorMax bounds the bytes of an error that a record keeps.
const errorMax = 300

// OneLine shortens an error for people and keeps it valid UTF-8 on one line, because it goes into
// JSON and into lists.
func OneLine(s string) string { return wording.OneLine(s, errorMax) }

// Anys converts texts to the arguments of a command.
func Anys(s []string) []any {
	out := make([]any, len(s))
	for i, x := range s {
		out[i] = x
	}
	return out
}
