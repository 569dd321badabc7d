package remote_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"strings"
	"sync"
	"testing"
	"time"

	"muster/fleet"
	"muster/fleet/remote"
	"muster/testkit/sshtest"
)

// screen keeps what a shell says, and tells when some of it has come.
type screen struct {
	mu   sync.Mutex
	text bytes.Buffer // guarded by mu
	more chan struct{}
}

func newScreen() *screen { return &screen{more: make(chan struct{}, 1)} }

func (s *screen) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	select {
	case s.more <- struct{}{}:
	default:
	}
	return s.text.Write(p)
}

func (s *screen) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.text.String()
}

func (s *screen) await(t *testing.T, text string) {
	t.Helper()
	late := time.NewTimer(30 * time.Second)
	defer late.Stop()
	for !strings.Contains(s.String(), text) {
		select {
		case <-s.more:
		case <-late.C:
			t.Fatalf("it never says %q: %q", text, s.String())
		}
	}
}

func TestRealShellWithoutATerminal(t *testing.T) {
	t.Parallel()
	conn := connect(t, sshtest.StartSSHD(t, sshtest.Options{}).Host)
	for _, test := range []struct {
		name, command, stdin string
		code                 int
		out, err             string
	}{
		{"a command", "echo out; echo err >&2; exit 3", "", 3, "out\n", "err\n"},
		{"no command", "", "echo out; exit 4\necho more", 4, "out\n", ""},
		{"input", "sort", "b\na\n", 0, "a\nb\n", ""},
		{"no terminal", "test -t 0 || echo none", "", 0, "none\n", ""},
		{"a signal", "kill -9 $$", "", 137, "", ""},
		{"bytes", `printf '\377\000'`, "", 0, "\xff\x00", ""},
		{"a child that stays", "sleep 60 & echo started; exit 5", "", 5, "started\n", ""},
	} {
		var out, errs bytes.Buffer
		code, err := conn.Shell(t.Context(), remote.Terminal{Command: test.command,
			Stdin: strings.NewReader(test.stdin), Stdout: &out, Stderr: &errs})
		if err != nil || code != test.code || out.String() != test.out || errs.String() != test.err {
			t.Errorf("%s: code %d, %v, says %q and %q; want %d, %q and %q", test.name, code, err, &out, &errs,
				test.code, test.out, test.err)
		}
	}
}

func TestRealShellOnATerminal(t *testing.T) {
	t.Parallel()
	conn := connect(t, sshtest.StartSSHD(t, sshtest.Options{}).Host)
	out, sizes := newScreen(), make(chan remote.Size)
	in, keys := io.Pipe()
	defer keys.Close()
	type end struct {
		code int
		err  error
	}
	ended := make(chan end, 1)
	go func() {
		code, err := conn.Shell(t.Context(), remote.Terminal{
			Command: "echo $TERM; stty size; while stty size | grep -q '31 101'; do sleep 0.05; done; " +
				"stty size; read x; echo got $x; exit 6",
			Type: "dumb", Size: remote.Size{Columns: 101, Rows: 31}, Resized: sizes, Stdin: in, Stdout: out})
		ended <- end{code, err}
	}()
	out.await(t, "dumb\r\n31 101\r\n")
	sizes <- remote.Size{Columns: 77, Rows: 12}
	out.await(t, "12 77\r\n")
	if _, err := keys.Write([]byte("word\r")); err != nil {
		t.Fatal(err)
	}
	out.await(t, "got word")
	e := <-ended
	if e.err != nil || e.code != 6 {
		t.Errorf("code %d, %v, want 6", e.code, e.err)
	}
	if strings.Count(out.String(), "word") != 2 {
		t.Errorf("the terminal shows %q, want an echo of the word", out)
	}
	if _, err := conn.Run(t.Context(), remote.Command{Shell: "true", Bound: time.Minute}); err != nil {
		t.Errorf("a command after the shell: %v", err)
	}
}

