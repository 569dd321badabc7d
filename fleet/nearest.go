package fleet

import (
	"cmp"
	"maps"
	"slices"
	"strings"
)

// nearest returns up to most of the words that somebody may have meant by word,
// the likeliest first; none if none comes near.
func nearest(word string, words []string, most int) []string {
	type near struct {
		word     string
		distance int
	}
	limit := min(3, max(1, len(word)/3))
	var found []near
	lower := strings.ToLower(word)
	for _, w := range words {
		d := distance(lower, strings.ToLower(w), limit)
		// What was typed may also be the start of it: "addr" for "address".
		if d > limit && len(word) >= 3 && strings.HasPrefix(w, word) {
			d = limit
		}
		if d <= limit && w != word {
			found = append(found, near{w, d})
		}
	}
	slices.SortFunc(found, func(a, b near) int {
		return cmp.Or(cmp.Compare(a.distance, b.distance), cmp.Compare(a.word, b.word))
	})
	var result []string
	for _, f := range found[:min(most, len(found))] {
		result = append(result, f.word)
	}
	return result
}

// suggest is the end of a message: ": did you mean x?", or nothing.
func suggest(word string, words []string) string {
	near := nearest(word, words, 1)
	if len(near) == 0 {
		return ""
	}
	return ": did you mean " + near[0] + "?"
}

// Nearest returns the word that somebody most likely meant by one that is not among the
// words; empty if none comes near.
func Nearest(word string, words []string) string {
	if near := nearest(word, words, 1); len(near) > 0 {
		return near[0]
	}
	return ""
}

// Misspelt is the word that differs from one in two letters or less; empty: none does.
func Misspelt(word string, words []string) string {
	for most := 1; most <= 2; most++ {
		for _, w := range words {
			if distance(word, w, most) <= most {
				return w
			}
		}
	}
	return ""
}

// distance counts how many bytes must be put in, left out or changed to make b
// of a (Levenshtein). It gives up above the limit, so that long words cost
// little; the answer is then limit + 1.
func distance(a, b string, limit int) int {
	if len(a)-len(b) > limit || len(b)-len(a) > limit {
		return limit + 1
	}
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		before, least := row[0], i+1 // before: the row above, one to the left
		row[0] = i + 1
		for j := range len(b) {
			changed := before
			if a[i] != b[j] {
				changed++
			}
			before = row[j+1]
			row[j+1] = min(changed, row[j]+1, before+1)
			least = min(least, row[j+1])
		}
		if least > limit {
			return limit + 1
		}
	}
	return row[len(b)]
}

func sortedKeys[V any](m map[string]V) []string {
	return slices.Sorted(maps.Keys(m))
}
