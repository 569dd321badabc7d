package settings

import (
	"errors"
	"io/fs"
	"path/filepath"

	"muster/access"
	"muster/fleet"
)

// accessMax bounds the file that says who may do what.
const accessMax = 1 << 20 // bytes

// Policy returns a function that reads who may do what from a file. A changed file is in force at
// once. Where the file is optional, and is not there, only the user of the server and root may do
// anything.
func Policy(a Access, user string) func() (*access.Policy, error) {
	own := access.Default(user)
	if a.File == "" {
		return func() (*access.Policy, error) { return own, nil }
	}
	w := watched[*access.Policy]{setting: "server.access", path: a.File, max: accessMax, bad: 0o022,
		parse: func(data []byte) (*access.Policy, error) {
			return access.Parse(fleet.Source{Name: a.File, Data: data})
		}}
	return func() (*access.Policy, error) {
		p, err := w.get()
		if a.Optional && errors.Is(err, fs.ErrNotExist) {
			return own, nil
		}
		return p, err
	}
}

// Access names the file that says who may do what.
type Access struct {
	File     string // empty: there is none
	Optional bool   // it need not be there
}

// Access returns where the file is: the configured place, or the usual one.
func (s Settings) Access() Access { return Access{s.Server.Access, s.Server.Usual.Access} }

// Notify returns where the file of notifications is: the configured place, or the usual one.
func (s Settings) Notify() Access { return Access{s.Server.Notify, s.Server.Usual.Notify} }

// Events returns where the file of sources is: the configured place, or the usual one.
func (s Settings) Events() Access { return Access{s.Server.Events, s.Server.Usual.Events} }

// Triggers returns where the file of triggers is: the configured place, or the usual one.
func (s Settings) Triggers() Access { return Access{s.Server.Triggers, s.Server.Usual.Triggers} }

// Repositories returns where the file of repositories is: the configured place, or the usual one.
func (s Settings) Repositories() Access {
	return Access{s.Server.Repositories, s.Server.Usual.Repositories}
}

// RepositoryDir returns the folder of the copies of repositories, beside that of the audit log.
func (s Settings) RepositoryDir() string {
	return filepath.Join(filepath.Dir(s.Past.Audit.Dir), "repositories")
}
