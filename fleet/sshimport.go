package fleet

import (
	"cmp"
	"errors"
	"fmt"
	"path"
	"slices"
	"strconv"
	"strings"
)

// SSHConfig is the input of ImportSSHConfig.
type SSHConfig struct {
	Files []Source // configurations of OpenSSH; the first value counts, as in ssh
	Home  string   // value of "~" and %d
	User  string   // login name where the files give none; empty: root

	// Include returns the files that match an absolute pattern. If it is nil, each line
	// Include only yields a note.
	Include func(pattern string) ([]Source, error)

	// Trust returns the entries of known_hosts for an address and port, or for an alias and
	// port 22. If it is nil, all hosts come without keys.
	Trust func(address string, port int) Trust
}

// SSHImport is the result of ImportSSHConfig.
type SSHImport struct {
	Hosts []Host   // sorted by name; hosts without keys must be enrolled
	Notes Mistakes // lines that were not understood or have no counterpart
}

// ImportSSHConfig creates hosts of an inventory from the configuration of OpenSSH: one for
// each name on a line Host that is not a pattern, and one for each jump host on the way to
// them. It reads HostName, Port, User, IdentityFile, CertificateFile, ProxyJump and
// HostKeyAlias; as in ssh, the first value that applies counts. Obsolete algorithms select
// the profile legacy. A host without IdentityFile uses the agent.
func ImportSSHConfig(c SSHConfig) SSHImport {
	r := &sshReader{include: c.Include, home: c.Home}
	for _, s := range c.Files {
		r.read(Source{Name: s.title(), Data: s.Data}, nil, 0)
	}
	im := importer{SSHConfig: c, sshReader: r, hosts: map[string]*Host{}, noted: map[Mistake]bool{},
		named: map[string]bool{}}
	var targets []sshTarget
	for _, d := range r.lines {
		if d.keyword != "host" {
			continue
		}
		for _, name := range d.args {
			if !strings.ContainsAny(name, "*?!") && !im.named[name] {
				im.named[name] = true
				targets = append(targets, sshTarget{alias: name, at: d})
			}
		}
	}
	for _, t := range targets {
		im.host(t, nil)
	}
	result := SSHImport{Notes: r.notes}
	for _, name := range sortedKeys(im.hosts) {
		result.Hosts = append(result.Hosts, *im.hosts[name])
	}
	return result
}

// sshTarget is a host as the configuration names it.
type sshTarget struct {
	alias, user string
	port        int
	at          directive
}

type importer struct {
	SSHConfig
	*sshReader
	named map[string]bool // names on lines Host
	hosts map[string]*Host
	noted map[Mistake]bool
}

// noteOnce adds a note unless it was added for another host already.
func (im *importer) noteOnce(d directive, format string, args ...any) {
	m := Mistake{d.file, d.line, fmt.Sprintf(format, args...)}
	if !im.noted[m] {
		im.noted[m] = true
		im.notes = append(im.notes, m)
	}
}

// host creates a host, after the jump hosts on the way to it. If that is impossible, it
// adds a note and returns nil.
func (im *importer) host(t sshTarget, askedBy []string) *Host {
	said := im.holding(t.alias)
	h := &Host{Name: t.alias, Address: cmp.Or(said.text("hostname"), t.alias),
		User: cmp.Or(t.user, said.text("user"), im.User, "root"), Port: im.port(t, said),
		Zone: DefaultZone, Fence: FenceAuto}
	h.Address = strings.NewReplacer("%%", "%", "%h", t.alias).Replace(h.Address)
	h.Name = im.nameOf(t, h, said)
	if made := im.hosts[h.Name]; made != nil {
		return made
	}
	if slices.Contains(askedBy, t.alias) {
		im.noteOnce(t.at, "ProxyJump goes in a circle, %s: it was left out",
			strings.Join(append(askedBy, t.alias), " → "))
		return nil
	}
	h.Key = im.file(said, "identityfile", h, t)
	h.Certificate = im.file(said, "certificatefile", h, t)
	im.noteTheRest(said, h)
	im.trust(said, h)
	im.way(said, h, append(askedBy, t.alias))
	if errs := checkHost(h); len(errs) > 0 {
		im.noteOnce(t.at, "host %q was left out: %v", abbreviate(t.alias), errors.Join(errs...))
		return nil
	}
	im.hosts[h.Name] = h
	return h
}

// nameOf returns the alias, or a longer name if ProxyJump gives another user or port than
// the lines of that host do, because those are two logins.
func (im *importer) nameOf(t sshTarget, h *Host, said settings) string {
	usual := *h
	if im.named[t.alias] {
		usual.User = cmp.Or(said.text("user"), im.User, "root")
		usual.Port = im.port(sshTarget{}, said)
	} else if made := im.hosts[t.alias]; made != nil {
		usual = *made
	}
	if usual.User == h.User && usual.Port == h.Port {
		return t.alias
	}
	return fmt.Sprintf("%s-%s-%d", t.alias, h.User, h.Port)
}

// settings holds the directives that apply to a host, in their order, by keyword.
type settings map[string][]directive

func (im *importer) holding(name string) settings {
	said := settings{}
	for _, d := range im.lines {
		if !slices.ContainsFunc(d.when, func(c condition) bool { return !c.holds(name) }) {
			said[d.keyword] = append(said[d.keyword], d)
		}
	}
	return said
}

// text returns the value that counts, or "" if there is none.
func (s settings) text(keyword string) string {
	if len(s[keyword]) == 0 {
		return ""
	}
	return s[keyword][0].args[0]
}

func (im *importer) port(t sshTarget, said settings) int {
	if t.port > 0 {
		return t.port
	}
	given := said.text("port")
	if given == "" {
		return 22
	}
	n, err := strconv.Atoi(given)
	if err != nil || checkPort(n) != nil {
		im.noteOnce(said["port"][0], "Port %q: want 1 to 65535; 22 was taken", abbreviate(given))
		return 22
	}
	return n
}

