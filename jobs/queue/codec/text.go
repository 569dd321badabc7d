package codec

import (
	"muster/internal/wording"
)

// TextOf is a field of an answer; empty if it is not there.
func TextOf(v []any, i int) string {
	s, _ := v[i].(string)
	return s
}

// errorMax bounds the bytes that are kept of a result's error.
const errorMax = 300

// OneLine bounds an error for people and keeps it valid UTF-8 on one line: it
// goes into JSON and into lists.
func OneLine(s string) string { return wording.OneLine(s, errorMax) }

// Anys returns texts as arguments of a command.
func Anys(s []string) []any {
	out := make([]any, len(s))
	for i, x := range s {
		out[i] = x
	}
	return out
}
