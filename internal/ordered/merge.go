// Package ordered merges ordered sequences, and gives out values in an order.
//
// Floor -1: imports nothing of ours.
package ordered

import "iter"

// Merge merges several ordered sequences into one.
func Merge[T any](sources []iter.Seq[T], compare func(a, b T) int) iter.Seq[T] {
	if len(sources) == 1 {
		return sources[0]
	}
	return func(yield func(T) bool) {
		var list []head[T]
		for _, s := range sources {
			next, stop := iter.Pull(s)
			defer stop()
			if v, ok := next(); ok {
				list = append(list, head[T]{v, next})
			}
		}
		heads := NewHeap(list, func(a, b head[T]) int { return compare(a.value, b.value) })
		for heads.Len() > 0 {
			h := heads.First()
			if !yield(h.value) {
				return
			}
			var ok bool
			if h.value, ok = h.next(); !ok {
				heads.Pop()
				continue
			}
			heads.Replace(h)
		}
	}
}

// A head is the first value of a sequence that Merge has not yielded yet.
type head[T any] struct {
	value T
	next  func() (T, bool)
}
