// Package logins keeps the sessions that `muster login` has begun: a file for each server, in the
// user's folder of configuration, which nobody else can read.
//
// Floor 1: may import internal/files and internal/wording.
package logins

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"time"

	"muster/internal/files"
)

// A Login is a session at a server.
type Login struct {
	Server    string    `json:"server"` // URL
	Token     string    `json:"token"`
	Session   string    `json:"session"` // its id
	Principal string    `json:"principal"`
	Expires   time.Time `json:"expires"`
}

const fileMax = 64 << 10 // bytes

// Token returns what to show to a server: the token that was given, else that of the login there;
// empty: there is neither. Over a unix socket the kernel says who calls.
func Token(given, server string) (string, error) {
	if given != "" || !strings.HasPrefix(server, "http") {
		return given, nil
	}
	l, err := Find(server)
	if errors.Is(err, fs.ErrNotExist) {
		return "", nil
	}
	return l.Token, err
}

// Find returns the login at a server. The error wraps fs.ErrNotExist if there is none.
func Find(server string) (Login, error) {
	var l Login
	path, err := pathOf(server)
	if err != nil {
		return l, err
	}
	data, mode, err := files.Private(path, fileMax)
	if err != nil {
		return l, err
	}
	if mode.Perm()&0o077 != 0 {
		return l, fmt.Errorf("%s has mode %04o, so others can use it: remove it and call `muster login` "+
			"again", path, mode.Perm())
	}
	if err := json.Unmarshal(data, &l); err != nil {
		return l, fmt.Errorf("%s is no login of muster: remove it and call `muster login` again: %w",
			path, err)
	}
	if l.Server != canonical(server) {
		return l, fmt.Errorf("%s is a login at another server, %q: remove it and call `muster login` "+
			"again", path, l.Server)
	}
	return l, nil
}

// Keep keeps a login, in the place of an earlier one at the same server.
func Keep(l Login) error {
	path, err := pathOf(l.Server)
	if err != nil {
		return err
	}
	l.Server = canonical(l.Server)
	data, err := json.Marshal(l)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	temp, err := os.CreateTemp(filepath.Dir(path), ".new") // mode 0600
	if err != nil {
		return err
	}
	_, err = temp.Write(data)
	if err = errors.Join(err, temp.Close()); err == nil {
		err = os.Rename(temp.Name(), path)
	}
	if err != nil {
		return errors.Join(err, os.Remove(temp.Name()))
	}
	return nil
}

// Drop removes the login at a server.
func Drop(server string) error {
	path, err := pathOf(server)
	if err != nil {
		return err
	}
	return os.Remove(path)
}

// pathOf returns the file of a server.
func pathOf(server string) (string, error) {
	dir, err := os.UserConfigDir()
	if err != nil {
		return "", fmt.Errorf("logins have no place: %w", err)
	}
	return filepath.Join(dir, "muster", "logins", url.PathEscape(canonical(server))+".json"), nil
}

// canonical returns one form of the URLs of a server.
func canonical(server string) string {
	u, err := url.Parse(server)
	if err != nil {
		return server
	}
	u.Scheme, u.Host = strings.ToLower(u.Scheme), strings.ToLower(u.Host)
	return strings.TrimRight(u.String(), "/")
}
