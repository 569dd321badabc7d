package remote_test

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"muster/fleet"
	"muster/fleet/remote"
	"muster/testkit/sshtest"
)

// These tests run against a real OpenSSH server.

func TestRealCommands(t *testing.T) {
	t.Parallel()
	sshd := sshtest.StartSSHD(t, sshtest.Options{})
	conn := connect(t, sshd.Host)
	for _, test := range []struct {
		name   string
		shell  string
		stdin  string
		code   int
		output string
	}{
		{name: "output", shell: "echo hello", output: "hello\n"},
		{name: "exit code", shell: "exit 42", code: 42},
		{name: "no such command", shell: "nonsense-command 2>&-", code: 127},
		{name: "stderr", shell: "echo oops >&2", output: "oops\n"},
		{
			name:   "both, in order",
			shell:  "for i in 1 2 3; do echo o$i; echo e$i >&2; done",
			output: "o1\ne1\no2\ne2\no3\ne3\n",
		},
		{name: "signal", shell: "kill -9 $$", code: 137}, // some login shells hide the signal
		{name: "its own 124", shell: "exit 124", code: 124},
		{name: "stdin", shell: "sort -r", stdin: "a\nc\nb\n", output: "c\nb\na\n"},
		{name: "lines and quotes", shell: "x='a  b'\necho \"$x\" '!' \\\n \\\\", output: "a  b ! \\\n"},
		{name: "not UTF-8", shell: `printf '\377\000\033[1m'`, output: "\xff\x00\x1b[1m"},
		{name: "no terminal", shell: "test -t 0 || test -t 1 || echo none", output: "none\n"},
		{name: "no agent", shell: "echo \"${SSH_AUTH_SOCK-none}\"", output: "none\n"},
	} {
		t.Run(test.name, func(t *testing.T) {
			result, err := conn.Run(t.Context(), remote.Command{
				Shell: test.shell, Stdin: strings.NewReader(test.stdin), Bound: time.Minute,
			})
			if err != nil {
				t.Fatal(err)
			}
			if result.ExitCode != test.code || result.Open {
				t.Errorf("got code %d, open %t, want %d, closed",
					result.ExitCode, result.Open, test.code)
			}
			if got := string(result.Output.Bytes()); got != test.output {
				t.Errorf("output %q, want %q", got, test.output)
			}
		})
	}
}

func TestRealFlood(t *testing.T) {
	t.Parallel()
	sshd := sshtest.StartSSHD(t, sshtest.Options{})
	conn := connect(t, sshd.Host)
	result, err := conn.Run(t.Context(), remote.Command{
		Shell: "head -c 20000000 /dev/zero; echo end", Bound: time.Minute,
	})
	if err != nil || result.Output.Size() != 20_000_004 ||
		!bytes.HasSuffix(result.Output.Tail, []byte("end\n")) {
		t.Errorf("got %d bytes, %v, want 20000004, end", result.Output.Size(), err)
	}
}

func TestRealChildInTheBackground(t *testing.T) {
	t.Parallel()
	sshd := sshtest.StartSSHD(t, sshtest.Options{})
	config := remote.Default()
	config.Drain = 200 * time.Millisecond
	conn := connectWith(t, config, sshd.Host)
	result, err := conn.Run(t.Context(), remote.Command{
		Shell: "setsid sleep 4 & echo started", Bound: time.Minute,
	})
	if err != nil || !result.Open || string(result.Output.Bytes()) != "started\n" {
		t.Fatalf("got %+v, %v, want open output \"started\"", result, err)
	}
	if result.Took > 3*time.Second {
		t.Errorf("it took %s: it waited for the child", result.Took)
	}
	// The session was closed under the child; the connection goes on.
	if _, err := conn.Run(t.Context(), remote.Command{Shell: "true", Bound: time.Minute}); err != nil {
		t.Error(err)
	}
}

