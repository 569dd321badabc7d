package main

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"muster/api"
	"muster/internal/fakefleet"
	"muster/jobs"
	"muster/testkit/porttest"
	"muster/testkit/sshtest"
)

// ranTimes returns how often a command with this word ran on the hosts of a fleet.
func ranTimes(f *fakefleet.Fleet, word string) (n int) {
	for _, e := range f.Log() {
		if strings.Contains(e.Command, word) {
			n++
		}
	}
	return n
}

// The old key takes a token and the order of a task that waits with it. The rest of the house goes
// on.
func TestDrillOfALeakedServerKey(t *testing.T) {
	if !drilled(t) {
		return
	}
	h, f, _ := manned(t, 2)
	letGo(t, f)
	wantOutcomes(t, h.wait(h.submit("all", ": before")), map[jobs.Outcome]int{jobs.Succeeded: 2})
	stolen, code := h.muster("token", "create", "ci", "--owner", "user:ci")
	if code != 0 {
		t.Fatalf("token create: exit %d", code)
	}
	thief := func() string {
		cmd := exec.CommandContext(t.Context(), h.bin, "whoami")
		cmd.Env = append(os.Environ(), "MUSTER_URL="+h.url, "MUSTER_TOKEN="+strings.TrimSpace(stolen))
		text, _ := cmd.CombinedOutput()
		return string(text)
	}
	if said := thief(); !strings.Contains(said, "user:ci") {
		t.Fatalf("the token does not count before: %s", said)
	}
	d := operated(h, "The key of servers has leaked")
	d.play()
	waits, forged := h.submit("all", ": waits"), h.submit("all", ": forged")
	d.words = strings.NewReplacer("0wcy7y2fb2", string(waits), "/etc/muster", h.dir)
	d.play()
	d.wants(d.play(), "is signed")
	d.wants(d.play(), "the log is whole", string(waits), "ci2", "no longer halted")
	wantOutcomes(t, h.wait(waits), map[jobs.Outcome]int{jobs.Cancelled: 2})
	wantOutcomes(t, h.wait(forged), map[jobs.Outcome]int{jobs.Failed: 2})
	wantOutcomes(t, h.wait(h.submit("all", ": after")), map[jobs.Outcome]int{jobs.Succeeded: 2})
	if said := thief(); strings.Contains(said, "user:ci") {
		t.Errorf("the stolen token still counts: %s", said)
	}
	for late, tick := h.late(), time.Tick(commandEvery); ; { // the log of both keys is signed on
		var s api.AuditState
		if h.query(&s, "audit", "status"); s.Signed > 10 && s.Trouble == "" && len(s.Keys) == 2 {
			break
		}
		select {
		case <-late:
			t.Fatalf("the audit log is not signed on: %+v", s)
		case <-tick:
		}
	}
	for word, want := range map[string]int{"before": 2, "waits": 0, "forged": 0, "after": 2} {
		if n := ranTimes(f, ": "+word); n != want {
			t.Errorf("the hosts ran %q %d times, want %d", word, n, want)
		}
	}
}

// Once its line is gone, the key of a signer lets nothing go: neither what it has signed before nor
// what it signs afterwards.
func TestDrillOfALeakedSignerKey(t *testing.T) {
	if !drilled(t) {
		return
	}
	o := newOffice(t, "  - {runbooks: [exec], people: 2, mode: require}\n  - {level: server, mode: require}\n")
	lines := strings.Split(contentOf(t, o.file("trust/allowed_signers")), "\n")
	lines = slices.DeleteFunc(lines, func(s string) bool { return strings.HasPrefix(s, "user:dan ") })
	o.write("trust/allowed_signers", strings.Join(lines, "\n"))
	o.master()
	signed, other := o.hold("ann", "signed"), o.hold("ann", "other")
	approve := func(id jobs.TaskID) []string { return []string{"approvals", "approve", string(id), "--yes"} }
	o.want("bob", 0, "1 more person must sign", approve(signed)...)
	d := drillOf(o.house, "The key of a signer has leaked", "0wcy7y2fb2", string(signed))
	d.play()
	if out, code := o.as("bob", approve(other)...); code == 0 {
		t.Errorf("the key still signs: %s", out)
	}
	o.want("cem", 0, "1 more person must sign", approve(signed)...)
	d.wants(d.play(), string(other), "user:bob")
	if i := o.task(signed); i.State != jobs.TaskEnded || i.Outcomes[jobs.Succeeded] > 0 {
		t.Errorf("what it had signed: %+v", i)
	}
	if n := len(o.fleet.Log()); n != 0 {
		t.Errorf("the hosts ran %d commands, and nobody has let one go", n)
	}
}

