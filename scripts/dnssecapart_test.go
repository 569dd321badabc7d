package scripts_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"muster/testkit/dnstest"
)

// inside says that the test binary is in a network of its own.
const inside = "MUSTER_TEST_INSIDE"

func findsServers(t *testing.T) {
	together(t, map[string]func(*testing.T){
		"BIND": func(t *testing.T) { insideOf(t, "BIND") },
		"Knot": func(t *testing.T) { insideOf(t, "Knot") },
	})
}

// TestInside is a part of the test above, for which that starts this binary anew.
func TestInside(t *testing.T) {
	switch os.Getenv(inside) {
	case "BIND":
		findThem(t, dnstest.StartBIND)
	case "Knot":
		findThem(t, dnstest.StartKnot)
	}
}

// insideOf runs the test again in a network where all ports 53 are free, and where
// the resolver is that of the lab.
func insideOf(t *testing.T, kind string) {
	resolv := filepath.Join(t.TempDir(), "resolv.conf")
	if err := os.WriteFile(resolv, []byte("nameserver 127.0.0.4\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("unshare", "--net", "--mount", "sh", "-ec", `ip link set lo up
		for n in 2 3 4; do ip addr add 127.0.0.$n/8 dev lo; done
		mount --bind "$1" "$(readlink -f /etc/resolv.conf)"
		exec "$2" -test.v -test.run '^TestInside$'`, "sh", resolv, self)
	cmd.Env = append(os.Environ(), inside+"="+kind)
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	room <- struct{}{}
	defer func() { <-room }()
	out, err := cmd.CombinedOutput()
	if err != nil && os.Getuid() != 0 {
		t.Skipf("no network of its own can be had: %s", out)
	}
	if err != nil || !strings.Contains(string(out), "kid.lab was looked at") {
		t.Fatalf("%v:\n%s", err, out)
	}
}

// findThem is the test itself. All servers have port 53 of an address of their own, and
// the runbook is told none of them.
func findThem(t *testing.T, start starter) {
	l := start(t, dnstest.Options{Apart: true})
	p := newPlay(t, l, nil)
	for _, name := range []string{"primary", "secondaries", "parents"} {
		delete(p.values, name)
	}
	p.run("dnssec-status").wants("status", 0,
		`(?s)server    127.0.0.1: .*server    ns.kid.lab.: .*server    ns2.kid.lab.: `)
	p.values["key"], p.values["min_age"] = "ksk", "3600"
	p.run("dnssec").wants("look", 0, `(?s)secondaries ns2?.kid.lab.\nns2?.kid.lab., parent ns.lab.\n.*nothing to do`)
	t.Log("kid.lab was looked at")
}
