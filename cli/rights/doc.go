// Package rights has the command access: it explains, tests and checks the file that lists who may
// do what, on this machine and without a server.
//
// Floor 12: may import access, cli/reach and what is below.
package rights
