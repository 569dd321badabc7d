package fakefleet

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"syscall"
)

// listenOnLoopback opens one socket for all addresses of 127.0.0.0/8. It is
// bound to the loopback device, so that nobody from outside can reach it.
func listenOnLoopback(ctx context.Context, port int) (net.Listener, error) {
	lc := net.ListenConfig{KeepAlive: -1, Control: bindToLoopback}
	l, err := lc.Listen(ctx, "tcp4", fmt.Sprintf("0.0.0.0:%d", port))
	if err != nil {
		return nil, fmt.Errorf("listen on the loopback device, port %d: %w", port, err)
	}
	return l, nil
}

func bindToLoopback(_, _ string, c syscall.RawConn) error {
	var err error
	ctlErr := c.Control(func(fd uintptr) {
		err = syscall.SetsockoptString(int(fd), syscall.SOL_SOCKET, syscall.SO_BINDTODEVICE, "lo")
	})
	if ctlErr != nil {
		return ctlErr
	}
	if err != nil {
		return fmt.Errorf("bind to lo: %w: needs Linux 5.7, or root", err)
	}
	return nil
}

// holdClosedPort finds a port and keeps it without listening: clients are refused, and no other
// process can open it meanwhile.
func holdClosedPort() (int, io.Closer, error) {
	fd, err := syscall.Socket(syscall.AF_INET, syscall.SOCK_STREAM|syscall.SOCK_CLOEXEC, 0)
	if err != nil {
		return 0, nil, fmt.Errorf("hold a closed port: %w", err)
	}
	held := os.NewFile(uintptr(fd), "closed port")
	err = syscall.Bind(fd, &syscall.SockaddrInet4{})
	var name syscall.Sockaddr
	if err == nil {
		name, err = syscall.Getsockname(fd)
	}
	if err != nil {
		return 0, nil, fmt.Errorf("hold a closed port: %w", errors.Join(err, held.Close()))
	}
	return name.(*syscall.SockaddrInet4).Port, held, nil
}
