package scripts_test

import (
	"strings"
	"testing"

	"muster/testkit/hosttest"
)

// If a host forgot an armed change, its outcome is unknown until the earlier rules are in force
// again, or the change was kept or reverted.
func TestFirewallBackKnowsNoOutcomeThatIsForgotten(t *testing.T) {
	if !hosttest.Inside(t) {
		return
	}
	h := fireHost(t)
	h.Do("mkdir /etc/nftables.d; echo 'include \"/etc/nftables.d/*.nft\"' >> /etc/nftables.conf")
	mine := strings.Replace(goodRules, "inet filter", "inet muster", 1)
	for scope, rules := range map[string]string{"all": goodRules, "own": mine} {
		t.Run(scope, func(t *testing.T) {
			d := newDesk(t, h, "firewall", map[string]string{"scope": scope})
			last := newDesk(t, h, "firewall-back", nil)
			this := newDesk(t, h, "firewall-back", map[string]string{"of": "task1"})
			other := newDesk(t, h, "firewall-back", map[string]string{"of": "task2"})
			nothing := func(when string, of ...*desk) {
				t.Helper()
				for _, b := range of {
					if said := b.do("look"); !strings.Contains(said, "to do: nothing") {
						t.Errorf("%s look of %q said %q", when, b.args["of"], said)
					}
				}
			}
			nothing("where nothing ever began", last, this, other)
			d.do("prepare")
			d.bring(rules)
			nothing("where the ruleset was brought", last, this, other)
			d.do("activate.guard")
			nothing("before the change", last, this, other)

			d.do("activate.apply")
			h.Do("rm -rf /var/lib/muster/confirm")
			for _, b := range []*desk{last, this} {
				b.refuses("look", "3", "fw1: task task1 began to activate its ruleset here, and "+
					"whether it is in force cannot be known: /var/lib/muster/confirm, where")
			}
			nothing("where another task forgot", other)
			h.Reboot()
			nothing("after a reboot", last, this)

			d.do("activate.guard", "activate.apply", "activate.rollback")
			h.Do("nft add table ip more")
			nothing("after the rollback", last, this)
			h.Do("nft delete table ip more")
			d.do("activate.guard", "activate.apply", "activate.prove", "activate.keep")
			if left := h.Do("find /var/lib/muster/firewall -name 'begun-*'"); left != "" {
				t.Errorf("what is kept has left behind %s", left)
			}
			nothing("when it is kept", other)
			last.do("look", "back.guard", "back.apply", "back.prove", "back.keep")
			nothing("when it went back", last, this)
		})
	}
}
