package fleet

import (
	"maps"
	"slices"

	"muster/internal/wording"
)

// suggest returns the end of a message: ": did you mean x?", or "" if no word is similar.
func suggest(word string, words []string) string {
	if near := wording.Nearest(word, words); near != "" {
		return ": did you mean " + near + "?"
	}
	return ""
}

// abbreviate bounds how much of a user's text an error quotes.
func abbreviate(s string) string { return wording.Clip(s) }

func sortedKeys[V any](m map[string]V) []string {
	return slices.Sorted(maps.Keys(m))
}
