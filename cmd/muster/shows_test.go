package main

import (
	"fmt"
	"strings"
	"syscall"
	"testing"

	"muster/fleet/remote/remotetest"
	"muster/jobs"
)

// What an operator does with one machine, a Redis and two hosts.
func TestUpRunsOnTwoRealHosts(t *testing.T) {
	t.Parallel()
	var inventory strings.Builder
	inventory.WriteString("hosts:\n")
	add := func(name, key string, s remotetest.SSHD) {
		fmt.Fprintf(&inventory, "  - {name: %s, address: %s, port: %d, user: %s, key: %s, host_key: %q}\n",
			name, s.Address, s.Port, s.User, s.Key, key)
	}
	var keys []string
	for i, address := range []string{"127.0.0.2", "127.0.0.3"} {
		s := remotetest.StartSSHD(t, remotetest.Options{Address: address})
		add(fmt.Sprint("fw", i+1), s.HostKey, s)
		keys = append(keys, s.HostKey)
		if i == 1 {
			add("stranger", keys[0], s) // it shows the key of the second, not that of the first
		}
	}
	h := newCellar(t, inventory.String())
	up := h.start("up", "--config", h.file("muster.yaml"))
	up.await("server listens")

	out, code := h.muster("run", "exec", "--on", "fw1,fw2", "--arg", "cmd=uname -a", "--wait")
	if code != exitOK {
		t.Errorf("exit %d", code)
	}
	wantParts(t, "the summary", out, "exec on 2 hosts", "2 succeeded", "fw[1-2]", "Linux ")

	out, code = h.muster("run", "exec", "--on", "fw1,stranger", "--arg", "cmd=uname -a", "--wait")
	if code != exitNotAll {
		t.Errorf("with a wrong host key: exit %d, want %d", code, exitNotAll)
	}
	wantParts(t, "the summary", out, "1 succeeded", "1 failed", "stranger", "host key")
	var tasks []jobs.TaskInfo
	h.query(&tasks, "tasks")
	for _, j := range h.jobs(tasks[0].Task) {
		refused := j.Host == "stranger"
		if refused != (j.Outcome == jobs.Failed && j.Class == jobs.ClassOperator) ||
			refused != strings.Contains(j.Error, "SHA256:") {
			t.Errorf("%s: %s, class %s: %s", j.Host, j.Outcome, j.Class, j.Error)
		}
	}
	if out, _ := h.muster("logs", string(jobs.NewID(tasks[0].Task, "stranger"))); out != "" {
		t.Errorf("a host that was refused said %q", out)
	}
	up.cmd.Process.Signal(syscall.SIGTERM)
	if code := up.end(); code != exitOK {
		t.Errorf("exit %d after a drain", code)
	}
}