func TestRealShellThatIsLeft(t *testing.T) {
	t.Parallel()
	sshd := sshtest.StartSSHD(t, sshtest.Options{})
	conn := connect(t, sshd.Host)
	ctx, leave := context.WithCancel(t.Context())
	out := newScreen()
	never, last := io.Pipe()
	defer last.Close() // which ends the read that is left
	go func() {
		out.await(t, "here")
		leave()
	}()
	code, err := conn.Shell(ctx, remote.Terminal{Command: "echo here; sleep 60", Stdin: never, Stdout: out})
	if remote.KindOf(err) != remote.KindCancelled || code >= 0 {
		t.Errorf("left: %d, %v, want cancelled", code, err)
	}
	if _, err = conn.Shell(t.Context(), remote.Terminal{Command: "true"}); err == nil {
		t.Error("a connection that was left can be used")
	}

	conn = connect(t, sshd.Host)
	code, err = conn.Shell(t.Context(), remote.Terminal{Command: "kill -9 $PPID"})
	var e *remote.Error
	if !errors.As(err, &e) || e.Kind != remote.KindLost || !e.Sent || code >= 0 {
		t.Errorf("a connection that is cut: %d, %v, want lost", code, err)
	}
}

func TestRealShellThatNobodyReads(t *testing.T) {
	t.Parallel()
	conn := connect(t, sshtest.StartSSHD(t, sshtest.Options{}).Host)
	_, err := conn.Shell(t.Context(), remote.Terminal{Command: "yes", Stdout: deaf{}})
	if remote.KindOf(err) != remote.KindLost && err != nil {
		t.Errorf("%v, want no exit, or that of yes", err)
	}
}

type deaf struct{}

func (deaf) Write([]byte) (int, error) { return 0, errors.New("nobody is there") }

func TestRealHostWithoutTerminals(t *testing.T) {
	t.Parallel()
	conn := connect(t, sshtest.StartSSHD(t, sshtest.Options{Config: []string{"PermitTTY no"}}).Host)
	_, err := conn.Shell(t.Context(), remote.Terminal{Type: "dumb"})
	if remote.KindOf(err) != remote.KindRefused || !strings.Contains(err.Error(), `refuses "pty-req"`) {
		t.Errorf("got %v, want refused", err)
	}
}

func TestRealScan(t *testing.T) {
	t.Parallel()
	sshd := sshtest.StartSSHD(t, sshtest.Options{})
	client, err := remote.New(remote.Default())
	if err != nil {
		t.Fatal(err)
	}
	host := sshd.Host
	host.HostKeys, host.Key = nil, "/nosuch" // it needs neither
	key, err := client.Scan(t.Context(), host, remote.KeyTypes()...)
	if err != nil || key.Line != sshd.HostKey || key.Type != "ssh-ed25519" ||
		!strings.HasPrefix(key.Fingerprint, "SHA256:") {
		t.Errorf("got %+v, %v, want %s", key, err, sshd.HostKey)
	}
	if _, err = client.Scan(t.Context(), host, "ssh-rsa"); remote.KindOf(err) != remote.KindRefused ||
		!strings.Contains(err.Error(), "was asked for ssh-rsa") {
		t.Errorf("of another type: %v, want refused", err)
	}
	host.Port++
	if _, err = client.Scan(t.Context(), host, "ssh-rsa"); remote.KindOf(err) != remote.KindUnreachable {
		t.Errorf("where nobody is: %v, want unreachable", err)
	}
}

func TestRealShellAndScanOverAJumpHost(t *testing.T) {
	t.Parallel()
	jump := sshtest.StartSSHD(t, sshtest.Options{})
	host := sshtest.StartSSHD(t, sshtest.Options{Address: "127.0.0.3"}).Host
	host.Jump = []fleet.Hop{jump.Host.Hop()}
	client, err := remote.New(remote.Default())
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	key, err := client.Scan(t.Context(), host, remote.KeyTypes()...)
	if err != nil || key.Line != host.HostKeys[0] {
		t.Errorf("scan: %+v, %v, want %s", key, err, host.HostKeys[0])
	}
	conn, err := client.Connect(t.Context(), host)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	var out bytes.Buffer
	code, err := conn.Shell(t.Context(), remote.Terminal{Command: "echo $SSH_CONNECTION; exit 3", Stdout: &out})
	if err != nil || code != 3 || !strings.Contains(out.String(), " 127.0.0.3 ") {
		t.Errorf("shell: %d, %v, %q", code, err, &out)
	}
	host.Jump[0].HostKeys = host.HostKeys // those of another
	if _, err = client.Scan(t.Context(), host, remote.KeyTypes()...); remote.KindOf(err) != remote.KindHostKey {
		t.Errorf("over an impostor: %v, want host_key", err)
	}
}
