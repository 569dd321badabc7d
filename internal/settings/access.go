package settings

import (
	"errors"
	"io/fs"

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
