package scripts_test

import (
	"strings"
	"testing"

	"muster/testkit/hosttest"
)

// Rules with which a host of tests begins, and others that let muster in as well.
const (
	oldRules = `table inet filter {
	set friends {
		type ipv4_addr
		flags interval
		elements = { 198.18.0.0/16 }
	}
	chain input {
		type filter hook input priority filter; policy drop;
		iif "lo" accept
		ct state established,related accept
		ip saddr @friends tcp dport 22 counter accept
	}
}
`
	goodRules = `table inet filter {
	chain input {
		type filter hook input priority filter; policy drop;
		iif "lo" accept
		ct state established,related accept
		tcp dport { 22, 443 } accept comment "new"
	}
}
`
	// others is a table of another program, which nothing may touch.
	otherRules = `table ip f2b {
	set banned {
		type ipv4_addr
		elements = { 192.0.2.7 }
	}
	chain input {
		type filter hook input priority -10; policy accept;
		ip saddr @banned drop
	}
}
`
	// boot does the same as nftables.service.
	bootRules = "nft -f /etc/nftables.conf"
)

// bring puts a ruleset where the upload would.
func (d *desk) bring(rules string) {
	d.t.Helper()
	to := strings.ReplaceAll(d.texts["bring.to"], "{{task.id}}", d.args["task.id"])
	d.h.Put(to, rules, 0o600)
}

// fireHost is a host whose rules of old are kept and in force.
func fireHost(t *testing.T) *hosttest.Host {
	t.Helper()
	h := hosttest.New(t, hosttest.Options{Boot: bootRules})
	h.Put("/etc/nftables.conf", "#!/usr/sbin/nft -f\nflush ruleset\n"+oldRules, 0o755)
	h.Do(bootRules)
	return h
}

func rulesOf(h *hosttest.Host) string { return h.Do("nft -s list ruleset") }

func TestFirewallTextsChangeConfirmKeepAndTakeBack(t *testing.T) {
	if !hosttest.Inside(t) {
		return
	}
	h := fireHost(t)
	before := rulesOf(h)
	d := newDesk(t, h, "firewall", nil)
	d.do("prepare")
	d.bring(goodRules)
	if said := d.do("rehearse"); !strings.Contains(said, "+\t\ttcp dport { 22, 443 } accept comment \"new\"") ||
		!strings.Contains(said, "-\t\tip saddr @friends tcp dport 22 counter accept") {
		t.Errorf("the rehearsal does not show what changes:\n%s", said)
	}
	if said := d.do("kept"); !strings.Contains(said, "--- /etc/nftables.conf") ||
		!strings.Contains(said, "+++ /etc/nftables.conf as it would be") || !strings.Contains(said, `"new"`) {
		t.Errorf("what the next boot would read is not shown:\n%s", said)
	}
	if rulesOf(h) != before {
		t.Error("the rehearsal changed the rules")
	}

	d.do("activate.guard", "activate.apply", "activate.prove")
	if now := rulesOf(h); now == before || !strings.Contains(now, "443") || strings.Count(now, "dport") != 1 {
		t.Errorf("in force is:\n%s", now)
	}
	d.do("activate.rollback")
	if now := rulesOf(h); now != before {
		t.Errorf("after the rollback in force is:\n%s", now)
	}

	d.do("activate.guard", "activate.apply", "activate.prove")
	after := rulesOf(h)
	h.Reboot()
	if now := rulesOf(h); now != before {
		t.Errorf("after a reboot before the end in force is:\n%s", now)
	}
	d.do("activate.guard", "activate.apply", "activate.prove", "activate.keep", "activate.keep")
	h.Reboot()
	if now := rulesOf(h); now != after {
		t.Errorf("after a reboot in force is:\n%s\nwant\n%s", now, after)
	}
	back := newDesk(t, h, "firewall-back", map[string]string{"of": "task1"})
	if said := back.do("look"); !strings.Contains(said, "to do: back") {
		t.Errorf("look said %q", said)
	}
	back.do("back.guard", "back.apply", "back.prove", "back.keep", "back.keep")
	if now := rulesOf(h); now != before {
		t.Errorf("after going back in force is:\n%s", now)
	}
	h.Reboot()
	if now := rulesOf(h); now != before {
		t.Errorf("after going back and a reboot in force is:\n%s", now)
	}
	if said := back.do("look"); !strings.Contains(said, "to do: nothing") {
		t.Errorf("look again said %q", said)
	}
	d.do("activate.guard", "activate.apply", "activate.prove", "activate.keep")
	if mode := h.Do("stat -c %a /etc/nftables.conf"); mode != "755\n" {
		t.Errorf("the kept file has mode %s", mode)
	}
	if said := d.do("rehearse", "kept"); !strings.Contains(said, "the rules stay as they are") ||
		!strings.Contains(said, "/etc/nftables.conf stays as it is") {
		t.Errorf("the same rules again: %s", said)
	}
	if left := h.Do("find /etc /tmp -name '*.muster-new' -o -name 'tmp.*'"); left != "" {
		t.Errorf("left behind: %s", left)
	}
}

