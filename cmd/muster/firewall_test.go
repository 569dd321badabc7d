package main

import (
	"flag"
	"fmt"
	"strings"
	"testing"

	"muster/jobs"
	"muster/testkit/hosttest"
)

// The first rules of a firewall. The next ones let muster in as well; the last do not.
const (
	firstRules = `table inet filter {
	chain input {
		type filter hook input priority filter; policy drop;
		ct state established,related accept
		tcp dport 22 accept comment "first"
	}
}
`
	nextRules = `table inet filter {
	chain input {
		type filter hook input priority filter; policy drop;
		iif "lo" accept
		ct state established,related accept
		tcp dport { 22, 443 } accept comment "next"
	}
}
`
	lockOut = `table inet filter {
	chain input {
		type filter hook input priority filter; policy drop;
		ct state established,related accept
		tcp dport 443 accept
	}
}
`
	loadRules = "nft -f /etc/nftables.conf"
)

// firewalls makes hosts with the first rules, and a house with a master that can reach them. They
// keep records in the usual folder.
func firewalls(t *testing.T, n int, o hosttest.Options) (*house, []*hosttest.Host) {
	t.Helper()
	var list []*hosttest.Host
	inventory := "hosts:\n"
	o.Boot = loadRules
	for range n {
		f := hosttest.New(t, o)
		f.Put("/etc/nftables.conf", "#!/usr/sbin/nft -f\nflush ruleset\n"+firstRules, 0o755)
		f.Do(loadRules)
		inventory += f.Inventory()
		list = append(list, f)
	}
	h := newHouse(t, inventory)
	h.configure(map[string]any{"ssh": map[string]any{"record_dir": "/var/lib/muster/record"}})
	h.write("next.nft", nextRules)
	h.write("lockout.nft", lockOut)
	h.write("probe.nft", strings.Replace(nextRules, "next", "probed", 1))
	h.master()
	return h, list
}

// fire runs the runbook firewall and waits for its end.
func (h *house) fire(on, rules string, args ...string) jobs.JobInfo {
	h.t.Helper()
	var done jobs.TaskInfo
	words := []string{"run", "firewall", "--on", on, "--arg-file", "ruleset=" + h.file(rules), "--wait"}
	for _, a := range args {
		words = append(words, "--arg", a)
	}
	h.query(&done, words...)
	return h.jobs(done.Task)[0]
}

func rules(f *hosttest.Host) string { return f.Do("/usr/sbin/nft -s list ruleset") }

func TestAFirewallThatLocksMusterOutComesBackByItself(t *testing.T) {
	t.Parallel()
	if !hosttest.Inside(t) {
		return
	}
	h, list := firewalls(t, 1, hosttest.Options{})
	f := list[0]
	before := rules(f)
	j := h.fire(f.Name, "lockout.nft", "confirm=10s")
	if j.Outcome != jobs.RolledBack {
		t.Errorf("the lock-out ended %s (%s): %s", j.Outcome, j.Class, j.Error)
	}
	if now := rules(f); now != before {
		t.Errorf("in force is:\n%s\nwant:\n%s", now, before)
	}
	if kept := f.Do("cat /etc/nftables.conf"); !strings.Contains(kept, `"first"`) {
		t.Errorf("kept is:\n%s", kept)
	}

	j = h.fire(f.Name, "next.nft", "confirm=30s", "probes=run nft list table inet filter | grep -q next")
	if j.Outcome != jobs.Succeeded {
		out, _ := h.muster("logs", string(j.ID))
		t.Fatalf("the good one ended %s (%s): %s\n%s", j.Outcome, j.Class, j.Error, out)
	}
	after := rules(f)
	f.Reboot() // the rules in force now come from the stored file alone
	if now := rules(f); now != after || !strings.Contains(now, `"next"`) {
		t.Errorf("after a reboot in force is:\n%s\nwant:\n%s", now, after)
	}

	j = h.fire(f.Name, "probe.nft", "confirm=12s", "probes=tcp :80")
	if j.Outcome != jobs.RolledBack {
		t.Errorf("with a probe that fails it ended %s (%s): %s", j.Outcome, j.Class, j.Error)
	}
	if now := rules(f); now != after {
		t.Errorf("in force is:\n%s\nwant:\n%s", now, after)
	}
}

// foreignRules is a table of another program.
const foreignRules = `table ip f2b {
	set banned {
		type ipv4_addr
		elements = { 192.0.2.7 }
	}
}
`

