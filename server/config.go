package server

import (
	"errors"
	"fmt"
	"net"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"muster/jobs"
	"muster/jobs/outliers"
	"muster/jobs/quarantine"
	"muster/server/door"
	"muster/server/idp"
	"muster/server/sessions"
	"muster/server/traces"
)

// Config says where a server listens.
type Config struct {
	// Listen has the places, between commas: unix:/path, where the kernel says who calls, and
	// host:port, where every caller needs a token.
	Listen      string
	SocketGroup string // who may use the unix sockets beside our user; empty: the folder's way
	TLSCert     string // file with the certificate in PEM; needed beyond this machine
	TLSKey      string // file with its key
	TLSClientCA string // file with the authorities of callers' certificates; empty: none count

	// URL is the address of this server for browsers, such as https://muster.example; empty: that
	// of its port, if it has a name or is one of this machine.
	URL string
	// OIDC says which identity provider the server asks.
	OIDC idp.Config

	// Claims lets callers over a unix socket say that they are somebody else, unproven. It is
	// for the demo, whose operators are pretended.
	Claims bool

	// NoPages leaves out the pages for browsers; the API is there in any case.
	NoPages bool

	Version string // of this program
	Name    string // of this machine, for people who look which server has a duty
	Blobs   Blobs  // zero: DefaultBlobs

	// FactsStale is after how long facts of a host are shown as stale; 0:
	// DefaultFactsStale.
	FactsStale time.Duration

	// HistoryKeep is the time for which history keeps jobs that have ended; 0: for ever.
	HistoryKeep time.Duration

	// Quarantine says after which jobs a host takes no job but checks; zero: after none.
	Quarantine quarantine.Policy

	// Traces says where traces of tasks and jobs go; without an endpoint there are none.
	Traces traces.Config

	// Outliers says when a node is set aside whose jobs fail; without a window: never.
	Outliers outliers.Policy

	// Overload has the limits of an overloaded queue, which plans need; zero: the default.
	Overload jobs.Overload
}

// DefaultFactsStale is a week.
const DefaultFactsStale = 7 * 24 * time.Hour

// Blobs bounds the contents that are stored for uploads.
type Blobs struct {
	Max   int64         // bytes of all of them
	Grace time.Duration // one is kept so long after it was last needed
}

// DefaultBlobs returns the bounds for a configuration that names none.
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

// DefaultConfig listens to the users of this machine only.
func DefaultConfig() Config {
	return Config{Listen: unixPrefix + "/run/muster-server/api.sock", Blobs: DefaultBlobs()}
}

const (
	unixPrefix = "unix:"
	// unixMax bounds the address of a unix socket on Linux.
	unixMax = 107 // bytes
)

// Validate reports every mistake at once.
func (c Config) Validate() error {
	var errs []error
	tcp, sockets := false, false
	for _, p := range c.places() {
		if p.network == "unix" {
			errs, sockets = append(errs, checkSocketPath(p.address)), true
		} else {
			errs, tcp = append(errs, checkAddress(p.address)), true
		}
	}
	if (c.TLSCert == "") != (c.TLSKey == "") {
		errs = append(errs, fmt.Errorf("server.tls.cert = %q, server.tls.key = %q: want both or none",
			c.TLSCert, c.TLSKey))
	}
	if c.TLSClientCA != "" && !c.tls() {
		errs = append(errs, fmt.Errorf("server.tls.client_ca = %q: it needs server.tls.cert and "+
			"server.tls.key", c.TLSClientCA))
	}
	if errors.Join(errs...) == nil {
		errs = append(errs, c.checkKeys(tcp))
	}
	errs = append(errs, sessions.CheckURL(c.URL), c.OIDC.Validate(c.URL))
	if c.SocketGroup != "" && !sockets {
		errs = append(errs, fmt.Errorf("server.socket_group = %q, but server.listen names no unix:/path",
			c.SocketGroup))
	}
	if c.FactsStale < 0 {
		errs = append(errs, fmt.Errorf("facts.stale = %s: want more than 0", c.FactsStale))
	}
	if c.Blobs != (Blobs{}) {
		errs = append(errs, c.Blobs.validate())
	}
	if c.Traces.Endpoint != "" {
		errs = append(errs, c.Traces.Validate())
	}
	return errors.Join(errs...)
}

// checkKeys looks whether there are keys where they are needed, and only there.
func (c Config) checkKeys(tcp bool) error {
	if !tcp && c.tls() {
		return errors.New("server.listen is a unix socket, which needs no server.tls: leave cert and " +
			"key out")
	}
	var errs []error
	for _, p := range c.places() {
		if p.network == "tcp" && beyond(p.address) && !c.tls() {
			errs = append(errs, fmt.Errorf("server.listen = %q reaches beyond this machine: set "+
				"server.tls.cert and server.tls.key, or listen on 127.0.0.1 or unix:/path", p.address))
		}
	}
	return errors.Join(errs...)
}

// A place is an address to listen at.
type place struct{ network, address string }

// places are all that Listen names, at least one.
func (c Config) places() (list []place) {
	for _, text := range strings.Split(c.Listen, ",") {
		text = strings.TrimSpace(text)
		if path, ok := strings.CutPrefix(text, unixPrefix); ok {
			list = append(list, place{"unix", path})
		} else {
			list = append(list, place{"tcp", text})
		}
	}
	return list
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

// beyond reports whether other machines may reach an address. A name may mean any address, except
// for localhost, which the server checks again after it is resolved.
func beyond(address string) bool {
	host, _, _ := net.SplitHostPort(address)
	return host != "localhost" && !door.IsLoopback(host)
}
