package browser

import (
	"net"
	"os"
	"os/user"
	"path/filepath"
	"strings"
	"testing"
)

// plainAccess lets the user who runs the tests do everything.
const plainAccess = `who:
  - {principal: "os:USER", roles: [admin]}
`

// A plain house is one redis-server, one server and one master, in a folder of its own.
type plain struct {
	*house
	dir string
}

// axe fails the test if the page has faults for people who do not see it as others do.
func (x *tab) axe() {
	x.t.Helper()
	if wrong := x.violations(); len(wrong) > 0 {
		x.t.Errorf("%s:\n  %s", x.js("location.pathname"), strings.Join(wrong, "\n  "))
	}
}

// newPlain makes the folder of a plain house: files of settings by their names without the end
// .yaml, with DIR, ADDR (where the server listens) and USER filled in. Its Redis runs, and its keys
// are there.
func newPlain(t *testing.T, files map[string]string) *plain {
	t.Helper()
	dir, err := os.MkdirTemp("", "pages") // a short path, for its sockets
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	me, err := user.Current()
	if err != nil {
		t.Fatal(err)
	}
	free, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	port := free.Addr().String()
	free.Close()
	fill := strings.NewReplacer("DIR", dir, "ADDR", port, "USER", me.Username)
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(dir, name+".yaml"), []byte(fill.Replace(text)), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	binary, err := filepath.Abs("../../bin/muster")
	if err != nil {
		t.Fatal(err)
	}
	p := &plain{&house{binary: binary, conns: map[net.Conn]bool{}, port: port,
		socket: filepath.Join(dir, "api.sock")}, dir}
	role(t, dir, "redis-server", "--port", "0", "--unixsocket", filepath.Join(dir, "redis.sock"), "--dir", dir,
		"--appendonly", "yes", "--maxmemory-policy", "noeviction")
	awaitSocket(t, filepath.Join(dir, "redis.sock"))
	p.muster(t, "init", "--file", filepath.Join(dir, "server.key"))
	return p
}

// serve starts the server, and other roles behind it, and returns the process of the server.
func (p *plain) serve(t *testing.T, others ...string) (server int) {
	t.Helper()
	config := filepath.Join(p.dir, "muster.yaml")
	server = role(t, p.dir, p.binary, "server", "--config", config)
	awaitSocket(t, p.socket)
	for _, other := range others {
		role(t, p.dir, p.binary, other, "--config", config)
	}
	if err := p.open("127.0.0.1:0"); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { p.door.Close() })
	return server
}

// lookAt makes a house the one that tabs look at, for the time of a test.
func lookAt(t *testing.T, h *house) {
	old := demo
	demo = h
	t.Cleanup(func() { demo = old })
}
