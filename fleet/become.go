package fleet

import (
	"cmp"
	"fmt"
)

// Access holds what muster needs to use a host, beyond the login key, and the user as whom
// commands run there.
type Access struct {
	Certificate string `json:"certificate,omitempty"` // certificate of the user, for Key: a path on the node
	Profile     string `json:"profile,omitempty"`     // ProfileLegacy or empty

	Become     string `json:"become,omitempty"`      // BecomeSudo, BecomeNone or empty
	BecomeUser string `json:"become_user,omitempty"` // commands run as this user; empty: root
}

// The ways in which commands can run as a user other than the login user.
const (
	BecomeSudo = "sudo"
	BecomeNone = "none" // explicit, unlike empty: overrules what an inventory of Ansible asks for
)

// BecomesUser returns the user to whom sudo switches for commands on the host. It is empty if
// commands run as the login user.
func (h *Host) BecomesUser() string {
	user := cmp.Or(h.BecomeUser, "root")
	if h.Become != BecomeSudo || user == h.User {
		return ""
	}
	return user
}

// checkBecome accepts sudo and none.
func checkBecome(s string) error {
	ways := []string{BecomeSudo, BecomeNone}
	if s == BecomeSudo || s == BecomeNone {
		return nil
	}
	return fmt.Errorf("%q: want sudo or none, muster becomes another user by sudo alone%s",
		abbreviate(s), suggest(s, ways))
}
