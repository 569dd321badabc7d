// Package cli is the frame of the commands that operators use: a client of the API, the screen,
// tables, common flags, exit codes, completion.
//
// A command gets a Session, which is a Client and a Screen, and returns an error that Exit gave a
// code. A function that needs only one of the two takes only that one. The commands are in the
// folders below this package; cmd/muster puts them together.
//
// Floor 3: may import api and below.
package cli
