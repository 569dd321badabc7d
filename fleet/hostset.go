package fleet

import (
	"iter"
	"math/bits"
)

// hostSet is a set of hosts: bit i stands for the host at index i of the inventory.
type hostSet []uint64

func newHostSet(hosts int) hostSet { return make(hostSet, (hosts+63)/64) }

func (s hostSet) add(i int) { s[i/64] |= 1 << (i % 64) }

func (s hostSet) or(other hostSet) {
	for i := range other {
		s[i] |= other[i]
	}
}

func (s hostSet) and(other hostSet) {
	for i := range other {
		s[i] &= other[i]
	}
}

func (s hostSet) less(other hostSet) {
	for i := range other {
		s[i] &^= other[i]
	}
}

func (s hostSet) xor(other hostSet) {
	for i := range other {
		s[i] ^= other[i]
	}
}

// len returns how many hosts the set has.
func (s hostSet) len() int {
	n := 0
	for _, word := range s {
		n += bits.OnesCount64(word)
	}
	return n
}

// all yields the indexes of the hosts in the set, in ascending order.
func (s hostSet) all() iter.Seq[int] {
	return func(yield func(int) bool) {
		for i, word := range s {
			for ; word != 0; word &= word - 1 {
				if !yield(i*64 + bits.TrailingZeros64(word)) {
					return
				}
			}
		}
	}
}
