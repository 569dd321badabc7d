package local

import (
	"fmt"
	"os"
	"os/user"
	"path/filepath"
)

// Machine holds the values that the defaults of a configuration depend on.
type Machine struct {
	Host    string // its name
	UID     int    // of the user
	User    string // the name of the user; empty: not known
	Runtime string // XDG_RUNTIME_DIR
	Agent   string // SSH_AUTH_SOCK
	home    string // of the user; empty: not known

	Credentials string // CREDENTIALS_DIRECTORY, which systemd makes for a service
}

// KnownHosts returns the files that ssh reads, behind one of muster's own.
func (m Machine) KnownHosts() []string {
	files := []string{"/etc/muster/known_hosts", "/etc/ssh/ssh_known_hosts"}
	if m.home != "" {
		files = append(files, m.home+"/.ssh/known_hosts")
	}
	return files
}

// service reports whether this is the user of the machine's own muster: root, or the user that
// the units run as.
func (m Machine) service() bool { return m.UID == 0 || m.User == "muster" }

// NodeDir returns the folder of the locks of a node: /run/muster, or a folder of the user.
func (m Machine) NodeDir() string {
	switch {
	case m.service():
		return "/run/muster"
	case m.Runtime != "":
		return m.Runtime + "/muster"
	}
	return fmt.Sprintf("/tmp/muster-%d", m.UID)
}

// HistoryFile returns the default file of history. A user with a node.dir of their own has it
// there, because several servers on one machine must not share it.
func (m Machine) HistoryFile(nodeDir string) string {
	const file = "history.db"
	switch {
	case nodeDir != m.NodeDir():
		return filepath.Join(nodeDir, file)
	case m.service():
		return "/var/lib/muster-server/" + file
	case m.home != "":
		return filepath.Join(m.home, ".local/state/muster", file)
	}
	return filepath.Join(nodeDir, file)
}

// ServerKey returns the default file with the key of servers; empty: this user has no place for it.
func (m Machine) ServerKey() string { return m.configured("server.key") }

// AccessFile returns the default file that says who may do what; empty: this user has no place for
// it.
func (m Machine) AccessFile() string { return m.configured("access.yaml") }

// NotifyFile returns the default file with the rules of notifications; empty: this user has no
// place for it.
func (m Machine) NotifyFile() string { return m.configured("notify.yaml") }

// RepositoriesFile returns the default file of repositories; empty: this user has no place for it.
func (m Machine) RepositoriesFile() string { return m.configured("repositories.yaml") }

// TriggersFile returns the default file of triggers; empty: this user has no place for it.
func (m Machine) TriggersFile() string { return m.configured("triggers.yaml") }

// EventsFile returns the default file with the sources of events; empty: this user has no place for
// it.
func (m Machine) EventsFile() string { return m.configured("events.yaml") }

// TrustDir returns the default folder of what a node trusts; empty: this user has no place for it.
func (m Machine) TrustDir() string { return m.configured("trust") }

// References returns the default file with the rules for references to secrets; empty: this user
// has no place for it.
func (m Machine) References() string { return m.configured("references.yaml") }

// configured returns the default place of a file of the configuration.
func (m Machine) configured(file string) string {
	switch {
	case m.service():
		return "/etc/muster/" + file
	case m.home != "":
		return filepath.Join(m.home, ".config/muster", file)
	}
	return ""
}

// AuditDir returns the default folder of the audit log's spool, beside the file of history.
func (m Machine) AuditDir(nodeDir string) string {
	return filepath.Join(filepath.Dir(m.HistoryFile(nodeDir)), "audit")
}

// This returns the machine and the user that this program runs as.
func This() Machine {
	home, _ := os.UserHomeDir() // a service may have none
	m := Machine{UID: os.Getuid(), Runtime: os.Getenv("XDG_RUNTIME_DIR"),
		Agent: os.Getenv("SSH_AUTH_SOCK"), Credentials: os.Getenv("CREDENTIALS_DIRECTORY"), home: home}
	if u, err := user.Current(); err == nil {
		m.User = u.Username
	}
	return m
}

// The socket is in a folder beside node.dir, which is closed to the group of the socket.
func (m Machine) Sockets() []string {
	const system = "/run/muster-server/api.sock"
	switch {
	case m.service():
		return []string{system}
	case m.Runtime != "":
		return []string{m.Runtime + "/muster-server/api.sock", system}
	}
	return []string{fmt.Sprintf("/tmp/muster-server-%d/api.sock", m.UID), system}
}