func TestRealCommandsAreBoundedOnTheHost(t *testing.T) {
	t.Parallel()
	sshd := sshtest.StartSSHD(t, sshtest.Options{})
	t.Run("stopped", func(t *testing.T) {
		t.Parallel()
		conn := connect(t, sshd.Host)
		result, err := conn.Run(t.Context(), remote.Command{
			Shell: "echo begun; sleep 60", Bound: time.Second,
		})
		if remote.KindOf(err) != remote.KindTimeout || result.ExitCode != 124 ||
			string(result.Output.Bytes()) != "begun\n" {
			t.Errorf("got %+v, %v, want a timeout with code 124", result, err)
		}
	})
	t.Run("killed, for it ignores TERM", func(t *testing.T) {
		t.Parallel()
		pid := filepath.Join(t.TempDir(), "pid")
		conn := connect(t, sshd.Host)
		result, err := conn.Run(t.Context(), remote.Command{
			Shell: fmt.Sprintf("trap '' TERM; echo $$ > '%s'; while :; do sleep 1; done", pid),
			Bound: time.Second,
		})
		if remote.KindOf(err) != remote.KindTimeout || result.ExitCode != 137 {
			t.Errorf("got %+v, %v, want a timeout with code 137", result, err)
		}
		text, err := os.ReadFile(pid)
		if err != nil {
			t.Fatal(err)
		}
		// A zombie has an empty command line.
		line, err := os.ReadFile("/proc/" + strings.TrimSpace(string(text)) + "/cmdline")
		if err == nil && len(line) > 0 {
			t.Errorf("process %s is still there: %q", text, line)
		}
	})
}

func TestRealUpload(t *testing.T) {
	t.Parallel()
	sshd := sshtest.StartSSHD(t, sshtest.Options{})
	conn := connect(t, sshd.Host)
	content := bytes.Repeat([]byte("\x00\xff muster\n"), 500_000) // several windows
	for _, test := range []struct {
		name string
		file string
		mode os.FileMode
		text []byte
	}{
		{"simple", "file", 0o644, []byte("hello\n")},
		{"empty", "empty", 0o600, nil},
		{"big", "big", 0o755, content},
		{"a name that is data", "-n $(id) `id` 'x' \"y\" ;& !! \\ \n.conf", 0o400, []byte("x")},
	} {
		t.Run(test.name, func(t *testing.T) {
			dir := t.TempDir()
			path := filepath.Join(dir, test.file)
			for _, text := range [][]byte{[]byte("older"), test.text} { // the second replaces the first
				if err := conn.Upload(t.Context(), upload(path, test.mode, text)); err != nil {
					t.Fatal(err)
				}
			}
			got, err := os.ReadFile(path)
			if err != nil || !bytes.Equal(got, test.text) {
				t.Errorf("%d bytes, %v, want the %d that were sent", len(got), err, len(test.text))
			}
			info, err := os.Stat(path)
			if err != nil || info.Mode() != test.mode {
				t.Errorf("mode %v, %v, want %v", info.Mode(), err, test.mode)
			}
			wantFiles(t, dir, test.file)
		})
	}
}

