package server

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"strings"
	"syscall"

	"muster/internal/certs"
	"muster/internal/handover"
	"muster/internal/proc"
	"muster/internal/socket"
)

// listen opens all places that a valid Config names, or none. It takes the
// sockets that systemd has opened, and opens the others.
func (c Config) listen(ctx context.Context, handed *handover.Sockets) ([]net.Listener, error) {
	var list []net.Listener
	for _, p := range c.places() {
		l, err := c.listenAt(ctx, p, handed.At(p.network, p.address))
		if err != nil {
			return nil, errors.Join(err, closeAll(list))
		}
		list = append(list, l)
	}
	if rest := handed.Rest(); rest != "" {
		return nil, errors.Join(fmt.Errorf("systemd has opened %s, which server.listen does not name: "+
			"name it there, or change muster-server.socket (systemctl edit, or mask)", rest),
			closeAll(list))
	}
	return list, nil
}

func closeAll(list []net.Listener) error {
	var errs []error
	for _, l := range list {
		errs = append(errs, l.Close())
	}
	return errors.Join(errs...)
}

// takeUnix takes a unix socket of systemd, if it is for the group that the Config names.
func (c Config) takeUnix(p place, l net.Listener) (net.Listener, error) {
	if err := socket.CheckGroup(p.address, c.SocketGroup); err != nil {
		return nil, errors.Join(fmt.Errorf("server.socket_group = %q: %w: set SocketGroup in "+
			"muster-server.socket (systemctl edit)", c.SocketGroup, err), l.Close())
	}
	return l, nil
}

// listenAt opens one place, unless it is open already; a TCP port has TLS if the Config says so.
func (c Config) listenAt(ctx context.Context, p place, open net.Listener) (net.Listener, error) {
	if p.network == "unix" && open != nil {
		return c.takeUnix(p, open)
	}
	if p.network == "unix" {
		l, err := socket.Listen(ctx, p.address, c.SocketGroup)
		if err != nil {
			return nil, fmt.Errorf("server.listen = unix:%s: %w", p.address, err)
		}
		return l, nil
	}
	var keys *tls.Config
	if c.tls() {
		pair, err := certs.Pair(c.TLSCert, c.TLSKey)
		if err != nil {
			return nil, fmt.Errorf("server.tls: %w", err)
		}
		keys = &tls.Config{Certificates: []tls.Certificate{pair}, MinVersion: tls.VersionTLS12,
			NextProtos: []string{"h2", "http/1.1"}}
		if err := c.addClientCA(keys); err != nil {
			return nil, err
		}
	}
	l, err := open, error(nil)
	if l == nil {
		l, err = new(net.ListenConfig).Listen(ctx, "tcp", p.address)
	}
	if err != nil {
		if errors.Is(err, syscall.EADDRINUSE) {
			err = fmt.Errorf("the port is in use by %s: end that, or listen elsewhere",
				cmp.Or(proc.WhoListens(p.address), "a process of another user"))
		}
		return nil, fmt.Errorf("server.listen = %q: %w", p.address, err)
	}
	// localhost is taken for this machine, but its meaning is a matter of files.
	if keys == nil && beyond(l.Addr().String()) {
		return nil, errors.Join(l.Close(), fmt.Errorf("server.listen = %q is %s, which reaches beyond "+
			"this machine: set server.tls.cert and server.tls.key", p.address, l.Addr()))
	}
	if keys != nil {
		l = tls.NewListener(l, keys)
	}
	return l, nil
}

// addClientCA lets callers show certificates of the configured authorities, and verifies those.
func (c Config) addClientCA(keys *tls.Config) error {
	if c.TLSClientCA == "" {
		return nil
	}
	pool, err := certs.Pool(c.TLSClientCA)
	if err != nil {
		return fmt.Errorf("server.tls.client_ca: %w", err)
	}
	keys.ClientCAs, keys.ClientAuth = pool, tls.VerifyClientCertIfGiven
	return nil
}

// placeNames are the places as people write them, between commas.
func placeNames(list []net.Listener) string {
	var names []string
	for _, l := range list {
		name := l.Addr().String()
		if l.Addr().Network() == "unix" {
			name = unixPrefix + name
		}
		names = append(names, name)
	}
	return strings.Join(names, ",")
}
