// Package reviews has the resource reviews: somebody has broken the glass, and somebody else must
// look at that afterwards. The audit log says which reviews are open, so that nobody can close one
// by writing to Redis.
//
// Floor 6: may import what is below.
package reviews
