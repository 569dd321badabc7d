// Package diff compares two texts line by line.
//
// It is for the output of hosts: texts of any bytes, some with a hundred thousand lines. The work
// is bounded: two texts with too many differences count as different in everything between their
// equal beginnings and ends. Lines are returned unchanged, so callers must make them harmless
// before they show them.
//
// Floor 0: may import nothing of muster.
package diff
