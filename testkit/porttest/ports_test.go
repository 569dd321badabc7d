package porttest_test

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"strings"
	"testing"

	"muster/testkit/porttest"
)

// A port is given once, to this process or to another, though nobody listens on it.
func TestAPortIsGivenOnce(t *testing.T) {
	const each = 300
	if os.Getenv("PORTS_CHILD") != "" {
		for range each {
			fmt.Println("port", porttest.On(t, "127.0.0.3"))
		}
		_, _ = os.Stdin.Read(make([]byte, 1)) // it keeps them until it is let go
		return
	}
	seen := map[string]bool{}
	note := func(port string) {
		if seen[port] {
			t.Errorf("%s was given twice", port)
		}
		seen[port] = true
	}
	c := exec.Command(os.Args[0], "-test.run", t.Name())
	c.Env = append(os.Environ(), "PORTS_CHILD=1")
	stay, err := c.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := c.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	for range each {
		var word, port string
		if _, err := fmt.Fscan(out, &word, &port); err != nil {
			t.Fatal(err)
		}
		note(port)
		note(fmt.Sprint(porttest.On(t, "127.0.0.2")))
	}
	if err := stay.Close(); err != nil {
		t.Error(err)
	}
	_, _ = fmt.Fscanln(out)
	if err := c.Wait(); err != nil {
		t.Error(err)
	}
}

func TestAPortIsFreeForTCPAndUDP(t *testing.T) {
	addr := porttest.Addr(t)
	if !strings.HasPrefix(addr, "127.0.0.1:") {
		t.Fatalf("address %s", addr)
	}
	l, err := net.Listen("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	u, err := net.ListenPacket("udp", addr)
	if err != nil {
		t.Fatal(err)
	}
	defer u.Close()
}
