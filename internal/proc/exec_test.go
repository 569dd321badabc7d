package proc

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// upgrade is a child that starts a child of its own, and then puts the test
// binary, as afterUpgrade, in its place. args: a path that cannot be run.
func upgrade(args []string) error {
	up, err := Inherited()
	if err != nil {
		return err
	}
	c, err := NewParent().Start(spec("echo"))
	if err != nil {
		return err
	}
	down, unread, err := c.Detach()
	if err != nil {
		return err
	}
	state, err := Memory([]byte(strconv.Itoa(c.PID) + " " + string(unread)))
	if err != nil {
		return err
	}
	upFile, _, err := up.detach()
	if err != nil {
		return err
	}
	keep := []*os.File{state, upFile, down}

	if err := Exec(args[0], nil, nil, keep); err == nil || !strings.Contains(err.Error(), args[0]) {
		return fmt.Errorf("exec of %s: %v, want an error that names it", args[0], err)
	}
	for _, f := range keep {
		flags, err := unix.FcntlInt(f.Fd(), unix.F_GETFD, 0)
		if err != nil || flags&unix.FD_CLOEXEC == 0 {
			return fmt.Errorf("fd %d after an exec that failed: flags %d, %v", f.Fd(), flags, err)
		}
	}
	argv := []string{os.Args[0], asChild, "after", strconv.Itoa(os.Getpid())}
	return Exec(os.Args[0], argv, append(childEnv, KeptEnv+"=77"), keep)
}

func afterUpgrade(args []string) error {
	kept, err := Kept(os.Getenv(KeptEnv))
	if err != nil {
		return err
	}
	up, err := newConn(kept[1], nil)
	if err != nil {
		return err
	}
	text, err := io.ReadAll(kept[0])
	if err != nil {
		return err
	}
	pid, err := strconv.Atoi(strings.TrimSpace(string(text)))
	if err != nil {
		return err
	}
	c, err := NewParent().Adopt(pid, kept[2], nil)
	if err != nil {
		return err
	}
	var heard string
	if err := errors.Join(c.Conn.Send("hello"), c.Conn.Receive(&heard), c.Conn.Close()); err != nil {
		return err
	}
	e, err := c.Wait()
	if err != nil {
		return err
	}
	return up.Send([]string{args[0], strconv.Itoa(os.Getpid()), heard, e.String()})
}

func TestExecInPlace(t *testing.T) {
	t.Parallel()
	c := start(t, "upgrade", filepath.Join(t.TempDir(), "none"))
	got := receive[[]string](t, c.Conn)
	pid := strconv.Itoa(c.PID)
	want := []string{pid, pid, "hello", "exit 0"}
	if strings.Join(got, " ") != strings.Join(want, " ") {
		t.Errorf("pid before, pid after, the child's echo and end: %q, want %q", got, want)
	}
	if e := exitOf(t, c); e != (Exit{}) {
		t.Errorf("%v, want exit 0", e)
	}
}

func TestKept(t *testing.T) {
	t.Parallel()
	if files, err := Kept(""); files != nil || err != nil {
		t.Errorf("nothing kept: %v, %v", files, err)
	}
	for _, list := range []string{"x", "3,,4", "-1", "0", "2", "99999", "3 "} {
		if files, err := Kept(list); err == nil || !strings.Contains(err.Error(), KeptEnv) {
			t.Errorf("%q: %v, %v, want an error that names %s", list, files, err, KeptEnv)
		}
	}
}

func TestPath(t *testing.T) {
	t.Parallel()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	link := filepath.Join(dir, "current")
	if err := os.Symlink(self, link); err != nil {
		t.Fatal(err)
	}
	other := filepath.Join(dir, "other")
	if err := os.WriteFile(other, []byte("#!/bin/sh\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	tests := []struct{ name, argv0, want string }{
		{"a path", self, self},
		{"a link that may move", link, link},
		{"another file of that name", other, self},
		{"nothing", filepath.Join(dir, "none"), self},
		{"the name of another program", "sh", self},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			if got, err := Path(test.argv0); got != test.want || err != nil {
				t.Errorf("Path(%q) = %q, %v, want %q", test.argv0, got, err, test.want)
			}
		})
	}
}

func TestTry(t *testing.T) {
	t.Parallel()
	out, err := Try(t.Context(), "/bin/sh", "-c", "echo printed; echo said >&2")
	if string(out) != "printed\n" || err != nil {
		t.Errorf("output %q, %v: want what it prints", out, err)
	}
	_, err = Try(t.Context(), "/bin/sh", "-c", "echo no such library >&2; exit 127")
	if err == nil || !strings.Contains(err.Error(), "no such library") {
		t.Errorf("error %v: want the last words", err)
	}
	if _, err := Try(t.Context(), "/nowhere/muster", "version"); err == nil {
		t.Error("a file that is not there started well")
	}
}
