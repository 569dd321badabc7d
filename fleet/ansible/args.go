package ansible

import (
	"fmt"
	"slices"
	"strings"

	"muster/fleet"
)

// argsVars returns the variables whose words Ansible passes to ssh as arguments.
func argsVars() []string {
	return []string{"ansible_ssh_args", "ansible_ssh_common_args", "ansible_ssh_extra_args"}
}

// sshOption is an option of ssh, with its name from ssh_config.
type sshOption struct{ name, value string }

// connection reads the arguments of ssh.
func (m *maker) connection(e *fleet.Entry) {
	for _, name := range argsVars() {
		v, ok := m.get(name)
		if !ok {
			continue
		}
		text, ok := m.text(name, v)
		if !ok {
			continue
		}
		options, err := sshOptions(text)
		if err != nil {
			m.mistakeAt(v.file, v.node.Line, fmt.Sprintf("%s %v", name, err))
			continue
		}
		for _, o := range options {
			m.option(e, name, o, v)
		}
	}
}

// sshOptions splits a text into options of ssh. A word that is not an option is an error.
func sshOptions(text string) ([]sshOption, error) {
	words, err := splitWords(text)
	if err != nil {
		return nil, err
	}
	names := map[byte]string{'J': "ProxyJump", 'p': "Port", 'l': "User", 'i': "IdentityFile",
		'F': "-F"}
	var list []sshOption
	for i := 0; i < len(words); i++ {
		w := words[i]
		if len(w) < 2 || w[0] != '-' {
			return nil, fmt.Errorf("has the word %s, which is no option of ssh", short(w))
		}
		if strings.IndexByte("BbcDEeFIiJLlmOoPpQRSWw", w[1]) < 0 {
			continue // a switch, such as -C or -q
		}
		value := w[2:]
		if value == "" {
			if i++; i == len(words) {
				return nil, fmt.Errorf("ends in %s: want its value", w)
			}
			value = words[i]
		}
		if w[1] != 'o' {
			list = append(list, sshOption{names[w[1]], value})
			continue
		}
		name, value, ok := strings.Cut(value, "=")
		if !ok {
			name, value, _ = strings.Cut(strings.TrimSpace(name), " ")
		}
		list = append(list, sshOption{strings.TrimSpace(name), strings.TrimSpace(value)})
	}
	return list, nil
}

// idleOptions returns the options of ssh that mean nothing to muster and need no note.
func idleOptions() []string {
	return []string{"", "controlmaster", "controlpersist", "controlpath", "compression",
		"serveraliveinterval", "serveralivecountmax", "connecttimeout", "connectionattempts",
		"tcpkeepalive", "loglevel", "batchmode", "preferredauthentications", "passwordauthentication",
		"kbdinteractiveauthentication", "gssapiauthentication", "pubkeyauthentication",
		"identitiesonly", "forwardagent", "forwardx11", "addressfamily", "requesttty", "ipqos",
		"visualhostkey", "checkhostip", "hashknownhosts", "updatehostkeys"}
}

// option applies one option of ssh, or notes that muster does not use it.
func (m *maker) option(e *fleet.Entry, from string, o sshOption, v setting) {
	bad := func(format string, args ...any) {
		m.mistakeAt(v.file, v.node.Line, from+": "+fmt.Sprintf(format, args...))
	}
	switch name := strings.ToLower(o.name); {
	case name == "proxyjump":
		m.jump(e, o.value, v, bad)
	case name == "proxycommand":
		jump, ok := jumpOf(o.value)
		if !ok {
			bad("ProxyCommand %s is not supported: give the way as ProxyJump", short(o.value))
			return
		}
		m.jump(e, jump, v, bad)
	case name == "userknownhostsfile" && strings.HasPrefix(o.value, "/") && o.value != "/dev/null":
		if e.KnownHosts == "" && len(e.Host.HostKeys) == 0 {
			e.KnownHosts = o.value
		}
	case name == "stricthostkeychecking" || name == "userknownhostsfile":
		if o.value != "yes" {
			m.noteAt(v.file, v.node.Line, fmt.Sprintf("%s: %s is not used: muster talks to hosts only "+
				"whose key it knows", from, o.name))
		}
	case !slices.Contains(idleOptions(), name):
		m.noteAt(v.file, v.node.Line, fmt.Sprintf("%s: option %s is not used", from, short(o.name)))
	}
}

// jumpOf recognizes commands that connect through a jump host: ssh -W %h:%p user@jump.
func jumpOf(command string) (jump string, ok bool) {
	words, err := splitWords(command)
	if err != nil || len(words) < 2 || words[0] != "ssh" && !strings.HasSuffix(words[0], "/ssh") {
		return "", false
	}
	user, port, through := "", "", false
	for i := 1; i < len(words); i++ {
		w := words[i]
		last := i == len(words)-1
		switch {
		case w == "-q" || w == "-T" || w == "-x":
		case w == "-W" && !last && strings.Trim(words[i+1], "[]") == "%h:%p" || w == "-W" && !last &&
			words[i+1] == "[%h]:%p":
			through = true
			i++
		case w == "-W%h:%p" || w == "-W[%h]:%p":
			through = true
		case w == "-p" && !last:
			i++
			port = ":" + words[i]
		case w == "-l" && !last:
			i++
			user = words[i] + "@"
		case w[:min(1, len(w))] != "-" && last && through:
			if strings.Contains(w, "@") {
				user = ""
			}
			return user + w + port, true
		default:
			return "", false
		}
	}
	return "", false
}
