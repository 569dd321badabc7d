package fleet

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
)

// Source is one inventory file: its name, for messages, and its contents.
type Source struct {
	Name string
	Data []byte
}

func (s Source) title() string { return cmp.Or(s.Name, "inventory") }

// sourcesMax bounds the total size of all files: 20,000 hosts need 5 MiB.
const sourcesMax = 64 << 20 // bytes

// Parse reads an inventory from one or more YAML files:
//
//	defaults: {user: root, key: /etc/muster/id_ed25519, known_hosts: /etc/muster/known_hosts}
//	hosts:
//	  - name: fw001              # required
//	    address: 192.0.2.1       # required: IP address or DNS name, without port
//	    port: 2222               # 22
//	    user: admin              # root
//	    key: /etc/muster/id_fw   # path on the node; none: the agent
//	    host_key: "ssh-ed25519 AAAA…"   # or host_keys: a list, or known_hosts: a path
//	    customer: acme
//	    zone: default
//	    jump: bastion1           # host of the inventory on the way to it, or a list of them
//	    certificate: /etc/muster/id_fw-cert.pub   # of the user, for the key
//	    host_ca: "ssh-ed25519 AAAA…"   # may certify its host key; or a list
//	    principals: fw001.example.com  # its host certificate must be for one; none: address or name
//	    revoked: "ssh-ed25519 AAAA…"   # key that is refused, or a list
//	    profile: legacy          # algorithms of old appliances
//	    become: sudo             # commands run as another user; or none
//	    become_user: backup      # root
//	    group: pair-1            # redundancy group
//	    fence: auto              # auto, none or required
//	    labels: {role: fw, model: x200}
//	limits:                      # how many jobs at a time
//	  site/zrh1: 5               # on all hosts with the label site=zrh1 together
//	  mirror/fw: {max: 20, customer: acme, zone: zrh}   # of runbooks that need it
//	overrides:                   # on hosts of any file; of two that say it the later wins
//	  - {on: 'site=zrh1,!legacy', user: ops, labels: {wave: late}}
//
// Defaults apply to the hosts of the same file, so the order of files has no
// meaning. They may set user, port, key, known_hosts, customer, zone, fence, and
// the fields from jump to become_user above. If the default jump host is itself in the
// file, muster connects to it without a jump.
// Anchors and aliases are refused, so that each line can be understood by itself and
// a file cannot grow when it is read. The error is of type Mistakes.
func Parse(sources ...Source) (*Inventory, error) {
	if len(sources) == 0 {
		return nil, Mistakes{{Text: "no inventory file given: want at least one"}}
	}
	return Join(Read(sources...))
}

// Read is the first half of Parse: it reads files. Join combines their hosts with those
// of other sources.
func Read(sources ...Source) Part {
	var r reader
	var files []string
	size := 0
	for _, s := range sources {
		size += len(s.Data)
		files = append(files, s.title())
	}
	if size > sourcesMax {
		r.file = files[0]
		r.mistake(1, "the inventory has %d bytes: at most %d", size, sourcesMax)
		sources = nil
	}
	for _, s := range sources {
		r.read(s)
	}
	return Part{Files: files, Mistakes: r.mistakes, own: &r}
}

// reader collects hosts, limits and mistakes from files.
type reader struct {
	file    string // the file being read
	who     string // prefix of mistakes, such as "host fw001: "
	entries []entry
	limits  []limitEntry
	changes []override
	// strangers are jump hosts that are not hosts of the inventory.
	strangers []Hop
	mistakes  Mistakes
	warnings  Mistakes
	notes     Mistakes
	labels    map[[2]string][]error // results of checkLabel, because most labels repeat
}

func (r *reader) mistake(line int, format string, args ...any) {
	r.mistakes = append(r.mistakes, Mistake{r.file, line, r.who + fmt.Sprintf(format, args...)})
}

func (r *reader) mistakeAt(e entry, format string, args ...any) {
	r.mistakes = append(r.mistakes, Mistake{e.file, e.line, fmt.Sprintf(format, args...)})
}

