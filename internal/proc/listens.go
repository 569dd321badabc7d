package proc

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// WhoListens returns which process listens at a TCP port of this machine, as its name and
// process id. It is empty if that cannot be known: only root sees what others have open.
func WhoListens(address string) string {
	_, text, err := net.SplitHostPort(address)
	port, bad := strconv.ParseUint(text, 10, 16)
	if err != nil || bad != nil {
		return ""
	}
	sockets := map[string]bool{}
	for _, table := range []string{"/proc/net/tcp", "/proc/net/tcp6"} {
		lines, _ := os.ReadFile(table) // a kernel without IPv6 has no second one
		for line := range strings.Lines(string(lines)) {
			if inode := listener(line, uint16(port)); inode != "" {
				sockets["socket:["+inode+"]"] = true
			}
		}
	}
	open, _ := filepath.Glob("/proc/[0-9]*/fd/*")
	for _, path := range open {
		if target, err := os.Readlink(path); err != nil || !sockets[target] {
			continue
		}
		pid := strings.Split(path, "/")[2]
		name, _ := os.ReadFile("/proc/" + pid + "/comm")
		return fmt.Sprintf("%s (process %s)", strings.TrimSpace(string(name)), pid)
	}
	return ""
}

// listener is the inode of the socket in a line of /proc/net/tcp that listens at a port;
// empty for other lines.
func listener(line string, port uint16) string {
	const stateListen = "0A"
	fields := strings.Fields(line)
	if len(fields) < 10 || fields[3] != stateListen {
		return ""
	}
	_, hex, _ := strings.Cut(fields[1], ":")
	if n, err := strconv.ParseUint(hex, 16, 16); err != nil || uint16(n) != port {
		return ""
	}
	return fields[9]
}
