package windows

import (
	"container/heap"
	"iter"
)

// merge merges several ordered sequences into one.
func merge[T any](sources []iter.Seq[T], compare func(a, b T) int) iter.Seq[T] {
	if len(sources) == 1 {
		return sources[0]
	}
	return func(yield func(T) bool) {
		heads := heads[T]{compare: compare}
		for _, s := range sources {
			next, stop := iter.Pull(s)
			defer stop()
			if v, ok := next(); ok {
				heads.list = append(heads.list, head[T]{v, next})
			}
		}
		for heap.Init(&heads); len(heads.list) > 0; {
			h := &heads.list[0]
			if !yield(h.value) {
				return
			}
			var ok bool
			if h.value, ok = h.next(); !ok {
				heap.Pop(&heads)
				continue
			}
			heap.Fix(&heads, 0)
		}
	}
}

// A head is the first value of a sequence that merge has not yielded yet.
type head[T any] struct {
	value T
	next  func() (T, bool)
}

// heads holds the heads of all sequences, as a heap.
type heads[T any] struct {
	list    []head[T]
	compare func(a, b T) int
}

func (h *heads[T]) Len() int           { return len(h.list) }
func (h *heads[T]) Less(i, j int) bool { return h.compare(h.list[i].value, h.list[j].value) < 0 }
func (h *heads[T]) Swap(i, j int)      { h.list[i], h.list[j] = h.list[j], h.list[i] }
func (h *heads[T]) Push(x any)         { h.list = append(h.list, x.(head[T])) }

func (h *heads[T]) Pop() any {
	last := len(h.list) - 1
	x := h.list[last]
	h.list = h.list[:last]
	return x
}
