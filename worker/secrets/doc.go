// Package secrets finds secrets for a worker where they live: in files of its node, in credentials
// of systemd, in files that age has encrypted, in Vault or OpenBao. A task has references to them
// only (package secretref).
//
// A file of the node says which references it resolves, for which runbooks on which hosts. A
// reference comes from Redis and from authors of runbooks, so it is resolved only for a job whose
// signed order holds, and only if a rule allows it.
//
// Secrets are kept in memory only, and no error has one. The words of a source are foreign text.
//
// Floor 3: may import trust and what is below.
package secrets
