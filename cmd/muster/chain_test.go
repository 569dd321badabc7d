package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"muster/cli"
	"muster/jobs"
	"muster/testkit/sshtest"
)

// awaitChain waits until a chain is as it should be.
func (h *house) awaitChain(id jobs.TaskID, as func(jobs.ChainInfo) bool) (i jobs.ChainInfo) {
	h.t.Helper()
	late := h.late()
	for {
		i = jobs.ChainInfo{}
		h.query(&i, "rollout", "show", string(id))
		if as(i) {
			return i
		}
		select {
		case <-late:
			h.t.Fatalf("chain %s is %+v", id, i)
		case <-time.After(commandEvery):
		}
	}
}

// chained has a runbook that can be staged, and one that takes it back. Each phase writes its name
// on the host and begins when the file go-PHASE is there. It fails on a host with a file
// PHASE-HOST. On a host with a file cut-PHASE-HOST it is cut off from muster when the file go-cut
// is there, in the last phase at once.
const chained = `
name: own
arguments:
  stage: {type: bool, default: "false", description: only prepare}
timeout: 1m
staging: stage
undo: own-back
library: |
  phase() {
    while [ ! -e DIR/go-"$1" ]; do sleep .05; done
    echo "$1" >> DIR/{{host.name}}
    if [ -e DIR/cut-"$1"-{{host.name}} ]; then
      while [ ! -e DIR/go-cut ]; do sleep .05; done
      cut
    fi
    [ ! -e DIR/"$1"-{{host.name}} ]
  }
CUT
steps:
  - {name: stage, when: ["{{stage}} == true"], run: phase stage}
  - {name: do, when: ["{{stage}} == false"], run: phase do}
`

const chainedBack = `
name: own-back
arguments:
  of: {type: string, description: the task that is taken back}
timeout: 1m
library: |
CUT
steps:
  - name: back
    run: |
      while [ ! -e DIR/go-undo ]; do sleep .05; done
      echo undo {{of}} >> DIR/{{host.name}}
      [ ! -e DIR/cut-undo-{{host.name}} ] || cut
      [ ! -e DIR/undo-{{host.name}} ]
`

// cutOff ends the sshd of a step.
const cutOff = `  cut() {
    p=$$
    while read -r comm < /proc/$p/comm && [ "$comm" != sshd ]; do read -r _ _ _ p _ < /proc/$p/stat; done
    kill -9 "$p"
    sleep 1
  }`

// links is a house with three hosts and the runbooks above, with a timeout for an attempt.
func links(t *testing.T, fence, timeout string) (h *house, dir string) {
	t.Helper()
	dir = t.TempDir()
	inventory := "hosts:\n"
	for n := range 3 {
		s := sshtest.StartSSHD(t, sshtest.Options{Address: fmt.Sprintf("127.0.0.%d", n+2)})
		inventory += fmt.Sprintf("  - {name: fw%d, fence: %s, address: %s, port: %d, user: %s, key: %s, "+
			"host_key: %q}\n", n+1, fence, s.Address, s.Port, s.User, s.Key, s.HostKey)
	}
	h = newCellar(t, inventory)
	words := strings.NewReplacer("DIR", dir, "CUT", cutOff, "timeout: 1m", "timeout: "+timeout)
	h.write("own.yaml", words.Replace(chained))
	h.write("back.yaml", words.Replace(chainedBack))
	h.configure(map[string]any{"runbooks": []string{h.file("own.yaml"), h.file("back.yaml")}})
	h.server = h.start("server", "--config", h.file("muster.yaml"))
	h.server.await("server listens")
	h.master()
	return h, dir
}

// again kills the server, calls do, and starts another one.
func (h *house) again(do func()) {
	h.t.Helper()
	h.server.kill()
	do()
	h.server = h.start("server", "--config", h.file("muster.yaml"))
	h.server.await("server listens")
}

// The server is killed in each phase of a chain, and the phase ends without a server. Nothing is
// done twice, and hosts that could not be taken back are reported.
func TestAChainSurvivesKilledServers(t *testing.T) {
	t.Parallel()
	h, dir := links(t, "auto", "1m")
	touch := func(names ...string) func() {
		return func() {
			for _, name := range names {
				if err := os.WriteFile(filepath.Join(dir, name), nil, 0o600); err != nil {
					t.Error(err)
				}
			}
		}
	}
	var task jobs.TaskInfo
	if code := h.query(&task, "run", "own", "--on", "all", "--staged", "--roll-back", "--detach"); code != 0 {
		t.Fatalf("exit %d", code)
	}
	touch("do-fw2", "undo-fw3")()
	running := func(phase int) func(jobs.ChainInfo) bool {
		return func(i jobs.ChainInfo) bool {
			return i.Tasks[phase].Info != nil && i.Tasks[phase].Info.Running == 3
		}
	}
	h.awaitChain(task.Task, running(0))
	h.again(touch("go-stage"))
	h.awaitChain(task.Task, running(1))
	h.again(touch("go-do"))
	h.awaitChain(task.Task, running(2))
	h.again(touch("go-undo"))
	i := h.awaitChain(task.Task, func(i jobs.ChainInfo) bool { return i.State == jobs.ChainEnded })
	if i.Why != "1 of 3 hosts failed, and 0 may" || i.Fates[jobs.FateBack] != "fw[1-2]" ||
		i.Fates[jobs.FateFailed] != "fw3" || len(i.Fates) != 2 {
		t.Errorf("%+v", i)
	}
	want := fmt.Sprintf("stage\ndo\nundo %s\n", i.Tasks[1].Task)
	for _, host := range []string{"fw1", "fw2", "fw3"} {
		if got, err := os.ReadFile(filepath.Join(dir, host)); string(got) != want {
			t.Errorf("%s did %q, %v; want %q", host, got, err, want)
		}
	}
	out, _ := h.muster("rollout", "show", string(i.Tasks[2].Task))
	for _, words := range []string{"own on 3 hosts", ", ended\n1 of 3 hosts failed, and 0 may\n",
		"if more than 0 do, all of it is undone", "taken back  fw[1-2]", "failed      fw3"} {
		if !strings.Contains(out, words) {
			t.Errorf("it lacks %q:\n%s", words, out)
		}
	}
}

