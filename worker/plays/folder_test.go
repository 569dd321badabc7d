package plays

import (
	"bufio"
	"io"
	"os"
	"os/exec"
	"path/filepath"
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
