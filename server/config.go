package server

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"muster/jobs"
)

// Config says where a server listens.
type Config struct {
	Listen  string // host:port, or unix:/path
	TLSCert string // file with the certificate in PEM; needed beyond this machine
	TLSKey  string // file with its key
	Version string // of this program
	Name    string // of this machine, for people who look which server has a duty
	Blobs   Blobs  // zero: DefaultBlobs

	// FactsStale is after how long facts of a host are shown as stale; 0:
	// DefaultFactsStale.
	FactsStale time.Duration

	// HistoryKeep is how long history keeps what has ended; 0: for ever.
	HistoryKeep time.Duration

	// Overload is what workers do about an overloaded queue, for plans; zero: the
	// default.
	Overload jobs.Overload
}

// DefaultFactsStale is a week.
const DefaultFactsStale = 7 * 24 * time.Hour

// Blobs bounds the contents that are stored for uploads.
type Blobs struct {
	Max   int64         // bytes of all of them
	Grace time.Duration // one is kept so long after it was last needed
}

// DefaultBlobs is what is used when nothing else is said.
func DefaultBlobs() Blobs { return Blobs{Max: 512 << 20, Grace: 7 * 24 * time.Hour} }

// The bounds of Blobs. A submit and a retry follow a put, and neither may find it gone.
const (
	blobsMaxMin = 1 << 20
	graceMin    = time.Hour
)

func (b Blobs) validate() error {
	var errs []error
	if b.Max < blobsMaxMin {
		errs = append(errs, fmt.Errorf("blobs.max = %d: want %d bytes or more", b.Max, blobsMaxMin))
	}
	if b.Grace < graceMin {
		errs = append(errs, fmt.Errorf("blobs.grace = %s: want %s or more", b.Grace, graceMin))
	}
	return errors.Join(errs...)
}

// DefaultConfig listens to this machine only.
func DefaultConfig() Config { return Config{Listen: "127.0.0.1:7070", Blobs: DefaultBlobs()} }

const (
	unixPrefix = "unix:"
	// unixMax is what fits into the address of a unix socket on Linux.
	unixMax = 107 // bytes
)

// Validate reports every mistake at once.
func (c Config) Validate() error {
	network, address := c.place()
	var errs []error
	if network == "unix" {
		errs = append(errs, checkSocketPath(address))
	} else {
		errs = append(errs, checkAddress(address))
	}
	if (c.TLSCert == "") != (c.TLSKey == "") {
		errs = append(errs, fmt.Errorf("server.tls.cert = %q, server.tls.key = %q: want both or none",
			c.TLSCert, c.TLSKey))
	}
	switch {
	case errors.Join(errs...) != nil:
	case network == "unix" && c.tls():
		errs = append(errs, errors.New("server.listen is a unix socket, which needs no server.tls: "+
			"leave cert and key out"))
	case network == "tcp" && beyond(address) && !c.tls():
		errs = append(errs, fmt.Errorf("server.listen = %q reaches beyond this machine: set "+
			"server.tls.cert and server.tls.key, or listen on 127.0.0.1 or unix:/path", c.Listen))
	}
	if c.FactsStale < 0 {
		errs = append(errs, fmt.Errorf("facts.stale = %s: want more than 0", c.FactsStale))
	}
	if c.Blobs != (Blobs{}) {
		errs = append(errs, c.Blobs.validate())
	}
	return errors.Join(errs...)
}

// place is the network and the address to listen on.
func (c Config) place() (network, address string) {
	if path, ok := strings.CutPrefix(c.Listen, unixPrefix); ok {
		return "unix", path
	}
	return "tcp", c.Listen
}

func (c Config) tls() bool { return c.TLSCert != "" && c.TLSKey != "" }

func checkSocketPath(path string) error {
	switch {
	case !filepath.IsAbs(path):
		return fmt.Errorf("server.listen = %q: want an absolute path, such as unix:/run/api.sock",
			unixPrefix+path)
	case len(path) > unixMax:
		return fmt.Errorf("server.listen: the path has %d bytes, a unix socket takes at most %d",
			len(path), unixMax)
	}
	return nil
}

func checkAddress(address string) error {
	_, port, err := net.SplitHostPort(address)
	if err != nil {
		return fmt.Errorf("server.listen = %q: want host:port, such as 127.0.0.1:7070, or unix:/path",
			address)
	}
	if n, err := strconv.Atoi(port); err != nil || n < 0 || n > 65535 {
		return fmt.Errorf("server.listen = %q: want a port from 0 to 65535 (0 is any free one)", address)
	}
	return nil
}

// beyond tells whether others than this machine may reach an address. A name
// may mean anything, but for localhost, which is looked at again when it is
// known what it stands for.
func beyond(address string) bool {
	host, _, _ := net.SplitHostPort(address)
	return host != "localhost" && !isLoopback(host)
}

func isLoopback(host string) bool {
	ip, err := netip.ParseAddr(host)
	return err == nil && ip.Unmap().IsLoopback()
}
