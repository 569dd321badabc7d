// Package handover takes the sockets that systemd has opened for a service (sd_listen_fds(3)).
// They stay open while the service restarts, so callers wait and are not refused.
//
// Floor 0: may import the standard library.
package handover

import (
	"errors"
	"fmt"
	"net"
	"os"
	"strings"
	"sync"
)

// Sockets holds the sockets that nobody has taken yet. A nil Sockets holds none.
type Sockets struct {
	mu   sync.Mutex
	list []net.Listener // guarded by mu
}

// New returns the sockets of these files, which it closes. Nil: there are none.
func New(files []*os.File) (*Sockets, error) {
	if len(files) == 0 {
		return nil, nil
	}
	s := &Sockets{}
	var errs []error
	for _, f := range files {
		l, err := net.FileListener(f) // of a copy of the descriptor
		if err == nil {
			s.list = append(s.list, l)
		}
		errs = append(errs, err, f.Close())
	}
	if err := errors.Join(errs...); err != nil {
		return nil, errors.Join(fmt.Errorf("systemd hands over a socket at which nobody can listen: %w",
			err), s.Close())
	}
	return s, nil
}

// At returns the socket that is open at an address, and gives it away; nil: there is none.
func (s *Sockets) At(network, address string) net.Listener {
	if s == nil {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for i, l := range s.list {
		if same(l.Addr(), network, address) {
			s.list = append(s.list[:i:i], s.list[i+1:]...)
			return l
		}
	}
	return nil
}

// same reports whether a socket is the one that a configuration names. No two sockets of one
// machine have the same port at all addresses, so the two ways to write "all" are one.
func same(have net.Addr, network, address string) bool {
	tcp, is := have.(*net.TCPAddr)
	if !is {
		return have.Network() == network && have.String() == address
	}
	if network != "tcp" {
		return false
	}
	want, err := net.ResolveTCPAddr("tcp", address)
	if err != nil || want.Port != tcp.Port {
		return false
	}
	all := func(ip net.IP) bool { return len(ip) == 0 || ip.IsUnspecified() }
	return all(want.IP) && all(tcp.IP) || want.IP.Equal(tcp.IP)
}

// Rest names the sockets that nobody has taken, between commas.
func (s *Sockets) Rest() string {
	if s == nil {
		return ""
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	var names []string
	for _, l := range s.list {
		name := l.Addr().String()
		if l.Addr().Network() == "unix" {
			name = "unix:" + name
		}
		names = append(names, name)
	}
	return strings.Join(names, ",")
}

// Close closes the sockets that nobody has taken. Systemd still has them.
func (s *Sockets) Close() error {
	if s == nil {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	var errs []error
	for _, l := range s.list {
		errs = append(errs, l.Close())
	}
	s.list = nil
	return errors.Join(errs...)
}
