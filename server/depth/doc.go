// Package depth remembers how many jobs waited in each zone in the last day, as this server saw it,
// and shows that.
//
// The numbers are in the memory of the server alone: they begin when it starts, and each server has
// its own. A time at which it could not look is a gap, never a number.
//
// Floor 6: may import server/web, jobs/queue/read and what is below.
package depth
