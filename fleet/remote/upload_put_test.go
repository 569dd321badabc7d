package remote_test

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"muster/fleet/remote"
	"muster/testkit/sshtest"
)

// put uploads text for an attempt, over a connection of its own.
func (h *recordingHost) put(r remote.Record, path string, text []byte) (remote.Progress, error) {
	h.t.Helper()
	var heard progress
	u := upload(path, 0o640, text)
	u.Record, u.Progress = &r, heard.hear
	err := h.connect().Upload(h.t.Context(), u)
	return heard.get(), err
}

// A slowPut is an upload whose worker stands still before the last byte, as one that was
// stopped does.
type slowPut struct {
	path   string
	wakeUp func() error // lets it go on, and says how it ended
}

func (h *recordingHost) slowly(r remote.Record, path string, text []byte) slowPut {
	h.t.Helper()
	hold, held, ended := make(chan struct{}), make(chan struct{}), make(chan error, 1)
	u := upload(path, 0o640, text)
	u.Record = &r
	u.Content = &half{bytes.NewReader(text), int64(len(text)) - 1, sync.OnceFunc(func() {
		close(held)
		<-hold
	})}
	conn := h.connect()
	go func() { ended <- conn.Upload(h.t.Context(), u) }()
	select {
	case <-held:
	case err := <-ended:
		h.t.Fatalf("the upload ended with %v", err)
	}
	wake := sync.OnceFunc(func() { close(hold) })
	h.t.Cleanup(wake)
	return slowPut{path, func() error { wake(); return <-ended }}
}

// An upload whose worker was stopped, and that wakes up behind a newer attempt, is refused
// by the host: also one that had brought its last byte.
func TestRealUploadIsRefusedBehindANewerAttempt(t *testing.T) {
	t.Parallel()
	for system, options := range recordSystems(t) {
		t.Run(system, func(t *testing.T) {
			t.Parallel()
			h := newRecordingHost(t, options)
			path := filepath.Join(t.TempDir(), "file")
			older, newer := noise(2<<20), noise(1<<20)

			// A newer step came and went, and the file is its own.
			stopped := h.slowly(step("j", 3), path, older)
			result, err := h.run(step("k", 5), "printf newer > '"+path+"'; chmod 640 '"+path+"'")
			wantEnd(t, result, err, "exit 0: ")
			wantKind(t, stopped.wakeUp(), remote.KindStale, false)
			wantContent(t, path, 0o640, []byte("newer"))

			// A newer upload did.
			stopped = h.slowly(step("j", 6), path, older)
			_, err = h.put(step("k", 7), path, newer)
			if err != nil {
				t.Error(err)
			}
			wantKind(t, stopped.wakeUp(), remote.KindStale, false)
			wantContent(t, path, 0o640, newer)

			// One that had not begun by then is not even taken, nor is a step.
			_, err = h.put(step("j", 6), path, older)
			wantKind(t, err, remote.KindStale, false)
			_, err = h.run(step("j", 6), "echo late > '"+path+"'")
			wantKind(t, err, remote.KindStale, false)
			wantContent(t, path, 0o640, newer)

			// That the file is there already makes no difference: its mode is that of the newer.
			_, err = h.put(step("j", 6), path, newer)
			wantKind(t, err, remote.KindStale, false)
			p, err := h.put(step("j", 8), path, newer)
			if err != nil || p.Had != p.Size {
				t.Errorf("the file that is there: %+v, %v", p, err)
			}
		})
	}
}

// A file comes into its place between the steps of a host, not under one of them.
func TestRealUploadWaitsForTheStepAtWork(t *testing.T) {
	t.Parallel()
	h := newRecordingHost(t, sshtest.Options{})
	path, text := filepath.Join(t.TempDir(), "file"), noise(2<<20)
	nap := newNap()
	h.begin(step("k", 2), "echo begun; exec sleep "+nap, nap) // Redis has lost its lock
	_, err := h.put(step("j", 3), path, text)
	wantKind(t, err, remote.KindBusy, false)
	var e *remote.Error
	if !errors.As(err, &e) || e.Wait <= 0 || !strings.Contains(err.Error(), "a step of k") {
		t.Errorf("got %v, wait %v", err, e)
	}
	endNaps(t, nap)
	p, err := h.putWhenFree(step("j", 3), path, text)
	if err != nil || p.Sent != p.Size {
		t.Errorf("afterwards: %+v, %v", p, err)
	}

	// Behind the beginning of an upload a newer step need not wait for its end.
	stopped := h.slowly(step("j", 4), path, noise(2<<20))
	nap = newNap()
	h.begin(step("l", 5), "echo begun; exec sleep "+nap, nap)
	wantKind(t, stopped.wakeUp(), remote.KindStale, false)
	endNaps(t, nap)
	wantContent(t, path, 0o640, text)
}

