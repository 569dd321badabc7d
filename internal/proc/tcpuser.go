package proc

import (
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"net"
	"net/netip"
	"os"
	"strconv"
	"strings"
)

// UserOfTCP returns the uid of the user whose program is at the other end of a TCP connection over
// the loopback of this machine. The kernel lists the sockets of all users in /proc/net.
func UserOfTCP(c net.Conn) (int, error) {
	theirs, err := netip.ParseAddrPort(c.RemoteAddr().String())
	if err != nil {
		return 0, fmt.Errorf("nobody can tell who calls over %s", c.RemoteAddr().Network())
	}
	ours, err := netip.ParseAddrPort(c.LocalAddr().String())
	if err != nil || !theirs.Addr().Unmap().IsLoopback() {
		return 0, fmt.Errorf("%s is no address of this machine's loopback", theirs)
	}
	for _, table := range []string{"/proc/net/tcp", "/proc/net/tcp6"} {
		lines, _ := os.ReadFile(table) // a kernel without IPv6 has no second one
		for line := range strings.Lines(string(lines)) {
			if uid, is := ownerIn(line, theirs, ours); is {
				return uid, nil
			}
		}
	}
	return 0, fmt.Errorf("the kernel does not list the connection from %s", theirs)
}

// ownerIn returns the uid in a line of /proc/net/tcp, if that is the line of an established
// connection between two addresses.
func ownerIn(line string, local, remote netip.AddrPort) (uid int, is bool) {
	const stateEstablished = "01"
	fields := strings.Fields(line)
	if len(fields) < 8 || fields[3] != stateEstablished || !isAddress(fields[1], local) ||
		!isAddress(fields[2], remote) {
		return 0, false
	}
	uid, err := strconv.Atoi(fields[7])
	return uid, err == nil
}

// isAddress reports whether a text of /proc/net/tcp, such as 0100007F:1F90, means an address. Each
// four bytes of it stand in the order of the machine.
func isAddress(text string, a netip.AddrPort) bool {
	digits, port, _ := strings.Cut(text, ":")
	raw, err := hex.DecodeString(digits)
	n, bad := strconv.ParseUint(port, 16, 16)
	if err != nil || bad != nil || len(raw)%4 != 0 {
		return false
	}
	for i := 0; i < len(raw); i += 4 {
		binary.BigEndian.PutUint32(raw[i:], binary.NativeEndian.Uint32(raw[i:]))
	}
	ip, ok := netip.AddrFromSlice(raw)
	return ok && ip.Unmap() == a.Addr().Unmap() && uint16(n) == a.Port()
}
