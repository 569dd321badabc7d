package fakefleet

import (
	"errors"
	"io"
	"net"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/crypto/ssh"

	"muster/testkit/sshtest"
)

// awhile is the time for which a test watches that nothing happens.
const awhile = 50 * time.Millisecond

// tryDial is a login that may fail.
func (r *rig) tryDial(host int) error {
	c, err := sshtest.Dial(r.t.Context(), r.hosts[host], r.Signer())
	if err == nil {
		c.Close()
	}
	return err
}

// knock opens a TCP connection and no more.
func (r *rig) knock(host int) net.Conn {
	r.t.Helper()
	h := r.hosts[host]
	c, err := net.Dial("tcp", net.JoinHostPort(h.Address, strconv.Itoa(h.Port)))
	if err != nil {
		r.t.Fatal(err)
	}
	r.t.Cleanup(func() { c.Close() })
	return c
}

func TestNormalHostAnswersAsOpenSSHDoes(t *testing.T) {
	t.Parallel()
	r := start(t, Config{Hosts: 2})
	c := r.dial(1)
	for command, want := range map[string]answer{
		"exec timeout -k 5 300 sh -c 'echo a; echo b >&2; exit 3'": {out: "a\n", err: "b\n", code: 3},
		"hostname":                          {out: "fw0002\n"},
		"true":                              {},
		"exec timeout 0.01 sleep 9":         {code: 124},
		"exec timeout -s KILL 0.01 sleep 9": {signal: "KILL"},
		"cat | sha256sum -":                 {out: "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855  -\n"},
		"flood 3000000 | wc -c":             {out: "3000000\n"},
		"nope":                              {err: "sh: nope: not found\n", code: 127},
		"echo '\"$x\"'; echo \"$(echo `echo a`)\"": {out: "\"$x\"\na\n"},
	} {
		if got := r.exec(c, command, nil); got != want {
			t.Errorf("%s\n got %+v\nwant %+v", command, got, want)
		}
	}
}

func TestStdinReachesTheFileSystemOfOneHost(t *testing.T) {
	t.Parallel()
	r := start(t, Config{Hosts: 2})
	text := strings.Repeat("allow tcp from any to any port 22\n", 20_000)
	r.exec(r.dial(0), "cat > /tmp/f", strings.NewReader(text))
	if got := r.exec(r.dial(0), "cat /tmp/f", nil).out; got != text {
		t.Errorf("the file has %d bytes after an upload of %d", len(got), len(text))
	}
	if got := r.exec(r.dial(1), "cat /tmp/f", nil); got.code != 1 {
		t.Errorf("the other host has the file, too: %d bytes", len(got.out))
	}
}

func TestStrangersAreNotLetIn(t *testing.T) {
	t.Parallel()
	r := start(t, Config{Hosts: 1})
	other, err := newFleet(Config{Hosts: 1, Seed: 9})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := sshtest.Dial(t.Context(), r.hosts[0], other.Signer()); err == nil {
		t.Error("the key of another fleet opened a host")
	}
	r.hosts[0].User = "admin"
	if err := r.tryDial(0); err == nil {
		t.Error("a host knows a user it does not have")
	}
	if s := r.Stats(); s.Connections != 2 || s.Logins != 0 {
		t.Errorf("stats = %+v, want 2 connections and no login", s)
	}
}

func TestOtherRequestsAreRefused(t *testing.T) {
	t.Parallel()
	r := start(t, Config{Hosts: 1})
	c := r.dial(0)
	s, err := c.NewSession()
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Setenv("LANG", "C"); err != nil {
		t.Errorf("env: %v", err)
	}
	if s.RequestPty("vt100", 25, 80, nil) == nil || s.Shell() == nil || s.RequestSubsystem("sftp") == nil {
		t.Error("a host gave a terminal, a login shell or a subsystem")
	}
	if _, _, err := c.OpenChannel("direct-tcpip", nil); err == nil {
		t.Error("a host opened a tunnel")
	}
	for range sessionsMax - 1 {
		if _, err := c.NewSession(); err != nil {
			t.Fatal(err)
		}
	}
	var open *ssh.OpenChannelError
	if _, err := c.NewSession(); !errors.As(err, &open) || open.Reason != ssh.ConnectionFailed {
		t.Errorf("session %d: %v, want a refusal", sessionsMax+1, err)
	}
}

