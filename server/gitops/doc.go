// Package gitops follows branches of git repositories: it brings their files into force as
// `muster apply` does, remembers how that went, and shows it.
//
// Floor 8: may import server/apply, internal/repofile, internal/gitsource and what is below.
package gitops
