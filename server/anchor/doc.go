// Package anchor ties the audit log to places that its database does not reach: it signs
// checkpoints of the log and sends them to sinks, and the entries themselves where a sink wants
// them. A sink is a file, a syslog or a webhook. The tables are the outbox: a sink has its place in
// them, and what it has not taken is sent again.
//
// Floor 5: may import audit, history/ledger and internal/files.
package anchor
