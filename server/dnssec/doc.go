// Package dnssec shows how the keys of DNS zones are, by what jobs of the runbooks dnssec and
// dnssec-status said. It asks no name server.
//
// Floor 8: may import server/tasks, server/web and what is below.
package dnssec
