package proc

import (
	"fmt"
	"os"
	"strconv"

	"golang.org/x/sys/unix"
)

// firstSocket is the file descriptor of the first socket that systemd hands to a service.
const firstSocket = 3

// Sockets returns the sockets that systemd has handed to this process (sd_listen_fds(3)), and takes
// them out of the environment, because they are for no other program. Call it once, before
// anything else opens files.
func Sockets() ([]*os.File, error) {
	pid, count := os.Getenv("LISTEN_PID"), os.Getenv("LISTEN_FDS")
	for _, name := range []string{"LISTEN_PID", "LISTEN_FDS", "LISTEN_FDNAMES"} {
		if err := os.Unsetenv(name); err != nil {
			return nil, err
		}
	}
	if count == "" || pid != strconv.Itoa(os.Getpid()) {
		return nil, nil
	}
	n, err := strconv.Atoi(count)
	if err != nil || n < 0 {
		return nil, fmt.Errorf("systemd hands over LISTEN_FDS=%q sockets: want a number", count)
	}
	var files []*os.File
	for fd := firstSocket; fd < firstSocket+n; fd++ {
		if !isOpen(fd) {
			return nil, fmt.Errorf("systemd hands over %d sockets, and file descriptor %d is not open",
				n, fd)
		}
		unix.CloseOnExec(fd)
		files = append(files, os.NewFile(uintptr(fd), "socket "+strconv.Itoa(fd)))
	}
	return files, nil
}
