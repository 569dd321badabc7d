// Package dnstest starts real name servers for tests: a parent zone that carries
// the DS, a signed child on BIND or Knot with a secondary, and a resolver that
// validates, each a process of its own on the loopback address.
//
// All timings are seconds, so that a whole rollover of a key takes some ten of
// them.
package dnstest
