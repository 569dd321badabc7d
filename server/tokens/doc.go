// Package tokens makes, checks, lists and removes the tokens by which people and programs prove
// over the network who they are.
//
// A token has an owner, the principal in whose name it acts, and an end. Redis keeps its record,
// with the hash of its secret and a MAC under the key of servers: a record that no server wrote
// proves nobody.
//
// Floor 6: may import jobs/queue/hub, server/scribe, server/web and what is below.
package tokens
