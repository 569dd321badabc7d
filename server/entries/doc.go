// Package entries follows the entries of muster apply that are kept as texts: before a server
// answers from them it looks whether they are in force still, and it reads what has changed.
//
// Floor 6: may import internal/manifest, jobs/queue/entries, server/herald and what is below.
package entries