func endNaps(t *testing.T, nap string) {
	t.Helper()
	for _, pid := range naps(t, nap) {
		if err := exec.Command("kill", "-9", pid).Run(); err != nil {
			t.Error(err)
		}
	}
}

// putWhenFree tries until the host has noticed that a step ended.
func (h *recordingHost) putWhenFree(r remote.Record, path string, text []byte) (
	p remote.Progress, err error,
) {
	h.t.Helper()
	late := time.After(20 * time.Second)
	for {
		if p, err = h.put(r, path, text); remote.KindOf(err) != remote.KindBusy {
			return p, err
		}
		select {
		case <-late:
			return p, err
		default:
		}
	}
}

// An attempt that is cut off is gone on with by the next one, on a host with records too.
func TestRealRecordedUploadGoesOn(t *testing.T) {
	t.Parallel()
	for system, options := range recordSystems(t) {
		t.Run(system, func(t *testing.T) {
			t.Parallel()
			h := newRecordingHost(t, options)
			path, text := filepath.Join(t.TempDir(), "file"), noise(8<<20)
			r := step("j", 1)
			conn := h.connect()
			u := upload(path, 0o640, text)
			u.Record = &r
			u.Content = &half{bytes.NewReader(text), int64(len(text) / 2), sync.OnceFunc(func() {
				awaitPart(t, filepath.Dir(path))
				conn.Close()
			})}
			wantKind(t, conn.Upload(t.Context(), u), remote.KindLost, true)
			p, err := h.put(step("j", 2), path, text)
			if err != nil || p.Had < 1<<20 || p.Had+p.Sent != p.Size {
				t.Errorf("the next one: %+v, %v", p, err)
			}
			wantContent(t, path, 0o640, text)
			for i, text := range [][]byte{{}, []byte("x"), noise(65535)} {
				if _, err := h.put(step("j", 2), path, text); err != nil {
					t.Errorf("content %d: %v", i, err)
				}
				wantContent(t, path, 0o640, text)
			}

			// Stopped, or with bytes that are others, it leaves what was there.
			u = upload(path, 0o640, noise(100))
			never := &signalReader{started: make(chan struct{}), release: make(chan struct{})}
			stop := make(chan struct{})
			u.Content, u.Stop, u.Record = never, stop, &r
			r = step("j", 3)
			go func() { <-never.started; close(stop) }()
			wantKind(t, h.connect().Upload(t.Context(), u), remote.KindStopped, true)
			close(never.release)
			u = upload(path, 0o640, noise(100))
			u.SHA256[0]++
			u.Record = &r
			wantKind(t, h.connect().Upload(t.Context(), u), remote.KindFailed, true)
			wantFiles(t, filepath.Dir(path), "file")
		})
	}
}

// A disk that others fill while the content comes leaves what was there, and no part.
func TestRealUploadOnADiskThatFillsUp(t *testing.T) {
	t.Parallel()
	if os.Getuid() != 0 {
		t.Skip("only root can mount a small disk")
	}
	h := newRecordingHost(t, sshtest.Options{})
	dir := t.TempDir()
	if out, err := exec.Command("mount", "-t", "tmpfs", "-o", "size=4m", "none", dir).
		CombinedOutput(); err != nil {
		t.Skipf("nothing can be mounted here: %s", out)
	}
	t.Cleanup(func() { exec.Command("umount", "-l", dir).Run() })
	path := filepath.Join(dir, "file")
	if err := os.WriteFile(path, []byte("before"), 0o640); err != nil {
		t.Fatal(err)
	}
	text := noise(3 << 20)
	filler := filepath.Join(dir, "filler")
	u := upload(path, 0o640, text)
	r := step("j", 1)
	u.Record = &r
	u.Content = &half{bytes.NewReader(text), 1, sync.OnceFunc(func() {
		if err := os.WriteFile(filler, make([]byte, 3<<20), 0o600); err != nil {
			t.Log(err) // as full as can be
		}
	})}
	err := h.connect().Upload(t.Context(), u)
	if remote.KindOf(err) != remote.KindFailed || !strings.Contains(fmt.Sprint(err), "o space left") {
		t.Errorf("got %s, %v", remote.KindOf(err), err)
	}
	if err := os.Remove(filler); err != nil {
		t.Error(err)
	}
	wantContent(t, path, 0o640, []byte("before"))
	if _, err := h.put(step("j", 2), path, text); err != nil {
		t.Error(err)
	}
	wantContent(t, path, 0o640, text)
}
