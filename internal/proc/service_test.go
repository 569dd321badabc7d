package proc

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

func TestAServiceWorksUntilItIsKilled(t *testing.T) {
	t.Parallel()
	log, err := os.Create(filepath.Join(t.TempDir(), "log"))
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	// Its input is a file for cat, and a fifo holds it until then.
	fifo := filepath.Join(t.TempDir(), "fifo")
	if err := exec.Command("mkfifo", fifo).Run(); err != nil {
		t.Fatal(err)
	}
	s, err := StartService(Program{Path: "/bin/sh", Args: []string{"-c", "cat; echo to stderr >&2; cat <" + fifo},
		Env: []string{}, In: []byte("its input\n")}, log)
	if err != nil {
		t.Fatal(err)
	}
	select {
	case <-s.Over():
		t.Fatal("it has ended")
	default:
	}
	pid := s.cmd.Process.Pid
	w, err := os.OpenFile(fifo, os.O_WRONLY, 0) // the program is there then
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	s.Kill()
	s.Kill() // has ended already
	if _, err := os.Stat("/proc/" + strconv.Itoa(pid)); !os.IsNotExist(err) {
		t.Errorf("the process is still there: %v", err)
	}
	said, _ := os.ReadFile(log.Name())
	if string(said) != "its input\nto stderr\n" {
		t.Errorf("it said %q", said)
	}
}

func TestAServiceThatIsNotThere(t *testing.T) {
	t.Parallel()
	_, err := StartService(Program{Path: filepath.Join(t.TempDir(), "nothing")}, nil)
	if !errors.Is(err, os.ErrNotExist) {
		t.Errorf("error %v", err)
	}
}

// TestAServiceEndsWithItsProcess starts this test as another process, which starts a service and is
// killed.
func TestAServiceEndsWithItsProcess(t *testing.T) {
	t.Parallel()
	if fifo := os.Getenv("SERVICE_FIFO"); fifo != "" {
		p := Program{Path: "/bin/sh", Args: []string{"-c", "echo $$; exec cat <" + fifo}, Env: []string{}}
		if _, err := StartService(p, os.Stdout); err != nil {
			t.Fatal(err)
		}
		_, err := os.Stdin.Read(make([]byte, 1)) // until this process is killed
		t.Fatalf("standard input came to an end: %v", err)
	}
	fifo := filepath.Join(t.TempDir(), "fifo")
	if err := exec.Command("mkfifo", fifo).Run(); err != nil {
		t.Fatal(err)
	}
	hold, err := os.OpenFile(fifo, os.O_RDWR, 0) // the service would read it for ever
	if err != nil {
		t.Fatal(err)
	}
	defer hold.Close()
	cmd := exec.Command(os.Args[0], "-test.run", "^TestAServiceEndsWithItsProcess$")
	cmd.Env = append(os.Environ(), "SERVICE_FIFO="+fifo)
	r, err := cmd.StdoutPipe()
	in, bad := cmd.StdinPipe()
	if err = errors.Join(err, bad); err == nil {
		err = cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	said := make([]byte, 100)
	n, err := r.Read(said)
	pid := strings.TrimSpace(string(said[:n]))
	if err != nil || pid == "" {
		t.Fatalf("read %q, %v", said[:n], err)
	}
	defer in.Close()
	cmd.Process.Kill()
	// The pipe ends when the service has ended, too.
	for err == nil {
		_, err = r.Read(said)
	}
	cmd.Wait()
}
