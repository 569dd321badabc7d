// Package apitest pretends to be a server for tests of the command line.
package apitest
