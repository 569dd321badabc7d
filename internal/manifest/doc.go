// Package manifest reads and writes the files of muster apply: several YAML documents, each of
// which is one entry and begins with its kind. It compares entries by their values, and plans the
// changes of an apply. It is pure.
//
// A kind of entries is a file of this package with a row in kinds, and a part of server/apply that
// keeps such entries.
//
// Floor 4: may import windows, triggers and what is below.
package manifest
