package remote_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"muster/fleet"
	"muster/fleet/remote"
	"muster/internal/seal"
	"muster/testkit/sshtest"
)

// A sudoHost is a real host on which a user without rights becomes root by sudo.
type sudoHost struct {
	recordingHost
	password seal.Text
}

func newSudoHost(t testing.TB, rule string, fence fleet.Fence) *sudoHost {
	t.Helper()
	sshd := sshtest.StartSudo(t, rule, sshtest.Options{})
	h := &sudoHost{recordingHost: recordingHost{t: t, host: sshd.Host,
		dir: filepath.Join(lastingDir(t), "records"), config: remote.Default()}}
	h.host.Fence = fence
	h.config.RecordDir = h.dir
	return h
}

const (
	asksPassword = "ALL"
	asksNothing  = "NOPASSWD: ALL"
)

func (h *sudoHost) connect() *remote.Conn {
	h.t.Helper()
	conn := h.recordingHost.connect()
	conn.SudoPassword(h.password)
	return conn
}

func bothFences() []fleet.Fence { return []fleet.Fence{fleet.FenceNone, fleet.FenceRequired} }

func TestRealSudoRunsCommandsAsAnotherUser(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		rule  string
		fence fleet.Fence
		user  string
		id    int
	}{
		{asksPassword, fleet.FenceNone, "", 0},
		{asksPassword, fleet.FenceRequired, "games", 5},
		{asksNothing, fleet.FenceNone, "games", 5},
		{asksNothing, fleet.FenceRequired, "", 0},
	} {
		t.Run(test.rule+" "+string(test.fence), func(t *testing.T) {
			t.Parallel()
			h := newSudoHost(t, test.rule, test.fence)
			h.password, h.host.BecomeUser = sshtest.SudoPassword, test.user
			for _, err := range []error{os.Mkdir(h.dir, 0o700), os.Chmod(filepath.Dir(h.dir), 0o755),
				os.Chown(h.dir, test.id, 0)} {
				if err != nil {
					t.Fatal(err)
				}
			}
			r := step("j", 1)
			// Each password that stands where others can read it is one line here.
			result, err := h.connect().Run(t.Context(), remote.Command{Bound: time.Minute, Record: &r,
				Stdin: strings.NewReader("a b\nrest"), Shell: `id -u; cat; echo .; echo oops >&2
for f in /proc/[0-9]*/cmdline /proc/[0-9]*/environ; do tr '\0' '\n' <"$f"; done 2>/dev/null | grep -c "correct ho[r]se"; exit 3`})
			if err != nil || result.ExitCode != 3 {
				t.Fatalf("%+v, %v", result, err)
			}
			if got := string(result.Output.Bytes()); got != fmt.Sprintf("%d\na b\nrest.\noops\n0\n", test.id) {
				t.Errorf("it said %q", got)
			}
			ends, _ := filepath.Glob(filepath.Join(h.dir, "*.end"))
			if test.fence == fleet.FenceRequired && len(ends) != 1 {
				t.Errorf("records of ends: %q, want one", ends)
			}
		})
	}
}

func TestRealSudoThatRefusesHasRunNothing(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name, rule, user string
		password         seal.Text
		words            string
	}{
		{"wrong password", asksPassword, "", "battery staple",
			"sudo did not take the password that was given for muster-ops, so nothing was run"},
		{"no password", asksPassword, "", "", "sudo does not let muster-ops run sh as root without a password, so " +
			"nothing was run: the host said: \"sudo: a password is required\"; give the password with " +
			"--become-password"},
		{"no right", "/bin/true", "", sshtest.SudoPassword,
			"sudo was given the password of muster-ops and does not let it run sh as root, so nothing was run"},
		{"no such user", asksNothing, "nosuch", "", "nosuch"},
	} {
		for _, fence := range bothFences() {
			t.Run(test.name+" "+string(fence), func(t *testing.T) {
				t.Parallel()
				h := newSudoHost(t, test.rule, fence)
				h.password, h.host.BecomeUser = test.password, test.user
				ran := filepath.Join(t.TempDir(), "ran")
				r := step("j", 1)
				conn := h.connect()
				_, err := conn.Run(t.Context(), remote.Command{Shell: "touch " + ran, Bound: time.Minute, Record: &r})
				wantRefusal(t, err, test.words)
				err = conn.Upload(t.Context(), upload(ran, 0o600, []byte("x")))
				wantRefusal(t, err, test.words)
				if _, err := os.Stat(ran); err == nil {
					t.Error("it ran")
				}
				if _, err := os.Stat(h.dir); err == nil {
					t.Error("there is a record")
				}
				if strings.Contains(err.Error(), "horse") || strings.Contains(err.Error(), "staple") {
					t.Errorf("it says the password: %v", err)
				}
			})
		}
	}
}

func wantRefusal(t *testing.T, err error, words string) {
	t.Helper()
	e, ok := err.(*remote.Error)
	if !ok || e.Kind != remote.KindAuth || e.Sent || !strings.Contains(e.Error(), words) {
		t.Errorf("%#v\n%v\nwant that it was refused: %s", err, err, words)
	}
}

