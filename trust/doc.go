// Package trust says by whose word a node acts: what an order is, who has signed it, and what the
// policy of the node asks for.
//
// An [Order] says all that may happen under a task: the frozen runbook with its values, the time in
// which it may begin, and for each host the hash of how it is reached. A server makes its bytes
// once. They are signed, stored and passed on as they are, and nobody parses them before their
// signatures are checked. Children take all that they do from these bytes; what Redis says beside
// them counts for nothing (issue 16).
//
// The hosts of a zone are in shares of some hundred: the order has the hash of each share, and the
// [Lines] of a share lie beside the order. So a child reads the one share that its host is in.
//
// [State] is what a job has reached, with a MAC of the nodes, because only they write it.
//
// The package is pure: it knows neither time nor the network, and reads no file.
//
// Floor 2: may import fleet, jobs, scripts, internal/sshsig and what is below.
package trust
