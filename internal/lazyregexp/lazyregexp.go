// Package lazyregexp has regular expressions that are compiled when they are first used: each
// process sets all package variables, and most, such as a worker, use few of them.
//
// Floor -1: may import the standard library.
package lazyregexp

import (
	"regexp"
	"sync"
)

// New returns a function that compiles text at its first call, and panics there if it is none.
func New(text string) func() *regexp.Regexp {
	return sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(text) })
}
