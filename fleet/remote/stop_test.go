package remote

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/crypto/ssh"
)

func TestParseStopped(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		said string
		want stopped
		ok   bool
	}{
		{"gone\n", stopped{word: "gone", left: []string{}}, true},
		{"Welcome!\n\ngone\n\n", stopped{word: "gone", left: []string{}}, true},
		{"left 12 13\n", stopped{word: "left", left: []string{"12", "13"}}, true},
		{"hidden", stopped{word: "hidden", left: []string{}}, true},
		{"shared", stopped{word: "shared", left: []string{}}, true},
		{"ended", stopped{word: "ended", left: []string{}}, true},
		{"gone\nsh: bad substitution\n", stopped{}, false},
		{"gone 12", stopped{}, false},
		{"left", stopped{}, false},
		{"left \x1b[2J", stopped{}, false},
		{"fine", stopped{}, false},
		{"", stopped{}, false},
	} {
		got, ok := parseStopped([]byte(test.said))
		if ok != test.ok || ok && !cmp.Equal(got, test.want, cmp.AllowUnexported(stopped{})) {
			t.Errorf("%q: %+v, %t, want %+v, %t", test.said, got, ok, test.want, test.ok)
		}
	}
}

// Each answer of a host to a stop leads to the right error.
func TestStopSaysWhatIsKnown(t *testing.T) {
	t.Parallel()
	killed := func(s *peerSession) { s.exit(143); _ = s.Close() }
	runs := func(*peerSession) {}
	for _, test := range []struct {
		name  string
		begin func(s *peerSession) // the command
		said  string               // by the script
		then  func(s *peerSession) // the command, when the script was sent
		code  int
		kind  Kind // "": no error
		words string
		most  time.Duration // it takes after the stop
	}{
		{"gone", marks, "gone\n", killed, 143, KindStopped, "was stopped on the host", 0},
		{"gone, and no exit", marks, "gone\n", runs, -1, KindStopped, "was stopped on the host", time.Second},
		{"left", marks, "left 12 14\n", runs, -1, KindRunning, "process 12, 14", 0},
		{"many left", marks, "left 2 3 4 5 6 7 8\n", runs, -1, KindRunning, "process 2, 3, 4, 5, 6 and 2 more", 0},
		{"hidden", marks, "hidden\n", runs, -1, KindRunning, "belongs to another user", 0},
		{"shared", marks, "shared\n", runs, -1, KindLost, "no process group of its own", time.Second},
		{"ended", marks, "ended\n", killed, 143, "", "", 0},
		{"ended, and no exit", marks, "ended\n", runs, -1, KindLost, "ended, and not how", time.Second},
		{"nonsense", marks, "sh: syntax error\n", killed, 143, KindLost, `with exit 0; the host said: "sh: syntax error"`, 0},
		{"no mark", (*peerSession).accept, "", runs, -1, KindLost, "did not say which process", markTime},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				var command *peerSession
				p := peer{exec: func(s *peerSession) {
					if !strings.Contains(s.line, "muster-stop") {
						command = s
						test.begin(s)
						return
					}
					if !strings.Contains(s.line, "set -- 12 11 ") {
						t.Errorf("the script is not told the processes: %s", s.line)
					}
					test.then(command)
					s.end(test.said, 0)
				}}
				result, err := stopAfter(t, &p, time.Minute, test.most)
				if result.ExitCode != test.code {
					t.Errorf("code %d, want %d", result.ExitCode, test.code)
				}
				if test.kind == "" {
					if err != nil {
						t.Errorf("got %v, want its own end", err)
					}
					return
				}
				wantKind(t, err, test.kind, true, test.words)
			})
		})
	}
}

// marks accepts a command and says which process it is.
func marks(s *peerSession) {
	s.accept()
	_, nonce, _ := strings.Cut(s.line, "echo ")
	nonce, _, _ = strings.Cut(nonce, " ")
	fmt.Fprintf(s, "%s 12 11\n", nonce)
}

