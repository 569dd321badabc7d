package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"muster/api"
	"muster/jobs"
	"muster/testkit/porttest"
	"muster/testkit/sshtest"
)

// This file lets another user of the server's machine try what such a user can (issue 16, show 2).

// neighbourhood says what a neighbour tries.
type neighbourhood struct {
	Socket  string
	TCP     string
	PIDs    []int
	Folders []string
	Public  []string // what everybody may read
}

// spoils lists all that a neighbour got, for each way of trying.
type spoils map[string][]string

func (s spoils) note(way, what string, err error) {
	if err == nil {
		s[way] = append(s[way], what)
	}
}

// ways lists how a neighbour tries it.
var ways = []string{"socket", "TCP", "/proc", "links of /proc", "signal", "ptrace", "memory", "descriptor", "limits",
	"read", "list", "write", "create"}

// TestTryAsANeighbour does nothing unless the test of neighbours has started it as another user.
func TestTryAsANeighbour(t *testing.T) {
	text := os.Getenv("NEIGHBOURHOOD")
	if text == "" {
		return
	}
	var n neighbourhood
	if err := json.Unmarshal([]byte(text), &n); err != nil {
		t.Fatal(err)
	}
	s := spoils{}
	conn, err := net.Dial("unix", n.Socket)
	s.note("socket", n.Socket, err)
	if err == nil {
		conn.Close()
	}
	n.calls(s)
	for _, pid := range n.PIDs {
		n.looksInto(s, pid)
		n.touches(s, pid)
	}
	for _, dir := range n.Folders {
		n.walks(s, dir)
	}
	if err := json.NewEncoder(os.Stdout).Encode(s); err != nil {
		t.Fatal(err)
	}
	os.Exit(0) // nothing else shall be on the output
}

// calls tries the port, with names that are merely claimed.
func (n neighbourhood) calls(s spoils) {
	for _, path := range []string{"/v1/tasks", "/metrics", "/openapi.json", "/v1/hosts", "/v1/tokens", "/v1/nodes",
		"/v1/audit", "/v1/whoami", "/"} {
		for _, method := range []string{"GET", "POST", "PUT", "DELETE"} {
			r, err := http.NewRequest(method, "http://"+n.TCP+path, strings.NewReader("{}"))
			if err != nil {
				continue
			}
			r.Header = http.Header{api.UserHeader: {"root"}, "Content-Type": {"application/json"},
				"Authorization": {os.Getenv("BEARER")}, "X-Forwarded-For": {"127.0.0.1"}}
			res, err := http.DefaultClient.Do(r)
			if err != nil {
				continue
			}
			text, _ := io.ReadAll(res.Body)
			res.Body.Close()
			if res.StatusCode != http.StatusUnauthorized {
				s.note("TCP", method+" "+path+": "+res.Status+" "+string(text[:min(len(text), 80)]), nil)
			}
		}
	}
}

// looksInto reads what the kernel shows of a process.
func (n neighbourhood) looksInto(s spoils, pid int) {
	dir := filepath.Join("/proc", strconv.Itoa(pid))
	for _, name := range []string{"environ", "maps", "smaps", "auxv", "io", "stack", "syscall", "pagemap"} {
		f, err := os.Open(filepath.Join(dir, name))
		if err == nil {
			_, err = f.Read(make([]byte, 8))
			f.Close()
		}
		s.note("/proc", filepath.Join(dir, name), err)
	}
	f, err := os.Open(filepath.Join(dir, "mem"))
	s.note("/proc", filepath.Join(dir, "mem"), err)
	if err == nil {
		f.Close()
	}
	_, err = os.ReadDir(filepath.Join(dir, "fd"))
	s.note("links of /proc", filepath.Join(dir, "fd"), err)
	for _, link := range []string{"fd/0", "fd/1", "fd/2", "fd/3", "fd/4", "exe", "cwd", "root", "ns/net"} {
		_, err := os.Readlink(filepath.Join(dir, link))
		s.note("links of /proc", filepath.Join(dir, link), err)
	}
}

// touches signals, traces and reads a process.
func (n neighbourhood) touches(s spoils, pid int) {
	who := fmt.Sprint("process ", pid)
	s.note("signal", who, unix.Kill(pid, 0))
	s.note("ptrace", who, seize(pid))
	var own [8]byte
	local := unix.Iovec{Base: &own[0]}
	local.SetLen(len(own))
	at := uintptr(unsafe.Pointer(&own[0])) // of a process without PIE it is mapped there, too, or EFAULT
	_, err := unix.ProcessVMReadv(pid, []unix.Iovec{local}, []unix.RemoteIovec{{Base: at, Len: len(own)}}, 0)
	if errors.Is(err, unix.EFAULT) { // it was allowed, and nothing is there
		err = nil
	}
	s.note("memory", who, err)
	if pidfd, err := unix.PidfdOpen(pid, 0); err == nil {
		fd, err := unix.PidfdGetfd(pidfd, 2, 0)
		s.note("descriptor", who, err)
		if err == nil {
			unix.Close(fd)
		}
		unix.Close(pidfd)
	}
	var limit unix.Rlimit
	s.note("limits", who, unix.Prlimit(pid, unix.RLIMIT_NOFILE, nil, &limit))
}

// seize becomes the tracer of a process, which goes on meanwhile.
func seize(pid int) error {
	_, _, err := syscall.RawSyscall6(syscall.SYS_PTRACE, unix.PTRACE_SEIZE, uintptr(pid), 0, 0, 0, 0)
	if err != 0 {
		return err
	}
	return nil // the end of this process ends the trace
}

