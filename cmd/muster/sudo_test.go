package main

import (
	"fmt"
	"strings"
	"testing"

	"muster/cli"
	"muster/jobs"
	"muster/testkit/sshtest"
)

// A user without rights logs in to a real sshd, and a real sudo asks for a password.
func TestCommandsRunThroughSudo(t *testing.T) {
	t.Parallel()
	asks := sshtest.StartSudo(t, "ALL", sshtest.Options{})
	open := sshtest.StartSudo(t, "NOPASSWD: ALL", sshtest.Options{Address: "127.0.0.3"})
	text := "defaults: {become: sudo}\nhosts:\n"
	for name, s := range map[string]sshtest.SSHD{"fw1": asks, "fw2": open} {
		text += fmt.Sprintf("  - {name: %s, address: %s, port: %d, user: %s, key: %s, host_key: %q}\n",
			name, s.Address, s.Port, s.User, s.Key, s.HostKey)
	}
	h := newCellar(t, text)
	if out, code := h.muster("secrets", "keygen", h.file("secrets.key")); code != 0 {
		t.Fatalf("keygen: exit %d, %s", code, out)
	}
	h.configure(map[string]any{"secrets": map[string]any{"key": h.file("secrets.key")},
		"log": map[string]any{"level": "trace"}})
	h.server = h.start("server", "--config", h.file("muster.yaml"))
	h.server.await("server listens")
	h.master()
	h.write("pw", sshtest.SudoPassword+"\n")
	h.write("wrong", "no-such-password\n")

	run := func(on, file, cmd string) (jobs.JobInfo, string) {
		t.Helper()
		args := []string{"run", "exec", on, "--arg", "cmd=" + cmd, "--wait"}
		if file != "" {
			args = append(args, "--become-password", "@"+h.file(file))
		}
		var info jobs.TaskInfo
		h.query(&info, args...)
		job := h.jobs(info.Task)[0]
		out, _ := h.muster("logs", string(job.ID))
		return job, out
	}
	for _, test := range []struct{ on, file string }{{"fw1", "pw"}, {"fw2", ""}, {"fw2", "pw"}} {
		job, out := run(test.on, test.file, "id -un; head -c 100 /dev/stdin")
		if job.Outcome != jobs.Succeeded || !strings.Contains(out, "root\n") {
			t.Errorf("%s with %q: %s (%s): %q", test.on, test.file, job.Outcome, job.Error, out)
		}
	}
	for file, words := range map[string]string{
		"wrong": "sudo did not take the password that was given for muster-ops, so nothing was run",
		"":      "give the password with --become-password",
	} {
		job, _ := run("fw1", file, "id")
		if job.Outcome != jobs.Failed || job.Class != jobs.ClassOperator || !strings.Contains(job.Error, words) {
			t.Errorf("with %q: %s %s (%s), want %q", file, job.Outcome, job.Class, job.Error, words)
		}
	}
	job, out := run("fw1", "pw", "echo it is "+sshtest.SudoPassword)
	if job.Outcome != jobs.Succeeded || !strings.Contains(out, "it is (secret)") {
		t.Errorf("a password that a step prints: %s, %q", job.Outcome, out)
	}
	wantNoProcess(t, sshtest.SudoPassword)

	code, out, words := h.plainly("", "hosts", "check", "all", "--live")
	if code != cli.ExitOK || !strings.Contains(out, "fw1: sudo: sudo does not let muster-ops run sh as root: "+
		"sudo: a password is required") || !strings.Contains(out, "2 of 2 hosts well") {
		t.Errorf("check: exit %d: %s %s", code, out, words)
	}
	if _, out, _ := h.plainly("", "hosts", "show", "fw1"); !strings.Contains(out, "root, by sudo") {
		t.Errorf("show: %s", out)
	}
}
