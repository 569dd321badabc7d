package main

import (
	"strings"
	"testing"
	"time"

	"muster/cli"
	"muster/jobs"
	"muster/testkit/hosttest"
)

// chain runs a runbook as a chain and waits for its end.
func (h *house) chain(args ...string) (i jobs.ChainInfo, code int) {
	h.t.Helper()
	code = h.query(&i, append([]string{"run", "firewall", "--on", "all", "--wait"}, args...)...)
	return i, code
}

// stubborn replaces nft on a host. It accepts rulesets in rehearsals, and refuses them for real
// when there is a file /etc/go.
const stubborn = `#!/bin/sh
case "$MUSTER_DIR $*" in
?*' -f '*.muster-new)
	until [ -e /etc/go ]; do sleep .1; done
	exit 1 ;;
esac
exec /usr/sbin/nft "$@"
`

// awaitActivated waits until a chain has put a ruleset in force on so many hosts.
func (h *house) awaitActivated(hosts int) jobs.ChainInfo {
	h.t.Helper()
	for late, look := h.late(), time.Tick(commandEvery); ; {
		var list []jobs.ChainInfo
		h.query(&list, "rollout", "chains")
		for _, i := range list {
			if len(i.Tasks) > 1 && i.Tasks[1].Info != nil && i.Tasks[1].Info.Outcomes[jobs.Succeeded] == hosts {
				return i
			}
		}
		select {
		case <-late:
			h.t.Fatalf("the chains are %+v", list)
		case <-look:
		}
	}
}

// failsLast runs a chain that fails on stubborn hosts. A failure stops the jobs on other hosts, so
// these hosts fail after the others have ended.
func (h *house) failsLast(stubborn []*hosttest.Host, args []string) jobs.ChainInfo {
	h.t.Helper()
	code := make(chan int, 1)
	go func() {
		defer close(code)
		_, c := h.chain(args...)
		code <- c
	}()
	i := h.awaitActivated(2)
	for _, f := range stubborn {
		f.Do("touch /etc/go")
	}
	if c := <-code; c != cli.ExitStopped {
		h.t.Errorf("exit %d, want %d", c, cli.ExitStopped)
	}
	h.query(&i, "rollout", "show", string(i.Chain))
	return i
}

// A chain brings a ruleset to all hosts and puts it in force on all. Two of four refuse it, and
// only one may fail: so all hosts are as they were, even after the next boot.
func TestARulesetThatFailsOnTooManyIsTakenBackFromAll(t *testing.T) {
	t.Parallel()
	if !hosttest.Inside(t) {
		return
	}
	h, list := firewalls(t, 4, hosttest.Options{})
	before := map[string]string{}
	for n, f := range list {
		before[f.Name] = rules(f)
		if n > 1 {
			f.Put("/usr/local/sbin/nft", stubborn, 0o755)
		}
	}
	ruleset := []string{"--arg-file", "ruleset=" + h.file("next.nft"), "--staged", "--max-failed", "1",
		"--roll-back"}
	i := h.failsLast(list[2:], ruleset)
	if i.State != jobs.ChainEnded || i.Why != "2 of 4 hosts failed, and 1 may" ||
		len(i.Fates) != 1 || i.Fates[jobs.FateBack] == "" {
		t.Errorf("%+v", i)
	}
	if got := i.Tasks[1].Info.Outcomes; got[jobs.Succeeded] != 2 || got[jobs.Failed] != 2 {
		t.Errorf("activation: %v", got)
	}
	asBefore := func() {
		t.Helper()
		for _, f := range list {
			if now, kept := rules(f), f.Do("cat /etc/nftables.conf"); now != before[f.Name] ||
				!strings.Contains(kept, `"first"`) {
				t.Errorf("%s: in force is:\n%s\nkept is:\n%s", f.Name, now, kept)
			}
		}
	}
	asBefore()

	// A single failure is within the budget; a person takes the others back.
	list[2].Do("rm /usr/local/sbin/nft")
	var again int
	i, again = h.chain(ruleset...)
	if again != cli.ExitNotAll || i.State != jobs.ChainEnded || i.Why != "" ||
		i.Fates[jobs.FateFailed] != list[3].Name || i.Tasks[1].Info.Outcomes[jobs.Succeeded] != 3 {
		t.Errorf("exit %d, %+v", again, i)
	}
	for _, f := range list[:3] {
		if now := rules(f); !strings.Contains(now, `"next"`) {
			t.Errorf("%s: in force is:\n%s", f.Name, now)
		}
	}
	if out, code := h.muster("rollout", "undo", string(i.Tasks[1].Task), "--reason", "acme calls"); code != 0 {
		t.Errorf("undo: exit %d, %s", code, out)
	}
	i = h.awaitChain(i.Chain, func(i jobs.ChainInfo) bool { return i.State == jobs.ChainEnded })
	if len(i.Fates) != 1 || i.Fates[jobs.FateBack] == "" || !strings.HasSuffix(i.Why, "acme calls") {
		t.Errorf("%+v", i)
	}
	asBefore()
	list[0].Reboot()
	asBefore()
}

// forgetful replaces nft on a host. Once the new rules are in force it removes the folder from
// which the host would go back.
const forgetful = `#!/bin/sh
case "$MUSTER_DIR $*" in
?*' -c -f '*) ;;
?*' -f '*.muster-new) /usr/sbin/nft "$@" && exec rm -rf "$MUSTER_DIR" ;;
esac
exec /usr/sbin/nft "$@"
`

// A host that forgot the change in the middle keeps the new rules, and nothing takes them back any
// more. Its outcome is neither unchanged nor taken back.
func TestAForgetfulFirewallIsNotCalledTakenBack(t *testing.T) {
	t.Parallel()
	if !hosttest.Inside(t) {
		return
	}
	h, list := firewalls(t, 1, hosttest.Options{})
	f := list[0]
	f.Put("/usr/local/sbin/nft", forgetful, 0o755)
	j := h.fire(f.Name, "next.nft", "confirm=10s")
	if j.Outcome != jobs.Unknown {
		t.Errorf("the activation ended %s: %s", j.Outcome, j.Error)
	}
	task, _, _ := strings.Cut(string(j.ID), ":")
	h.redis.Do(t, "HDEL", "muster:{default}:locks", f.Name) // it stays as long as the change may last
	var back jobs.TaskInfo
	h.query(&back, "run", "firewall-back", "--on", f.Name, "--arg", "of="+task, "--wait")
	b := h.jobs(back.Task)[0]
	said, _ := h.muster("logs", string(b.ID))
	if b.Outcome != jobs.Failed || b.Class != jobs.ClassOperator ||
		!strings.Contains(said, f.Name+": task "+task+" began to activate") ||
		!strings.Contains(said, "/confirm/") || !strings.Contains(said, "is gone, and") {
		t.Errorf("taking it back ended %s (%s): %s\n%s", b.Outcome, b.Class, b.Error, said)
	}
	if now := rules(f); !strings.Contains(now, `"next"`) {
		t.Errorf("in force is:\n%s", now)
	}
}
