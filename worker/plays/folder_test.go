package plays

import (
	"bufio"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"muster/worker/playbook"
)

// inFolders is the variable that makes a process of this test one that holds a private folder.
const inFolders = "MUSTER_TEST_HOLDS_A_FOLDER_IN"

// held keeps the lock of such a process: a file that nobody names is closed.
var held *folder

func TestMain(m *testing.M) {
	if in := os.Getenv(inFolders); in != "" {
		var err error
		if held, err = newFolder(in); err == nil {
			err = held.write(map[string]playbook.File{"deep/password": {Text: "hunter2", Mode: 0o600}})
		}
		if err != nil {
			panic(err)
		}
		os.Stdout.WriteString(held.dir + "\n")
		_, _ = io.Copy(io.Discard, os.Stdin) // until it is killed; a process that waits for nothing ends
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// A process that is killed with its watcher leaves its private folder behind; RemoveLeft removes it, and
// leaves the folder of a play that runs.
func TestFoldersOfWorkersThatWereKilledAreRemoved(t *testing.T) {
	t.Parallel()
	in := filepath.Join(t.TempDir(), "plays")
	if n, err := RemoveLeft(in); n != 0 || err != nil {
		t.Errorf("without a folder: %d, %v", n, err)
	}
	var dirs []string
	var holders []*exec.Cmd
	for range 2 {
		cmd := exec.Command(os.Args[0])
		cmd.Env = append(os.Environ(), inFolders+"="+in)
		if _, err := cmd.StdinPipe(); err != nil {
			t.Fatal(err)
		}
		out, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			_ = cmd.Process.Kill()
			_ = cmd.Wait()
		})
		line, err := bufio.NewReader(out).ReadString('\n')
		if err != nil {
			t.Fatal(err)
		}
		dirs, holders = append(dirs, line[:len(line)-1]), append(holders, cmd)
	}
	if n, err := RemoveLeft(in); n != 0 || err != nil {
		t.Fatalf("both run: %d, %v", n, err)
	}
	if err := holders[0].Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = holders[0].Wait()
	if err := os.MkdirAll(filepath.Join(in, "play-of-an-older-muster"), 0o700); err != nil {
		t.Fatal(err)
	}
	if n, err := RemoveLeft(in); n != 1 || err != nil {
		t.Errorf("one was killed: %d, %v", n, err)
	}
	if left, err := filepath.Glob(filepath.Join(in, "*")); err != nil || len(left) != 2 || left[1] != dirs[1] {
		t.Errorf("left: %q, %v, want %s and that of an older muster", left, err, dirs[1])
	}
	if text, err := os.ReadFile(filepath.Join(dirs[1], "deep", "password")); string(text) != "hunter2" {
		t.Errorf("the folder that is in use: %q, %v", text, err)
	}
}

// A playbook that has outlived its worker and its watcher is killed. Its processes name the folder in
// their environment or their arguments. Other folders may have names that begin in the same way.
func TestAPlaybookThatNobodyWatchesIsKilled(t *testing.T) {
	t.Parallel()
	in := t.TempDir()
	var dirs []string
	for i := range 2 {
		f, err := newFolder(in)
		if err != nil {
			t.Fatal(err)
		}
		if dirs = append(dirs, f.dir); i == 0 {
			err = f.lock.Free()
		}
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(f.remove)
	}
	gone := []outlived{outlives(t, "HOME="+dirs[0], ""), outlives(t, "A=b", "ssh: "+dirs[0]+"/cp/1 [mux]")}
	var stay []outlived
	for _, other := range []string{dirs[0] + "1", dirs[1]} {
		stay = append(stay, outlives(t, "HOME="+other, other+"/x"))
	}
	if n, err := RemoveLeft(in); n != 1 || err != nil {
		t.Errorf("removed: %d, %v", n, err)
	}
	for _, o := range gone {
		if err := o.cmd.Wait(); err == nil || !strings.Contains(err.Error(), "killed") {
			t.Errorf("a process of the playbook ended by itself: %v", err)
		}
	}
	for _, o := range stay {
		o.in.Close() // it ends then
		if err := o.cmd.Wait(); err == nil || err.Error() != "exit status 1" {
			t.Errorf("a process of another folder was killed: %v", err)
		}
	}
}

// An outlived is a process that has outlived its watcher.
type outlived struct {
	cmd *exec.Cmd
	in  io.Closer // at whose end it ends
}

// outlives starts a process that waits, with one variable and one argument.
func outlives(t *testing.T, variable, argument string) outlived {
	t.Helper()
	cmd := exec.Command("/bin/sh", "-c", "echo up; read -r _", argument)
	cmd.Env = []string{variable}
	in, err := cmd.StdinPipe()
	out, bad := cmd.StdoutPipe()
	if err = errors.Join(err, bad); err == nil {
		err = cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { in.Close() })
	if _, err := bufio.NewReader(out).ReadString('\n'); err != nil {
		t.Fatal(err)
	}
	return outlived{cmd, in}
}

func TestAFolderIsRemovedWithItsPlay(t *testing.T) {
	t.Parallel()
	in := t.TempDir()
	f, err := newFolder(in)
	if err != nil {
		t.Fatal(err)
	}
	if info, err := os.Stat(f.dir); err != nil || info.Mode().Perm() != 0o700 {
		t.Errorf("%v, %v", info, err)
	}
	f.remove()
	if left, _ := os.ReadDir(in); len(left) > 0 {
		t.Errorf("left: %v", left)
	}
	if _, err := newFolder(filepath.Join(in, "a blank")); err == nil {
		t.Error("a path with a blank")
	}
}