// walks opens all that is below a folder, and makes files there.
func (n neighbourhood) walks(s spoils, dir string) {
	_ = filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return nil // it may not be listed
		}
		if d.IsDir() {
			if path != dir && !slices.Contains(n.Public, path) { // the test has opened the first one
				_, err := os.ReadDir(path)
				s.note("list", path, err)
			}
			made := filepath.Join(path, "neighbour")
			err := os.Mkdir(made, 0o700)
			s.note("create", made, err)
			if err == nil {
				os.Remove(made)
			}
			return nil
		}
		if d.Type().IsRegular() && !slices.Contains(n.Public, path) {
			f, err := os.Open(path)
			s.note("read", path, err)
			if err == nil {
				f.Close()
			}
		}
		f, err := os.OpenFile(path, os.O_WRONLY|unix.O_NONBLOCK, 0)
		s.note("write", path, err)
		if err == nil {
			f.Close()
		}
		return nil
	})
}

// asUser lets a process of another user try.
func (n neighbourhood) asUser(t *testing.T, uid uint32, token string) spoils {
	t.Helper()
	text, err := json.Marshal(n)
	if err != nil {
		t.Fatal(err)
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	file, err := os.Open(self) // others cannot enter its folder
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	cmd := exec.Command("/proc/self/fd/3", "-test.run=^TestTryAsANeighbour$")
	cmd.ExtraFiles, cmd.Dir = []*os.File{file}, "/"
	cmd.Env = []string{"NEIGHBOURHOOD=" + string(text), "BEARER=" + token}
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uid, Gid: uid}}
	out, err := cmd.Output()
	var s spoils
	if err != nil || json.Unmarshal(out, &s) != nil {
		t.Fatalf("as user %d: %v: %s", uid, err, out)
	}
	return s
}

// enterable lets everybody enter the folders above a path, so that its own mode decides.
func enterable(t *testing.T, path string) {
	t.Helper()
	for dir := filepath.Dir(path); dir != "/" && dir != os.TempDir(); dir = filepath.Dir(dir) {
		if err := os.Chmod(dir, 0o755); err != nil {
			t.Fatal(err)
		}
	}
}

// settled starts a house in which a neighbour may look around, and returns a token and what there is
// to see. A job is at work until end is called.
func settled(t *testing.T) (n neighbourhood, token string, end func()) {
	t.Helper()
	s := sshtest.StartSSHD(t, sshtest.Options{})
	h := newCellar(t, fmt.Sprintf("hosts:\n  - {name: fw1, address: %s, port: %d, user: %s, key: %s, host_key: %q}\n",
		s.Address, s.Port, s.User, s.Key, s.HostKey))
	dir, tcp := h.file("tmp"), porttest.Addr(t)
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	if out, code := h.muster("secrets", "keygen", h.file("secrets.key")); code != 0 {
		t.Fatalf("keygen: exit %d, %s", code, out)
	}
	h.configure(map[string]any{"secrets": map[string]any{"key": h.file("secrets.key")},
		"audit":  map[string]any{"dir": h.file("audit"), "sinks": []string{"file:" + h.file("sink.log") + "#entries"}},
		"server": map[string]any{"listen": []string{listenOn(h.url), tcp}}})
	h.env = append(h.login("server"), "TMPDIR="+dir)
	h.server = h.start("server", "--config", h.file("muster.yaml"))
	h.server.await("server listens")
	h.env = append(h.login("master"), "TMPDIR="+dir)
	m := h.master()
	var made api.TokenAnswer
	h.query(&made, "token", "create", "neighbour")
	id := h.submit("fw1", "until [ -e "+dir+"/go ]; do sleep 0.1; done")
	h.awaitJob(jobs.NewID(id, "fw1"), jobs.Running)

	socket := strings.TrimPrefix(h.url, "unix://")
	record := filepath.Join(filepath.Dir(s.Key), ".local/state/muster-record")
	for late := h.late(); !present(record); { // the host makes it when the step begins
		select {
		case <-late:
			t.Fatalf("there is no %s", record)
		case <-time.After(20 * time.Millisecond):
		}
	}
	for _, path := range []string{h.dir + "/x", socket, record} {
		enterable(t, path)
	}
	n = neighbourhood{Socket: socket, TCP: tcp, Folders: []string{h.dir, filepath.Dir(socket), record},
		PIDs:   append(children(m.cmd.Process.Pid), m.cmd.Process.Pid, h.server.cmd.Process.Pid),
		Public: []string{h.file("trust"), h.file("trust/policy.yaml"), h.file("trust/allowed_signers")}}
	return n, made.Token, func() {
		if err := os.WriteFile(dir+"/go", nil, 0o600); err != nil {
			t.Fatal(err)
		}
		h.wait(id)
	}
}

func present(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

func TestAnotherUserOfTheMachineGetsNothing(t *testing.T) {
	t.Parallel()
	if os.Geteuid() != 0 {
		t.Skip("only root can become another user")
	}
	n, token, end := settled(t)
	if len(n.PIDs) < 3 {
		t.Fatalf("no child is at work: %v", n.PIDs)
	}
	got := n.asUser(t, 61235, "")
	for _, way := range slices.Sorted(maps.Keys(got)) {
		for _, what := range got[way] {
			t.Errorf("another user has, by %s: %s", way, what)
		}
	}
	// Root, with a token, gets something by each of these ways: so they would lead there.
	all := n.asUser(t, 0, "Bearer "+token)
	for _, way := range ways {
		if len(all[way]) == 0 {
			t.Errorf("root gets nothing by %s: this way shows nothing of others", way)
		}
	}
	end()
}