func TestSlowIsSlow(t *testing.T) {
	t.Parallel()
	r := start(t, Config{Hosts: 1, Personality: all(Slow), Latency: 5 * time.Millisecond, SlowFactor: 10})
	c := r.dial(0)
	begun := time.Now()
	r.exec(c, "true", nil)
	if took := time.Since(begun); took < 25*time.Millisecond {
		t.Errorf("a slow host answered in %s", took)
	}
}

func TestRefuseIsAClosedPort(t *testing.T) {
	t.Parallel()
	r := start(t, Config{Hosts: 1, Personality: all(Refuse)})
	if err := r.tryDial(0); !errors.Is(err, syscall.ECONNREFUSED) {
		t.Errorf("dial: %v, want connection refused", err)
	}
}

func TestThrottleResetsTheFirstOfEachThree(t *testing.T) {
	t.Parallel()
	r := start(t, Config{Hosts: 2, Personality: all(Throttle), ThrottleEvery: 3})
	for host := range 2 {
		for i := range 7 {
			err := r.tryDial(host)
			if want := i%3 == 0; errors.Is(err, syscall.ECONNRESET) != want || (err != nil) != want {
				t.Errorf("host %d, connection %d: %v; want a reset: %v", host, i, err, want)
			}
		}
	}
}

func TestNewRulesLockOutOfAHostUntilTheyAreTakenBack(t *testing.T) {
	t.Parallel()
	r := start(t, Config{Hosts: 1, Personality: all(LockOut)})
	c := r.dial(0)
	r.exec(c, "cat >/tmp/r; nft -f /tmp/r", strings.NewReader("table ip a {\n}\n"))
	if err := r.tryDial(0); !errors.Is(err, syscall.ECONNRESET) {
		t.Errorf("dial under new rules: %v, want a reset", err)
	}
	// A client that is logged in stays, as behind a rule for established connections.
	r.exec(c, "nft flush ruleset", nil)
	if err := r.tryDial(0); err != nil {
		t.Errorf("dial under the old rules: %v", err)
	}
}

func TestSilentNeverSpeaks(t *testing.T) {
	t.Parallel()
	r := start(t, Config{Hosts: 1, Personality: all(Silent)})
	c := r.knock(0)
	if _, err := c.Write([]byte("SSH-2.0-test\r\n")); err != nil {
		t.Fatal(err)
	}
	c.SetReadDeadline(time.Now().Add(awhile))
	if n, err := c.Read(make([]byte, 9)); n > 0 || !errors.Is(err, errTimeout) {
		t.Errorf("read: %d bytes, %v; want nothing", n, err)
	}
}

func TestDripSaysAByteAtATime(t *testing.T) {
	t.Parallel()
	const every = 10 * time.Millisecond
	r := start(t, Config{Hosts: 1, Personality: all(Drip), DripEvery: every})
	begun := time.Now()
	banner := make([]byte, 5)
	if _, err := io.ReadFull(r.knock(0), banner); err != nil || string(banner) != "SSH-2" {
		t.Fatalf("read %q, %v", banner, err)
	}
	if took := time.Since(begun); took < 4*every {
		t.Errorf("five bytes came in %s, want no less than %s", took, 4*every)
	}
}

func TestKeysThatTheInventoryDoesNotHave(t *testing.T) {
	t.Parallel()
	r := start(t, Config{Hosts: 2, Personality: func(i int) Personality {
		return []Personality{WrongKey, UnknownKeyType}[i]
	}})
	err := r.tryDial(0)
	if err == nil || !strings.Contains(err.Error(), "host key mismatch") {
		t.Errorf("wrong key: %v, want a mismatch", err)
	}
	var negotiation *ssh.AlgorithmNegotiationError
	if err := r.tryDial(1); !errors.As(err, &negotiation) {
		t.Errorf("unknown key type: %v, want no common algorithm", err)
	}
}

// answers reports whether a request is answered in time.
func answers(c *ssh.Client, within time.Duration) bool {
	answered := make(chan error, 1)
	go func() {
		_, _, err := c.SendRequest("keepalive@openssh.com", true, nil)
		answered <- err
	}()
	select {
	case err := <-answered:
		return err == nil
	case <-time.After(within):
		return false
	}
}

func TestHangAfterAuthIsAliveButOpensNothing(t *testing.T) {
	t.Parallel()
	r := start(t, Config{Hosts: 1, Personality: all(HangAfterAuth)})
	c := r.dial(0)
	opened := make(chan struct{})
	go func() {
		defer close(opened)
		_, _ = c.NewSession()
	}()
	select {
	case <-opened:
		t.Error("the host answered the request for a channel")
	case <-time.After(awhile):
	}
	if !answers(c, soon) {
		t.Error("the host does not answer keepalives")
	}
	c.Close()
	<-opened
}

