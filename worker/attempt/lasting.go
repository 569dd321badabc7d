package attempt

import (
	"context"
	"io"
	"time"

	"muster/fleet/remote"
	"muster/worker/verdict"
)

const (
	// uploadTries bounds the new connections of an upload. Each try continues where the try before
	// was cut off.
	uploadTries = 6

	// uploadPause is the pause before the first new connection. It doubles each time.
	uploadPause = time.Second
)

// A lastingConn connects again when an upload loses the connection, within the bound of the upload.
// An upload may be repeated: once the newer try has begun, the older one has no effect any more.
// Nobody can say that of a command, so a lost command goes back to the queue.
type lastingConn struct {
	Conn
	again func(ctx context.Context) (Conn, error)
	clock func() time.Duration
}

// Upload puts a file on the host.
func (l *lastingConn) Upload(ctx context.Context, u remote.Upload) error {
	began, bound := l.clock(), u.Bound
	for tries := 1; ; tries++ {
		err := l.Conn.Upload(ctx, u)
		content, ok := u.Content.(io.Seeker)
		if remote.KindOf(err) != remote.KindLost || !ok {
			return err
		}
		conn := l.reconnect(ctx, u.Stop, &tries)
		u.Bound = bound - (l.clock() - began)
		if conn == nil || u.Bound < verdict.BoundMin {
			if conn != nil {
				conn.Close()
			}
			return err
		}
		l.Conn.Close()
		l.Conn = conn
		if _, err := content.Seek(0, io.SeekStart); err != nil {
			return &remote.Error{Op: "upload", Kind: remote.KindNode, Err: err}
		}
	}
}

// reconnect tries to connect again, with pauses. It returns nil if it gives up.
func (l *lastingConn) reconnect(ctx context.Context, stop <-chan struct{}, tries *int) Conn {
	for ; *tries < uploadTries; *tries++ {
		pause := time.NewTimer(uploadPause << (*tries - 1))
		select {
		case <-pause.C:
		case <-ctx.Done():
		case <-stop:
		}
		pause.Stop()
		if ctx.Err() != nil || isClosed(stop) {
			return nil
		}
		conn, err := l.again(ctx)
		switch remote.KindOf(err) {
		case remote.KindUnreachable, remote.KindThrottled, remote.KindNode:
			continue
		}
		if err != nil {
			return nil
		}
		return conn
	}
	return nil
}

func isClosed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}
