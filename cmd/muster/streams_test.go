package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"muster/cli"
)

// readers are commands that read the file of an argument, %s, before they ask a server.
var readers = []string{
	"windows apply --check %s",
	"schedules apply --check %s",
	"run script --on all --arg-file script=%s",
	"run script --on @%s --arg script=x",
	"hosts @%s",
	"blob put %s",
	"plan script --on all --arg-file script=%s",
	"run script --on all --become-password @%s",
}

// A named pipe has no writer, and opening it would wait for ever.
func TestANamedPipeIsRefusedAtOnce(t *testing.T) {
	t.Parallel()
	dir := bin(t)
	pipe := filepath.Join(t.TempDir(), "pipe.yaml")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, line := range readers {
		t.Run(line, func(t *testing.T) {
			t.Parallel()
			cmd := operator(dir, fmt.Sprintf(line, pipe))
			out, err := cmd.CombinedOutput()
			if cmd.ProcessState.ExitCode() != cli.ExitUsage || !strings.Contains(string(out), "it is a named pipe") {
				t.Errorf("%v, exit %d, it says: %s", err, cmd.ProcessState.ExitCode(), out)
			}
		})
	}
}

func TestTermAndIntEndTheWaitForAStream(t *testing.T) {
	t.Parallel()
	dir := bin(t)
	for _, line := range readers {
		for path, signal := range map[string]os.Signal{"-": syscall.SIGTERM, "/dev/stdin": syscall.SIGINT,
			"/dev/fd/3": syscall.SIGTERM} {
			t.Run(fmt.Sprintf(line, path), func(t *testing.T) {
				t.Parallel()
				cmd := operator(dir, fmt.Sprintf(line, path))
				r, w, err := os.Pipe()
				if err != nil {
					t.Fatal(err)
				}
				defer r.Close()
				defer w.Close()
				cmd.Stdin, cmd.ExtraFiles = r, []*os.File{r}
				if err := cmd.Start(); err != nil {
					t.Fatal(err)
				}
				// It has begun to read when it took more than a pipe holds: by then it handles signals.
				fill(t, w)
				if err := cmd.Process.Signal(signal); err != nil {
					t.Fatal(err)
				}
				var ended *exec.ExitError
				if err := cmd.Wait(); !errors.As(err, &ended) || ended.ExitCode() != cli.ExitInterrupted {
					t.Errorf("it ended with %v, want exit %d", err, cli.ExitInterrupted)
				}
			})
		}
	}
}

// fill writes more than a pipe holds, so it returns only after a reader has begun.
func fill(t *testing.T, w io.Writer) {
	t.Helper()
	if _, err := w.Write(bytes.Repeat([]byte("# comment\n"), 7000)); err != nil {
		t.Fatal(err)
	}
}

func TestAStreamIsReadToItsEnd(t *testing.T) {
	t.Parallel()
	dir := bin(t)
	for _, path := range []string{"-", "/dev/stdin", "<(cat)"} {
		cmd := exec.Command("bash", "-c", "printf nonsense: | muster windows apply --check "+path)
		cmd.Env = clientEnv(dir)
		out, _ := cmd.CombinedOutput()
		if code := cmd.ProcessState.ExitCode(); code != cli.ExitUsage || !strings.Contains(string(out), ":1") {
			t.Errorf("%s: exit %d: %s", path, code, out)
		}
	}
}

func operator(dir, line string) *exec.Cmd {
	cmd := exec.Command(filepath.Join(dir, "muster"), strings.Fields(line)...)
	cmd.Env = clientEnv(dir)
	return cmd
}

func clientEnv(dir string) []string {
	return append(os.Environ(), "MUSTER_URL=http://127.0.0.1:1", "PATH="+dir+":"+os.Getenv("PATH"))
}
