// Package herald tells people and programs what happened: it follows the file of rules, gathers
// what history has stored into messages, and sends each to its receiver until that has taken it.
// Each receiver is served by itself, so that one that hangs holds up no other.
//
// Floor 5: may import history/outbox, notify and what is below.
package herald
