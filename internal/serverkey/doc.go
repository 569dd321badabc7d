// Package serverkey makes, of the key that all servers of an installation share, what they prove
// things with: MACs over records that lie in Redis, and Ed25519 keys that sign.
//
// The key is in a file that neither Redis nor the nodes know. So a server wrote each record with a
// right MAC, whoever else can write to Redis. HKDF makes other keys for each [Use]: what was made
// for one use proves nothing for another.
//
// Floor 1: may import internal/seal.
package serverkey
