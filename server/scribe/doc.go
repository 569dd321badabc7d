// Package scribe writes the audit log: each order durable before its effect, its outcome after it.
// An entry goes into SQL, else into a file that is synced, from which it comes into the tree later.
// If neither is possible the order is refused, unless it is one that stops work. Refused logins are
// entries, too, of which a flood makes few.
//
// Hook is the one place where the routes of the API write their entries.
//
// Floor 5: may import audit, history/ledger, internal/proc and server/web.
package scribe
