package remote

import (
	"context"
	"net"
)

// TCP tells whether an address, host:port, takes connections from this node. It says
// nothing and reads nothing.
func TCP(ctx context.Context, addr string) error {
	conn, err := new(net.Dialer).DialContext(ctx, "tcp", addr)
	if err != nil {
		return err
	}
	return conn.Close()
}
