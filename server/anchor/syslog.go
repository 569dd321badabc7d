package anchor

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"syscall"
	"time"
)

// syslogSink sends each line as a message of RFC 5424.
type syslogSink struct{ network, target, host string }

const (
	// priority is that of the facility "log audit" (13) and the severity "notice" (5).
	priority    = 13*8 + 5
	sendTimeout = 10 * time.Second
)

func (s syslogSink) send(ctx context.Context, b Batch) error {
	conn, framed, err := s.dial(ctx)
	if err != nil {
		return err
	}
	err = conn.SetDeadline(time.Now().Add(sendTimeout))
	for _, line := range b.Lines {
		if err != nil {
			break
		}
		msg := fmt.Sprintf("<%d>1 %s %s muster %d audit - %s", priority,
			time.Now().UTC().Format("2006-01-02T15:04:05.000Z"), s.host, os.Getpid(), line)
		if framed { // RFC 6587: a stream needs the length of each message
			msg = fmt.Sprintf("%d %s", len(msg), msg)
		}
		_, err = conn.Write([]byte(msg))
	}
	return errors.Join(err, conn.Close())
}

// dial returns a connection, and reports whether messages need a frame.
func (s syslogSink) dial(ctx context.Context) (net.Conn, bool, error) {
	d := net.Dialer{Timeout: sendTimeout}
	if s.network != "local" {
		conn, err := d.DialContext(ctx, s.network, s.target)
		return conn, s.network == "tcp", err
	}
	conn, err := d.DialContext(ctx, "unixgram", s.target)
	if errors.Is(err, syscall.EPROTOTYPE) {
		conn, err = d.DialContext(ctx, "unix", s.target)
		return conn, true, err
	}
	return conn, false, err
}
