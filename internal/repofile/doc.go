// Package repofile reads the file of repositories: which branches of git configure muster, how git
// reaches them, and which entries each of them may change. It is pure.
//
// Floor 5: may import internal/manifest, internal/strictyaml and what is below.
package repofile
