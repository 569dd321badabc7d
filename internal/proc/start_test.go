package proc

import (
	"errors"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"
)

func TestChildTalks(t *testing.T) {
	t.Parallel()
	c := start(t, "echo")
	want := map[string]any{"a": strings.Repeat("<\n>", 1<<17)}
	if err := c.Conn.Send(want); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, receive[map[string]any](t, c.Conn)); diff != "" {
		t.Error(diff)
	}
}

func TestChildInheritsOnlyWhatItIsGiven(t *testing.T) {
	t.Parallel()
	type answer struct {
		Env  []string
		Four bool
	}
	f, err := os.CreateTemp(t.TempDir(), "")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()

	bare := spec("environ")
	with := spec("environ")
	with.Files = []*os.File{f}
	for s, want := range map[*Spec]answer{
		&bare: {childEnv, false},
		&with: {childEnv, true},
	} {
		got := receive[answer](t, startSpec(t, *s).Conn)
		// Go's own poller may sit on 4 when nothing else does.
		if want.Four && !got.Four {
			t.Error("the file was not inherited as 4")
		}
		if diff := cmp.Diff(want.Env, got.Env); diff != "" {
			t.Error(diff)
		}
	}
}

func TestChildHasItsOwnProcessGroup(t *testing.T) {
	t.Parallel()
	c := start(t, "echo")
	if group, err := unix.Getpgid(c.PID); err != nil || group != c.PID {
		t.Errorf("process group %d, %v, want %d", group, err, c.PID)
	}
}

func TestExit(t *testing.T) {
	t.Parallel()
	for name, pidfd := range map[string]bool{"with pidfd": true, "without": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			tests := []struct {
				args []string
				end  func(*Child) error
				want string
			}{
				{args: []string{"exit", "0"}, want: "exit 0"},
				{args: []string{"exit", "2"}, want: "exit 2"},
				{args: []string{"echo"}, end: (*Child).Kill, want: "killed by signal 9"},
				{args: []string{"echo"}, end: (*Child).Terminate, want: "killed by signal 15"},
				{args: []string{"echo"}, end: func(c *Child) error { return c.Conn.c.CloseWrite() }, want: "exit 0"},
			}
			for _, test := range tests {
				c := start(t, test.args...)
				if !pidfd {
					c.pidfd.Close()
					c.pidfd = nil
				}
				if test.end != nil {
					if err := test.end(c); err != nil {
						t.Error(err)
					}
				}
				if got := exitOf(t, c).String(); got != test.want {
					t.Errorf("%v: %q, want %q", test.args, got, test.want)
				}
			}
		})
	}
}

func TestNoSignalAfterTheReaping(t *testing.T) {
	t.Parallel()
	c := start(t, "exit", "0")
	exitOf(t, c)
	c.PID = os.Getpid() // as if the pid were used again
	if err := c.Kill(); err != nil {
		t.Error(err)
	}
}

func TestWaitForNobodysChild(t *testing.T) {
	t.Parallel()
	a, _ := pair(t)
	f, unread, err := a.detach()
	if err != nil {
		t.Fatal(err)
	}
	c, err := NewParent().Adopt(os.Getppid(), f, unread)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Conn.Close()
	if got := exitOf(t, c); !got.Gone || got.String() != "vanished" {
		t.Errorf("exit %+v, want gone", got)
	}
}

func TestStartFails(t *testing.T) {
	t.Parallel()
	s := spec("echo")
	s.Path = t.TempDir() + "/none"
	_, err := NewParent().Start(s)
	if !errors.Is(err, os.ErrNotExist) || !strings.Contains(err.Error(), s.Path) {
		t.Errorf("start: %v, want that %s does not exist", err, s.Path)
	}
}

func TestDetachAndAdopt(t *testing.T) {
	t.Parallel()
	for name, pidfd := range map[string]bool{"with pidfd": true, "without": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := start(t, "say", "one", "two")
			if !pidfd {
				c.pidfd.Close()
				c.pidfd = nil
			}
			if got := receive[string](t, c.Conn); got != "one" {
				t.Fatalf("received %q, want one", got)
			}
			waited := make(chan error)
			go func() {
				_, err := c.Wait()
				waited <- err
			}()
			f, unread, err := c.Detach()
			if err != nil {
				t.Fatal(err)
			}
			if err := <-waited; !errors.Is(err, ErrDetached) {
				t.Errorf("wait: %v, want ErrDetached", err)
			}
			if err := c.Kill(); err != nil {
				t.Error(err)
			}

			next, err := NewParent().Adopt(c.PID, f, unread)
			if err != nil {
				t.Fatal(err)
			}
			defer next.Conn.Close()
			if got := receive[string](t, next.Conn); got != "two" {
				t.Errorf("received %q, want two", got)
			}
			next.Kill()
			if got := exitOf(t, next).String(); got != "killed by signal 9" {
				t.Errorf("exit %q, want a kill by the one who adopted", got)
			}
		})
	}
}

func TestDeathBetweenDetachAndAdopt(t *testing.T) {
	t.Parallel()
	c := start(t, "say", "last words")
	f, unread, err := c.Detach()
	if err != nil {
		t.Fatal(err)
	}
	if err := unix.Kill(c.PID, unix.SIGKILL); err != nil {
		t.Fatal(err)
	}
	for !isDead(c.PID) {
		unix.Waitid(unix.P_PID, c.PID, nil, unix.WEXITED|unix.WNOWAIT, nil)
	}
	next, err := NewParent().Adopt(c.PID, f, unread)
	if err != nil {
		t.Fatal(err)
	}
	defer next.Conn.Close()
	if got := exitOf(t, next).String(); got != "killed by signal 9" {
		t.Errorf("exit %q, want what happened in between", got)
	}
}

func TestInheritedByHand(t *testing.T) {
	t.Parallel()
	out, err := exec.Command(os.Args[0], asChild, "by-hand").Output()
	if err != nil || !strings.Contains(string(out), "started by hand?") {
		t.Errorf("%q, %v, want to be told that a master starts it", out, err)
	}
}
