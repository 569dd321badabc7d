package proc_test

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"syscall"
	"testing"

	"muster/internal/proc"
)

// A process with keys dies of a signal that otherwise leaves a core, and another process of the same
// user may not trace it.
func TestAPrivateProcessLeavesNoCoreAndIsNotRead(t *testing.T) {
	if os.Getenv("PRIVATE") != "" {
		if err := proc.Private(); err != nil {
			t.Fatal(err)
		}
		os.Stdout.WriteString("!")
		select {}
	}
	t.Parallel()
	cmd := exec.Command(os.Args[0], "-test.run=^TestAPrivateProcessLeavesNoCoreAndIsNotRead$")
	cmd.Env, cmd.Dir = append(os.Environ(), "PRIVATE=1"), t.TempDir()
	if os.Geteuid() == 0 { // root may read all: somebody else tries, and is somebody else's
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 61233, Gid: 61233}}
		self, err := os.Open(os.Args[0])
		if err != nil {
			t.Fatal(err)
		}
		defer self.Close()
		cmd.Path, cmd.ExtraFiles, cmd.Dir = "/proc/self/fd/3", []*os.File{self}, "/"
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	var said [1]byte
	if _, err := out.Read(said[:]); err != nil || said[0] != '!' {
		t.Fatalf("it says %q, %v", said, err)
	}
	dir := filepath.Join("/proc", strconv.Itoa(cmd.Process.Pid))
	for _, name := range []string{"environ", "mem", "maps", "auxv"} {
		reader := exec.Command("cat", filepath.Join(dir, name))
		reader.SysProcAttr, reader.Dir = cmd.SysProcAttr, "/"
		if data, err := reader.Output(); err == nil && len(data) > 0 {
			t.Errorf("another process of the user reads %d bytes of %s", len(data), name)
		}
	}
	if err := cmd.Process.Signal(syscall.SIGABRT); err != nil {
		t.Fatal(err)
	}
	var ended *exec.ExitError
	if err := cmd.Wait(); !errors.As(err, &ended) {
		t.Fatalf("it ended %v", err)
	}
	if status, is := ended.Sys().(syscall.WaitStatus); is && status.CoreDump() {
		t.Error("it left a core")
	}
}
