// Package access decides who may do what: people and programs, by their names and groups, with
// which runbooks, on which hosts.
//
// Parse reads a Policy from a file, and Policy.Over holds it against an inventory. The Rights that
// it returns answer all questions about hosts. Everything in a policy allows: the union of all
// grants counts, and no grant takes anything away. Pauses and freezes forbid
// work for a time.
//
// Some questions concern no host or no runbook. One rule holds for all of them:
//
//   - A question about no host, such as the halt of everything, counts only grants without a limit
//     of hosts.
//   - A question about no runbook, such as the drain of a host, counts only grants without a limit
//     of runbooks. See is the exception: a person who may see the work of one runbook on a host
//     may see that the host is there.
//   - Author counts only grants without a limit of hosts, because a changed runbook can run on
//     every host. Admin and Audit count only grants without any limit.
//
// The package is pure: it knows neither time nor the network, and reads no file.
//
// Floor 3: may import internal/strictyaml and what is below.
package access
