// Package ledger keeps the audit log in SQL: its entries, the hashes of its tree, its checkpoints,
// the names that entries refer to, and how far each sink has it. It only adds entries, each with
// the hashes that follow from it in the same transaction. Several servers may add at the same time:
// a row that all of them lock gives the entries their order.
//
// Floor 4: may import audit and history.
package ledger
