// Package nodes carries out the orders of operators about nodes: that one takes nothing, and that
// it takes jobs again. It signs them, and says which of them a node does not know yet.
//
// Floor 6: may import server/web, trust and what is below.
package nodes
