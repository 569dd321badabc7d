// Package reset has the command admin reset: it empties the Redis of an installation, after it has
// said what would be lost, and only while nothing works with it.
//
// Floor 4: may import cli and below.
package reset
