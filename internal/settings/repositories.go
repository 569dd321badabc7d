package settings

import (
	"errors"
	"io/fs"

	"muster/fleet"
	"muster/internal/repofile"
)

// repositoriesMax bounds the file of repositories.
const repositoriesMax = 1 << 20 // bytes

// RepositorySet returns a function that reads which branches configure muster from a file; it
// returns a nil set where the file is optional, and is not there. A changed file is in force at
// once.
func RepositorySet(a Access) func() (*repofile.Set, error) {
	if a.File == "" {
		return nil
	}
	w := watched[*repofile.Set]{setting: "server.repositories", path: a.File, max: repositoriesMax,
		bad: 0o022, parse: func(data []byte) (*repofile.Set, error) {
			return repofile.Parse(fleet.Source{Name: a.File, Data: data})
		}}
	return func() (*repofile.Set, error) {
		s, err := w.get()
		if a.Optional && errors.Is(err, fs.ErrNotExist) {
			return nil, nil
		}
		return s, err
	}
}