// Between the rehearsal of a task and its activation the host may be free. A dry run of other
// rules in between is harmless, because the rehearsed rules are activated. The next task
// removes remains of earlier ones, and a task that misses a file reports that.
func TestFirewallTextsActivateWhatTheirTaskBrought(t *testing.T) {
	if !hosttest.Inside(t) {
		return
	}
	h := fireHost(t)
	before := rulesOf(h)
	d := newDesk(t, h, "firewall", nil)
	d.do("prepare")
	d.bring(goodRules)
	d.do("rehearse")
	dry := newDesk(t, h, "firewall", map[string]string{"task.id": "task2"})
	dry.do("prepare")
	dry.bring(strings.Replace(goodRules, "{ 22, 443 }", "{ 22, 8443 }", 1))
	dry.do("rehearse", "kept")
	d.do("activate.guard", "activate.apply", "activate.prove", "activate.keep")
	if now := rulesOf(h); !strings.Contains(now, "443 }") || strings.Contains(now, "8443") {
		t.Errorf("in force is:\n%s\nwant what the task has brought and rehearsed", now)
	}
	if kept := h.Do("cat /etc/nftables.conf"); strings.Contains(kept, "8443") {
		t.Errorf("kept is:\n%s", kept)
	}

	const store = "/var/lib/muster/firewall/"
	h.Do("touch -d '9 days ago' " + store + "next-task1.nft " + store + "previous.nft; touch " + store + "next.nft")
	dry.do("prepare")
	if left := h.Do("cd " + store + "; ls next* previous.nft"); left != "next-task2.nft\nnext.nft\nprevious.nft\n" {
		t.Errorf("left are:\n%s", left)
	}
	after := rulesOf(h)
	d.refuses("activate.guard", "3", "next-task1.nft is gone, which was rehearsed")
	if now := rulesOf(h); now != after || now == before {
		t.Errorf("in force is:\n%s", now)
	}
}

// A host that could not keep the new rules has them in force all the same, and goes back
// to those before. Where there is no room to remember these, nothing is changed.
func TestFirewallTextsGoBackFromWhatWasNotKept(t *testing.T) {
	if !hosttest.Inside(t) {
		return
	}
	h := fireHost(t)
	before := rulesOf(h)
	d := newDesk(t, h, "firewall", nil)
	d.do("prepare")
	d.bring(goodRules)
	d.do("activate.guard", "activate.apply")
	d.bring(oldRules) // so what is kept is not what was brought
	d.refuses("activate.keep", "3", "the rules are in force, but not kept")
	if now := rulesOf(h); now == before {
		t.Error("the new rules are not in force")
	}
	back := newDesk(t, h, "firewall-back", map[string]string{"of": "task1"})
	if said := back.do("look"); !strings.Contains(said, "to do: back") {
		t.Errorf("look said %q", said)
	}
	back.do("back.guard", "back.apply", "back.prove", "back.keep")
	if now := rulesOf(h); now != before {
		t.Errorf("after going back in force is:\n%s", now)
	}
	h.Reboot()
	if now := rulesOf(h); now != before {
		t.Errorf("after going back and a reboot in force is:\n%s", now)
	}

	h.Do("mount -t tmpfs -o size=8k none /var/lib/muster/firewall")
	d.do("prepare")
	d.bring(goodRules)
	h.Do("head -c 8000 /dev/zero > /var/lib/muster/firewall/full || :")
	d.refuses("activate.guard", "3", "nothing was changed")
	if now := rulesOf(h); now != before {
		t.Errorf("with a full disk in force is:\n%s", now)
	}
}

