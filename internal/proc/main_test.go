package proc

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"testing"
	"time"

	"go.uber.org/goleak"
	"golang.org/x/sys/unix"
)

// asChild is the argument that makes the test binary a child; the next one says
// which.
const asChild = "as-child"

func TestMain(m *testing.M) {
	if len(os.Args) > 2 && os.Args[1] == asChild {
		if err := childModes[os.Args[2]](os.Args[3:]); err != nil {
			fmt.Fprintln(os.Stderr, os.Args[2]+":", err)
			os.Exit(9)
		}
		os.Exit(0)
	}
	goleak.VerifyTestMain(m)
}

// childModes holds the behaviours of a child in a test.
var childModes = map[string]func(args []string) error{
	"echo":    echo,
	"say":     say,
	"exit":    exitWith,
	"environ": environ,
	"upgrade": upgrade,
	"after":   afterUpgrade,
	"by-hand": byHand,
	"full":    signOnAFullDisk,
}

// echo sends back what it hears, until its parent is gone.
func echo([]string) error {
	conn, err := Inherited()
	if err != nil {
		return err
	}
	for {
		var v any
		err := conn.Receive(&v)
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		if err := conn.Send(v); err != nil {
			return err
		}
	}
}

// say sends each of its arguments and then waits for its parent's end.
func say(args []string) error {
	conn, err := Inherited()
	if err != nil {
		return err
	}
	for _, a := range args {
		if err := conn.Send(a); err != nil {
			return err
		}
	}
	var v any
	if err := conn.Receive(&v); !errors.Is(err, io.EOF) {
		return fmt.Errorf("heard %v, %w", v, err)
	}
	return nil
}

func exitWith(args []string) error {
	code, err := strconv.Atoi(args[0])
	if err == nil {
		os.Exit(code)
	}
	return err
}

// environ sends its environment and which of the files from 4 on are open.
func environ([]string) error {
	conn, err := Inherited()
	if err != nil {
		return err
	}
	return conn.Send(map[string]any{"env": os.Environ(), "four": isOpen(filesFD)})
}

// signOnAFullDisk signs a lock, and again when no file can be written any more. It
// sends what the file says after each, and the error.
func signOnAFullDisk(args []string) error {
	conn, err := Inherited()
	if err != nil {
		return err
	}
	l, err := Lock(args[0])
	if err != nil {
		return err
	}
	if err := l.Sign(Holder{7, "before"}); err != nil {
		return err
	}
	before := fmt.Sprint(l.Holder())
	if err := unix.Setrlimit(unix.RLIMIT_FSIZE, &unix.Rlimit{}); err != nil {
		return err
	}
	err = l.Sign(Holder{8, "after"})
	return conn.Send([]string{before, fmt.Sprint(l.Holder()), fmt.Sprint(err)})
}

// byHand returns the error of a child that no parent has started.
func byHand([]string) error {
	_, err := Inherited()
	fmt.Println(err)
	return nil
}

// childEnv is all of the environment of a child. The race detector waits a second
// at each exit if it is not told otherwise.
var childEnv = []string{"LANG=C", "GORACE=atexit_sleep_ms=0"}

// spec is that of a child which runs a mode of this test binary.
func spec(args ...string) Spec {
	return Spec{Path: os.Args[0], Args: append([]string{asChild}, args...), Env: childEnv}
}

// start starts a child that is killed and reaped at the end of the test.
func start(t *testing.T, args ...string) *Child {
	t.Helper()
	return startSpec(t, spec(args...))
}

func startSpec(t *testing.T, s Spec) *Child {
	t.Helper()
	c, err := NewParent().Start(s)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		c.Kill()
		c.Wait()
		c.Conn.Close()
	})
	return c
}

func receive[T any](t *testing.T, c *Conn) T {
	t.Helper()
	var v T
	if err := c.Receive(&v); err != nil {
		t.Fatal("receive:", err)
	}
	return v
}

// patience bounds the wait of a test for events that must happen at once. Only a failing test uses
// it up.
const patience = 20 * time.Second

// exitOf waits for the end of a child.
func exitOf(t *testing.T, c *Child) Exit {
	t.Helper()
	timer := time.AfterFunc(patience, func() { c.Kill() })
	defer timer.Stop()
	e, err := c.Wait()
	if err != nil {
		t.Fatal("wait:", err)
	}
	return e
}
