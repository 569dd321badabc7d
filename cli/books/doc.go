// Package books has the commands about runbooks and blobs.
//
// Floor 7: may import cli/submit and below.
package books