func TestFirewallTextsRefuseBadRulesets(t *testing.T) {
	if !hosttest.Inside(t) {
		return
	}
	h := fireHost(t)
	before := rulesOf(h)
	for _, test := range []struct{ name, rules, words, at string }{
		{"syntax", "table inet filter {\n\tchain input {\n\t\ttcp dprt 22 accept\n\t}\n}\n", "syntax error", "3:7-10: "},
		{"missing chain", "table inet filter {\n\tchain a {\n\t\tjump nowhere\n\t}\n}\n",
			"No such file or directory", "3:8-14: "},
		{"missing interface", "table inet filter {\n\tchain a {\n\t\tiif eth7 drop\n\t}\n}\n",
			"Interface does not exist", "3:7-10: "},
		{"half", goodRules[:60], "syntax error", "3:"},
		{"nonsense", "\x00\xff nonsense", "Error", "1:"},
	} {
		t.Run(test.name, func(t *testing.T) {
			d := newDesk(t, h, "firewall", nil)
			d.do("prepare")
			d.bring(test.rules)
			d.refuses("rehearse", "1", test.words)
			d.refuses("activate.guard", "1", "nothing was changed: ruleset:"+test.at)
			d.refuses("activate.apply", "1", "the old rules are in force: ruleset:"+test.at)
		})
	}
	if now := rulesOf(h); now != before {
		t.Errorf("in force is:\n%s", now)
	}
}

func TestFirewallTextsLeaveTablesOfOthersAlone(t *testing.T) {
	if !hosttest.Inside(t) {
		return
	}
	h := fireHost(t)
	h.Put("/var/lib/f2b.nft", otherRules, 0o600)
	h.Do("nft -f /var/lib/f2b.nft")
	others := h.Do("nft list table ip f2b")
	before := rulesOf(h)
	mine := strings.Replace(goodRules, "inet filter", "inet muster", 1)

	all := newDesk(t, h, "firewall", nil)
	all.do("prepare")
	all.bring(goodRules)
	all.refuses("rehearse", "1", "these tables are not of muster, and would be lost: ip f2b. Take scope own")
	// A host without unshare notices these mistakes only at the activation.
	all.do("activate.guard", "activate.apply")
	all.refuses("activate.prove", "1", "and are lost: ip f2b")
	all.do("activate.rollback")
	if now := rulesOf(h); now != before {
		t.Errorf("after the rollback in force is:\n%s", now)
	}

	own := newDesk(t, h, "firewall", map[string]string{"scope": "own"})
	own.refuses("prepare", "3", "there is no folder /etc/nftables.d")
	h.Do("mkdir /etc/nftables.d")
	own.refuses("prepare", "3", "the next boot would not load the table")
	h.Do(`echo 'include "/etc/nftables.d/*.nft"' >> /etc/nftables.conf`)
	own.do("prepare")
	for _, test := range []struct{ rules, words string }{
		{"flush ruleset\n" + mine, "changes other tables than inet muster"},
		{mine + "delete table ip f2b\n", "changes other tables than inet muster"},
		{mine + "table ip f2b {\n\tset banned {\n\t\ttype ipv4_addr\n\t}\n\tchain more {\n\t}\n}\n",
			"changes other tables than inet muster"},
		{mine + "table ip mine {\n}\n", "has the table ip mine, and not only inet muster"},
		{"table inet muster\ndelete table inet muster\n", "has no table inet muster"},
	} {
		own.bring(test.rules)
		own.refuses("rehearse", "1", test.words)
	}
	own.bring(mine)
	own.do("rehearse", "activate.guard", "activate.apply", "activate.prove")
	if now := h.Do("nft list table ip f2b"); now != others {
		t.Errorf("the other table is now:\n%s", now)
	}
	own.do("activate.rollback")
	if now := rulesOf(h); now != before {
		t.Errorf("after the rollback in force is:\n%s", now)
	}
	own.do("activate.guard", "activate.apply", "activate.prove", "activate.keep")
	h.Reboot()
	if now := rulesOf(h); !strings.Contains(now, "table inet muster") || !strings.Contains(now, "@friends") {
		t.Errorf("after a reboot in force is:\n%s", now)
	}
}

