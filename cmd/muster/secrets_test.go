package main

import (
	"encoding/base64"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"muster/jobs"
	"muster/testkit/sshtest"
)

const swordfish = "swordfish-of-1932-and-no-other"

// The gates let the test look during a step: the step writes the name of one, and continues once
// somebody has read it.
const password = `
name: password
arguments:
  password: {type: secret}
  print: {type: bool, default: false}
  dir: {type: string}
timeout: 1m
steps:
  - name: use
    run: |
      (umask 077; printf %s {{password}} > {{dir}}/got)
      pw={{password}}
      if {{print}}; then printf 'it is %s.\nit is %s\n' "$pw" {{password}}; else echo it is well; fi
      echo here > {{dir}}/gate
    save: {it: {match: 'it is (\S+)$'}}
  - name: end
    run: echo {{saved.it}}; exit 3
`

// leaks returns the forms in which a text may appear: plain, and within base64.
func leaks(text string) []string {
	forms := []string{text}
	for shift := range 3 {
		coded := base64.StdEncoding.EncodeToString([]byte(strings.Repeat("x", shift) + text))
		forms = append(forms, coded[4:len(coded)-4])
	}
	return forms
}

// wantNowhere looks for a text in all files below some folders.
func wantNowhere(t *testing.T, text, but string, dirs ...string) (files int) {
	t.Helper()
	for _, dir := range dirs {
		err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
			if err != nil || !d.Type().IsRegular() || path == but {
				return nil // a file that vanishes meanwhile is not kept
			}
			data, err := os.ReadFile(path)
			if err != nil {
				return nil // the same
			}
			files++
			for _, form := range leaks(text) {
				if strings.Contains(string(data), form) {
					t.Errorf("%s holds the secret, as %s", path, form)
				}
			}
			return nil
		})
		if err != nil {
			t.Error(err)
		}
	}
	return files
}

// wantNoProcess looks for a text in the arguments and the environment of every process.
func wantNoProcess(t *testing.T, text string) {
	t.Helper()
	seen := 0
	for _, what := range []string{"cmdline", "environ"} {
		paths, _ := filepath.Glob("/proc/[0-9]*/" + what)
		for _, path := range paths {
			data, err := os.ReadFile(path)
			if err == nil && len(data) > 0 {
				seen++
			}
			if strings.Contains(string(data), text) {
				t.Errorf("%s holds the secret: %q", path, data)
			}
		}
	}
	if seen < 6 { // muster's three, redis, sshd, the step
		t.Errorf("only %d processes could be looked at", seen)
	}
}

// A real redis-server and a real sshd, during the step and after it.
func TestASecretIsFoundNowhereButInItsStep(t *testing.T) {
	t.Parallel()
	s := sshtest.StartSSHD(t, sshtest.Options{})
	dir := t.TempDir()
	h := newCellar(t, fmt.Sprintf("hosts:\n  - {name: fw1, address: %s, port: %d, user: %s, key: %s, host_key: %q}\n",
		s.Address, s.Port, s.User, s.Key, s.HostKey))
	h.write("own.yaml", password)
	if out, code := h.muster("secrets", "keygen", h.file("secrets.key")); code != 0 {
		t.Fatalf("keygen: exit %d, %s", code, out)
	}
	h.configure(map[string]any{"runbooks": []string{h.file("own.yaml")}, "log": map[string]any{"level": "trace"},
		"secrets": map[string]any{"key": h.file("secrets.key")}})
	h.server = h.start("server", "--config", h.file("muster.yaml"))
	h.server.await("server listens")
	m := h.master()
	h.write("pw", swordfish+"\n")
	if err := syscall.Mkfifo(dir+"/gate", 0o600); err != nil {
		t.Fatal(err)
	}

	var home jobs.TaskInfo
	h.query(&home, "run", "exec", "--on", "fw1", "--arg", "cmd=printf %s \"$HOME\"", "--wait")
	place, _ := h.muster("logs", string(jobs.NewID(home.Task, "fw1")))
	for _, print := range []string{"false", "true"} {
		var task jobs.TaskInfo
		args := []string{"run", "password", "--on", "fw1", "--arg", "password=@" + h.file("pw"),
			"--arg", "dir=" + dir, "--arg", "print=" + print, "--detach"}
		if code := h.query(&task, args...); code != 0 {
			t.Fatalf("run: exit %d", code)
		}
		gate, err := os.Open(dir + "/gate") // waits for the step, and the step for what follows
		if err != nil {
			t.Fatal(err)
		}
		wantNoProcess(t, swordfish)
		var byte1 [1]byte
		_, err = gate.Read(byte1[:])
		gate.Close()
		if err != nil {
			t.Fatal(err)
		}
		if got, err := os.ReadFile(dir + "/got"); err != nil || string(got) != swordfish {
			t.Errorf("the step got %q, %v", got, err)
		}
		os.Remove(dir + "/got")

		j := h.jobs(h.wait(task.Task).Task)[0]
		want := "well"
		if print == "true" {
			want = "(secret)"
		}
		said, _ := h.muster("logs", string(j.ID))
		if j.Outcome != jobs.Failed || !strings.HasSuffix(j.Error, `; the host said: "`+want+`"`) ||
			!strings.Contains(said, "it is "+want+"\n") || !strings.HasSuffix(said, "\n"+want+"\n") {
			t.Errorf("print %s: %+v\n%s", print, j, said)
		}
		wantShownNowhere(t, h, task.Task)
		folders := []string{h.dir, h.redis.Dir}
		if print == "false" { // output of a step is stored unchanged on its host
			folders = append(folders, place+"/.local/state/muster-record")
		}
		if n := wantNowhere(t, swordfish, h.file("pw"), folders...); n < 5 {
			t.Errorf("only %d files below %v", n, folders)
		}
		for _, p := range []*process{h.server, m} {
			if strings.Contains(p.log.String(), swordfish) {
				t.Errorf("%s says it: %s", p.name, p.log)
			}
		}
	}
}

// wantShownNowhere checks every view of an operator, once history has the task.
func wantShownNowhere(t *testing.T, h *house, id jobs.TaskID) {
	t.Helper()
	for late, tick := h.late(), time.Tick(commandEvery); ; {
		if out, _ := h.muster("history", "--task", string(id), "-o", "json"); strings.Contains(out, string(id)+":fw1") {
			break
		}
		select {
		case <-late:
			t.Fatal("history has nothing of it")
		case <-tick:
		}
	}
	for _, args := range [][]string{{"task", string(id), "-o", "json"}, {"job", string(id) + ":fw1", "-o", "json"},
		{"events", "--task", string(id), "-o", "json"}, {"history", "--task", string(id), "-o", "json"},
		{"logs", string(id) + ":fw1", "-o", "json"}, {"report", string(id), "-o", "json"}} {
		out, code := h.muster(args...)
		if code > 1 {
			t.Errorf("%v: exit %d", args, code)
		}
		for _, form := range leaks(swordfish) {
			if strings.Contains(out, form) {
				t.Errorf("%v shows the secret as %s: %s", args, form, out)
			}
		}
	}
}