// The key of the nodes is replaced on a real sshd: then the old one logs in nowhere.
func TestDrillOfALeakedHostKey(t *testing.T) {
	if !drilled(t) {
		return
	}
	s := sshtest.StartSSHD(t, sshtest.Options{})
	h := newCellar(t, "hosts: []\n")
	for _, suffix := range []string{"", ".pub"} {
		text, err := os.ReadFile(s.Key + suffix)
		if err != nil && suffix == ".pub" {
			if text, err = exec.Command("ssh-keygen", "-y", "-f", s.Key).Output(); err != nil {
				t.Fatal(err)
			}
		}
		h.write("id_ed25519"+suffix, string(text))
	}
	h.write("fleet.yaml", fmt.Sprintf("hosts:\n  - {name: fw1, address: %s, port: %d, user: %s, key: %s, host_key: %q}\n",
		s.Address, s.Port, s.User, h.file("id_ed25519"), s.HostKey))
	h.server = h.start("server", "--config", h.file("muster.yaml"))
	h.server.await("server listens")
	h.master()
	h.write("stolen", contentOf(t, h.file("id_ed25519")))
	login := func(key string) error {
		return exec.Command("ssh", "-o", "BatchMode=yes", "-o", "StrictHostKeyChecking=no", "-o",
			"UserKnownHostsFile=/dev/null", "-o", "IdentitiesOnly=yes", "-F", "none", "-i", h.file(key), "-p",
			fmt.Sprint(s.Port), s.User+"@"+s.Address, "true").Run()
	}
	if err := login("stolen"); err != nil {
		t.Fatalf("the old key before: %v", err)
	}
	d := drillOf(h, "The key that logs in to hosts has leaked",
		"~/.ssh/authorized_keys", filepath.Join(filepath.Dir(s.Key), "authorized_keys"))
	d.wants(d.play(), "1 succeeded")
	d.play()
	d.wants(d.play(), "1 succeeded")
	if err := login("stolen"); err == nil {
		t.Error("the old key still logs in")
	}
	if err := login("id_new"); err != nil {
		t.Errorf("the new key: %v", err)
	}
	wantOutcomes(t, h.wait(h.submit("all", "true")), map[jobs.Outcome]int{jobs.Succeeded: 1})
}

