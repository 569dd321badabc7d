package apitest

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"testing"

	"golang.org/x/sys/unix"
)

// OpenTerminal makes a terminal of some columns. stop hangs it up and returns
// everything that it was shown.
func OpenTerminal(t *testing.T, columns uint16) (tty *os.File, stop func() string) {
	t.Helper()
	master, err := os.OpenFile("/dev/ptmx", os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	fd := int(master.Fd())
	n, err := unix.IoctlGetInt(fd, unix.TIOCGPTN)
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(unix.IoctlSetPointerInt(fd, unix.TIOCSPTLCK, 0),
		unix.IoctlSetWinsize(fd, unix.TIOCSWINSZ, &unix.Winsize{Row: 24, Col: columns})); err != nil {
		t.Fatal(err)
	}
	tty, err = os.OpenFile(fmt.Sprintf("/dev/pts/%d", n), os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	shown := make(chan string)
	go func() {
		var all bytes.Buffer
		_, _ = io.Copy(&all, master) // it ends with EIO when the terminal is hung up
		shown <- all.String()
	}()
	return tty, func() string {
		tty.Close()
		defer master.Close()
		return <-shown
	}
}
