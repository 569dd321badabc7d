package proc

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

var plainEnv = []string{"PATH=/usr/local/bin:/usr/bin:/bin"}

func TestAWholeProgramEndsWithItsCode(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]int{"exit 0": 0, "exit 7": 7, "kill -TERM $$": 143} {
		var said, events bytes.Buffer
		w := Whole{Name: "sh", Args: []string{"-c", "echo said; echo event >&4; " + text}, Env: plainEnv,
			Dir: t.TempDir(), Said: &said, Events: &events}
		exit, err := w.Run(t.Context())
		if exit != want || err != nil || said.String() != "said\n" || events.String() != "event\n" {
			t.Errorf("%s: exit %d, %v, said %q, events %q", text, exit, err, &said, &events)
		}
	}
	w := Whole{Name: "no-such-program", Env: plainEnv, Dir: t.TempDir(), Said: &bytes.Buffer{},
		Events: &bytes.Buffer{}}
	if exit, err := w.Run(t.Context()); exit != 127 || err != nil {
		t.Errorf("a missing program: exit %d, %v", exit, err)
	}
}

// A onLine calls a function at the first line that is written to it.
type onLine struct {
	once sync.Once
	do   func()
}

func (o *onLine) Write(p []byte) (int, error) {
	o.once.Do(o.do)
	return len(p), nil
}

// The second process has left the group, and closed what it has inherited.
const leaves = `setsid sh -c 'exec <&- >&- 2>&- 4>&-; echo $$ > away; sleep 600' &
sleep 600 &
while ! [ -s away ]; do sleep 0.02; done
echo event >&4
`

func TestAWholeProgramIsKilledWithAllThatItStarted(t *testing.T) {
	t.Parallel()
	cause := errors.New("enough")
	for name, end := range map[string]string{"by its end": "exit 3", "by its context": "wait"} {
		dir := t.TempDir()
		ctx, cancel := context.WithCancelCause(t.Context())
		do := func() {
			if end == "wait" {
				cancel(cause)
			}
		}
		w := Whole{Name: "sh", Args: []string{"-c", leaves + end}, Env: plainEnv, Dir: dir,
			Said: &bytes.Buffer{}, Events: &onLine{do: do}}
		exit, err := w.Run(ctx)
		if end == "wait" && !errors.Is(err, cause) || end != "wait" && (exit != 3 || err != nil) {
			t.Errorf("%s: exit %d, %v", name, exit, err)
		}
		pid, err := os.ReadFile(filepath.Join(dir, "away"))
		if err != nil {
			t.Fatal(err)
		}
		stat, err := os.ReadFile("/proc/" + strings.TrimSpace(string(pid)) + "/environ")
		if err == nil && len(stat) > 0 && strings.Contains(string(stat), wholeMark) {
			t.Errorf("%s: what has left the group runs on", name)
		}
		cancel(nil)
	}
}

// TestAWholeProgramDiesWithWhoStartedIt starts this test again as a process, and kills that.
func TestAWholeProgramDiesWithWhoStartedIt(t *testing.T) {
	if dir := os.Getenv("WHOLE_DIR"); dir != "" {
		w := Whole{Name: "sh", Args: []string{"-c", "echo begun; exec sleep 600"}, Env: plainEnv, Dir: dir,
			Litter: filepath.Join(dir, "litter"), Said: os.Stdout, Events: os.Stderr}
		_, _ = w.Run(t.Context())
		return
	}
	t.Parallel()
	dir := t.TempDir()
	if err := os.Mkdir(filepath.Join(dir, "litter"), 0o700); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(os.Args[0], "-test.run", "^"+t.Name()+"$")
	cmd.Env = append(os.Environ(), "WHOLE_DIR="+dir)
	theirs, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	said := bufio.NewReader(theirs)
	if line, err := said.ReadString('\n'); line != "begun\n" {
		t.Errorf("said %q, %v", line, err)
	}
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	if rest, err := io.ReadAll(said); err != nil { // its end is that of the program
		t.Errorf("said %q, %v", rest, err)
	}
	_ = cmd.Wait() // killed
	if _, err := os.Stat(filepath.Join(dir, "litter")); !os.IsNotExist(err) {
		t.Errorf("its folder is still there: %v", err)
	}
}
