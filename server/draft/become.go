package draft

import (
	"muster/fleet"
	"muster/internal/wording"
	"muster/scripts"
	"muster/server/fault"
)

// CheckBecome reports the hosts on which Ansible would become another user in a way that muster
// does not know: commands would run there as the wrong user. It also reports a password
// of sudo that no host can ask for.
func (p *Draft) CheckBecome() []error {
	hosts, secrets := p.Picked, p.Secrets
	var cannot []string
	asks := false
	for i := range hosts {
		h := &hosts[i]
		if user := h.Labels[fleet.BecomeLabel]; user != "" && h.Become == "" {
			cannot = append(cannot, h.Name)
		}
		asks = asks || h.BecomesUser() != ""
	}
	if len(cannot) > 0 {
		return []error{fault.At("body.on", "on %s Ansible would become another user in a way that "+
			"muster has not: `muster hosts check` says where and why; write become: sudo or become: none "+
			"in an override of those hosts", wording.ClipList(fleet.Fold(cannot)))}
	}
	_, given := secrets[scripts.BecomePassword]
	_, referred := p.Frozen.Values.Secrets[scripts.BecomePassword]
	if (given || referred) && !asks {
		return []error{fault.At("body.secrets", "a password of sudo is given, and no host of this task "+
			"has become: sudo in the inventory: leave it out")}
	}
	return nil
}
