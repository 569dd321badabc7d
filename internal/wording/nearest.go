package wording

import (
	"cmp"
	"slices"
	"strings"
)

// Nearest returns the known word that somebody most likely meant; empty if none comes near.
func Nearest(word string, known []string) string {
	if near := Nearby(word, known, 1); len(near) > 0 {
		return near[0]
	}
	return ""
}

// Nearby returns up to so many of the known words that somebody may have meant, the likeliest
// first. A third of the letters may be wrong, three of them at most, and one in a short word.
// Capitals do not matter, and the beginning of a word stands for it.
func Nearby(word string, known []string, most int) []string {
	type near struct {
		word     string
		distance int
	}
	limit := min(3, max(1, len(word)/3))
	var found []near
	lower := strings.ToLower(word)
	for _, w := range known {
		d := distance(lower, strings.ToLower(w), limit)
		if d > limit && len(word) >= 3 && strings.HasPrefix(w, word) {
			d = limit // "addr" for "address"
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

// Misspelt returns the known word from which a word differs in one letter, else in two; empty
// if there is none. Unlike Nearest it bears no more mistakes in a longer word, so that it can
// judge words which may well be somebody's own.
func Misspelt(word string, known []string) string {
	for most := 1; most <= 2; most++ {
		for _, w := range known {
			if distance(word, w, most) <= most {
				return w
			}
		}
	}
	return ""
}

// distance counts the bytes to add, drop, change, or swap with the next one to make b of a.
// It returns limit + 1 for all that is above the limit, so that long words cost little.
func distance(a, b string, limit int) int {
	if len(a)-len(b) > limit || len(b)-len(a) > limit {
		return limit + 1
	}
	older, above, row := make([]int, len(b)+1), make([]int, len(b)+1), make([]int, len(b)+1)
	for j := range above {
		above[j] = j
	}
	leastAbove := 0
	for i := range len(a) {
		row[0] = i + 1
		least := row[0]
		for j := range len(b) {
			changed := above[j]
			if a[i] != b[j] {
				changed++
			}
			row[j+1] = min(changed, above[j+1]+1, row[j]+1)
			if i > 0 && j > 0 && a[i] == b[j-1] && a[i-1] == b[j] {
				row[j+1] = min(row[j+1], older[j-1]+1)
			}
			least = min(least, row[j+1])
		}
		// A swap goes back two rows, so both must be above the limit.
		if least > limit && leastAbove > limit {
			return limit + 1
		}
		leastAbove = least
		older, above, row = above, row, older
	}
	return min(above[len(b)], limit+1)
}
