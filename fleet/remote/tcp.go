package remote

import (
	"context"
	"net"
)

// TCP returns an error unless an address, host:port, accepts connections from this node. It
// sends and reads nothing.
func TCP(ctx context.Context, addr string) error {
	conn, err := new(net.Dialer).DialContext(ctx, "tcp", addr)
	if err != nil {
		return err
	}
	return conn.Close()
}
