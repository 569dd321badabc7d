package fleet

import (
	"cmp"
	"fmt"
)

// Access is how muster gets at a host, beyond the key that it logs in with, and as whom its
// commands run there.
type Access struct {
	Certificate string `json:"certificate,omitempty"` // of the user, for Key: a path on the node
	Profile     string `json:"profile,omitempty"`     // ProfileLegacy or empty

	Become     string `json:"become,omitempty"`      // BecomeSudo, BecomeNone or empty
	BecomeUser string `json:"become_user,omitempty"` // whom commands run as; empty: root
}

// The ways in which commands can run as another user than the one who logs in.
const (
	BecomeSudo = "sudo"
	BecomeNone = "none" // said, where empty is not: the inventory of Ansible may want another
)

// BecomesUser returns the user whom commands on the host run as, if sudo makes them run as
// another one than the user who logs in. Empty: they run as who logs in.
func (h *Host) BecomesUser() string {
	user := cmp.Or(h.BecomeUser, "root")
	if h.Become != BecomeSudo || user == h.User {
		return ""
	}
	return user
}

// checkBecome wants the one way that there is.
func checkBecome(s string) error {
	ways := []string{BecomeSudo, BecomeNone}
	if s == BecomeSudo || s == BecomeNone {
		return nil
	}
	return fmt.Errorf("%q: want sudo or none, muster becomes another user by sudo alone%s",
		abbreviate(s), suggest(s, ways))
}
