// Package reach finds out which hosts the things of the house concern, so that they can be held
// against the view of a caller: past tasks, selectors, chains, zones.
//
// Floor 6: may import server/stock, server/web and what is below.
package reach