// file returns the path of a file that a login to the host needs.
func (im *importer) file(said settings, keyword string, h *Host, t sshTarget) string {
	given := said[keyword]
	if len(given) == 0 || strings.EqualFold(given[0].args[0], "none") {
		return ""
	}
	if len(given) > 1 {
		im.noteOnce(given[1], "%s of %s: only the first is taken over, one is shown to a host",
			given[1].keyword, h.Name)
	}
	name := given[0].args[0]
	if rest, found := strings.CutPrefix(name, "~/"); found {
		name = path.Join(im.Home, rest)
	}
	name = strings.NewReplacer("%%", "%", "%d", im.Home, "%u", im.User, "%r", h.User,
		"%h", h.Address, "%n", t.alias, "%p", strconv.Itoa(h.Port)).Replace(name)
	if strings.ContainsAny(name, "%$") || !path.IsAbs(name) {
		im.noteOnce(given[0], "%s %q depends on where it is read: it was left out, give an absolute path",
			given[0].keyword, abbreviate(name))
		return ""
	}
	return name
}

// trust looks up the keys and authorities that identify the host.
func (im *importer) trust(said settings, h *Host) {
	if im.Trust == nil {
		return
	}
	address, port := strings.ToLower(h.Address), h.Port
	if alias := said.text("hostkeyalias"); alias != "" {
		address, port = alias, 22
		h.Principals = []string{alias}
	}
	t := im.Trust(address, port)
	h.HostKeys, h.HostCAs = t.HostKeys, t.HostCAs
	if len(h.HostCAs) > 0 {
		h.Revoked = t.Revoked
	}
	if len(h.HostKeys)+len(h.HostCAs) == 0 {
		im.noteOnce(directive{}, "host %s: known_hosts has no key of %s port %d: enroll it", h.Name,
			address, port)
	}
}

// way fills in the jump hosts of a host.
func (im *importer) way(said settings, h *Host, askedBy []string) {
	given := said["proxyjump"]
	if len(given) == 0 || strings.EqualFold(given[0].args[0], "none") {
		return
	}
	d := given[0]
	for i, word := range strings.Split(d.args[0], ",") {
		t, err := parseJump(word)
		if err != nil {
			im.noteOnce(d, "ProxyJump %q: %v: it was left out", abbreviate(d.args[0]), err)
			h.Jump = nil
			return
		}
		t.at = d
		hop := im.host(t, askedBy)
		if hop == nil {
			h.Jump = nil
			return
		}
		if i == 0 {
			h.Jump = slices.Clone(hop.Jump)
		}
		h.Jump = append(h.Jump, hop.Hop())
	}
}

// parseJump reads user@host:port, plain or as a URL.
func parseJump(text string) (sshTarget, error) {
	var t sshTarget
	text = strings.TrimPrefix(strings.TrimSpace(text), "ssh://")
	if at := strings.LastIndexByte(text, '@'); at >= 0 {
		t.user, text = text[:at], text[at+1:]
	}
	t.alias = text
	if rest, found := strings.CutPrefix(text, "["); found {
		inside, after, closed := strings.Cut(rest, "]")
		if !closed {
			return t, errors.New("a bracket is not closed")
		}
		t.alias, text = inside, after
	} else if strings.Count(text, ":") == 1 {
		t.alias, _, _ = strings.Cut(text, ":")
		text = text[len(t.alias):]
	} else {
		text = ""
	}
	if text != "" {
		n, err := strconv.Atoi(strings.TrimPrefix(text, ":"))
		if err != nil || checkPort(n) != nil {
			return t, fmt.Errorf("port %q: want 1 to 65535", abbreviate(text))
		}
		t.port = n
	}
	if t.alias == "" {
		return t, errors.New("it names no host")
	}
	return t, nil
}

// noteTheRest notes settings that change how ssh reaches a host but have no counterpart.
func (im *importer) noteTheRest(said settings, h *Host) {
	for _, keyword := range []string{"proxycommand", "identityagent", "pkcs11provider",
		"canonicalizehostname", "bindaddress", "bindinterface", "knownhostscommand"} {
		switch strings.ToLower(said.text(keyword)) {
		case "", "none", "no":
		default:
			im.noteOnce(said[keyword][0], "%s is not supported: it was left out", keyword)
		}
	}
	if v := strings.ToLower(said.text("stricthostkeychecking")); v == "no" || v == "off" ||
		v == "accept-new" {
		im.noteOnce(said["stricthostkeychecking"][0], "StrictHostKeyChecking %s: host keys are always "+
			"checked here", v)
	}
	for _, keyword := range []string{"kexalgorithms", "ciphers", "macs", "hostkeyalgorithms",
		"pubkeyacceptedalgorithms", "pubkeyacceptedkeytypes"} {
		if wantsLegacy(said.text(keyword)) {
			h.Profile = ProfileLegacy
		}
	}
}

// wantsLegacy reports whether a list of algorithms asks for an obsolete one. A list that
// begins with '-' removes algorithms, so it does not.
func wantsLegacy(list string) bool {
	if strings.HasPrefix(list, "-") {
		return false
	}
	old := []string{"diffie-hellman-group1-sha1", "diffie-hellman-group14-sha1",
		"diffie-hellman-group-exchange-sha1", "aes128-cbc", "3des-cbc", "hmac-sha1-96",
		"ssh-rsa", "ssh-dss"}
	for _, name := range strings.Split(strings.TrimLeft(list, "+^"), ",") {
		if slices.Contains(old, strings.TrimSpace(name)) {
			return true
		}
	}
	return false
}