func TestFirewallTextsDoNotTouchWhatNftCannotBringBack(t *testing.T) {
	if !hosttest.Inside(t) {
		return
	}
	h := fireHost(t)
	h.Do("iptables-nft -t nat -A POSTROUTING -m statistic --mode nth --every 2 --packet 0 -j MASQUERADE")
	d := newDesk(t, h, "firewall", map[string]string{"others": "drop"})
	d.do("prepare")
	d.bring(goodRules)
	d.refuses("rehearse", "3", "rules of iptables-nft, which nft cannot bring back")
	d.refuses("activate.guard", "3", "nothing was changed")
	if now := h.Do("iptables-nft-save -t nat"); !strings.Contains(now, "--every 2") {
		t.Errorf("the rules of iptables-nft are now:\n%s", now)
	}
}

func TestFirewallTextsWaitForAMoment(t *testing.T) {
	if !hosttest.Inside(t) {
		return
	}
	h := hosttest.New(t, hosttest.Options{})
	at := func(seconds string) string {
		return strings.TrimSpace(h.Do("date -u -d @$(($(date +%s) + " + seconds + ")) +%FT%TZ"))
	}
	d := newDesk(t, h, "firewall", map[string]string{"moment": at("3")})
	then := h.Do("date +%s")
	d.do("moment")
	if now := h.Do("date +%s"); now <= then {
		t.Errorf("it was %s before and is %s", then, now)
	}
	d.args["moment"] = at("-20")
	if said := d.do("moment"); !strings.Contains(said, "seconds ago") {
		t.Errorf("a moment that has passed: %q", said)
	}
	d.args["moment"] = at("400")
	d.refuses("moment", "1", "start the task at most 300 before")
	d.args["moment"] = "2026-13-40T00:00:00Z"
	d.refuses("moment", "1", "there is no such moment")
}

// The error for a ruleset gives the ruleset's own line numbers, whichever head it got and however
// nft read it, and names no file that only muster knows.
func TestFirewallTextsNameTheLineOfTheRuleset(t *testing.T) {
	if !hosttest.Inside(t) {
		return
	}
	h := fireHost(t)
	h.Put("/etc/more.nft", "table inet muster {\n\tchain a {\n\t\ttcp dprt 22 accept\n\t}\n}\n", 0o644)
	for _, scope := range []string{"all", "own"} {
		for _, test := range []struct{ rules, want string }{
			{"table inet muster {\n\tchain a {\n\t\ttcp dprt 22 accept\n\t}\n}\n", "ruleset:3:7-10: Error: "},
			{"table inet muster { chain a { type filter hook input priority 0; }; }\n\ninclude \"/etc/more.nft\"\n",
				"In file included from ruleset:3:1-24:\n/etc/more.nft:3:7-10: Error: "},
		} {
			d := newDesk(t, h, "firewall", map[string]string{"scope": scope})
			d.h.Do("mkdir -p /var/lib/muster/firewall /etc/nftables.d")
			d.bring(test.rules)
			for step, temporary := range map[string]string{"rehearse": "/new.nft", "activate.guard": ".muster-new"} {
				said := d.refuses(step, "1", test.want)
				if strings.Contains(said, temporary) || strings.Contains(said, "next-") {
					t.Errorf("%s, %s names a file of muster:\n%s", scope, step, said)
				}
			}
		}
	}
}
