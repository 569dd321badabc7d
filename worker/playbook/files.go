package playbook

import (
	_ "embed" // the plugin
	"fmt"
	"io/fs"
	"maps"
	"slices"
	"strconv"
	"strings"

	"muster/fleet"
)

//go:embed muster.py
var plugin string

// A File is one of a private folder.
type File struct {
	Text string
	Mode fs.FileMode
}

// Files returns the files of a play by their path in its folder, or all reasons why a playbook
// cannot run on the host.
func (p Play) Files(w Place) (map[string]File, error) {
	if err := p.check(w); err != nil {
		return nil, err
	}
	files := map[string]File{
		inventoryFile: {p.inventory(), 0o600}, varsFile: {p.vars(w), 0o600},
		sshFile: {p.sshConfig(w), 0o600}, knownFile: {p.knownHosts(), 0o600},
		callbackFolder + "/muster.py": {plugin, 0o600},
	}
	if w.Inventory != "" { // whose host_vars count more than the file of an inventory
		files["host_vars/"+p.Host.Name+".yml"] = File{p.hostVars(""), 0o600}
	}
	if p.Vault != "" {
		files[vaultFile] = File{string(p.Vault) + "\n", 0o600}
	}
	if w.PassphraseFile != "" {
		files[askFile] = File{"#!/bin/sh\nexec head -n 1 -- \"$MUSTER_PASSPHRASE_FILE\"\n", 0o700}
	}
	return files, nil
}

// data returns a text as YAML that Ansible never reads as a template.
func data(text string) string { return "!unsafe " + word(text) }

// word returns a text as a word of YAML, which knows the same escapes as Go.
func word(text string) string { return strconv.QuoteToASCII(text) }

// inventory returns the inventory of one host.
func (p Play) inventory() string {
	var b strings.Builder
	h := p.Host
	fmt.Fprintf(&b, "all:\n  hosts:\n    %s:\n", word(h.Name))
	b.WriteString(p.hostVars("      "))
	if groups := p.groups(); len(groups) > 0 {
		b.WriteString("  children:\n")
		for _, g := range groups {
			fmt.Fprintf(&b, "    %s: {hosts: {%s: {}}}\n", word(g), word(h.Name))
		}
	}
	return b.String()
}

// hostVars returns the variables of the host, each line behind in.
func (p Play) hostVars(in string) string {
	var b strings.Builder
	h := p.Host
	say := func(name, value string) { fmt.Fprintf(&b, "%s%s: %s\n", in, name, value) }
	say("ansible_connection", "ssh")
	// Of two names of a variable the older one counts more, so both are said.
	both := func(name, older, value string) { say(name, value); say(older, value) }
	both("ansible_host", "ansible_ssh_host", data(h.Address))
	both("ansible_port", "ansible_ssh_port", strconv.Itoa(h.Port))
	both("ansible_user", "ansible_ssh_user", data(h.User))
	if user := h.BecomesUser(); user != "" {
		say("ansible_become", "true")
		say("ansible_become_method", "sudo")
		both("ansible_become_user", "ansible_sudo_user", data(user))
	}
	say("muster_customer", data(h.Customer))
	say("muster_labels", "")
	for _, key := range slices.Sorted(maps.Keys(h.Labels)) {
		say("  "+word(key), data(h.Labels[key]))
	}
	if len(h.Labels) == 0 {
		b.WriteString(in + "  {}\n")
	}
	return b.String()
}

// groups returns the groups of Ansible in which the host is.
func (p Play) groups() []string {
	all := slices.Clone(p.Groups)
	for key, value := range p.Host.Labels {
		if name, is := strings.CutPrefix(key, fleet.GroupPrefix); is && value == "true" {
			all = append(all, name)
		}
	}
	slices.Sort(all)
	return slices.DeleteFunc(slices.Compact(all), func(g string) bool {
		return g == "all" || g == "ungrouped" || g == p.Host.Name
	})
}

