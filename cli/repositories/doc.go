// Package repositories has the command repository: it lists and shows the branches that configure
// muster, and lets a server look at one at once.
//
// Floor 6: may import api, cli, internal/repofile and what is below.
package repositories