// With scope own the runbook changes, takes back and stores only its own table, and successful
// probes of both kinds let it stay.
func TestAFirewallOfOneTableLeavesOthersAlone(t *testing.T) {
	t.Parallel()
	if !hosttest.Inside(t) {
		return
	}
	h, list := firewalls(t, 1, hosttest.Options{})
	f := list[0]
	f.Do("mkdir /etc/nftables.d; echo 'include \"/etc/nftables.d/*.nft\"' >> /etc/nftables.conf")
	f.Put("/root/f2b.nft", foreignRules, 0o600)
	f.Do("nft -f /root/f2b.nft")
	before := rules(f)
	own := strings.NewReplacer("inet filter", "inet muster").Replace
	h.write("own.nft", own(nextRules))
	h.write("ownlockout.nft", own(lockOut))

	probes := fmt.Sprintf("probes=tcp :22\ntcp %s:22\nrun nft list table inet muster", f.Address)
	j := h.fire(f.Name, "own.nft", "scope=own", "confirm=30s", probes)
	if j.Outcome != jobs.Succeeded {
		out, _ := h.muster("logs", string(j.ID))
		t.Fatalf("it ended %s (%s): %s\n%s", j.Outcome, j.Class, j.Error, out)
	}
	after := rules(f)
	if !strings.HasPrefix(after, before) || !strings.Contains(after, `"next"`) {
		t.Errorf("in force is:\n%s\nwant the new table behind:\n%s", after, before)
	}
	j = h.fire(f.Name, "own.nft", "scope=own", "confirm=10s", "probes=tcp :22\nrun false")
	if j.Outcome != jobs.RolledBack || !strings.Contains(j.Error, "probe run false: exit 1") {
		t.Errorf("with a command that fails it ended %s (%s): %s", j.Outcome, j.Class, j.Error)
	}
	j = h.fire(f.Name, "ownlockout.nft", "scope=own", "confirm=10s")
	if now := rules(f); j.Outcome != jobs.RolledBack || now != after {
		t.Errorf("the lock-out ended %s: %s; in force is:\n%s\nwant:\n%s", j.Outcome, j.Error, now, after)
	}
	f.Reboot()
	if now := rules(f); !strings.Contains(now, `"first"`) || !strings.Contains(now, `"next"`) ||
		strings.Contains(now, "f2b") {
		t.Errorf("after a reboot in force is:\n%s", now)
	}
}

// A dry run brings the ruleset to a place of its own and rehearses it there: it shows the changes
// and makes none.
func TestADryRunOfAFirewallShowsWhatWouldChange(t *testing.T) {
	t.Parallel()
	if !hosttest.Inside(t) {
		return
	}
	h, list := firewalls(t, 1, hosttest.Options{})
	f := list[0]
	h.write("syntax.nft", strings.Replace(nextRules, "dport", "dprt", 1))
	before, kept := rules(f), f.Do("cat /etc/nftables.conf")
	const changes, file = `+		tcp dport { 22, 443 } accept comment "next"`, "+++ /etc/nftables.conf as it would be"
	for _, test := range []struct {
		flag, rules string
		outcome     jobs.Outcome
		shows       []string
		not         string
	}{
		{"--check", "next.nft", jobs.Succeeded, []string{changes}, file},
		{"--diff", "next.nft", jobs.Succeeded, []string{changes, file}, "nothing"},
		{"--check", "syntax.nft", jobs.Failed, []string{"syntax error"}, changes},
	} {
		var done jobs.TaskInfo
		h.query(&done, "run", "firewall", "--on", f.Name, "--arg-file", "ruleset="+h.file(test.rules), test.flag, "--wait")
		j := h.jobs(done.Task)[0]
		out, _ := h.muster("logs", string(j.ID))
		if j.Outcome != test.outcome || strings.Contains(out, test.not) {
			t.Errorf("%s %s ended %s: %s\n%s", test.flag, test.rules, j.Outcome, j.Error, out)
		}
		for _, words := range test.shows {
			if !strings.Contains(out, words) {
				t.Errorf("%s %s: want %q in\n%s", test.flag, test.rules, words, out)
			}
		}
	}
	if now := rules(f); now != before || f.Do("cat /etc/nftables.conf") != kept {
		t.Errorf("after the dry runs in force is:\n%s", now)
	}
}

