package settings

import (
	"errors"
	"io/fs"

	"muster/fleet"
	"muster/triggers"
)

// triggersMax bounds the file of triggers.
const triggersMax = 1 << 20 // bytes

// TriggerSet returns a function that reads which events start which tasks from a file; it returns a
// nil set where the file is optional, and is not there. A changed file is in force at once.
func TriggerSet(a Access) func() (*triggers.Set, error) {
	if a.File == "" {
		return nil
	}
	w := watched[*triggers.Set]{setting: "server.triggers", path: a.File, max: triggersMax,
		bad: 0o022, parse: func(data []byte) (*triggers.Set, error) {
			return triggers.Parse(fleet.Source{Name: a.File, Data: data})
		}}
	return func() (*triggers.Set, error) {
		s, err := w.get()
		if a.Optional && errors.Is(err, fs.ErrNotExist) {
			return nil, nil
		}
		return s, err
	}
}