// vars returns the variables that overrule all others: those of the step, and how to reach the
// host. A playbook that lacks the latter could turn off the check of host keys.
func (p Play) vars(w Place) string {
	var b strings.Builder
	for _, name := range slices.Sorted(maps.Keys(p.Vars)) {
		fmt.Fprintf(&b, "%s: %s\n", word(name), data(p.Vars[name]))
	}
	for _, name := range slices.Sorted(maps.Keys(p.Secrets)) {
		fmt.Fprintf(&b, "%s: %s\n", word(name), data(string(p.Secrets[name])))
	}
	if p.Become != "" {
		fmt.Fprintf(&b, "ansible_become_password: %s\n", data(string(p.Become)))
	}
	args := fmt.Sprintf("-F %[1]s/%[2]s -o ControlMaster=auto -o ControlPersist=60s "+
		"-o ControlPath=%[1]s/%%C", w.Dir, sshFile)
	for _, one := range [][2]string{{"ansible_ssh_args", args}, {"ansible_ssh_common_args", ""},
		{"ansible_ssh_extra_args", ""}, {"ansible_sftp_extra_args", ""}, {"ansible_scp_extra_args", ""},
		{"ansible_ssh_executable", "ssh"}, {"ansible_sftp_executable", "sftp"},
		{"ansible_scp_executable", "scp"},
		{"ansible_remote_tmp", "~/.ansible/" + remoteFolder(p.Host.Name)}} {
		fmt.Fprintf(&b, "%s: %s\n", one[0], data(one[1]))
	}
	// A module that came over a pipe has no name by which it is found on the host.
	b.WriteString("ansible_pipelining: false\nansible_ssh_pipelining: false\n" +
		"ansible_host_key_checking: true\nansible_ssh_host_key_checking: true\n" +
		"ansible_paramiko_host_key_checking: true\n")
	return b.String()
}

// sshConfig returns the way to the host for OpenSSH. Other hosts are unknown to it, so nothing
// connects to them.
func (p Play) sshConfig(w Place) string {
	var b strings.Builder
	before := ""
	for i, hop := range p.Host.Jump {
		name := jumpName(i)
		p.hop(&b, hop, sshHop{name, name, before})
		before = name
	}
	hop := p.Host.Hop()
	p.hop(&b, hop, sshHop{hop.Address, alias(hop, "muster-host"), before})
	fmt.Fprintf(&b, "Host *\n  StrictHostKeyChecking yes\n  UserKnownHostsFile \"%s/%s\"\n"+
		"  GlobalKnownHostsFile /dev/null\n  UpdateHostKeys no\n  CheckHostIP no\n"+
		"  VerifyHostKeyDNS no\n  PasswordAuthentication no\n  KbdInteractiveAuthentication no\n"+
		"  ForwardAgent no\n  ForwardX11 no\n  PermitLocalCommand no\n  CanonicalizeHostname no\n"+
		"  ConnectTimeout 10\n  ServerAliveInterval 15\n  IdentitiesOnly yes\n",
		w.Dir, knownFile)
	if w.Agent != "" {
		fmt.Fprintf(&b, "  IdentityAgent \"%s\"\n", w.Agent)
	}
	return b.String()
}

// jumpName returns the name of jump host i for OpenSSH.
func jumpName(i int) string { return fmt.Sprintf("muster-jump-%d", i+1) }

// alias returns the name under which the keys of a host are known. A certificate must carry it, so
// it is one of the principals then.
func alias(h fleet.Hop, name string) string {
	switch {
	case len(h.HostCAs) == 0 || len(h.HostKeys) > 0:
		return name
	case len(h.Principals) > 0:
		return h.Principals[0]
	}
	return h.Address
}

// A sshHop is a host as OpenSSH sees it.
type sshHop struct{ pattern, alias, via string }

// hop writes the part of one host.
func (p Play) hop(b *strings.Builder, h fleet.Hop, as sshHop) {
	known := alias(h, as.alias)
	fmt.Fprintf(b, "Host %s\n  HostName %s\n  Port %d\n  User %s\n  HostKeyAlias %s\n", as.pattern,
		h.Address, h.Port, h.User, known)
	if as.via != "" {
		fmt.Fprintf(b, "  ProxyJump %s\n", as.via)
	}
	if h.Key == "" {
		b.WriteString("  IdentityFile none\n  IdentitiesOnly no\n")
	} else {
		fmt.Fprintf(b, "  IdentityFile \"%s\"\n  IdentitiesOnly yes\n  IdentityAgent none\n",
			strings.ReplaceAll(h.Key, "%", "%%"))
	}
	if h.Certificate != "" {
		fmt.Fprintf(b, "  CertificateFile \"%s\"\n", strings.ReplaceAll(h.Certificate, "%", "%%"))
	}
}

// knownHosts returns the host keys of the inventory.
func (p Play) knownHosts() string {
	var b strings.Builder
	write := func(h fleet.Hop, name string) {
		name = alias(h, name)
		for _, key := range h.HostKeys {
			fmt.Fprintf(&b, "%s %s\n", name, oneLine(key))
		}
		for _, key := range h.HostCAs {
			fmt.Fprintf(&b, "@cert-authority %s %s\n", name, oneLine(key))
		}
		for _, key := range h.Revoked {
			fmt.Fprintf(&b, "@revoked * %s\n", oneLine(key))
		}
	}
	for i, hop := range p.Host.Jump {
		write(hop, jumpName(i))
	}
	write(p.Host.Hop(), "muster-host")
	return b.String()
}

// oneLine returns type and content of a key, without a comment.
func oneLine(key string) string {
	words := strings.Fields(key)
	return strings.Join(words[:min(2, len(words))], " ")
}