func TestRealSudoStepsAreStoppedAndBounded(t *testing.T) {
	t.Parallel()
	for _, fence := range bothFences() {
		t.Run(string(fence), func(t *testing.T) {
			t.Parallel()
			h := newSudoHost(t, asksPassword, fence)
			h.password = sshtest.SudoPassword
			conn := h.connect()
			for i, bound := range []time.Duration{time.Minute, time.Second} {
				pids := filepath.Join(t.TempDir(), "pids")
				stop, begun := make(chan struct{}), &word{want: "begun", seen: make(chan struct{})}
				if bound == time.Minute {
					go func() {
						<-begun.seen
						close(stop)
					}()
				}
				r := step("j", int64(i+1))
				r.Step = i
				_, err := conn.Run(t.Context(), remote.Command{Bound: bound, Record: &r, Stop: stop, Live: begun,
					Shell: fmt.Sprintf("trap 'echo told >>%[1]s.told; exit 1' TERM\n"+
						"sleep 300 & echo $$ $! >%[1]s; echo begun; wait", pids)})
				want := remote.KindStopped
				if bound == time.Second {
					want = remote.KindTimeout
				}
				if remote.KindOf(err) != want {
					t.Errorf("bound %s: %v, want %s", bound, err, want)
				}
				text, err := os.ReadFile(pids)
				if err != nil {
					t.Fatal(err)
				}
				for _, field := range strings.Fields(string(text)) {
					pid, _ := strconv.Atoi(field)
					line, _ := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
					if syscall.Kill(pid, 0) == nil && len(line) > 0 {
						t.Errorf("bound %s: process %d of root lives on", bound, pid)
					}
				}
				if told, _ := os.ReadFile(pids + ".told"); bound == time.Minute && string(told) != "told\n" {
					t.Errorf("TERM came %q times, want once", told)
				}
			}
		})
	}
}

// A word tells when it was said.
type word struct {
	want string
	got  string
	seen chan struct{}
}

func (w *word) Write(p []byte) (int, error) {
	before := strings.Contains(w.got, w.want)
	if w.got += string(p); !before && strings.Contains(w.got, w.want) {
		close(w.seen)
	}
	return len(p), nil
}

func TestRealSudoRecordsAreReadByWhoAsksLater(t *testing.T) {
	t.Parallel()
	h := newSudoHost(t, asksPassword, fleet.FenceRequired)
	h.password = sshtest.SudoPassword
	r := step("j", 1)
	command := remote.Command{Shell: "id -u; exit 7", Bound: time.Minute, Record: &r}
	if _, err := h.connect().Run(t.Context(), command); err != nil {
		t.Fatal(err)
	}
	r.Token, r.Again = r.Token+1, true
	for _, look := range []bool{true, false} {
		r.Look = look
		result, err := h.connect().Run(t.Context(), command)
		if err != nil || result.ExitCode != 7 || string(result.Output.Bytes()) != "0\n" || !result.Attached {
			t.Errorf("look %v: %+v, %v", look, result, err)
		}
	}
	r.Token, r.Step, r.Look = r.Token+1, 1, true
	_, err := h.connect().Run(t.Context(), remote.Command{Shell: "id", Bound: time.Minute, Record: &r})
	if remote.KindOf(err) != remote.KindNever {
		t.Errorf("a step that never began: %v", err)
	}
	info, err := os.Stat(h.dir)
	if err != nil || info.Mode().Perm() != 0o700 || info.Sys().(*syscall.Stat_t).Uid != 0 {
		t.Errorf("folder %v, %v: want it root's", info, err)
	}
	marking, err := h.connect().Mark(t.Context(), remote.Marker{Group: "g", Host: "h", Job: "k", Token: r.Token + 1,
		Until: r.Token + 9})
	if err != nil || marking.Other != nil || marking.Unfenced != "" {
		t.Errorf("marker: %+v, %v", marking, err)
	}
}

func TestRealSudoUploadsAreOfTheUser(t *testing.T) {
	t.Parallel()
	for _, fence := range bothFences() {
		h := newSudoHost(t, asksPassword, fence)
		h.password = sshtest.SudoPassword
		dir := t.TempDir()
		if err := os.Chmod(dir, 0o700); err != nil {
			t.Fatal(err)
		}
		path := filepath.Join(dir, "file")
		content := []byte(strings.Repeat("some words\n", 50_000))
		u := upload(path, 0o600, content)
		r := step("j", 1)
		u.Record = &r
		if err := h.connect().Upload(t.Context(), u); err != nil {
			t.Fatal(err)
		}
		got, err := os.ReadFile(path)
		info, _ := os.Stat(path)
		if err != nil || string(got) != string(content) || info.Sys().(*syscall.Stat_t).Uid != 0 {
			t.Errorf("%d bytes, %v, %v", len(got), err, info)
		}
	}
}
