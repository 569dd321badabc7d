package main

import (
	"fmt"
	"strings"
	"syscall"
	"testing"

	"muster/cli"
	"muster/cli/tasks"
	"muster/internal/fakefleet"
	"muster/jobs"
	"muster/testkit/apitest"
	"muster/testkit/sshtest"
)

// An operator's session with one machine, a Redis and two hosts.
func TestUpRunsOnTwoRealHosts(t *testing.T) {
	t.Parallel()
	var inventory strings.Builder
	inventory.WriteString("hosts:\n")
	add := func(name, key string, s sshtest.SSHD) {
		fmt.Fprintf(&inventory, "  - {name: %s, address: %s, port: %d, user: %s, key: %s, host_key: %q}\n",
			name, s.Address, s.Port, s.User, s.Key, key)
	}
	var keys []string
	for i, address := range []string{"127.0.0.2", "127.0.0.3"} {
		s := sshtest.StartSSHD(t, sshtest.Options{Address: address})
		add(fmt.Sprint("fw", i+1), s.HostKey, s)
		keys = append(keys, s.HostKey)
		if i == 1 {
			add("stranger", keys[0], s) // it shows the key of the second host
		}
	}
	h := newCellar(t, inventory.String())
	up := h.start("up", "--config", h.file("muster.yaml"))
	up.await("server listens")

	out, code := h.muster("run", "exec", "--on", "fw1,fw2", "--arg", "cmd=uname -a", "--wait")
	if code != cli.ExitOK {
		t.Errorf("exit %d", code)
	}
	apitest.WantParts(t, "the summary", out, "exec on 2 hosts", "2 succeeded", "fw[1-2]", "Linux ")

	out, code = h.muster("run", "exec", "--on", "fw1,stranger", "--arg", "cmd=uname -a", "--wait")
	if code != cli.ExitNotAll {
		t.Errorf("with a wrong host key: exit %d, want %d", code, cli.ExitNotAll)
	}
	apitest.WantParts(t, "the summary", out, "1 succeeded", "1 failed", "stranger", "host key")
	var list []jobs.TaskInfo
	h.query(&list, "tasks")
	for _, j := range h.jobs(list[0].Task) {
		refused := j.Host == "stranger"
		if refused != (j.Outcome == jobs.Failed && j.Class == jobs.ClassOperator) ||
			refused != strings.Contains(j.Error, "SHA256:") {
			t.Errorf("%s: %s, class %s: %s", j.Host, j.Outcome, j.Class, j.Error)
		}
	}
	if out, _ := h.muster("logs", string(jobs.NewID(list[0].Task, "stranger"))); out != "" {
		t.Errorf("a host that was refused said %q", out)
	}
	up.cmd.Process.Signal(syscall.SIGTERM)
	if code := up.end(); code != cli.ExitOK {
		t.Errorf("exit %d after a drain", code)
	}
}

// 500 hosts have three kinds of machines: their outputs fold into three groups, and the difference
// is shown.
func TestThreeSystemsFoldIntoThreeGroups(t *testing.T) {
	t.Parallel()
	_, inventory := pretend(t, fakefleet.Config{Hosts: 625}) // 500 of them firewalls
	h := newHouse(t, inventory)
	h.config(map[string]any{"children": 2, "slots": 32})
	h.master()
	out, code := h.muster("run", "exec", "--on", "role=fw", "--arg", "cmd=cat /etc/os-release")
	if code != cli.ExitOK {
		t.Errorf("exit %d", code)
	}
	apitest.WantParts(t, "the summary", out, "500 succeeded", "  | PRETTY_NAME=\"Wall OS 7.4.1 (granite)\"")
	if n := strings.Count(out, " succeeded: fw["); n != 3 {
		t.Errorf("%d groups, want 3:\n%s", n, out)
	}
	var list []jobs.TaskInfo
	h.query(&list, "tasks")
	id := string(list[0].Task)

	var fold tasks.FoldedTask
	h.query(&fold, "logs", "--diff", id)
	sum := 0
	for i, g := range fold.Groups {
		sum += g.Count
		if g.Majority != (i == 0) || i > 0 && (g.Count > fold.Groups[i-1].Count ||
			!strings.Contains(g.Diff, "\n-VERSION_ID=") || !strings.Contains(g.Diff, "\n+VERSION_ID=")) {
			t.Errorf("group %d: %+v", i, g)
		}
	}
	if len(fold.Groups) != 3 || sum != 500 {
		t.Errorf("%d groups of %d hosts", len(fold.Groups), sum)
	}
	out, _ = h.muster("logs", "--fold", id)
	if strings.Count(out, "\n\n") != 2 || strings.Count(out, "  | VERSION_ID=") != 3 {
		t.Errorf("the fold:\n%s", out)
	}
	out, _ = h.muster("logs", "--diff", id)
	apitest.WantParts(t, "the difference", out, ", the majority: fw[", "  @@ -1,6 +1,6 @@\n", "  |-VERSION_ID=",
		"  |+VERSION_ID=")
	out, _ = h.muster("logs", id)
	if strings.Count(out, ": ID=debian\n")+strings.Count(out, ": ID=wall\n") != 500 {
		t.Errorf("the log of all hosts has %d lines", strings.Count(out, "\n"))
	}
}
