// Package stock knows the hosts of a server. A Store reads the inventory from its source, publishes
// it to the queue and follows its changes. A Looker adds which hosts are drained and the facts
// that hosts gave, and resolves selectors with all of that.
//
// Floor 5: may import fleet, jobs, api and the rooms of jobs/queue.
package stock
