// Package browser has the tests of the pages in a real browser, against whole houses: the demo of
// the binary, with its pretended hosts, and some of their own. It is a module of its own, so that
// what drives the browser does not reach the binary.
package browser