// If too few hosts could be prepared nothing is activated until a person orders it, and not before
// its time.
func TestAChainStopsWhereTooFewCouldBePrepared(t *testing.T) {
	t.Parallel()
	h, dir := links(t, "auto", "1m")
	for _, name := range []string{"go-stage", "go-do", "go-undo", "stage-fw2"} {
		if err := os.WriteFile(filepath.Join(dir, name), nil, 0o600); err != nil {
			t.Error(err)
		}
	}
	var i jobs.ChainInfo
	begun := time.Now()
	code := h.query(&i, "run", "own", "--on", "all", "--staged", "--at", "+6s", "--wait")
	if want := "staging failed on 1 of 3 hosts, and 0 may: see task " + string(i.Chain) +
		"; nothing was activated"; code != cli.ExitStopped || i.State != jobs.ChainStopped || i.Why != want ||
		i.Fates[jobs.FateUntouched] != "fw[1-3]" {
		t.Errorf("exit %d, %+v", code, i)
	}
	if out, code := h.muster("rollout", "next", string(i.Chain), "--reason", "fw2 is old"); code != 0 {
		t.Errorf("next: exit %d, %s", code, out)
	}
	i = h.awaitChain(i.Chain, func(i jobs.ChainInfo) bool { return i.State == jobs.ChainEnded })
	if took := i.Tasks[1].Info.Started.Sub(begun); took < 6*time.Second || i.Why != "" ||
		i.Fates[jobs.FateChanged] != "fw[1,3]" || i.Fates[jobs.FateUntouched] != "fw2" {
		t.Errorf("after %s: %+v", took, i)
	}
	words := h.complaint(1, "rollout", "next", string(i.Chain), "--reason", "again")
	if !strings.Contains(words, "it is ended and waits for nobody") {
		t.Error(words)
	}

	words = h.complaint(cli.ExitUsage, "run", "exec", "--on", "all", "--arg", "cmd=true", "--staged", "--roll-back",
		"--canary", "1", "--max-failed", "3", "--window")
	for _, want := range []string{"runbook exec cannot be prepared alone", "nothing takes runbook exec back",
		"waves and a breaker let a task go out by and by", `"3" of 3 hosts`, "each host has a window of its own"} {
		if !strings.Contains(words, want) {
			t.Errorf("it lacks %q:\n%s", want, words)
		}
	}
	words = h.complaint(cli.ExitUsage, "run", "own", "--on", "all", "--arg", "stage=false", "--staged")
	if !strings.Contains(words, `argument "stage" is set by the chain itself`) {
		t.Error(words)
	}
}

// Hosts that keep no record are cut off while they are changed, and one of them also while it is
// taken back: an unknown state counts as failed, and is never reported as taken back.
func TestAChainSaysWhichHostsItDoesNotKnow(t *testing.T) {
	t.Parallel()
	h, dir := links(t, "none", "10s")
	for _, name := range []string{"go-stage", "go-do", "go-undo", "cut-do-fw1", "cut-do-fw2", "cut-undo-fw2"} {
		if err := os.WriteFile(filepath.Join(dir, name), nil, 0o600); err != nil {
			t.Error(err)
		}
	}
	var task jobs.TaskInfo
	code := h.query(&task, "run", "own", "--on", "all", "--staged", "--max-failed", "1", "--roll-back", "--detach")
	if code != 0 {
		t.Fatalf("exit %d", code)
	}
	h.awaitChain(task.Task, func(i jobs.ChainInfo) bool { // a job that has not begun by the second failure never begins
		return len(i.Tasks) > 1 && i.Tasks[1].Info != nil && i.Tasks[1].Info.Outcomes[jobs.Succeeded] == 1
	})
	if err := os.WriteFile(filepath.Join(dir, "go-cut"), nil, 0o600); err != nil {
		t.Error(err)
	}
	i := h.awaitChain(task.Task, func(i jobs.ChainInfo) bool { return i.State == jobs.ChainEnded })
	if i.Why != "2 of 3 hosts failed, and 1 may" || i.Fates[jobs.FateBack] != "fw[1,3]" ||
		i.Fates[jobs.FateUnknown] != "fw2" || len(i.Fates) != 2 {
		t.Errorf("%+v", i)
	}
	for n, want := range []map[jobs.Outcome]int{{jobs.Succeeded: 3}, {jobs.Succeeded: 1, jobs.Unknown: 2},
		{jobs.Succeeded: 2, jobs.Unknown: 1}} {
		for outcome, count := range want {
			if got := i.Tasks[n].Info.Outcomes[outcome]; got != count {
				t.Errorf("phase %d: %d ended %s, want %d", n, got, outcome, count)
			}
		}
	}
	out, _ := h.muster("rollout", "show", string(i.Chain))
	if !strings.Contains(out, "taken back  fw[1,3]\n") || !strings.Contains(out, "not known   fw2\n") {
		t.Errorf("it says:\n%s", out)
	}
	for _, host := range []string{"fw1", "fw2", "fw3"} {
		want := fmt.Sprintf("stage\ndo\nundo %s\n", i.Tasks[1].Task)
		if got, err := os.ReadFile(filepath.Join(dir, host)); string(got) != want {
			t.Errorf("%s did %q, %v; want %q", host, got, err, want)
		}
	}
}
