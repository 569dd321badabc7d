// Package stale has a test that says when code which a program made is older than its source.
package stale
