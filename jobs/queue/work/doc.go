// Package work is what a child calls while it has jobs in hand, and its master for it:
// deliver results, take jobs, ask before each step, pass on what hosts say.
//
// Floor 4: may import the connection and all below it.
package work
