package chaos

import (
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"strings"
)

// A cell is a network namespace with a cable to ours, in which one node stands. It
// sees of the world only the Redis proxy and, through a relay, the hosts: when the
// link is down, packets vanish and nobody is told.
type cell struct {
	name         string
	ours, theirs string // ends of the cable
	here, there  string // their addresses
	hosts        net.Listener
	relay        *exec.Cmd
	stdin        io.Closer
}

// newCell needs root and ip. The hosts of the fleet listen on one port of many
// addresses of the loopback device; in the cell a relay does so too.
func newCell(hostsPort int) (*cell, error) {
	pid := os.Getpid()
	net3 := fmt.Sprintf("198.18.%d.", pid>>6&255)
	c := &cell{name: fmt.Sprint("muster-chaos-", pid), ours: fmt.Sprintf("mc%da", pid),
		theirs: fmt.Sprintf("mc%db", pid), here: net3 + fmt.Sprint(pid<<2&252+1),
		there: net3 + fmt.Sprint(pid<<2&252+2)}
	for _, words := range []string{
		"netns add " + c.name,
		"link add " + c.ours + " type veth peer name " + c.theirs + " netns " + c.name,
		"addr add " + c.here + "/30 dev " + c.ours,
		"link set " + c.ours + " up",
		"-n " + c.name + " addr add " + c.there + "/30 dev " + c.theirs,
		"-n " + c.name + " link set " + c.theirs + " up",
		"-n " + c.name + " link set lo up",
	} {
		if err := ip(words); err != nil {
			return nil, errors.Join(err, c.end())
		}
	}
	if err := c.startRelay(hostsPort); err != nil {
		return nil, errors.Join(err, c.end())
	}
	return c, nil
}

func ip(words string) error {
	out, err := exec.Command("ip", strings.Fields(words)...).CombinedOutput()
	if err != nil {
		return fmt.Errorf("ip %s: %w: %s", words, err, out)
	}
	return nil
}

// within is a command as it runs in the cell.
func (c *cell) within(args ...string) []string {
	return append([]string{"ip", "netns", "exec", c.name}, args...)
}

// link connects or parts the cell.
func (c *cell) link(up bool) error {
	if up {
		return ip("link set " + c.ours + " up")
	}
	return ip("link set " + c.ours + " down")
}

func (c *cell) end() error {
	if c.relay != nil {
		c.stdin.Close()
		c.relay.Wait()
	}
	if c.hosts != nil {
		c.hosts.Close()
	}
	return ip("netns del " + c.name) // and the cable with it
}

// relayMark makes this binary the inner half of a relay.
const relayMark = "relay-of-a-cell"

// startRelay starts both halves: the inner one accepts for all hosts, and says to the
// outer one which address was meant.
func (c *cell) startRelay(port int) error {
	l, err := net.Listen("tcp4", net.JoinHostPort(c.here, "0"))
	if err != nil {
		return err
	}
	c.hosts = l
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			go relayOutside(conn, port)
		}
	}()
	self, err := os.Executable()
	if err != nil {
		return err
	}
	args := c.within(self, relayMark, l.Addr().String(), fmt.Sprint(port))
	c.relay = exec.Command(args[0], args[1:]...)
	c.relay.Stderr = os.Stderr
	in, err := c.relay.StdinPipe()
	if err != nil {
		return err
	}
	c.stdin = in
	return c.relay.Start()
}

// relayInside accepts for every address of the loopback device, until nobody holds its
// standard input any more.
func relayInside(outer, port string) int {
	l, err := net.Listen("tcp4", net.JoinHostPort("0.0.0.0", port))
	if err != nil {
		fmt.Fprintln(os.Stderr, "relay:", err)
		return 1
	}
	go func() {
		io.Copy(io.Discard, os.Stdin)
		l.Close()
	}()
	for {
		conn, err := l.Accept()
		if err != nil {
			return 0
		}
		go func() {
			defer conn.Close()
			up, err := net.Dial("tcp4", outer)
			if err != nil {
				return
			}
			defer up.Close()
			if _, err := up.Write(conn.LocalAddr().(*net.TCPAddr).IP.To4()); err != nil {
				return
			}
			both(conn, up)
		}()
	}
}

func relayOutside(conn net.Conn, port int) {
	defer conn.Close()
	address := make([]byte, net.IPv4len)
	if _, err := io.ReadFull(conn, address); err != nil {
		return
	}
	up, err := net.DialTCP("tcp4", nil, &net.TCPAddr{IP: address, Port: port})
	if err != nil {
		return
	}
	defer up.Close()
	both(conn, up)
}

// both carries bytes both ways until one side ends.
func both(a, b net.Conn) {
	go func() {
		io.Copy(a, b)
		a.Close()
		b.Close()
	}()
	io.Copy(b, a)
	a.Close()
	b.Close()
}
