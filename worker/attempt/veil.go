package attempt

import (
	"context"
	"errors"

	"muster/fleet"
	"muster/fleet/remote"
	"muster/internal/seal"
	"muster/scripts"
	"muster/worker/veil"
)

// This file covers the secret arguments of a job. An attempt opens them before it touches the host,
// sends them to the host on stdin, and covers them in all output of the host.

// errNoSecrets says that this node cannot open secrets.
var errNoSecrets = errors.New("this node has no key: name it as secrets.key")

// secrets holds the opened secrets of a job.
type secrets struct {
	texts map[string]seal.Text // by argument
	veil  veil.Veil
}

// A sudoer is a connection that answers when sudo asks for a password.
type sudoer interface{ SudoPassword(password seal.Text) }

// dial connects to a host, whose sudo gets the password that the task has, if it asks.
func (h secrets) dial(ctx context.Context, how dialler, to fleet.Host) (Conn, error) {
	conn, err := how(ctx, to)
	if err != nil {
		return nil, err
	}
	if c, ok := conn.(sudoer); ok {
		c.SudoPassword(h.texts[scripts.BecomePassword])
	}
	return conn, nil
}

// A dialler makes connections, as Doors.Dial does.
type dialler = func(ctx context.Context, h fleet.Host) (Conn, error)

// A veiledConn covers the secrets of a job in all output of its host.
type veiledConn struct {
	Conn
	veil veil.Veil
}

// Run runs a command.
func (c *veiledConn) Run(ctx context.Context, cmd remote.Command) (remote.Result, error) {
	r, err := c.Conn.Run(ctx, cmd)
	r.Output = c.veil.Output(r.Output)
	return r, c.veil.Error(err)
}

// Mark writes or removes a marker on the host.
func (c *veiledConn) Mark(ctx context.Context, m remote.Marker) (remote.Marking, error) {
	made, err := c.Conn.Mark(ctx, m)
	return made, c.veil.Error(err)
}

// Upload puts a file on the host.
func (c *veiledConn) Upload(ctx context.Context, u remote.Upload) error {
	return c.veil.Error(c.Conn.Upload(ctx, u))
}