func TestFreezeSaysNothingOnceACommandRuns(t *testing.T) {
	t.Parallel()
	r := start(t, Config{Hosts: 1, Personality: all(Freeze)})
	c := r.dial(0)
	if !answers(c, soon) {
		t.Error("the host is frozen before it runs a command")
	}
	s, err := c.NewSession()
	if err != nil {
		t.Fatal(err)
	}
	// Frozen hosts never say whether the command runs, so nobody waits for an answer here.
	if _, err := s.SendRequest("exec", false, ssh.Marshal(struct{ C string }{"echo a"})); err != nil {
		t.Fatal(err)
	}
	if e := r.await("ended", ended(1)); e.Exit != 0 || e.Orphaned {
		t.Errorf("the command ended as %+v", e)
	}
	if answers(c, awhile) {
		t.Error("a frozen host answers keepalives")
	}
}

func TestCutLeavesTheCommandRunning(t *testing.T) {
	t.Parallel()
	r := start(t, Config{Hosts: 1, Personality: all(Cut)})
	c := r.dial(0)
	if got := r.exec(c, untilGo+"; exit 3", nil); !got.missing {
		t.Errorf("a cut line gave %+v", got)
	}
	r.await("is orphaned", orphaned(1))
	r.letGo(0)
	if e := r.await("ended", ended(1)); e.Exit != 3 || !e.Orphaned {
		t.Errorf("the command ended as %+v", e)
	}
}

func TestCutHidesTheEndOfAQuickCommand(t *testing.T) {
	t.Parallel()
	r := start(t, Config{Hosts: 1, Personality: all(Cut)})
	if got := r.exec(r.dial(0), "echo a", nil); !got.missing {
		t.Errorf("a cut line gave %+v", got)
	}
}

func TestAnswersOfFaultyHosts(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		personality Personality
		command     string
		want        answer
	}{
		{NoExitStatus, "echo a", answer{out: "a\n", missing: true}},
		{Fail, "echo a", answer{err: "sh: Input/output error\n", code: 1}},
		{NoNewline, "seq 3", answer{out: "1 2 3 "}},
		{IgnoreTerm, "exec timeout -k 0.01 0.01 sleep 9", answer{signal: "KILL"}},
	} {
		t.Run(string(c.personality), func(t *testing.T) {
			t.Parallel()
			r := start(t, Config{Hosts: 1, Personality: all(c.personality)})
			if got := r.exec(r.dial(0), c.command, nil); got != c.want {
				t.Errorf("got %+v, want %+v", got, c.want)
			}
		})
	}
}

func TestFloodPrintsALotFirst(t *testing.T) {
	t.Parallel()
	r := start(t, Config{Hosts: 1, Personality: all(Flood)})
	s, err := r.dial(0).NewSession()
	if err != nil {
		t.Fatal(err)
	}
	out := &tally{}
	s.Stdout = out
	if err := s.Run("echo last"); err != nil {
		t.Fatal(err)
	}
	if out.n != 100<<20+5 || string(out.end) != "last\n" {
		t.Errorf("%d bytes that end with %q, want 100 MB and 5 bytes", out.n, out.end)
	}
}

// tally counts bytes and keeps the last five.
type tally struct {
	n   int
	end []byte
}

func (w *tally) Write(p []byte) (int, error) {
	w.n += len(p)
	w.end = append(w.end, p...)
	w.end = append([]byte(nil), w.end[max(len(w.end)-5, 0):]...)
	return len(p), nil
}

func TestSummaryTellsWhatIsThere(t *testing.T) {
	t.Parallel()
	f, err := newFleet(Config{Hosts: 300, Personality: Mix})
	if err != nil {
		t.Fatal(err)
	}
	defer f.stop()
	want := []Count{{Normal, 266}, {Slow, 30}, {Refuse, 1}, {WrongKey, 1}, {Cut, 1}, {LockOut, 1}}
	if d := cmp.Diff(want, f.Summary()); d != "" {
		t.Errorf("summary (-want +got)\n%s", d)
	}
	if got := f.Names(Refuse); !cmp.Equal(got, []string{"fw0007"}) {
		t.Errorf("those that refuse: %v", got)
	}
}
