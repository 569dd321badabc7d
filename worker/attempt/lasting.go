package attempt

import (
	"context"
	"io"
	"time"

	"muster/fleet/remote"
	"muster/worker/verdict"
)

const (
	// uploadTries is how often an upload connects anew, of which each goes on where the
	// one before was cut off.
	uploadTries = 6

	// uploadPause is how long it waits before, twice as long each time.
	uploadPause = time.Second
)

// A lastingConn is connected anew when it is lost under an upload, within the bound of
// that. An upload can be told twice, because nothing of the older one can have an effect
// once the newer one has begun; of a command that could not be said, so those are left to
// the queue.
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

// reconnect tries to, with pauses. It returns nil if that is given up.
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
