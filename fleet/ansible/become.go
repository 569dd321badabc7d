package ansible

import (
	"cmp"
	"fmt"
	"strings"

	"muster/fleet"
)

// becomeVars are the variables of Ansible that have a host's commands run as another
// user, those of old releases among them. The first of each list says whether.
func becomeVars() (whether, who, how []string) {
	return []string{"ansible_become", "ansible_sudo", "ansible_su"},
		[]string{"ansible_become_user", "ansible_sudo_user", "ansible_su_user"},
		[]string{"ansible_become_method", "ansible_become_password", "ansible_become_pass",
			"ansible_become_exe", "ansible_become_flags", "ansible_sudo_pass", "ansible_su_pass"}
}

// become returns the user whom Ansible would become on a host where muster stays who it
// is; empty if they are the same. It says so at the variable's place: dropped in
// silence, it lets commands fail on the host or, worse, half work.
func (m *maker) become(login string) string {
	whether, who, how := becomeVars()
	for _, name := range how {
		if v, ok := m.get(name); ok {
			m.noteAt(v.file, v.node.Line, name+" is not used: muster becomes no other user")
		}
	}
	user := "root"
	for _, name := range who {
		if v, ok := m.get(name); ok {
			if text, err := plain(v.node); err == nil {
				user = cmp.Or(text, user)
			}
		}
	}
	for _, name := range whether {
		v, ok := m.get(name)
		if !ok || says(v, "no", "false", "off", "n", "f", "0", "") || user == login {
			continue
		}
		m.warnAt(v.file, v.node.Line, fmt.Sprintf("%s is not used: muster runs commands as the user who "+
			"logs in, %s, not as %s; log in as that user, or write sudo into the runbook", name,
			short(login), short(user)))
		return user
	}
	return ""
}

// says reports whether a value is one of some words. A template is none: what it comes
// to is not known here.
func says(v setting, words ...string) bool {
	text, err := plain(v.node)
	for _, word := range words {
		if err == nil && strings.EqualFold(text, word) {
			return true
		}
	}
	return false
}

// becomeLabel marks a host on which Ansible would become another user.
func becomeLabel(user string, labels map[string]string) {
	if user == "" {
		return
	}
	if fleet.CheckLabel(fleet.BecomeLabel, user) != nil {
		user = "true"
	}
	labels[fleet.BecomeLabel] = user
}
