// Package live shows a task as it changes: the facts of its page, as a picture on a terminal, as
// lines elsewhere, and as lines of JSON.
//
// Floor 5: may import cli, cli/watch and what is below.
package live
