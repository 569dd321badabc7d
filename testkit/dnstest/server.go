package dnstest

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"muster/testkit/porttest"
)

// Server is a name server on a loopback address.
type Server struct {
	Address string
	Port    int
	Config  string // path of named.conf or knot.conf
	Control string // BIND: path of an rndc.conf

	t     testing.TB
	dir   string
	knot  bool
	tools map[string]string // path of each program
	d     *daemon
}

// At returns the address of the server, as "ADDRESS#PORT".
func (s *Server) At() string { return fmt.Sprint(s.Address, "#", s.Port) }

// place is the address of a server. Port 0 means any free one; a port below 1024 is used or the
// start fails.
type place struct {
	address string
	port    int
}

// Stop ends the server; the test ends it otherwise.
func (s *Server) Stop() { s.d.stop() }

// Start starts it again after Stop, on the same port.
func (s *Server) Start() {
	s.t.Helper()
	until(s.t, "the server starts again", s.launch)
}

func (s *Server) launch() error {
	var err error
	if s.knot {
		// The socket is the last thing that it makes.
		s.d, err = launch("control, binding to", s.tools["knotd"], "-c", s.Config)
	} else {
		s.d, err = launch("all zones loaded", s.tools["named"], "-c", s.Config, "-g", "-n", "1")
	}
	return err
}

// Tell gives a command to rndc or knotc and returns what was answered.
func (s *Server) Tell(words ...string) (string, error) {
	if s.knot {
		return run(s.tools["knotc"], append([]string{"-c", s.Config}, words...)...)
	}
	return run(s.tools["rndc"], append([]string{"-c", s.Control}, words...)...)
}

// Keys lists the keys of a zone as the server knows them.
func (s *Server) Keys(zone string) (string, error) {
	if s.knot {
		return run(s.tools["keymgr"], "-c", s.Config, zone, "list")
	}
	return s.Tell("dnssec", "-status", zone)
}

// Ask gives the records of a name, one a line, as dig writes them.
func (s *Server) Ask(name, kind string, more ...string) (string, error) {
	words := append([]string{"@" + s.Address, "-p", fmt.Sprint(s.Port), "+norecurse", "+noall", "+answer",
		"-q", name, "-t", kind}, more...)
	return run(s.tools["dig"], words...)
}

// startBIND starts named at a place, or on another port if that is taken. options are
// further lines of its options, clauses the rest of its configuration; files, by
// name, are put into its folder before.
func startBIND(t testing.TB, at place, options, clauses string, files map[string]string) *Server {
	t.Helper()
	s := &Server{Address: at.address, Port: at.port, t: t, dir: folder(t), tools: map[string]string{}}
	for name, text := range files {
		write(t, filepath.Join(s.dir, name), text)
	}
	for _, name := range []string{"named", "rndc", "dig", "nsupdate"} {
		s.tools[name] = program(t, name)
	}
	s.Config, s.Control = filepath.Join(s.dir, "named.conf"), filepath.Join(s.dir, "rndc.conf")
	s.begin(func() {
		control := porttest.On(t, "127.0.0.1")
		const key = "key rndc { algorithm hmac-sha256; secret \"bm90IGEgc2VjcmV0IG9mIGFueWJvZHkncw==\"; };\n"
		write(t, s.Control, key+fmt.Sprintf(
			"options { default-key rndc; default-server 127.0.0.1; default-port %d; };\n", control))
		write(t, s.Config, key+fmt.Sprintf(`
controls { inet 127.0.0.1 port %d allow { 127.0.0.1; } keys { rndc; }; };
options {
	directory %[3]q; key-directory %[3]q; pid-file none; session-keyfile none; lock-file none;
	listen-on port %[2]d { %[6]s; }; listen-on-v6 { none; };
	allow-transfer { 127.0.0.0/8; }; max-udp-size 4096; min-refresh-time 1; min-retry-time 1;
	startup-notify-rate 1000; notify-rate 1000; serial-query-rate 1000; notify-delay 0;
%[4]s};
%[5]s`, control, s.Port, s.dir, options, clauses, s.Address))
	})
	return s
}

// startKnot starts knotd as startBIND does named.
func startKnot(t testing.TB, at place, rest string, files map[string]string) *Server {
	t.Helper()
	s := &Server{Address: at.address, Port: at.port, t: t, dir: folder(t), knot: true, tools: map[string]string{}}
	for name, text := range files {
		write(t, filepath.Join(s.dir, name), text)
	}
	for _, name := range []string{"knotd", "knotc", "keymgr", "dig"} {
		s.tools[name] = program(t, name)
	}
	s.Config = filepath.Join(s.dir, "knot.conf")
	s.begin(func() {
		write(t, s.Config, fmt.Sprintf(`server:
  rundir: %[1]q
  listen: %[3]s@%[2]d
  udp-workers: 1
  tcp-workers: 1
  background-workers: 1
database:
  storage: %[1]q
log:
- target: stderr
  any: info
`, s.dir, s.Port, s.Address)+strings.ReplaceAll(rest, "journal-content:", fmt.Sprintf("storage: %q\n  journal-content:", s.dir)))
	})
	return s
}

// begin configures the server for a free port and starts it.
func (s *Server) begin(configure func()) {
	s.t.Helper()
	var err error
	for range 5 {
		if s.Port == 0 || err != nil && s.Port > 1023 {
			s.Port = porttest.On(s.t, "127.0.0.1")
		}
		configure()
		if err = s.launch(); err == nil {
			break
		}
	}
	if err != nil {
		s.t.Fatalf("the server does not start: %v", err)
	}
	s.t.Cleanup(func() {
		s.Stop()
		if s.t.Failed() {
			s.t.Logf("%s said:\n%s", filepath.Base(s.Config), tail(s.d.said.String()))
		}
	})
}

// tail gives the end of a long text.
func tail(text string) string {
	all := strings.Split(text, "\n")
	return strings.Join(all[max(0, len(all)-80):], "\n")
}

// Reconfigure starts the server anew with another text in its configuration.
func (s *Server) Reconfigure(old, text string) {
	s.t.Helper()
	config, err := os.ReadFile(s.Config)
	if err != nil {
		s.t.Fatal(err)
	}
	if !strings.Contains(string(config), old) {
		s.t.Fatalf("%q is not in %s", old, config)
	}
	s.Stop()
	write(s.t, s.Config, strings.ReplaceAll(string(config), old, text))
	s.Start()
}