func contentOf(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// A secret that was sealed under the leaked key reaches no host once there is a new one.
func TestDrillOfALeakedSecretsKey(t *testing.T) {
	if !drilled(t) {
		return
	}
	f, inventory := pretend(t, fakefleet.Config{Hosts: 1})
	h := newCellar(t, inventory)
	h.write("login.yaml", "name: login\narguments:\n  password: {type: secret}\nsteps:\n"+
		"  - {name: set, run: ': set {{password}}'}\n")
	h.write("old", "swordfish-1\n")
	h.write("new", "swordfish-2\n")
	if out, code := h.muster("secrets", "keygen", h.file("secrets.key")); code != 0 {
		t.Fatalf("keygen: exit %d, %s", code, out)
	}
	h.configure(map[string]any{"runbooks": []string{h.file("login.yaml")},
		"secrets": map[string]any{"key": h.file("secrets.key")}})
	h.server = h.start("server", "--config", h.file("muster.yaml"))
	h.server.await("server listens")
	h.master()
	submit := func(secret string) jobs.TaskID {
		var task jobs.TaskInfo
		if code := h.query(&task, "run", "login", "all", "--arg", "password=@"+h.file(secret), "--detach"); code != 0 {
			t.Fatalf("run: exit %d", code)
		}
		return task.Task
	}
	if _, code := h.muster("halt", "--reason", "INC-14"); code != 0 {
		t.Fatalf("halt: exit %d", code)
	}
	waits, left := submit("old"), submit("old")
	d := drillOf(h, "The key of secret arguments has leaked", "0wcy7y2fb2", string(waits))
	d.wants(d.play(), string(waits), string(left))
	d.play()
	wantOutcomes(t, h.wait(waits), map[jobs.Outcome]int{jobs.Cancelled: 1})
	wantOutcomes(t, h.wait(left), map[jobs.Outcome]int{jobs.Failed: 1})
	wantOutcomes(t, h.wait(submit("new")), map[jobs.Outcome]int{jobs.Succeeded: 1})
	if n := len(f.Log()); n != 1 {
		t.Errorf("the host ran %d commands, want that with the new secret", n)
	}
}

// issued writes a certificate for 127.0.0.1 and its key, which ends after a time, and returns the
// paths.
func (h *house) issued(cert, key string, left time.Duration) {
	h.t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		h.t.Fatal(err)
	}
	c := &x509.Certificate{SerialNumber: big.NewInt(time.Now().UnixNano()),
		Subject:     pkix.Name{CommonName: "muster.example"},
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, NotBefore: time.Now().Add(-time.Hour),
		NotAfter: time.Now().Add(left), IsCA: true, BasicConstraintsValid: true}
	der, err := x509.CreateCertificate(rand.Reader, c, c, private.Public(), private)
	if err != nil {
		h.t.Fatal(err)
	}
	secret, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		h.t.Fatal(err)
	}
	h.write(cert, string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})))
	h.write(key, string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: secret})))
}

// Over the network nobody comes in while the certificate has ended; nodes work on, and so does the
// socket.
func TestDrillOfAnEndedCertificate(t *testing.T) {
	if !drilled(t) {
		return
	}
	f, inventory := pretend(t, fakefleet.Config{Hosts: 2})
	h := newCellar(t, inventory)
	place := porttest.Addr(t)
	h.issued("tls.pem", "tls.key", -time.Minute)
	h.issued("new.pem", "new.key", 100*24*time.Hour)
	h.configure(map[string]any{"server": map[string]any{"listen": []string{listenOn(h.url), place},
		"tls": map[string]any{"cert": h.file("tls.pem"), "key": h.file("tls.key")}}})
	h.server = h.start("server", "--config", h.file("muster.yaml"))
	h.server.await("server listens")
	h.master()
	t.Cleanup(func() { letGo(t, f) })
	over := func() (string, error) {
		cmd := exec.CommandContext(t.Context(), h.bin, "whoami")
		cmd.Env = append(os.Environ(), "MUSTER_URL=https://"+place, "MUSTER_TOKEN=mst_none", "MUSTER_CA="+h.file("new.pem"))
		text, err := cmd.CombinedOutput()
		return string(text), err
	}
	if said, err := over(); err == nil || !strings.Contains(said, "certificate") {
		t.Fatalf("over the network: %v, %s", err, said)
	}
	id := h.submit("all", marked("lamp"))
	for _, host := range hostNames(f) {
		h.awaitJob(jobs.NewID(id, host), jobs.Running)
	}
	d := operated(h, "The certificate of a server has ended")
	d.wants(d.play(), "muster.example ended", "notAfter")
	if said, _ := over(); strings.Contains(said, "certificate") {
		t.Errorf("over the network: %s", said)
	}
	letGo(t, f)
	wantOutcomes(t, h.wait(id), map[jobs.Outcome]int{jobs.Succeeded: 2})
	if ran := d.counted(f, id, "lamp", hostNames(f)); ran != 2 {
		t.Errorf("it ran on %d hosts, want 2", ran)
	}
}
