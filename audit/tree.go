package audit

import (
	"errors"
	"fmt"

	"golang.org/x/mod/sumdb/tlog"
)

// Hash is a hash of the tree: SHA-256 as RFC 6962 says.
type Hash = tlog.Hash

// LeafHash returns the hash of a leaf.
func LeafHash(leaf []byte) Hash { return tlog.RecordHash(leaf) }

// LeafPlace returns the place of the hash of leaf seq among the stored hashes.
func LeafPlace(seq int64) int64 { return tlog.StoredHashIndex(0, seq) }

// HashCount returns how many hashes the tree of so many entries stores.
func HashCount(size int64) int64 { return tlog.StoredHashCount(size) }

// HashReader reads stored hashes by their places.
type HashReader = tlog.HashReaderFunc

// Root returns the hash of the tree of so many entries.
func Root(size int64, read HashReader) (Hash, error) { return tlog.TreeHash(size, read) }

// A Growth is a tree that grows: the hashes that its new entries add to the stored ones.
type Growth struct {
	Size  int64  // entries of the tree now
	First int64  // place of the first new hash
	New   []Hash // from there on
	Read  HashReader
}

// Grow begins at a tree of so many entries, whose hashes read returns.
func Grow(size int64, read HashReader) *Growth {
	return &Growth{Size: size, First: HashCount(size), Read: read}
}

// Add adds a leaf.
func (g *Growth) Add(leaf Hash) error {
	list, err := tlog.StoredHashesForRecordHash(g.Size, leaf, HashReader(g.read))
	if err != nil {
		return err
	}
	g.New, g.Size = append(g.New, list...), g.Size+1
	return nil
}

// read returns stored hashes, of which the newest are not stored yet.
func (g *Growth) read(places []int64) ([]Hash, error) {
	out, old, at := make([]Hash, len(places)), []int64(nil), []int(nil)
	for i, p := range places {
		if n := p - g.First; n >= 0 && n < int64(len(g.New)) {
			out[i] = g.New[n]
			continue
		}
		old, at = append(old, p), append(at, i)
	}
	if len(old) == 0 {
		return out, nil
	}
	list, err := g.Read(old)
	if err != nil {
		return nil, err
	}
	if len(list) != len(old) {
		return nil, fmt.Errorf("%d hashes for %d places", len(list), len(old))
	}
	for i, h := range list {
		out[at[i]] = h
	}
	return out, nil
}

// An Edge has those hashes of a tree that its growth needs: one of each complete part. It computes
// the hash of the tree without keeping what is behind it.
type Edge struct {
	size  int64
	parts []Hash // of sizes that are the powers of two in size, the largest first
}

// Size returns the number of leaves.
func (e *Edge) Size() int64 { return e.size }

// Add adds a leaf.
func (e *Edge) Add(leaf Hash) {
	h := leaf
	for n := e.size; n&1 == 1; n >>= 1 {
		h = tlog.NodeHash(e.parts[len(e.parts)-1], h)
		e.parts = e.parts[:len(e.parts)-1]
	}
	e.parts = append(e.parts, h)
	e.size++
}

// Root returns the hash of the tree.
func (e *Edge) Root() Hash {
	if e.size == 0 {
		h, _ := tlog.TreeHash(0, nil) // it reads nothing
		return h
	}
	h := e.parts[len(e.parts)-1]
	for i := len(e.parts) - 2; i >= 0; i-- {
		h = tlog.NodeHash(e.parts[i], h)
	}
	return h
}

// ErrTooEarly says that a checkpoint is of a tree that does not have the entry yet.
var ErrTooEarly = errors.New("no checkpoint has this entry yet")

// Inclusion returns the proof that entry seq is in the tree of so many entries.
func Inclusion(size, seq int64, read HashReader) ([]Hash, error) {
	if seq < 0 || seq >= size {
		return nil, ErrTooEarly
	}
	return tlog.ProveRecord(size, seq, read)
}

// Consistency returns the proof that the tree of older entries is the beginning of the tree of size
// entries.
func Consistency(size, older int64, read HashReader) ([]Hash, error) {
	if older < 1 || older > size {
		return nil, fmt.Errorf("a tree of %d entries has no beginning of %d", size, older)
	}
	return tlog.ProveTree(size, older, read)
}
