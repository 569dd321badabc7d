package fakefleet

import (
	"context"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/crypto/ssh"

	"muster/fleet"
	"muster/testkit/sshtest"
)

// errTimeout is the error of a deadline.
var errTimeout = os.ErrDeadlineExceeded

func TestConfigMistakesAreSaidAtOnce(t *testing.T) {
	t.Parallel()
	_, err := Start(Config{Port: -1, Latency: -1, FloodBytes: -1})
	for _, want := range []string{
		"hosts = 0: want 1 to 65000", "port = -1", "latency = -1ns: want 0 to 1h", "flood bytes = -1",
	} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v\ndoes not say %q", err, want)
		}
	}
	_, err = Start(Config{Hosts: 2, Personality: all("odd")})
	if err == nil || !strings.Contains(err.Error(), `host fw0002: personality "odd" is unknown`) {
		t.Errorf("unknown personality: %v", err)
	}
}

func TestAPortThatIsTakenIsSaid(t *testing.T) {
	t.Parallel()
	r := start(t, Config{Hosts: 1})
	f, err := Start(Config{Hosts: 1, Port: r.Port()})
	if err == nil {
		f.Close()
	}
	if err == nil || !strings.Contains(err.Error(), "address already in use") {
		t.Errorf("the same port twice: %v", err)
	}
}

func TestTheSameSeedIsTheSameFleet(t *testing.T) {
	t.Parallel()
	var lines []string
	for _, seed := range []uint64{1, 1, 2} {
		f, err := newFleet(Config{Hosts: 3, Seed: seed})
		if err != nil {
			t.Fatal(err)
		}
		f.stop()
		for _, h := range f.Hosts() {
			lines = append(lines, h.HostKeys...)
		}
	}
	if !cmp.Equal(lines[:3], lines[3:6]) || lines[0] == lines[1] || lines[0] == lines[6] {
		t.Errorf("keys of seeds 1, 1, 2: %q", lines)
	}
}

func TestHostsHaveAddressesOfTheirOwn(t *testing.T) {
	t.Parallel()
	f, err := newFleet(Config{Hosts: hostsMax})
	if err != nil {
		t.Fatal(err)
	}
	f.stop()
	for _, i := range []int{0, 1, 254, 255, 256, 2999, hostsMax - 1} {
		a := &net.TCPAddr{IP: net.ParseIP(addressOf(i))}
		if h := f.hostAt(a); h == nil || h.index != i {
			t.Errorf("host %d at %s is %+v", i, a, h)
		}
		if err := fleet.CheckName(nameOf(i)); err != nil {
			t.Error(err)
		}
	}
	for _, a := range []string{"127.77.0.0", "127.77.255.255", "127.0.0.1", "10.77.0.1", "::1"} {
		if h := f.hostAt(&net.TCPAddr{IP: net.ParseIP(a)}); h != nil {
			t.Errorf("%s is %s", a, h.name)
		}
	}
}

func TestAddressesWithoutAHostAreReset(t *testing.T) {
	t.Parallel()
	r := start(t, Config{Hosts: 1})
	r.hosts[0].Address = "127.77.0.2"
	if err := r.tryDial(0); err == nil {
		t.Error("an address that no host has answered")
	}
}

func TestFilesAreTheInventory(t *testing.T) {
	t.Parallel()
	r := start(t, Config{Hosts: 30, User: "op", Personality: Mix})
	dir := t.TempDir()
	if err := r.WriteFiles(dir); err != nil {
		t.Fatal(err)
	}
	key := filepath.Join(dir, KeyFile)
	if info, err := os.Stat(key); err != nil || info.Mode() != 0o600 {
		t.Errorf("the key has mode %v, %v", info.Mode(), err)
	}
	pem, err := os.ReadFile(key)
	if err != nil {
		t.Fatal(err)
	}
	login, err := ssh.ParsePrivateKey(pem)
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(filepath.Join(dir, InventoryFile))
	if err != nil {
		t.Fatal(err)
	}
	inventory, err := fleet.Parse(fleet.Source{Name: InventoryFile, Data: text})
	if err != nil {
		t.Fatal(err)
	}
	hosts := inventory.Hosts()
	if d := cmp.Diff(r.Hosts(), hosts); d != "" || hosts[0].Key != key {
		t.Errorf("the file is not what Hosts says (-want +got)\n%s", d)
	}
	c, err := sshtest.Dial(t.Context(), hosts[0], login)
	if err != nil {
		t.Fatalf("log in with what the files say: %v", err)
	}
	c.Close()
}

