// Package auditlog shows the audit log to people who may see it: pages, single entries, proofs, an
// export for who examines it, and its state. It erases names. Watch says what is wrong with it, for
// health and metrics.
//
// Floor 6: may import audit, history/ledger, server/anchor, server/scribe and what is below.
package auditlog
