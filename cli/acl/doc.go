// Package acl has the command acl: it prints the users that Redis should have.
//
// Floor 8: may import cli, cli/books, jobs/queue/keys and what is below.
package acl
