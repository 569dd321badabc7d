// Package founding has the command init: it makes the key of the servers of an installation, and
// the folder of what its nodes trust.
//
// Floor 12: may import cli, cli/books, internal/fit and what is below.
package founding