// stopAfter runs a command in a bubble and stops it after some time. It must have
// ended so much later.
func stopAfter(t *testing.T, p *peer, after, most time.Duration) (Result, error) {
	t.Helper()
	client, host := p.piped(t, Default())
	conn, err := client.Connect(t.Context(), host)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	stop := make(chan struct{})
	time.AfterFunc(after, func() { close(stop) })
	begun := time.Now()
	result, err := conn.Run(t.Context(), Command{Shell: "true", Bound: time.Hour, Stop: stop})
	if late := time.Since(begun) - after; late > most {
		t.Errorf("it took %s after the stop, want at most %s", late, most)
	}
	return result, err
}

// Whatever the host does not do, nobody waits longer than Config.Stop.
func TestStopIsBounded(t *testing.T) {
	t.Parallel()
	never := func(*peerSession) {}
	for _, test := range []struct {
		name string
		p    peer
		most time.Duration
		kind Kind
		sent bool
	}{
		{"no session", peer{channel: func(ssh.NewChannel) bool { return false }}, 0, KindStopped, false},
		{"no answer to the command", peer{exec: never}, Default().Stop, KindLost, true},
		{"no answer to the script", peer{exec: func(s *peerSession) {
			if !strings.Contains(s.line, "muster-stop") {
				marks(s)
			}
		}}, Default().Stop, KindLost, true},
		{"no end of the script", peer{exec: func(s *peerSession) {
			marks(s)
		}}, Default().Stop, KindLost, true},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				_, err := stopAfter(t, &test.p, time.Second, test.most)
				wantKind(t, err, test.kind, test.sent)
			})
		})
	}
}

func TestStoppedBeforeItIsSent(t *testing.T) {
	t.Parallel()
	p := peer{exec: func(s *peerSession) { t.Error("it was sent") }}
	conn := connect(t, p.listen(t))
	stop := make(chan struct{})
	close(stop)
	_, err := conn.Run(t.Context(), Command{Shell: "true", Bound: time.Minute, Stop: stop})
	wantKind(t, err, KindStopped, false, "before it was started")
	err = conn.Upload(t.Context(), Upload{Path: "/x", Content: strings.NewReader(""), Bound: 1, Stop: stop})
	wantKind(t, err, KindStopped, false, "before it was started")
}

// scriptWays are the two ways of the script to see processes, and a system whose
// sleep knows whole seconds only.
func scriptWays(t *testing.T) map[string]string {
	t.Helper()
	dir := t.TempDir()
	old := "#!/bin/sh\ncase $1 in *.*) exit 1;; esac\nexec /bin/sleep \"$@\"\n"
	if err := os.WriteFile(filepath.Join(dir, "sleep"), []byte(old), 0o755); err != nil {
		t.Fatal(err)
	}
	hasty := strings.Replace(stopScript, "soft='.05 .1 .2 .4 .4 .4 .5' hard='.05 .1 .3 .5'",
		"soft='.05 .05' hard='.05 .1 .3 .5 .5'", 1)
	if hasty == stopScript {
		t.Fatal("the script has other pauses")
	}
	return map[string]string{
		"ps":        hasty,
		"proc":      strings.Replace(hasty, "ps='ps ", "ps='no-such-command ", 1),
		"old sleep": "PATH=" + dir + ":$PATH\n" + stopScript,
	}
}