func TestAFirewallRefusesABadRuleset(t *testing.T) {
	t.Parallel()
	if !hosttest.Inside(t) {
		return
	}
	h, list := firewalls(t, 1, hosttest.Options{})
	f := list[0]
	before := rules(f)
	h.write("syntax.nft", strings.Replace(nextRules, "dport", "dprt", 1))
	h.write("chain.nft", strings.Replace(nextRules, "iif \"lo\" accept", "jump nowhere", 1))
	bad := map[string]string{"syntax.nft": "syntax error", "chain.nft": "No such file or directory"}
	for rulesFile, words := range bad {
		j := h.fire(f.Name, rulesFile)
		out, _ := h.muster("logs", string(j.ID))
		if j.Outcome != jobs.Failed || j.Class != jobs.ClassUser || !strings.Contains(out, words) ||
			!strings.Contains(j.Error, "nothing was changed: ruleset:") || strings.Contains(out, "/new.nft") {
			t.Errorf("%s: %s (%s): %s\n%s", rulesFile, j.Outcome, j.Class, j.Error, out)
		}
	}
	if now := rules(f); now != before {
		t.Errorf("in force is:\n%s\nwant:\n%s", now, before)
	}
}

var races = flag.Int("races", 4, "how many of the cuts of a connection are tried, at most 16")

// cutter replaces nft on a host. During a change it counts its calls, and at one of them cuts the
// network for some seconds.
const cutter = `#!/bin/sh
if [ -n "$MUSTER_DIR" ]; then
	n=0 at='' seconds=''
	if [ -r /run/nft-calls ]; then read -r n < /run/nft-calls; fi
	n=$((n + 1))
	echo "$n" > /run/nft-calls
	read -r at seconds < /etc/cut
	if [ "$n" = "$at" ]; then
		ip link set eth0 down
		setsid sh -c "sleep $seconds; ip link set eth0 up" > /dev/null 2>&1 < /dev/null &
	fi
fi
exec /usr/sbin/nft "$@"
`

// cuts lists the call of nft at which a host is cut off, and the seconds: shorter than the wait for
// the proof, longer, and about as long. Calls 1 to 7 belong to the guard, 8 and 9 to the change,
// the following to the proof, the end or the way back.
var cuts = [][2]int{{8, 4}, {8, 40}, {8, 12}, {10, 40}, {1, 4}, {4, 4}, {7, 4}, {9, 4}, {10, 4}, {11, 4}, {12, 4},
	{9, 40}, {11, 40}, {8, 13}, {8, 14}, {9, 15}}

// Whenever the connection is lost, host and muster agree on the result.
func TestAFirewallWhoseConnectionIsLostIsEitherConfirmedOrRolledBack(t *testing.T) {
	t.Parallel()
	if !hosttest.Inside(t) {
		return
	}
	tried := cuts[:min(*races, len(cuts))]
	h, list := firewalls(t, 4, hosttest.Options{})
	ended := map[jobs.Outcome]int{}
	for round := 0; round*len(list) < len(tried); round++ {
		before := map[string]string{}
		for i, f := range list {
			cut := tried[round*len(list)+i]
			f.Put("/usr/local/sbin/nft", cutter, 0o755)
			f.Put("/etc/cut", fmt.Sprintln(cut[0], cut[1]), 0o644)
			f.Do("rm -f /run/nft-calls")
			before[f.Name] = rules(f)
		}
		mark := fmt.Sprintf(`"race %d"`, round)
		h.write("race.nft", strings.Replace(nextRules, `"next"`, mark, 1))
		var done jobs.TaskInfo
		h.query(&done, "run", "firewall", "--on", "all", "--arg-file", "ruleset="+h.file("race.nft"),
			"--arg", "confirm=15s", "--wait")
		for _, f := range list {
			for _, j := range h.jobs(done.Task) {
				if j.ID == jobs.NewID(done.Task, f.Name) {
					ended[j.Outcome]++
					agrees(t, f, j, before[f.Name], mark)
				}
			}
		}
	}
	t.Logf("%d races: %v", len(tried), ended)
	if ended[jobs.Succeeded] == 0 || ended[jobs.RolledBack] == 0 {
		t.Errorf("all races ended alike: %v", ended)
	}
}

// agrees asks a host whether the outcome of its job is true.
func agrees(t *testing.T, f *hosttest.Host, j jobs.JobInfo, before, mark string) {
	t.Helper()
	f.Do("while ! ip link show eth0 | grep -q 'state UP'; do sleep .2; done")
	now, kept := rules(f), f.Do("cat /etc/nftables.conf")
	ok := false
	switch j.Outcome {
	case jobs.Succeeded:
		ok = strings.Contains(now, mark) && strings.Contains(kept, mark)
	case jobs.RolledBack:
		ok = now == before && !strings.Contains(kept, mark)
	}
	if !ok {
		t.Errorf("%s, cut at call %s: %s (%s): %s; in force is:\n%s\nkept is:\n%s", j.ID, f.Do("cat /etc/cut"),
			j.Outcome, j.Class, j.Error, now, kept)
	}
}
