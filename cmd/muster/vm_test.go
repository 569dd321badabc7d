package main

import (
	"flag"
	"strings"
	"testing"

	"muster/jobs"
	"muster/testkit/vmtest"
)

var onVM = flag.Bool("vm", false, "try on a virtual machine what only a real systemd shows")

// lab is a house with one host, which is a machine with a kernel and a systemd of its own.
type lab struct {
	*house
	vm *vmtest.VM
}

// Only a real systemd shows these: units that outlive sessions and not boots, sessions that end
// with all their processes, boots. The parts build on each other.
func TestOnARealSystemd(t *testing.T) {
	if !*onVM {
		return // make vm requests it
	}
	vm := vmtest.New(t, "../..")
	vm.Do("cat > /etc/nftables.conf <<'END'\n#!/usr/sbin/nft -f\nflush ruleset\n" + firstRules + "END\n" + loadRules)
	h := newCellar(t, "hosts:\n"+vm.Inventory("root", "root")+vm.Inventory("deploy", "deploy"))
	h.write("next.nft", nextRules)
	h.write("third.nft", strings.Replace(nextRules, "next", "third", 1))
	h.write("lockout.nft", lockOut)
	h.write("note.yaml", othersChange)
	h.configure(map[string]any{"runbooks": []string{h.file("note.yaml")},
		"ssh": map[string]any{"record_dir": "/var/lib/muster/record", "handshake": "1m", "auth": "2m",
			"channel": "1m"}})
	h.server = h.start("server", "--config", h.file("muster.yaml"))
	h.server.await("server listens")
	h.master()
	for _, part := range []struct {
		name string
		do   func(l *lab)
	}{
		{"a ruleset holds in the next boot", (*lab).confirmed},
		{"a lock-out is taken back by a unit", (*lab).lockedOut},
		{"a lock-out is taken back without the session", (*lab).sessionKilled},
		{"no power before it is confirmed", (*lab).cutBeforeConfirm},
		{"no power after it was confirmed", (*lab).cutAfterConfirm},
		{"steps of root outlive sessions", func(l *lab) { l.outlives("root") }},
		{"steps of others outlive sessions", func(l *lab) { l.outlives("deploy") }},
		{"rollbacks of others outlive sessions", (*lab).othersConfirm},
	} {
		t.Run(part.name, func(t *testing.T) {
			inside := *h
			inside.t = t
			part.do(&lab{&inside, vm.In(t)})
		})
	}
}

// marks holds texts that only these rules contain.
var marks = map[string]string{"next": `"next"`, "third": `"third"`, "lockout": "dport 443 accept"}

// fires starts the runbook firewall and waits until systemd has the rollback, and the rules are in
// force.
func (l *lab) fires(rules string, args ...string) jobs.TaskID {
	l.t.Helper()
	words := []string{"run", "firewall", "--on", "root", "--arg-file", "ruleset=" + l.file(rules+".nft"), "--detach"}
	for _, a := range args {
		words = append(words, "--arg", a)
	}
	var i jobs.TaskInfo
	l.query(&i, words...)
	l.vm.Await("systemctl -q is-active 'muster-confirm-*.timer'")
	l.vm.Await("/usr/sbin/nft list ruleset | grep -q '" + marks[rules] + "'")
	return i.Task
}

// ends waits for the end of a task and checks the outcome of its only job.
func (l *lab) ends(id jobs.TaskID, want jobs.Outcome) {
	l.t.Helper()
	l.wait(id)
	if j := l.jobs(id)[0]; j.Outcome != want {
		out, _ := l.muster("logs", string(j.ID))
		l.t.Errorf("it ended %s (%s), want %s: %s\n%s", j.Outcome, j.Class, want, j.Error, out)
	}
	if units := l.vm.Do("systemctl list-units --all --plain --no-legend 'muster-confirm-*'"); units != "" {
		l.t.Errorf("systemd still has:\n%s", units)
	}
}

// are checks that rules are in force, and stored for the next boot.
func (l *lab) are(mark string) {
	l.t.Helper()
	if now := l.vm.Do("/usr/sbin/nft list ruleset"); !strings.Contains(now, mark) {
		l.t.Errorf("in force is:\n%s\nwant %s in it", now, mark)
	}
	if kept := l.vm.Do("cat /etc/nftables.conf"); !strings.Contains(kept, mark) {
		l.t.Errorf("kept is:\n%s\nwant %s in it", kept, mark)
	}
}

// rules returns the rules in force and the rules of the next boot.
func (l *lab) rules() string {
	l.t.Helper()
	return l.vm.Do("/usr/sbin/nft -s list ruleset; cat /etc/nftables.conf")
}

// stay checks that the rules are as they were.
func (l *lab) stay(before string) {
	l.t.Helper()
	if now := l.rules(); now != before {
		l.t.Errorf("in force and kept is:\n%s\nwant:\n%s", now, before)
	}
}

// rolledBack counts the rollbacks that systemd has started in this boot.
func (l *lab) rolledBack() int {
	l.t.Helper()
	return strings.Count(l.vm.Do("journalctl -b -q -o cat -u 'muster-confirm-*.service' || :"), "Started ")
}

