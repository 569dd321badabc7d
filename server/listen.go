package server

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"syscall"
	"time"
)

// socketMode lets the user and the group of the server use its unix socket.
const socketMode = 0o660

// listen opens the place that a valid Config names, with TLS if it says so.
func (c Config) listen(ctx context.Context) (net.Listener, error) {
	network, address := c.place()
	if network == "unix" {
		return listenUnix(ctx, address)
	}
	var keys *tls.Config
	if c.tls() {
		pair, err := tls.LoadX509KeyPair(c.TLSCert, c.TLSKey)
		if err != nil {
			return nil, fmt.Errorf("server.tls: %w", err)
		}
		keys = &tls.Config{Certificates: []tls.Certificate{pair}, MinVersion: tls.VersionTLS12,
			NextProtos: []string{"h2", "http/1.1"}}
	}
	l, err := new(net.ListenConfig).Listen(ctx, network, address)
	if err != nil {
		return nil, fmt.Errorf("server.listen = %q: %w", address, err)
	}
	// localhost is taken for this machine, but its meaning is a matter of files.
	if keys == nil && beyond(l.Addr().String()) {
		return nil, errors.Join(l.Close(), fmt.Errorf("server.listen = %q is %s, which reaches beyond "+
			"this machine: set server.tls.cert and server.tls.key", address, l.Addr()))
	}
	if keys != nil {
		l = tls.NewListener(l, keys)
	}
	return l, nil
}

func listenUnix(ctx context.Context, path string) (net.Listener, error) {
	if err := clearSocket(ctx, path); err != nil {
		return nil, fmt.Errorf("server.listen = unix:%s: %w", path, err)
	}
	l, err := new(net.ListenConfig).Listen(ctx, "unix", path)
	if err != nil {
		return nil, fmt.Errorf("server.listen = unix:%s: %w", path, err)
	}
	if err := os.Chmod(path, socketMode); err != nil {
		return nil, errors.Join(err, l.Close())
	}
	return l, nil
}

// clearSocket removes the socket of a server that was killed. One that answers
// belongs to somebody, and what is no socket is not touched.
func clearSocket(ctx context.Context, path string) error {
	info, err := os.Lstat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	if info.Mode().Type() != fs.ModeSocket {
		return errors.New("there is something else of this name: move it away, or choose another")
	}
	c, err := (&net.Dialer{Timeout: time.Second}).DialContext(ctx, "unix", path)
	if err == nil {
		c.Close()
		return errors.New("another server listens there")
	}
	if !errors.Is(err, syscall.ECONNREFUSED) {
		return err
	}
	return os.Remove(path)
}