func (r *reader) read(s Source) {
	r.file, r.who = s.title(), ""
	root := r.document(s.Data)
	if root == nil {
		return
	}
	known := []string{"defaults", "hosts", "limits", "overrides"}
	if Foreign(root, known) {
		r.mistake(root.Line, "this is no inventory: it has no known key: want %s",
			strings.Join(known, ", "))
		return
	}
	fields := r.fields(root, "the file", known)
	if fields == nil {
		return
	}
	base := entry{
		host: Host{User: "root", Port: 22, Zone: DefaultZone, Fence: FenceAuto},
		file: r.file,
	}
	if n := fields["defaults"]; n != nil {
		r.who = "defaults: "
		r.common(r.fields(n, "this", commonFields()), &base)
		r.who = ""
	}
	if fields["limits"] != nil {
		r.readLimits(fields["limits"])
	}
	r.readOverrides(fields["overrides"])
	if fields["hosts"] == nil {
		// A file may have limits or overrides alone.
		if fields["limits"] == nil && fields["overrides"] == nil {
			r.mistake(root.Line, "hosts is missing: want a list of hosts")
		}
		return
	}
	known = append(hostFields(), commonFields()...)
	for i, n := range r.list(fields["hosts"], "hosts") {
		r.who = fmt.Sprintf("host %d of the list: ", i+1)
		r.host(n, base, known)
	}
}

// document returns the only YAML document of a file. If there is none, it reports why and
// returns nil.
func (r *reader) document(data []byte) *yaml.Node {
	var doc, second yaml.Node
	d := yaml.NewDecoder(bytes.NewReader(data))
	err := d.Decode(&doc)
	if err == nil {
		err = d.Decode(&second)
		if err == nil {
			r.mistake(second.Line, "a second YAML document starts here: want one a file")
			return nil
		}
	}
	switch {
	case errors.Is(err, io.EOF) && len(doc.Content) == 0:
		r.mistake(1, "the file is empty: want defaults and hosts")
		return nil
	case !errors.Is(err, io.EOF):
		r.mistake(errorLine(data), "%s", errorText(err))
		return nil
	}
	return doc.Content[0]
}

// errorLine finds the line that stopped the YAML parser. The parser itself names only
// the start of the block: for a broken host, the first line of all hosts. So errorLine
// feeds the file to the parser line by line and counts how many lines it takes.
func errorLine(data []byte) int {
	lines := &lineReader{rest: data}
	d := yaml.NewDecoder(lines)
	var n yaml.Node
	for d.Decode(&n) == nil {
		n = yaml.Node{}
	}
	return max(1, lines.started)
}

// lineReader returns at most one line for each Read.
type lineReader struct {
	rest    []byte
	started int  // lines that were returned, the last perhaps in part
	inLine  bool // the last Read ended in the middle of a line
}

func (l *lineReader) Read(p []byte) (int, error) {
	if len(l.rest) == 0 {
		return 0, io.EOF
	}
	line := l.rest
	if i := bytes.IndexByte(line, '\n'); i >= 0 {
		line = line[:i+1]
	}
	if !l.inLine {
		l.started++
	}
	n := copy(p, line)
	l.inLine = n < len(line)
	l.rest = l.rest[n:]
	return n, nil
}

func errorText(err error) string {
	text := strings.TrimPrefix(err.Error(), "yaml: ")
	if rest, found := strings.CutPrefix(text, "line "); found {
		if n, after, found := strings.Cut(rest, ": "); found && isNumber(n) {
			text = after
		}
	}
	switch {
	case strings.Contains(text, "unknown anchor"):
		text += ": aliases are not supported, write the value out"
	case strings.Contains(text, "tab character"), strings.Contains(text, "cannot start any token"):
		text += ": indent with spaces, and quote a value that starts with a special character"
	}
	return "not valid YAML, here or just above: " + text
}

func hostFields() []string {
	return []string{"name", "address", "group", "labels", "host_key", "host_keys"}
}

func commonFields() []string {
	return []string{"user", "port", "key", "known_hosts", "customer", "zone", "fence",
		"jump", "certificate", "host_ca", "principals", "revoked", "profile", "become",
		"become_user"}
}

// common reads the fields that both hosts and defaults may have.
func (r *reader) common(fields map[string]*yaml.Node, e *entry) {
	r.text(fields, "user", &e.host.User, checkUser)
	r.port(fields["port"], &e.host.Port)
	r.text(fields, "key", &e.host.Key, optional(checkPath))
	r.text(fields, "known_hosts", &e.knownHosts, optional(checkPath))
	r.text(fields, "customer", &e.host.Customer, optional(CheckName))
	r.text(fields, "zone", &e.host.Zone, CheckZone)
	fence := string(e.host.Fence)
	r.text(fields, "fence", &fence, checkFence)
	e.host.Fence = Fence(fence)
	r.jump(fields["jump"], e)
	r.text(fields, "certificate", &e.host.Certificate, optional(checkPath))
	r.keys(fields["host_ca"], "host_ca", &e.host.HostCAs)
	r.values(fields["principals"], "principals", &e.host.Principals, checkPrincipal)
	r.keys(fields["revoked"], "revoked", &e.host.Revoked)
	r.text(fields, "profile", &e.host.Profile, optional(checkProfile))
	r.text(fields, "become", &e.host.Become, optional(checkBecome))
	r.text(fields, "become_user", &e.host.BecomeUser, optional(checkUser))
}

