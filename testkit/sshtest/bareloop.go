package sshtest

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/crypto/ssh"

	"muster/fleet"
)

// Bare is the result of a BareLoop.
type Bare struct {
	Hosts  int
	Failed int
	Took   time.Duration
	First  error // the first failure that was seen
}

// Rate returns the hosts that were visited in a second.
func (b Bare) Rate() float64 { return float64(b.Hosts) / b.Took.Seconds() }

// BareLoop visits each host once, so many at a time, with nothing but the SSH
// library: connect, log in, run the command, close. It is the floor that others
// compare with, and no way to run jobs: one silent host holds it until ctx ends.
func BareLoop(
	ctx context.Context, hosts []fleet.Host, key ssh.Signer, parallel int, command string,
) Bare {
	var next, failed atomic.Int64
	var first atomic.Pointer[error]
	visitAll := func() {
		for i := next.Add(1) - 1; i < int64(len(hosts)); i = next.Add(1) - 1 {
			if err := visit(ctx, hosts[i], key, command); err != nil {
				failed.Add(1)
				err = fmt.Errorf("%s: %w", hosts[i].Name, err)
				first.CompareAndSwap(nil, &err)
			}
		}
	}
	start := time.Now()
	var loops sync.WaitGroup
	for range parallel {
		loops.Go(visitAll)
	}
	loops.Wait()

	b := Bare{Hosts: len(hosts), Failed: int(failed.Load()), Took: time.Since(start)}
	if err := first.Load(); err != nil {
		b.First = *err
	}
	return b
}

func visit(ctx context.Context, h fleet.Host, key ssh.Signer, command string) error {
	client, err := Dial(ctx, h, key)
	if err != nil {
		return err
	}
	defer client.Close()
	defer context.AfterFunc(ctx, func() { client.Close() })()

	session, err := client.NewSession()
	if err != nil {
		return err
	}
	_, err = session.Output(command)
	return err
}

// Dial logs in to a host. Until that is done ctx closes the connection.
func Dial(ctx context.Context, h fleet.Host, key ssh.Signer) (*ssh.Client, error) {
	if len(h.HostKeys) == 0 {
		return nil, errors.New("no host key in the inventory")
	}
	hostKey, _, _, _, err := ssh.ParseAuthorizedKey([]byte(h.HostKeys[0]))
	if err != nil {
		return nil, err
	}
	var d net.Dialer
	address := net.JoinHostPort(h.Address, strconv.Itoa(h.Port))
	conn, err := d.DialContext(ctx, "tcp", address)
	if err != nil {
		return nil, err
	}
	defer context.AfterFunc(ctx, func() { conn.Close() })()
	c, chans, reqs, err := ssh.NewClientConn(conn, address, &ssh.ClientConfig{
		User:              h.User,
		Auth:              []ssh.AuthMethod{ssh.PublicKeys(key)},
		HostKeyCallback:   ssh.FixedHostKey(hostKey),
		HostKeyAlgorithms: []string{hostKey.Type()},
	})
	if err != nil {
		conn.Close()
		return nil, err
	}
	return ssh.NewClient(c, chans, reqs), nil
}
