// Package backupfile is the form of a backup: parts in a row, compressed, encrypted with age for
// those who may read it, and proven by a server.
//
// Encryption alone would not do: whoever knows a recipient can encrypt. A backup gives power over
// the house that is restored from it, so its last part has a MAC by the key of servers over all
// that is in front of it. A file that was cut, extended or changed has no such end.
//
// Floor 1: may import internal/files.
package backupfile
