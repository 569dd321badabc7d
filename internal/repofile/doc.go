// Package repofile reads the file of repositories: which branches of git configure muster, how git
// reaches them, and which entries each of them may change. It is pure.
//
// Floor 4: may import fleet, internal/manifest and the ground.
package repofile
