// Package keys names every key of Redis, says which script or handle writes it, and
// which role of muster may touch it. The scripts, the generated tables of docs/REDIS.md
// and the users that `muster acl` prints are all made from the same lists.
//
// Floor 1: may import no room.
package keys
