// Package firings keeps what triggers did about events: a record of each event at each trigger that
// it concerned, and the memory of each trigger. Servers sign both, because a collected event makes
// a task later.
//
// Floor 4: may import the connection, triggers and all below them.
package firings
