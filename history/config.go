package history

import (
	"errors"
	"fmt"
	"net/url"
	"path/filepath"
	"strings"
	"time"
)

// Config says where history is stored, and for how long.
type Config struct {
	// URL is sqlite:///path/of/a/file or postgres://user@host/database; none: there is no history.
	URL string
	// PasswordFile has the password for PostgreSQL in its first line.
	PasswordFile string
	// Keep is the time for which ended tasks are stored; 0: for ever.
	Keep time.Duration
	// OutputMax bounds the stored output of a job, in bytes.
	OutputMax int
}

// None is the URL of no history.
const None = "none"

// DefaultConfig returns a Config that keeps 400 days; the URL is missing.
func DefaultConfig() Config { return Config{Keep: 400 * 24 * time.Hour, OutputMax: 64 << 10} }

// The bounds of Config.
const (
	keepMin   = 24 * time.Hour
	outputMax = 16 << 20 // bytes
)

const sqliteScheme = "sqlite"

// Validate reports all mistakes at once.
func (c Config) Validate() error {
	_, err := c.parse()
	errs := []error{err}
	if c.Keep != 0 && c.Keep < keepMin {
		errs = append(errs, fmt.Errorf("history.keep = %s: want %s or more, or 0 for ever", c.Keep,
			keepMin))
	}
	if c.OutputMax < 0 || c.OutputMax > outputMax {
		errs = append(errs, fmt.Errorf("history.output_max = %d: want 0 to %d bytes", c.OutputMax,
			outputMax))
	}
	return errors.Join(errs...)
}

// place is the database of a history.
type place struct {
	file string   // SQLite; empty: PostgreSQL
	url  *url.URL // PostgreSQL
}

// parse reads the URL. An error must not repeat a password, so a mistake in the URL of PostgreSQL
// is reported without it.
func (c Config) parse() (place, error) {
	u, err := url.Parse(c.URL)
	switch {
	case c.URL == None:
		return place{}, nil
	case err != nil:
		return place{}, errors.New("history.url cannot be read: want sqlite:///path/of/a/file, " +
			"postgres://user@host/database or none")
	case u.Scheme == sqliteScheme && u.Host == "" && filepath.IsAbs(u.Path) && u.RawQuery == "" &&
		!strings.HasSuffix(u.Path, "/"):
		return place{file: filepath.Clean(u.Path)}, nil
	case u.Scheme == "postgres" || u.Scheme == "postgresql":
		return place{url: u}, nil
	}
	return place{}, fmt.Errorf("history.url = %q: want sqlite:///path/of/a/file, "+
		"postgres://user@host/database or none", u.Redacted())
}

// Where returns the place for people, without a password.
func (c Config) Where() string {
	p, err := c.parse()
	switch {
	case err != nil || c.URL == None:
		return None
	case p.file != "":
		return "sqlite " + p.file
	}
	u := url.URL{Scheme: p.url.Scheme, Host: p.url.Host, Path: p.url.Path}
	if u.Host == "" {
		u.Host = p.url.Query().Get("host")
	}
	return "postgresql " + strings.TrimPrefix(u.String(), p.url.Scheme+"://")
}
