package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"muster/fleet/remote"
	"muster/testkit/apitest"
	"muster/testkit/sshtest"
)

// sshHouse is a house with one real host, fw1, and one that shows another key than the inventory
// has.
func sshHouse(t *testing.T) (*house, sshtest.SSHD) {
	t.Helper()
	sshd := sshtest.StartSSHD(t, sshtest.Options{})
	_, other := sshtest.NewKey(t)
	inventory := "hosts:\n"
	for name, key := range map[string]string{"fw1": sshd.HostKey, "stranger": other} {
		inventory += fmt.Sprintf("  - {name: %s, address: %s, port: %d, user: %s, key: %s, host_key: %q}\n",
			name, sshd.Address, sshd.Port, sshd.User, sshd.Key, key)
	}
	return newHouse(t, inventory), sshd
}

// plainly runs muster and keeps its streams apart.
func (h *house) plainly(stdin string, args ...string) (code int, out, words string) {
	h.t.Helper()
	c := exec.CommandContext(h.t.Context(), h.bin, args...)
	c.Env = append(os.Environ(), "MUSTER_URL="+h.url)
	var stdout, stderr bytes.Buffer
	c.Stdin, c.Stdout, c.Stderr = strings.NewReader(stdin), &stdout, &stderr
	if err := c.Run(); err != nil && c.ProcessState == nil {
		h.t.Fatal(err)
	}
	return c.ProcessState.ExitCode(), stdout.String(), stderr.String()
}

func TestSSHRunsCommands(t *testing.T) {
	t.Parallel()
	h, sshd := sshHouse(t)
	_, public := sshtest.NewKey(t)
	h.write("id.pub", public)
	for _, c := range []struct {
		stdin      string
		args       []string
		code       int
		out, words string // words: a part of standard error
	}{
		{"", []string{"fw1", "--", "echo", "out;", "echo err >&2; exit 3"}, 3, "out\n", "err\n"},
		{"echo from stdin; exit 4\n", []string{"fw1"}, 4, "from stdin\n", ""},
		{"b\na\n", []string{"fw1", "sort"}, 0, "a\nb\n", ""},
		{"", []string{"fw1", "test -t 0 || echo none"}, 0, "none\n", ""},
		{"", []string{"fw1", "true", "-i", sshd.Key}, 0, "", ""},
		{"", []string{"fw1", "true", "-i", h.file("id.pub")}, 255, "", "id.pub"},
		{"", []string{"stranger", "true"}, 255, "", "the inventory has ssh-ed25519"},
		{"", []string{"fw2", "true"}, 255, "", "nearest: fw1"},
		{"", []string{"fw*", "true"}, 255, "", "want one host"},
	} {
		args := append([]string{"ssh"}, c.args...)
		code, out, words := h.plainly(c.stdin, args...)
		if code != c.code || out != c.out || !strings.Contains(words, c.words) {
			t.Errorf("muster %q: exit %d, %q, %q; want %d, %q, %q", args, code, out, words, c.code, c.out, c.words)
		}
	}
}

// sshd made the terminal, for another shell around muster ssh.
func TestSSHOnATerminal(t *testing.T) {
	t.Parallel()
	h, sshd := sshHouse(t)
	client, err := remote.New(remote.Default())
	if err != nil {
		t.Fatal(err)
	}
	conn, err := client.Connect(t.Context(), sshd.Host)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	in, keys := io.Pipe()
	defer keys.Close()
	var out bytes.Buffer
	go fmt.Fprint(keys, "stty size; echo $((40+2)); exit 7\r")
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	code, err := conn.Shell(ctx, remote.Terminal{Type: "dumb", Size: remote.Size{Columns: 101, Rows: 31},
		Command: fmt.Sprintf("stty -g > %[3]s.1; %[1]s ssh fw1 --server %[2]s; code=$?; stty -g > %[3]s.2; "+
			"cmp %[3]s.1 %[3]s.2 && exit $code", h.bin, h.url, h.file("modes")), Stdin: in, Stdout: &out})
	if err != nil || code != 7 {
		t.Errorf("exit %d, %v, want 7:\n%s", code, err, &out)
	}
	apitest.WantParts(t, "the terminal", out.String(), "31 101\r\n", "42\r\n")
}
