// Package submit makes the body of a submit from flags, with files, blobs and secrets, and sends it
// to a server.
//
// Floor 5: may import cli/watch and below.
package submit
