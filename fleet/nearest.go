package fleet

import (
	"maps"
	"slices"

	"muster/internal/wording"
)

// suggest is the end of a message: ": did you mean x?", or nothing.
func suggest(word string, words []string) string {
	if near := wording.Nearest(word, words); near != "" {
		return ": did you mean " + near + "?"
	}
	return ""
}

// abbreviate bounds what an error repeats of a text that somebody gave.
func abbreviate(s string) string { return wording.Clip(s) }

func sortedKeys[V any](m map[string]V) []string {
	return slices.Sorted(maps.Keys(m))
}
