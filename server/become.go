package server

import (
	"muster/fleet"
	"muster/internal/seal"
	"muster/scripts"
)

// checkBecome refuses hosts on which Ansible would become another user in a way that muster
// has not: commands would run there as somebody else than is meant. It also refuses a password
// of sudo that no host can ask for.
func checkBecome(hosts []fleet.Host, secrets map[string]seal.Text) []error {
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
		return []error{mistake("body.on", "on %s Ansible would become another user in a way that muster "+
			"has not: `muster hosts check` says where and why; write become: sudo or become: none in an "+
			"override of those hosts", brief(fleet.Fold(cannot)))}
	}
	if _, given := secrets[scripts.BecomePassword]; given && !asks {
		return []error{mistake("body.secrets", "a password of sudo is given, and no host of this task "+
			"has become: sudo in the inventory: leave it out")}
	}
	return nil
}
