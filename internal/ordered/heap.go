package ordered

import "container/heap"

// A Heap gives out values, the least first.
type Heap[T any] struct{ in items[T] }

// NewHeap returns a heap of values in the order of a comparison. It takes the list over.
func NewHeap[T any](list []T, compare func(a, b T) int) *Heap[T] {
	h := &Heap[T]{items[T]{list, compare}}
	heap.Init(&h.in)
	return h
}

// Len returns the number of values.
func (h *Heap[T]) Len() int { return len(h.in.list) }

// Push adds a value.
func (h *Heap[T]) Push(v T) { heap.Push(&h.in, v) }

// Pop takes the least value out. There must be one.
func (h *Heap[T]) Pop() T { return heap.Pop(&h.in).(T) }

// First returns the least value. There must be one.
func (h *Heap[T]) First() T { return h.in.list[0] }

// Replace replaces the least value. There must be one.
func (h *Heap[T]) Replace(v T) {
	h.in.list[0] = v
	heap.Fix(&h.in, 0)
}

// items are the values as container/heap wants them.
type items[T any] struct {
	list    []T
	compare func(a, b T) int
}

func (i *items[T]) Len() int           { return len(i.list) }
func (i *items[T]) Less(a, b int) bool { return i.compare(i.list[a], i.list[b]) < 0 }
func (i *items[T]) Swap(a, b int)      { i.list[a], i.list[b] = i.list[b], i.list[a] }
func (i *items[T]) Push(x any)         { i.list = append(i.list, x.(T)) }

func (i *items[T]) Pop() any {
	last := len(i.list) - 1
	x := i.list[last]
	i.list = i.list[:last]
	return x
}
