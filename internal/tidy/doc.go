// Package tidy holds the rules of the house and a test that walks the tree and
// keeps them: which package may import which, where a foreign library comes in,
// how long a file, a function or a line may be, what must have a comment.
//
// The limits are on the tail, because the median function is short in good and
// in bad houses alike: what makes a house ugly is the one monster. Every message
// says what is wrong, why it matters and what to do. A rule that does not fit one
// place gets a line with a reason in the table of exceptions, in tidy_test.go; a
// line there that nothing needs any more is a mistake itself.
//
// There is nothing here but tests. The modules in tools and bench, generated
// files and testdata are not Go of this house; only the rules on text see them.
//
// Floor 14, tests only: no package imports it.
package tidy
