package ansible

import (
	"cmp"
	"fmt"
	"strings"

	"muster/fleet"
)

// becomeVars returns the variables by which Ansible runs a host's commands as another user,
// including those of old releases. The first list switches this on, the second names the user.
func becomeVars() (whether, who, how []string) {
	return []string{"ansible_become", "ansible_sudo", "ansible_su"},
		[]string{"ansible_become_user", "ansible_sudo_user", "ansible_su_user"},
		append([]string{"ansible_become_method"}, becomeRest()...)
}

// becomeRest returns the variables that muster never uses, whatever the method is.
func becomeRest() []string {
	return []string{"ansible_become_password", "ansible_become_pass", "ansible_become_exe",
		"ansible_become_flags", "ansible_sudo_pass", "ansible_su_pass"}
}

// become sets the user as whom commands run on the host. If muster cannot become the user of
// Ansible, it returns that user and warns at the variable's position, because commands would
// otherwise run as the wrong user and fail or, worse, do half of their work.
func (m *maker) become(h *fleet.Host) (cannot string) {
	m.becomeNotes()
	var v setting
	var name string
	whether, who, _ := becomeVars()
	for _, name = range whether {
		one, ok := m.get(name)
		if ok && !says(one, "no", "false", "off", "n", "f", "0", "") {
			v = one
			break
		}
	}
	if v.node == nil {
		return ""
	}
	user := "root"
	for _, name := range who {
		if v, ok := m.get(name); ok {
			if text, err := plain(v.node); err == nil {
				user = cmp.Or(text, user)
			} else {
				user = "?"
			}
		}
	}
	if user == h.User {
		return ""
	}
	if why := m.cannotBecome(name, v, user); why != "" {
		m.warnAt(v.file, v.node.Line, fmt.Sprintf("%s is not used, %s: tasks on such a host are "+
			"refused; write what it should be, or override it with become: sudo or become: none", name, why))
		return user
	}
	h.Become, h.BecomeUser = fleet.BecomeSudo, user
	if user == "root" {
		h.BecomeUser = ""
	}
	return ""
}

// cannotBecome returns the reason why muster cannot become the user, or "" if it can.
func (m *maker) cannotBecome(name string, v setting, user string) string {
	method := strings.TrimPrefix(name, "ansible_")
	if method == "become" {
		method = fleet.BecomeSudo
		if how, ok := m.get("ansible_become_method"); ok {
			text, err := plain(how.node)
			if err != nil {
				return "its method " + err.Error()
			}
			method = strings.TrimPrefix(cmp.Or(text, method), "ansible.builtin.")
		}
	}
	if method != fleet.BecomeSudo {
		return fmt.Sprintf("by %s: muster becomes another user by sudo alone", short(method))
	}
	if err := fleet.CheckField("become_user", user); err != nil || user == "?" {
		return "ansible_become_user is no plain name of a user"
	}
	if !says(v, "yes", "true", "on", "y", "t", "1") {
		return "it is neither yes nor no"
	}
	return ""
}

// becomeNotes notes variables that have no effect here.
func (m *maker) becomeNotes() {
	for _, name := range becomeRest() {
		v, ok := m.get(name)
		switch {
		case !ok:
		case strings.HasSuffix(name, "pass"), strings.HasSuffix(name, "password"):
			m.noteAt(v.file, v.node.Line, name+" is not used: give the password of sudo to a task, with "+
				"--become-password")
		default:
			m.noteAt(v.file, v.node.Line, name+" is not used: muster runs sudo -H -u USER")
		}
	}
}

// says reports whether a value is one of the words. It is false for a template, because its
// result is not known here.
func says(v setting, words ...string) bool {
	text, err := plain(v.node)
	for _, word := range words {
		if err == nil && strings.EqualFold(text, word) {
			return true
		}
	}
	return false
}

// becomeLabel marks a host on which Ansible would become a user that muster cannot become.
func becomeLabel(user string, labels map[string]string) {
	if user == "" {
		return
	}
	if fleet.CheckLabel(fleet.BecomeLabel, user) != nil {
		user = "true"
	}
	labels[fleet.BecomeLabel] = user
}
