// Package sessions lets people log in with a browser: it makes, checks, lists and ends sessions,
// and has the pages of the login.
//
// A session has an owner, the principal in whose name it acts, and two ends: one after its
// beginning and one after its last use. A link that works once begins one. Redis keeps the records
// of both with the hash of their secret and a MAC under the key of servers, as it keeps those of
// tokens: a record that no server wrote proves nobody.
//
// Floor 7: may import server/tokens, server/scribe, server/web and what is below.
package sessions