// host reads one host into e, which has the defaults. It keeps a host with mistakes
// as well, so that the checks across hosts can still find theirs.
func (r *reader) host(n *yaml.Node, e entry, known []string) {
	e.line = n.Line
	if _, name := child(n, "name"); name != nil {
		if e.host.Name, _ = scalar(name); e.host.Name != "" {
			r.who = e.who() + ": "
		}
	}
	fields := r.fields(n, "this", known)
	if fields == nil {
		return
	}
	for _, required := range []string{"name", "address"} {
		if fields[required] == nil {
			r.mistake(e.line, "%s is missing: every host needs one", required)
		}
	}
	if n := fields["name"]; n != nil {
		e.line = n.Line
		if _, err := scalar(n); err != nil {
			r.mistake(n.Line, "name %v", err)
		} else if err := checkHostName(e.host.Name); err != nil {
			r.mistake(n.Line, "%v", err)
		}
	}
	r.text(fields, "address", &e.host.Address, checkAddress)
	r.text(fields, "group", &e.host.Group, optional(CheckName))
	e.jumpGiven = fields["jump"] != nil
	r.common(fields, &e)
	if n := fields["become_user"]; n != nil && n.Value != "" && e.host.Become == "" {
		r.mistake(n.Line, "become_user is given without become: add become: sudo")
	}
	r.hostKeys(fields, &e)
	e.host.Labels = r.labelMap(fields["labels"])
	r.entries = append(r.entries, e)
}

// hostKeys reads the keys of a host, or accepts that a known_hosts file has
// them.
func (r *reader) hostKeys(fields map[string]*yaml.Node, e *entry) {
	one, many, file := fields["host_key"], fields["host_keys"], fields["known_hosts"]
	switch {
	case one != nil && many != nil:
		r.mistake(many.Line, "host_key and host_keys are both given: keep one of them")
	case one == nil && many == nil:
		if e.knownHosts == "" && (file == nil || file.Value == "") && len(e.host.HostCAs) == 0 {
			r.mistake(e.line, "neither host_key, host_ca nor known_hosts: want one, as no host is "+
				"trusted unseen")
		}
	case file != nil && file.Value != "":
		r.mistake(file.Line, "known_hosts is given beside the host's keys: keep one of them")
	case one != nil:
		r.ownKeys([]*yaml.Node{one}, e)
	default:
		keys := r.list(many, "host_keys")
		if len(keys) == 0 && many.Kind == yaml.SequenceNode {
			r.mistake(many.Line, "host_keys is empty: want at least one key")
		}
		r.ownKeys(keys, e)
	}
}

// ownKeys stores keys that the inventory itself contains, each once.
func (r *reader) ownKeys(nodes []*yaml.Node, e *entry) {
	e.knownHosts = ""
	if len(nodes) > hostKeysMax {
		r.mistake(nodes[0].Line, "host_keys has %d keys: at most %d", len(nodes), hostKeysMax)
		return
	}
	for _, n := range nodes {
		key, err := scalar(n)
		if err == nil {
			key, err = normalHostKey(key)
		}
		switch {
		case err != nil:
			r.mistake(n.Line, "host key %v", err)
		case !slices.Contains(e.host.HostKeys, key):
			e.host.HostKeys = append(e.host.HostKeys, key)
		}
	}
}

func (r *reader) labelMap(n *yaml.Node) map[string]string {
	if n == nil {
		return nil
	}
	fields := r.fields(n, "labels", nil)
	if len(fields) == 0 {
		return nil
	}
	if len(fields) > labelsMax {
		r.mistake(n.Line, "%d labels: at most %d", len(fields), labelsMax)
		return nil
	}
	labels := make(map[string]string, len(fields))
	for _, key := range sortedKeys(fields) {
		v := fields[key]
		value, err := scalar(v)
		if err != nil {
			r.mistake(v.Line, "label %s %v", abbreviate(strconv.Quote(key)), err)
			continue
		}
		for _, err := range r.checkLabel(key, value) {
			r.mistake(v.Line, "%v", err)
		}
		labels[key] = value
	}
	return labels
}

// checkLabel caches the results of the function checkLabel, because a fleet has few
// different labels.
func (r *reader) checkLabel(key, value string) []error {
	label := [2]string{key, value}
	errs, known := r.labels[label]
	if !known {
		if r.labels == nil {
			r.labels = map[[2]string][]error{}
		}
		errs = checkLabel(key, value)
		r.labels[label] = errs
	}
	return errs
}
