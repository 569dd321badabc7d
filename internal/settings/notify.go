package settings

import (
	"errors"
	"io/fs"

	"muster/fleet"
	"muster/notify"
)

// notifyMax bounds the file of notifications.
const notifyMax = 1 << 20 // bytes

// NotifyRules returns a function that reads who is told what from a file; it returns nil rules
// where the file is optional, and is not there. A changed file is in force at once.
func NotifyRules(a Access) func() (*notify.Rules, error) {
	if a.File == "" {
		return nil
	}
	w := watched[*notify.Rules]{setting: "server.notify", path: a.File, max: notifyMax, bad: 0o022,
		parse: func(data []byte) (*notify.Rules, error) {
			return notify.Parse(fleet.Source{Name: a.File, Data: data})
		}}
	return func() (*notify.Rules, error) {
		r, err := w.get()
		if a.Optional && errors.Is(err, fs.ErrNotExist) {
			return nil, nil
		}
		return r, err
	}
}
