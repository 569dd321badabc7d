package ordered_test

import (
	"cmp"
	"iter"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"muster/internal/ordered"
)

func TestMergedSequencesAreInOrder(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		lists := rapid.SliceOf(rapid.SliceOf(rapid.IntRange(0, 9))).Draw(t, "lists")
		var sources []iter.Seq[int]
		for _, l := range lists {
			slices.Sort(l)
			sources = append(sources, slices.Values(l))
		}
		want := slices.Sorted(slices.Values(slices.Concat(lists...)))
		got := slices.Collect(ordered.Merge(sources, cmp.Compare[int]))
		if !slices.Equal(got, want) {
			t.Fatalf("merged %v, want %v", got, want)
		}
		most := rapid.IntRange(0, len(want)).Draw(t, "most")
		got = nil
		for v := range ordered.Merge(sources, cmp.Compare[int]) {
			if len(got) == most {
				break
			}
			got = append(got, v)
		}
		if !slices.Equal(got, want[:most]) {
			t.Fatalf("the first %d are %v, want %v", most, got, want[:most])
		}
	})
}

func TestAHeapGivesTheLeastFirst(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		model := rapid.SliceOf(rapid.IntRange(0, 20)).Draw(t, "list")
		h := ordered.NewHeap(slices.Clone(model), cmp.Compare[int])
		for range rapid.IntRange(0, 30).Draw(t, "calls") {
			slices.Sort(model)
			if h.Len() != len(model) || len(model) > 0 && h.First() != model[0] {
				t.Fatalf("%d values, the first %v; want %v", h.Len(), h.First(), model)
			}
			v := rapid.IntRange(0, 20).Draw(t, "value")
			switch how := rapid.IntRange(0, 2).Draw(t, "how"); {
			case how == 0 || len(model) == 0:
				h.Push(v)
				model = append(model, v)
			case how == 1:
				if got := h.Pop(); got != model[0] {
					t.Fatalf("popped %d, want %d", got, model[0])
				}
				model = model[1:]
			default:
				h.Replace(v)
				model[0] = v
			}
		}
	})
}