func TestRealUploadsThatFailLeaveNothing(t *testing.T) {
	t.Parallel()
	sshd := sshtest.StartSSHD(t, sshtest.Options{})
	conn := connect(t, sshd.Host)
	text := []byte("hello\n")
	for _, test := range []struct {
		name   string
		change func(dir string, u *remote.Upload)
		kind   remote.Kind
		words  string
	}{
		{"wrong checksum", func(_ string, u *remote.Upload) { u.SHA256[0]++ },
			remote.KindFailed, "sha256 on the host is "},
		{"content too short", func(_ string, u *remote.Upload) { u.Content = strings.NewReader("hel") },
			remote.KindInvalid, "only 3 bytes of 6"},
		{"a directory", func(dir string, u *remote.Upload) { u.Path = dir },
			remote.KindFailed, "is a directory"},
		{"no directory", func(dir string, u *remote.Upload) { u.Path = dir + "/none/file" },
			remote.KindFailed, `exit 1; the host said: "`},
		{"content that cannot be read", func(_ string, u *remote.Upload) {
			u.Content = io.MultiReader(strings.NewReader("hel"), broken{})
		}, remote.KindNode, "disk on fire"},
		{"content that never comes", func(_ string, u *remote.Upload) {
			never, _ := net.Pipe()
			t.Cleanup(func() { never.Close() })
			u.Content, u.Bound = never, time.Second
		}, remote.KindTimeout, "over its bound of 1s"},
		{"relative", func(_ string, u *remote.Upload) { u.Path = "file" }, remote.KindInvalid, "path = "},
		{"slash", func(_ string, u *remote.Upload) { u.Path += "/" }, remote.KindInvalid, "path = "},
		{"NUL", func(_ string, u *remote.Upload) { u.Path += "\x00" }, remote.KindInvalid, "path = "},
		{"all wrong", func(_ string, u *remote.Upload) { *u = remote.Upload{Mode: os.ModeSetuid, Size: -1} },
			remote.KindInvalid, "no content"},
	} {
		t.Run(test.name, func(t *testing.T) {
			dir := t.TempDir()
			u := upload(filepath.Join(dir, "file"), 0o644, text)
			test.change(dir, &u)
			err := conn.Upload(t.Context(), u)
			if remote.KindOf(err) != test.kind || !strings.Contains(err.Error(), test.words) {
				t.Errorf("got %s, %v, want %s, %q", remote.KindOf(err), err, test.kind, test.words)
			}
			wantFiles(t, dir)
		})
	}
}

type broken struct{}

func (broken) Read([]byte) (int, error) { return 0, errors.New("disk on fire") }

func upload(path string, mode os.FileMode, text []byte) remote.Upload {
	return remote.Upload{
		Path:    path,
		Mode:    mode,
		Size:    int64(len(text)),
		SHA256:  sha256.Sum256(text),
		Content: bytes.NewReader(text),
		Bound:   time.Minute,
	}
}

func wantFiles(t *testing.T, dir string, want ...string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, e := range entries {
		got = append(got, e.Name())
	}
	if strings.Join(got, "/") != strings.Join(want, "/") {
		t.Errorf("the directory has %q, want %q", got, want)
	}
}

func TestRealHostWithAnotherKey(t *testing.T) {
	t.Parallel()
	sshd := sshtest.StartSSHD(t, sshtest.Options{})
	host := sshd.Host
	_, other := sshtest.NewKey(t)
	host.HostKeys = []string{other}
	err := connectError(t, host)
	for _, words := range []string{
		fmt.Sprintf("connect sshd (127.0.0.2:%d): its host key is ssh-ed25519 SHA256:", sshd.Port),
		"the inventory has ssh-ed25519 SHA256:", "the connection was refused",
	} {
		if remote.KindOf(err) != remote.KindHostKey || !strings.Contains(err.Error(), words) {
			t.Errorf("got %s, %v, want host_key, %q", remote.KindOf(err), err, words)
		}
	}
}

func TestRealHostWithAnotherUserKey(t *testing.T) {
	t.Parallel()
	sshd := sshtest.StartSSHD(t, sshtest.Options{})
	host := sshd.Host
	host.Key, _ = sshtest.NewKey(t)
	if err := connectError(t, host); remote.KindOf(err) != remote.KindAuth {
		t.Errorf("got %s, %v, want auth", remote.KindOf(err), err)
	}
	host = sshd.Host
	host.User = "nobody-of-that-name"
	if err := connectError(t, host); remote.KindOf(err) != remote.KindAuth {
		t.Errorf("got %s, %v, want auth", remote.KindOf(err), err)
	}
}

