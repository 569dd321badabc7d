// Package audit is the log of who ordered what: entries with one form of bytes, the Merkle tree
// over them, signed checkpoints of the tree, proofs, and the examination that finds what somebody
// has changed since. It is pure: it stores nothing, and knows neither clock nor disk.
//
// An entry is a line of JSON, the leaf. Names of people, their reasons and their addresses are not
// in the leaf, but commitments to them are: hashes with a random salt that is kept beside the leaf.
// Once name and salt are erased, nobody can tell from the leaf who it was, and the tree still fits.
//
// Floor 0: imports nothing of the house.
package audit
