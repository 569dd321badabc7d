package hosttest

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"sync"
	"time"
)

// Console runs shell text in the host, from its console: not over the network.
func (h *Host) Console(text string) (string, error) { return h.console(text, "") }

func (h *Host) console(text, stdin string) (string, error) {
	h.mu.Lock()
	pid := h.pid
	h.mu.Unlock()
	if pid == 0 {
		return "", fmt.Errorf("%s is off", h.Name)
	}
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	cmd := exec.CommandContext(ctx, "nsenter", "-t", fmt.Sprint(pid), "-m", "-u", "-i", "-n", "-p", "--",
		"/bin/sh", "-c", text)
	cmd.Env = []string{"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "HOME=/root"}
	cmd.Stdin = strings.NewReader(stdin)
	cmd.WaitDelay = time.Second // what it leaves behind may hold its output
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil && !errors.Is(err, exec.ErrWaitDelay) {
		return string(out), fmt.Errorf("on %s: %w: %s", h.Name, err, &stderr)
	}
	return string(out), nil
}

// Do is Console for what must work.
func (h *Host) Do(text string) string {
	h.t.Helper()
	out, err := h.Console(text)
	if err != nil {
		h.t.Fatalf("%s\n%v", text, err)
	}
	return out
}

// Put writes a file of the host, whose folder exists. Its path is one word.
func (h *Host) Put(path, text string, mode os.FileMode) {
	h.t.Helper()
	if _, err := h.console(fmt.Sprintf("cat > %s && chmod %o %s", path, mode, path), text); err != nil {
		h.t.Fatalf("%s: %v", path, err)
	}
}

// transcript reads what a host says, all the time it is on.
type transcript struct {
	mu   sync.Mutex
	text strings.Builder // guarded by mu
	news chan struct{}
	end  chan struct{}
}

func newTranscript(out io.ReadCloser) *transcript {
	s := &transcript{news: make(chan struct{}, 1), end: make(chan struct{})}
	go func() {
		defer close(s.end)
		defer out.Close()
		for lines := bufio.NewScanner(out); lines.Scan(); {
			s.mu.Lock()
			fmt.Fprintln(&s.text, lines.Text())
			s.mu.Unlock()
			select {
			case s.news <- struct{}{}:
			default:
			}
		}
	}()
	return s
}

func (s *transcript) await(words string) error {
	late := time.After(patience)
	for {
		s.mu.Lock()
		text := s.text.String()
		s.mu.Unlock()
		if strings.Contains(text, words) {
			return nil
		}
		select {
		case <-s.news:
		case <-s.end:
			return fmt.Errorf("it ended before it said %q: %s", words, text)
		case <-late:
			return fmt.Errorf("it did not say %q: %s", words, text)
		}
	}
}
