package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"muster/cli"
	"muster/cli/reach"
	"muster/testkit/sshtest"
)

// enrolment is a real host in an inventory file, and a known_hosts file that the inventory names.
type enrolment struct {
	t                *testing.T
	sshd             sshtest.SSHD
	inventory, known string
	line             string // line of the host in known_hosts
}

func newEnrolment(t *testing.T) *enrolment {
	t.Helper()
	dir := t.TempDir()
	e := &enrolment{t: t, sshd: sshtest.StartSSHD(t, sshtest.Options{}),
		inventory: filepath.Join(dir, "fleet.yaml"), known: filepath.Join(dir, "known_hosts")}
	e.line = fmt.Sprintf("[%s]:%d %s", e.sshd.Address, e.sshd.Port, e.sshd.HostKey)
	text := fmt.Sprintf("hosts:\n  - {name: fw1, address: %s, port: %d, user: root, known_hosts: %s}\n",
		e.sshd.Address, e.sshd.Port, e.known)
	if err := os.WriteFile(e.inventory, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return e
}

// has writes these lines into the known_hosts file.
func (e *enrolment) has(lines ...string) {
	e.t.Helper()
	if err := os.WriteFile(e.known, []byte(strings.Join(lines, "\n")+"\n"), 0o640); err != nil {
		e.t.Fatal(err)
	}
}

func (e *enrolment) want(lines ...string) {
	e.t.Helper()
	text, err := os.ReadFile(e.known)
	if want := strings.Join(lines, "\n") + "\n"; err != nil || string(text) != want {
		e.t.Errorf("known_hosts is %v\n%s\nwant\n%s", err, text, want)
	}
}

func (e *enrolment) enroll(code int, out, words string, args ...string) {
	e.t.Helper()
	args = append([]string{"hosts", "enroll", "fw1", "--inventory", e.inventory, "--yes"}, args...)
	gotCode, gotOut, gotWords := muster(e.t, "http://127.0.0.1:1", args...)
	if gotCode != code || !strings.Contains(gotOut, out) || !strings.Contains(gotWords, words) {
		e.t.Errorf("muster %q: exit %d\n%s\n%s\nwant %d, %q, %q", args, gotCode, gotOut, gotWords, code, out, words)
	}
}

func TestEnrollNewHosts(t *testing.T) {
	t.Parallel()
	e := newEnrolment(t)
	e.enroll(cli.ExitOK, " new\n"+e.line+"\n", "")
	e.enroll(cli.ExitOK, fmt.Sprintf("\nhost_key: %q\n", e.sshd.HostKey), "", "--for", "inventory")
	e.enroll(cli.ExitOK, `"state": "new"`, "", "-o", "json")
	e.enroll(cli.ExitOK, " new\n"+e.line+"\n", "", "--all-types")
	if _, err := os.Stat(e.known); err == nil {
		t.Fatal("a file was written that nobody asked for")
	}
	e.enroll(cli.ExitOK, " new, written\n", "1 key written to "+e.known, "--write", e.known)
	e.want(e.line)
	e.enroll(cli.ExitOK, " known\n", "0 keys written", "--write", e.known)
	e.enroll(cli.ExitNotAll, "", "there is no folder /nowhere: make it first", "--write", "/nowhere/known_hosts")
	e.want(e.line)
	inv, err := new(reach.FileFlags).Inventory(t.Context(), []string{e.inventory})
	if err != nil || len(inv.WithoutKey()) > 0 {
		t.Errorf("the inventory with that file: %v", err)
	}
	e.enroll(cli.ExitUsage, "", "--replace is for keys that are written", "--replace")
}

func TestEnrollKeysThatHaveChanged(t *testing.T) {
	t.Parallel()
	e := newEnrolment(t)
	_, old := sshtest.NewKey(t)
	_, others := sshtest.NewKey(t)
	name, _, _ := strings.Cut(e.line, " ")
	other := "other.example.com " + others
	hashed := hashedName(t, name)

	for _, before := range []string{name + " " + old, hashed + " " + old + " comment"} {
		e.has("# ours", other, before)
		e.enroll(cli.ExitNotAll, " changed, was SHA256:", "HOST KEY OF fw1 HAS CHANGED", "--write", e.known)
		e.want("# ours", other, before)
		e.enroll(cli.ExitOK, " changed, was SHA256:", "1 key written", "--write", e.known, "--replace")
		e.want("# ours", other, e.line)
		if info, err := os.Stat(e.known); err != nil || info.Mode().Perm() != 0o640 {
			t.Errorf("mode %v, %v, want that of before", info.Mode(), err)
		}
	}
	for _, field := range []string{"other.example.com," + name, "[127.0.0.*]:" + fmt.Sprint(e.sshd.Port)} {
		e.has(other, field+" "+old)
		e.enroll(cli.ExitNotAll, "", ":2 names other hosts, too", "--write", e.known, "--replace")
		e.want(other, field+" "+old)
	}
	e.has("@revoked * " + e.sshd.HostKey)
	e.enroll(cli.ExitNotAll, " revoked\n", "HAS REVOKED", "--write", e.known, "--replace")
	e.want("@revoked * " + e.sshd.HostKey)
	e.has("not a line")
	e.enroll(cli.ExitUsage, "", "known_hosts:1", "--write", e.known)
}

// hashedName hashes a name for known_hosts as OpenSSH does.
func hashedName(t *testing.T, name string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "hashed")
	_, key := sshtest.NewKey(t)
	if err := os.WriteFile(file, []byte(name+" "+key+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.CommandContext(t.Context(), "ssh-keygen", "-H", "-f", file).CombinedOutput(); err != nil {
		t.Skipf("ssh-keygen: %v: %s", err, out)
	}
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	field, _, _ := strings.Cut(string(text), " ")
	return field
}

// A host is behind jump hosts without known keys: enroll shows all keys, the outermost first, and
// writes them together.
func TestEnrollShowsTheWholeWay(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	known, inventory := filepath.Join(dir, "known_hosts"), filepath.Join(dir, "fleet.yaml")
	text := "defaults: {known_hosts: " + known + "}\nhosts:\n"
	var lines []string
	for i, name := range []string{"outer", "inner", "fw1", "fw2"} {
		s := sshtest.StartSSHD(t, sshtest.Options{Address: fmt.Sprintf("127.0.0.%d", i+2)})
		jump := []string{"[]", "[outer]", "[outer, inner]", "[outer, inner]"}[i]
		text += fmt.Sprintf("  - {name: %s, address: %s, port: %d, user: %s, key: %s, jump: %s}\n", name,
			s.Address, s.Port, s.User, s.Key, jump)
		lines = append(lines, fmt.Sprintf("[%s]:%d %s", s.Address, s.Port, s.HostKey))
	}
	if err := os.WriteFile(inventory, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	enroll := func(on string, more ...string) (int, string, string) {
		t.Helper()
		return muster(t, "http://127.0.0.1:1", append([]string{"hosts", "enroll", on, "--inventory", inventory}, more...)...)
	}
	code, out, words := enroll("fw1", "--write", known)
	if code != cli.ExitUsage || !strings.Contains(words, "3 new keys not written") {
		t.Errorf("without a word of anybody: exit %d, %s", code, words)
	}
	last := -1
	for _, want := range []string{"# outer ", "# inner ", "# fw1 "} {
		if at := strings.Index(out, want); at <= last {
			t.Errorf("%q stands at %d, behind %d, of\n%s", want, at, last, out)
		} else {
			last = at
		}
	}
	if _, err := os.Stat(known); err == nil {
		t.Fatal("it was written without a word of anybody")
	}
	if code, out, words = enroll("fw1", "--write", known, "--yes"); code != cli.ExitOK ||
		!strings.Contains(words, "3 keys written") {
		t.Errorf("exit %d, %s%s", code, out, words)
	}
	got, _ := os.ReadFile(known)
	if want := strings.Join(lines[:3], "\n") + "\n"; string(got) != want {
		t.Errorf("written: %s\nwant %s", got, want)
	}
	// Now the inventory or the file alone knows the way. A jump host that is also selected is shown
	// once.
	if code, out, words = enroll("all", "--write", known, "--yes"); code != cli.ExitOK ||
		!strings.Contains(words, "1 key written") || strings.Count(out, "# outer ") != 1 {
		t.Errorf("the rest: exit %d, %s%s", code, out, words)
	}
	if err := os.Remove(known); err != nil {
		t.Fatal(err)
	}
	if code, out, words = enroll("all", "--write", known, "--yes"); code != cli.ExitOK ||
		!strings.Contains(words, "4 keys written") || strings.Count(out, "# inner ") != 1 {
		t.Errorf("all at once: exit %d, %s%s", code, out, words)
	}
}

func TestEnrollSaysWhoIsNotThere(t *testing.T) {
	t.Parallel()
	e := newEnrolment(t)
	text, err := os.ReadFile(e.inventory)
	if err != nil {
		t.Fatal(err)
	}
	closed := strings.Replace(string(text), fmt.Sprint("port: ", e.sshd.Port), "port: 1", 1)
	if err := os.WriteFile(e.inventory, []byte(closed), 0o600); err != nil {
		t.Fatal(err)
	}
	e.enroll(cli.ExitNotAll, "# fw1 127.0.0.2:1: ", "connection refused", "--write", e.known)
	if _, err := os.Stat(e.known); err == nil {
		t.Error("a file without keys was written")
	}
}