// This test is not parallel: it measures the time that the process worked, because that depends
// less on other work of the machine.
func TestThousandsStartAtOnce(t *testing.T) {
	begun := worked(t)
	f, err := Start(Config{Hosts: 3000})
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if took := worked(t) - begun; took > 500*time.Millisecond {
		t.Errorf("3000 hosts took %s of work to start, want less than half a second", took)
	}
}

func worked(tb testing.TB) time.Duration {
	tb.Helper()
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		tb.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

func TestBareLoopVisitsEachHostOnce(t *testing.T) {
	t.Parallel()
	r := start(t, Config{Hosts: 200, Personality: Mix})
	b := sshtest.BareLoop(t.Context(), r.hosts, r.Signer(), 32, "true")
	// Mix has one that refuses, one with a wrong key and one that cuts the line.
	if b.Hosts != 200 || b.Failed != 3 || b.First == nil || b.Rate() <= 0 {
		t.Errorf("bare loop: %+v", b)
	}
	if s := r.Stats(); s.Commands != 198 || s.Overlaps != 0 {
		t.Errorf("stats: %+v, want 198 commands", s)
	}
	seen := map[string]int{}
	for _, e := range r.Log() {
		seen[e.Host]++
	}
	if len(seen) != 198 {
		t.Errorf("%d hosts were visited, want 198", len(seen))
	}
}

func TestBareLoopEndsWithItsContext(t *testing.T) {
	t.Parallel()
	r := start(t, Config{Hosts: 3, Personality: func(i int) Personality {
		return []Personality{Silent, HangAfterAuth, Normal}[i]
	}})
	ctx, stop := context.WithTimeout(t.Context(), awhile)
	defer stop()
	if b := sshtest.BareLoop(ctx, r.hosts, r.Signer(), 3, "sleep 99"); b.Failed != 3 {
		t.Errorf("bare loop: %+v, want 3 failures", b)
	}
}

func TestCloseEndsCommands(t *testing.T) {
	t.Parallel()
	r := start(t, Config{Hosts: 2, Personality: func(i int) Personality {
		return []Personality{Normal, IgnoreTerm}[i]
	}})
	r.launch(r.dial(0), "sleep 99 & sleep 98")
	r.launch(r.dial(1), "timeout 0.000001 sleep 99") // its TERM is sent already
	r.launch(r.dial(1), "timeout 97 sleep 99")
	r.knock(0)
	if err := r.Close(); err != nil {
		t.Fatal(err)
	}
	for _, e := range r.Log() {
		if e.Running() || e.Signal != "KILL" {
			t.Errorf("after Close: %+v", e)
		}
	}
	if n := r.Stats().Running; n != 0 {
		t.Errorf("%d commands run on", n)
	}
	if _, err := net.Dial("tcp", net.JoinHostPort("127.77.0.1", "1")); err == nil {
		t.Error("port 1 answers")
	}
	if err := r.tryDial(0); err == nil || !isRefused(err) {
		t.Errorf("dial after Close: %v", err)
	}
	if err := r.Close(); err != nil {
		t.Errorf("second Close: %v", err)
	}
}

func isRefused(err error) bool {
	return strings.Contains(err.Error(), syscall.ECONNREFUSED.Error())
}

// BenchmarkBareLoop is the base figure: hosts in a second, with the pretended
// ones on the same cores.
func BenchmarkBareLoop(b *testing.B) {
	f, err := Start(Config{Hosts: 3000})
	if err != nil {
		b.Fatal(err)
	}
	defer f.Close()
	hosts := f.Hosts()
	for _, command := range []string{"true", "exec timeout -k 5 300 sh -c true"} {
		b.Run(command, func(b *testing.B) {
			for b.Loop() {
				begun := worked(b)
				got := sshtest.BareLoop(b.Context(), hosts, f.Signer(), 64, command)
				if got.Failed > 0 {
					b.Fatal(got.First)
				}
				b.ReportMetric(got.Rate(), "hosts/s")
				b.ReportMetric(float64((worked(b)-begun).Microseconds())/3000, "cpu-µs/host")
			}
		})
	}
}
