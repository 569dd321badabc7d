// Package trust decides whether a node may do a job: it reads signed orders, checks who has signed
// them, and holds them against the policy of the node (issue 16).
//
// An [Order] has all that may happen under a task: the frozen runbook with its values, the time in
// which it may begin, and a hash of each host's record. A server makes its bytes once. They are
// signed, stored and passed on as they are, and nobody parses them before their signatures are
// checked. A child does nothing that differs from these bytes.
//
// The hosts of a zone are in shares of some hundred: the order has the hash of each share, and the
// [Lines] of a share lie beside the order. So a child reads the one share that its host is in.
//
// A [State] is the step that a job has reached, with a MAC of the nodes, which alone write it.
//
// The package is pure: it knows neither time nor the network, and reads no file.
//
// Floor 2: may import fleet, jobs, scripts, internal/sshsig and what is below.
package trust
