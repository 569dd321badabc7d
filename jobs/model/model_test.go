package model

import (
	"slices"
	"testing"

	"pgregory.net/rapid"

	"muster/jobs"
)

// A set has its members by score and, where those are equal, by name.
func TestASetIsInOrder(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		s, want := &Set[string]{}, map[string]jobs.Micros{}
		for range rapid.IntRange(0, 40).Draw(t, "n") {
			id := rapid.StringMatching(`[a-e]`).Draw(t, "id")
			if rapid.IntRange(0, 3).Draw(t, "what") == 0 {
				s.Remove(id)
				delete(want, id)
				continue
			}
			want[id] = jobs.Micros(rapid.IntRange(0, 3).Draw(t, "score"))
			s.Put(id, want[id])
		}
		ids := sorted(want)
		slices.SortStableFunc(ids, func(a, b string) int { return int(want[a] - want[b]) })
		if got := s.Until(3, 99); !slices.Equal(got, ids) || s.Len() != len(want) {
			t.Fatalf("%v, want %v", got, ids)
		}
	})
}
