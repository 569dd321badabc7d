package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
)

// A monitor counts the calls of clients. INFO commandstats cannot: it does not
// tell them from what scripts call. MONITOR costs Redis time, so nothing is timed
// meanwhile.
type monitor struct {
	redis *redisServer
	conn  net.Conn
	done  chan struct{} // closed when the counting is over
	last  string        // ends it

	calls map[string]int // database to calls of clients; read after done is closed
	err   error          // likewise
}

// watch begins to count.
func (s *redisServer) watch(ctx context.Context) (*monitor, error) {
	var d net.Dialer
	conn, err := d.DialContext(ctx, "tcp", s.addr)
	if err != nil {
		return nil, err
	}
	m := &monitor{redis: s, conn: conn, done: make(chan struct{}), last: "the counting is over",
		calls: map[string]int{}}
	r := bufio.NewReaderSize(conn, 64<<10)
	_, err = fmt.Fprint(conn, "MONITOR\r\n")
	var line string
	if err == nil {
		line, err = r.ReadString('\n')
	}
	if err == nil && strings.TrimSpace(line) != "+OK" {
		err = errors.New(line)
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("MONITOR: %w", err), conn.Close())
	}
	go func() {
		defer close(m.done)
		m.err = m.count(r)
	}()
	return m, nil
}

// count reads lines such as `+1700000000.123456 [0 127.0.0.1:1234] "evalsha" …`,
// with `lua` in the place of the address if a script called.
func (m *monitor) count(r *bufio.Reader) error {
	for begin := true; ; {
		part, more, err := r.ReadLine()
		if err != nil {
			return err
		}
		line := string(part)
		if begin {
			_, rest, _ := strings.Cut(line, "[")
			db, rest, _ := strings.Cut(rest, " ")
			who, _, ok := strings.Cut(rest, "]")
			switch {
			case !ok:
				return fmt.Errorf("MONITOR says %q", line)
			case strings.Contains(line, m.last):
				return nil
			case who != "lua":
				m.calls[db]++
			}
		}
		begin = !more
	}
}

// stop ends the counting and returns the calls of clients in a database. What
// happened before stop is counted: Redis tells a monitor in order.
func (m *monitor) stop(ctx context.Context) (func(db int) int, error) {
	err := m.redis.own.Echo(ctx, m.last).Err()
	if err == nil {
		<-m.done
		err = m.err
	}
	return func(db int) int { return m.calls[fmt.Sprint(db)] }, errors.Join(err, m.conn.Close())
}
