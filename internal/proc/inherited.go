package proc

import (
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// Inherited is the child's end of the conversation with its parent. It works
// once. The error says so if the process was not started by a Parent.
func Inherited() (*Conn, error) {
	if _, err := unix.GetsockoptInt(connFD, unix.SOL_SOCKET, unix.SO_TYPE); err != nil {
		return nil, fmt.Errorf("no socket as file descriptor %d: started by hand? "+
			"only a master starts this: %w", connFD, err)
	}
	// The child's own children must not inherit the connection or the files behind it.
	unix.CloseOnExec(connFD)
	for fd := filesFD; isOpen(fd); fd++ {
		unix.CloseOnExec(fd)
	}
	conn, err := newConn(os.NewFile(connFD, "parent"), nil)
	if err != nil {
		return nil, fmt.Errorf("file descriptor %d: %w", connFD, err)
	}
	return conn, nil
}

func isOpen(fd int) bool {
	_, err := unix.FcntlInt(uintptr(fd), unix.F_GETFD, 0)
	return err == nil
}
