package hosttest

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"
)

// mark is the variable that tells a test binary which test it was started for.
const mark = "HOSTTEST_INSIDE"

// The network in which a test and its hosts are alone; the address is the test's.
const (
	network = "198.18."
	here    = network + "0.1"
)

// needed are the programs without which there are no hosts, and their packages.
var needed = [][2]string{{"ip", "iproute2"}, {"nsenter", "util-linux"}, {"mount", "mount"},
	{"busybox", "busybox"}, {"sshd", "openssh-server"}}

// Inside lets a test go on in namespaces of its own. It returns false where the test
// was just run there, in another process, and has been judged; then there is
// nothing left to do for this one:
//
//	if !hosttest.Inside(t) {
//		return
//	}
//
// t must be a test, not a part of one. A test is skipped where it cannot have
// namespaces; for root on Debian, a program that is missing is a failure.
func Inside(t *testing.T) bool {
	t.Helper()
	if os.Getenv(mark) == t.Name() {
		furnish(t)
		return true
	}
	if strings.Contains(t.Name(), "/") {
		t.Fatalf("hosttest.Inside is for whole tests, %s is a part of one", t.Name())
	}
	require(t)
	within(t)
	return false
}

func require(t *testing.T) {
	t.Helper()
	if os.Getuid() != 0 {
		t.Skip("namespaces need root")
	}
	os.Setenv("PATH", os.Getenv("PATH")+":/usr/local/sbin:/usr/sbin:/sbin")
	_, debian := os.Stat("/etc/debian_version")
	for _, n := range needed {
		if _, err := exec.LookPath(n[0]); err == nil {
			continue
		}
		if debian == nil {
			t.Fatalf("there is no %s: apt-get install %s", n[0], n[1])
		}
		t.Skipf("there is no %s on this machine", n[0])
	}
}

// within runs this test again, as the first process of new namespaces: all that it
// starts ends with it, and it ends with us.
func within(t *testing.T) {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	args := []string{"-test.run=^" + t.Name() + "$", "-test.v", "-test.count=1"}
	if deadline, ok := t.Deadline(); ok {
		// A little earlier than ours, so that it can say where it stood.
		args = append(args, fmt.Sprintf("-test.timeout=%s", max(time.Until(deadline)-5*time.Second, time.Second)))
	}
	if testing.Short() {
		args = append(args, "-test.short")
	}
	for _, arg := range os.Args[1:] { // those of the package's own flags
		if !strings.HasPrefix(arg, "-test.") {
			args = append(args, arg)
		}
	}
	runtime.LockOSThread() // Pdeathsig means the death of the thread that started it
	defer runtime.UnlockOSThread()
	cmd := exec.Command(self, args...)
	cmd.Env = append(os.Environ(), mark+"="+t.Name())
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL,
		Cloneflags: syscall.CLONE_NEWNET | syscall.CLONE_NEWNS | syscall.CLONE_NEWPID | syscall.CLONE_NEWUTS}
	var said bytes.Buffer
	cmd.Stdout, cmd.Stderr = &said, &said
	if err := cmd.Start(); err != nil {
		if errors.Is(err, syscall.EPERM) || errors.Is(err, syscall.ENOSYS) {
			t.Skipf("this machine gives no namespaces: %v", err)
		}
		t.Fatal(err)
	}
	err = cmd.Wait()
	switch text := said.String(); {
	case err != nil:
		t.Fatalf("%v in namespaces of its own; it said:\n%s", err, text)
	case strings.Contains(text, "--- SKIP: "+t.Name()+" "):
		t.Skipf("in namespaces of its own it said:\n%s", text)
	case !strings.Contains(text, "--- PASS: "+t.Name()+" "):
		t.Fatalf("the test did not run in namespaces of its own; it said:\n%s", text)
	default:
		t.Logf("in namespaces of its own it said:\n%s", text)
	}
}

// furnish gives the new namespaces what a process expects, and a bridge to which
// hosts are plugged.
func furnish(t *testing.T) {
	t.Helper()
	for _, words := range []string{
		"mount --make-rprivate /",
		"mount -t proc proc /proc",
		"ip link set lo up",
		"ip link add br0 address 02:00:00:00:ff:01 type bridge", // else it takes that of some cable
		"ip addr add " + here + "/16 dev br0",
		"ip link set br0 up",
	} {
		if err := command(words); err != nil {
			t.Fatal(err)
		}
	}
}

// command runs a program; its words have no blanks in them.
func command(words string) error {
	list := strings.Fields(words)
	out, err := exec.Command(list[0], list[1:]...).CombinedOutput()
	if err != nil {
		return fmt.Errorf("%s: %w: %s", words, err, out)
	}
	return nil
}