func TestRealMaxStartups(t *testing.T) {
	t.Parallel()
	sshd := sshtest.StartSSHD(t, sshtest.Options{Config: []string{"MaxStartups 1:100:1"}})
	half, err := net.Dial("tcp", net.JoinHostPort(sshd.Address, fmt.Sprint(sshd.Port)))
	if err != nil {
		t.Fatal(err)
	}
	defer half.Close()
	if _, err := half.Read(make([]byte, 1)); err != nil { // its greeting: now it counts
		t.Fatal(err)
	}
	if err := connectError(t, sshd.Host); remote.KindOf(err) != remote.KindThrottled {
		t.Errorf("got %s, %v, want throttled", remote.KindOf(err), err)
	}
}

func TestRealMaxSessions(t *testing.T) {
	t.Parallel()
	sshd := sshtest.StartSSHD(t, sshtest.Options{Config: []string{"MaxSessions 1"}})
	conn := connect(t, sshd.Host)
	started, release := make(chan struct{}), make(chan struct{})
	var first sync.WaitGroup
	first.Go(func() {
		_, err := conn.Run(t.Context(), remote.Command{
			Shell: "cat", Stdin: &signalReader{started: started, release: release}, Bound: time.Minute,
		})
		if err != nil {
			t.Errorf("the first session: %v", err)
		}
	})
	<-started
	_, err := conn.Run(t.Context(), remote.Command{Shell: "true", Bound: time.Minute})
	if remote.KindOf(err) != remote.KindThrottled {
		t.Errorf("got %s, %v, want throttled", remote.KindOf(err), err)
	}
	close(release)
	first.Wait()
}

// signalReader says when it is read first and ends when it may.
type signalReader struct {
	started, release chan struct{}
	once             sync.Once
}

func (r *signalReader) Read([]byte) (int, error) {
	r.once.Do(func() { close(r.started) })
	<-r.release
	return 0, io.EOF
}

func TestRealForcedRefusal(t *testing.T) {
	t.Parallel()
	sshd := sshtest.StartSSHD(t, sshtest.Options{Config: []string{"ForceCommand exit 9"}})
	conn := connect(t, sshd.Host)
	result, err := conn.Run(t.Context(), remote.Command{Shell: "true", Bound: time.Minute})
	if err != nil || result.ExitCode != 9 {
		t.Errorf("got %+v, %v, want code 9", result, err)
	}
}

// Killing a session's sshd is what a reboot looks like.
func TestRealConnectionThatIsCut(t *testing.T) {
	t.Parallel()
	sshd := sshtest.StartSSHD(t, sshtest.Options{})
	conn := connect(t, sshd.Host)
	_, err := conn.Run(t.Context(), remote.Command{
		// up from sh over timeout (and the login shell, if that stayed) to sshd
		Shell: `p=$$
while read -r _ name _ up _ < /proc/$p/stat; do
	case $name in *sshd*) kill -9 $p; exit;; esac
	p=$up
done`,
		Bound: time.Minute,
	})
	var e *remote.Error
	if !errors.As(err, &e) || e.Kind != remote.KindLost || !e.Sent {
		t.Errorf("got %v, want lost", err)
	}
}

func connect(t *testing.T, host fleet.Host) *remote.Conn {
	t.Helper()
	return connectWith(t, patient(), host)
}

// patient is the configuration for hosts that may be slow to stop a command: a machine on
// which all tests run at once needs longer than the five seconds of [remote.Default].
func patient() remote.Config {
	c := remote.Default()
	c.Stop = time.Minute
	return c
}

func connectWith(t testing.TB, config remote.Config, host fleet.Host) *remote.Conn {
	t.Helper()
	client, err := remote.New(config)
	if err != nil {
		t.Fatal(err)
	}
	conn, err := client.Connect(t.Context(), host)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	return conn
}

// connectError connects where that must fail.
func connectError(t *testing.T, host fleet.Host) error {
	t.Helper()
	client, err := remote.New(remote.Default())
	if err != nil {
		t.Fatal(err)
	}
	conn, err := client.Connect(t.Context(), host)
	if err == nil {
		conn.Close()
		t.Fatal("the connection was accepted")
	}
	return err
}