func (l *lab) confirmed() {
	id := l.fires("next", "confirm=10m", "probes=run test -e /run/proven")
	if kept := l.vm.Do("cat /etc/nftables.conf"); !strings.Contains(kept, `"first"`) {
		l.t.Errorf("before it is proven is kept:\n%s", kept)
	}
	l.vm.Do("touch /run/proven")
	l.ends(id, jobs.Succeeded)
	l.are(`"next"`)
	before := l.rules()

	var i jobs.TaskInfo
	l.vm.Rebooted(func() { l.query(&i, "run", "reboot", "--on", "root", "--detach") })
	l.ends(i.Task, jobs.Succeeded)
	l.stay(before)
	late := l.vm.Do("journalctl -b -1 -q -o short-unix | grep -E 'Started .*systemctl reboot|Reached .*reboot'")
	l.t.Logf("the last boot ended with:\n%s", late)
}

func (l *lab) lockedOut() {
	before, n := l.rules(), l.rolledBack()
	l.ends(l.fires("lockout", "confirm=1m"), jobs.RolledBack)
	l.stay(before)
	if now := l.rolledBack(); now != n+1 {
		l.t.Errorf("systemd has started %d rollbacks, want %d", now, n+1)
	}
}

func (l *lab) sessionKilled() {
	before, n := l.rules(), l.rolledBack()
	id := l.fires("lockout", "confirm=1m")
	l.vm.Do("systemctl kill --signal=KILL 'session-*.scope'")
	l.ends(id, jobs.RolledBack)
	l.stay(before)
	if now := l.rolledBack(); now != n+1 {
		l.t.Errorf("systemd has started %d rollbacks, want %d", now, n+1)
	}
}

// lazy makes the machine keep data in memory unless a program syncs it, until the power is cut.
const lazy = `mount -o remount,commit=300 /
sysctl -q vm.dirty_writeback_centisecs=0 vm.dirty_expire_centisecs=360000`

func (l *lab) cutBeforeConfirm() {
	l.vm.Do(lazy)
	before := l.rules()
	id := l.fires("third", "confirm=10m", "probes=run test -e /run/never")
	l.vm.Rebooted(l.vm.Reset)
	l.ends(id, jobs.RolledBack)
	l.stay(before)
	if lost := l.vm.Do("find /var/lib/muster/record/confirm -size 0 -name 'rollback.[sn]*'"); lost != "" {
		l.t.Errorf("these were not on disk when the change was made:\n%s", lost)
	}
}

func (l *lab) cutAfterConfirm() {
	l.vm.Do(lazy)
	id := l.fires("third", "confirm=10m", "probes=run test -e /run/proven")
	l.vm.Do("touch /run/proven")
	l.wait(id)
	l.vm.Rebooted(l.vm.Reset)
	l.ends(id, jobs.Succeeded)
	l.are(`"third"`)
	if armed := l.vm.Do("find /var/lib/muster/record/confirm -name armed"); armed != "" {
		l.t.Errorf("what was confirmed would be taken back later: %s", armed)
	}
}

// killsSessions makes logind end the processes that a session leaves behind, also of root, which it
// spares unless others are named.
const killsSessions = `mkdir -p /etc/systemd/logind.conf.d
printf '[Login]\nKillUserProcesses=yes\nKillExcludeUsers=nobody\n' > /etc/systemd/logind.conf.d/kill.conf
systemctl restart systemd-logind`

// outlives cuts the session of a step. Processes of another session are ended.
func (l *lab) outlives(user string) {
	l.vm.Do(killsSessions)
	l.muster("ssh", user, "setsid sleep 54321 > /dev/null 2>&1 < /dev/null &")
	l.vm.Await("! pgrep -x -f 'sleep 54321'")

	id := l.submit(user, "> /tmp/began-"+user+"; until [ -e /tmp/on-"+user+" ]; do sleep 1; done; echo outlived it")
	l.vm.Await("[ -e /tmp/began-" + user + " ]")
	l.endSessions(user)
	l.vm.Do("touch /tmp/on-" + user)
	l.ends(id, jobs.Succeeded)
	out, _ := l.muster("logs", string(jobs.NewID(id, user)))
	if !strings.Contains(out, "outlived it") {
		l.t.Errorf("the step said:\n%s", out)
	}
}

// endSessions cuts the connections of a user and waits until their sessions are over.
func (l *lab) endSessions(user string) {
	scopes := "systemctl list-units --plain --no-legend 'session-*.scope' | " +
		"grep -w 'of [Uu]ser " + user + "' | cut -d' ' -f1"
	old := strings.Fields(l.vm.Do(scopes))
	if len(old) == 0 {
		l.t.Errorf("%s has no session", user)
	}
	l.vm.Do("pkill -KILL -f '^sshd: " + user + "'")
	for _, scope := range old {
		l.vm.Await("! systemctl -q is-active " + scope)
	}
}

// othersChange is a change by a user who is not root and has a manager of his own.
const othersChange = `name: note
disruptive: true
steps:
  - name: change
    confirm:
      guard: echo old > /tmp/note
      apply: echo new > /tmp/note
      prove: test -e /run/never || exit 75
      rollback: cp /proc/self/cgroup /tmp/note-by; echo old > /tmp/note
      within: 60s
`

// After the change muster hangs up by itself, and so its session ends.
func (l *lab) othersConfirm() {
	l.vm.Do(killsSessions)
	var i jobs.TaskInfo
	l.query(&i, "run", "note", "--on", "deploy", "--detach")
	l.vm.Await("grep new /tmp/note")
	l.ends(i.Task, jobs.RolledBack)
	if by := l.vm.Do("grep -q old /tmp/note && cat /tmp/note-by"); !strings.Contains(by, "muster-confirm-") {
		l.t.Errorf("it was taken back in %s, want a unit of the user", by)
	}
}