// The script judges process groups of all kinds. (That it ends those of commands
// is shown on a real sshd.)
func TestStopScript(t *testing.T) {
	t.Parallel()
	for way, script := range scriptWays(t) {
		t.Run(way, func(t *testing.T) {
			t.Parallel()
			leader := startGroup(t, `trap "" TERM; echo; while :; do sleep 0.1; done`)
			other := startGroup(t, "echo; sleep 60")
			dead := startGroup(t, "echo; exit 0")
			waitFor(t, dead)
			litter := filepath.Join(t.TempDir(), "litter")
			if err := os.WriteFile(litter, nil, 0o600); err != nil {
				t.Fatal(err)
			}
			for _, ask := range []struct {
				what          string
				shell, parent int
				want          string
			}{
				{"a process that is gone", dead.Process.Pid, 2, "ended"},
				{"a group of neither of the two", os.Getpid(), 2, "shared"},
				{"a group that ignores TERM", leader.Process.Pid, os.Getpid(), "gone"},
				{"a group", other.Process.Pid, os.Getpid(), "gone"},
			} {
				if ask.want == "gone" {
					if _, err := os.Stat(litter); err != nil && ask.what != "a group" {
						t.Errorf("the file is gone too early: %v", err)
					}
				}
				got := runScript(t, script, nil, mark{ask.shell, ask.parent}, litter)
				if got != ask.want {
					t.Errorf("%s: %q, want %q", ask.what, got, ask.want)
				}
			}
			if _, err := os.Stat(litter); !os.IsNotExist(err) {
				t.Errorf("the file was left behind: %v", err)
			}
		})
	}
}

// The script itself must not be hit.
func TestStopScriptSparesItsOwnGroup(t *testing.T) {
	t.Parallel()
	for way, script := range scriptWays(t) {
		own := strings.Replace(script, "g=$(group \"$1\")", "set -- $$ $PPID; g=$(group \"$1\")", 1)
		if got := runScript(t, own, nil, mark{2, 2}); got != "shared" {
			t.Errorf("%s: %q, want shared", way, got)
		}
	}
}

// A command may have become another user's, as by sudo: kill tells nobody but
// root of such a process whether it is there.
func TestStopScriptOfAnotherUser(t *testing.T) {
	t.Parallel()
	if os.Getuid() != 0 {
		t.Skip("only root can be another user")
	}
	nobody := &syscall.Credential{Uid: 65534, Gid: 65534}
	for way, script := range scriptWays(t) {
		if way == "old sleep" {
			continue // its folder is not for others
		}
		script = strings.Replace(script, "hard='.05 .1 .3 .5 .5'", "hard=.05", 1) // it does not end
		t.Run(way, func(t *testing.T) {
			t.Parallel()
			roots := startGroup(t, "echo; sleep 60")
			pid := roots.Process.Pid
			of := mark{pid, os.Getpid()}
			got := runScript(t, script, nobody, of)
			if !strings.HasPrefix(got, fmt.Sprintf("left %d", pid)) {
				t.Errorf("%q, want that %d is left", got, pid)
			}
			// As where /proc shows only what is one's own.
			blind := strings.Replace(script, "left=$(living)", "left=", 1)
			if got := runScript(t, blind, nobody, of); got != "hidden" {
				t.Errorf("%q, want hidden", got)
			}
		})
	}
}

// startGroup starts a shell that leads a process group and waits until it says so
// with a line.
func startGroup(t *testing.T, text string) *exec.Cmd {
	t.Helper()
	cmd := exec.Command("sh", "-c", text)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
		_ = cmd.Wait()
	})
	if _, err := out.Read(make([]byte, 1)); err != nil {
		t.Fatal(err)
	}
	return cmd
}

func waitFor(t *testing.T, cmd *exec.Cmd) {
	t.Helper()
	if err := cmd.Wait(); err != nil {
		t.Fatal(err)
	}
}

// runScript runs the script as a user, nil for our own, and returns its last line.
func runScript(t *testing.T, script string, as *syscall.Credential, of mark, litter ...string) string {
	t.Helper()
	args := append([]string{"-c", script, "sh", fmt.Sprint(of.shell), fmt.Sprint(of.parent)}, litter...)
	cmd := exec.Command("sh", args...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Credential: as}
	cmd.Dir = "/"
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	return string(lastOf(out))
}
