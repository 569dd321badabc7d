package main

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"muster/internal/fakefleet"
	"muster/jobs"
	"muster/testkit/sshtest"
)

// bring is a runbook that brings a file.
const bring = `
name: bring
arguments:
  image: {type: file, description: what to bring}
timeout: 1m
steps:
  - {name: bring, upload: {from: image, to: "/tmp/image"}}
`

// withRunbook starts a house with a runbook of its own.
func withRunbook(t *testing.T, inventory, runbook string) *house {
	t.Helper()
	h := newCellar(t, inventory)
	h.write("own.yaml", runbook)
	h.configure(map[string]any{"runbooks": []string{h.file("own.yaml")}})
	h.server = h.start("server", "--config", h.file("muster.yaml"))
	h.server.await("server listens")
	h.master()
	return h
}

// The scripts below files/ have a runbook that brings a file.
func TestScriptsWithFiles(t *testing.T) {
	t.Parallel()
	_, inventory := pretend(t, fakefleet.Config{Hosts: 6, DiskBytes: 4 << 20})
	h := withRunbook(t, inventory, bring)
	testscript.Run(t, testscript.Params{Dir: "testdata/script/files",
		Setup: withMuster(filepath.Dir(h.bin), h.url)})
}

// The line to one of three hosts is cut once, and the bytes that had arrived are not sent again.
// All hosts have the same file at the end.
func TestAFileReachesRealHosts(t *testing.T) {
	t.Parallel()
	dir, inventory := t.TempDir(), "hosts:\n"
	var line *weakLine
	for i := range 3 {
		s := sshtest.StartSSHD(t, sshtest.Options{})
		at := fmt.Sprintf("%s, port: %d", s.Address, s.Port)
		if i == 2 {
			line = newWeakLine(t, fmt.Sprintf("%s:%d", s.Address, s.Port), 3<<20)
			at = "127.0.0.1, port: " + line.port
		}
		inventory += fmt.Sprintf("  - {name: fw%d, address: %s, user: %s, key: %s, host_key: %q}\n",
			i+1, at, s.User, s.Key, s.HostKey)
	}
	h := withRunbook(t, inventory, strings.ReplaceAll(bring, "/tmp/image", dir+"/{{host.name}}"))
	text := make([]byte, 8<<20)
	for i := range text {
		text[i] = byte(rand.Uint32())
	}
	h.write("image.bin", string(text))
	var task jobs.TaskInfo
	h.query(&task, "run", "bring", "--on", "all", "--arg-file", "image="+h.file("image.bin"),
		"--wait")
	if task.Outcomes[jobs.Succeeded] != 3 {
		t.Errorf("%+v", task)
	}
	for i := range 3 {
		got, err := os.ReadFile(fmt.Sprintf("%s/fw%d", dir, i+1))
		if err != nil || !bytes.Equal(got, text) {
			t.Errorf("fw%d has %d bytes, %v", i+1, len(got), err)
		}
	}
	said, _ := h.muster("logs", string(task.Task)+":fw3")
	if line.cuts.Load() != 1 || !strings.Contains(said, "were there already") ||
		strings.Contains(said, "sent 8.4 MB of") {
		t.Errorf("the line was cut %d times, and fw3 says %q", line.cuts.Load(), said)
	}
	if _, err := os.Stat(h.file(fmt.Sprintf("node/blobs/%x", sha256.Sum256(text)))); err != nil {
		t.Errorf("the node does not keep it: %v", err)
	}
	if left, err := filepath.Glob(dir + "/.muster-*"); len(left) > 0 || err != nil {
		t.Errorf("left on the host: %q, %v", left, err)
	}
}

// weakLine is a line to a host that is cut once, after so many bytes to the host.
type weakLine struct {
	port string
	cuts atomic.Int32
	left atomic.Int64
}

func newWeakLine(t *testing.T, addr string, most int64) *weakLine {
	t.Helper()
	w := &weakLine{}
	w.left.Store(most)
	w.port = newLine(t, addr, w.forward, nil)
	return w
}

func (w *weakLine) forward(down, up net.Conn) {
	defer up.Close()
	for buf := make([]byte, 32<<10); ; {
		n, err := down.Read(buf)
		if err != nil {
			return
		}
		if left := w.left.Add(-int64(n)); left <= 0 && w.cuts.CompareAndSwap(0, 1) {
			down.Close()
			return
		}
		if _, err := up.Write(buf[:n]); err != nil {
			return
		}
	}
}
