package secrets

import (
	"errors"
	"fmt"
	"net"
	"net/url"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"

	"muster/fleet"
	"muster/internal/secretref"
	"muster/internal/wording"
	"muster/scripts"
	"muster/trust"
)

// Config says which references a node resolves, and how.
type Config struct {
	file     string
	rules    []rule
	Unsigned bool   // also for jobs for which no signed order holds
	Vault    *Vault // nil: there is none

	// Identities is a file with identities of age; empty: there is none.
	Identities string
}

// Rules returns how many rules there are.
func (c *Config) Rules() int { return len(c.rules) }

// Vault says how the node reaches Vault or OpenBao. Each login needs files of its own.
type Vault struct {
	Address   string
	CA        string   // file; empty: the authorities of the system
	Namespace string   // empty: none
	Mounts    []string // that have a slash in their path
	Timeout   time.Duration

	Login   string // approle or jwt
	Mount   string // of the login
	RoleID  string // file, for approle
	Secret  string // file with the secret id, or the JWT
	JWTRole string
}

// A rule allows some references for some jobs.
type rule struct {
	refs []secretref.Pattern
	jobs trust.Rule
}

// allows returns the pattern that allows a reference for a job, or an error with what to do.
func (c *Config) allows(ref secretref.Ref, a Ask) (secretref.Pattern, error) {
	values := valuesOf(a.Host)
	for _, r := range c.rules {
		i := slices.IndexFunc(r.refs, func(p secretref.Pattern) bool { return p.Allows(ref, values) })
		if i < 0 {
			continue
		}
		fits, err := r.jobs.Fits(a.Runbook, a.Host)
		if err != nil {
			return secretref.Pattern{}, err
		}
		if fits {
			return r.refs[i], nil
		}
	}
	return secretref.Pattern{}, fmt.Errorf("no rule of %s allows it for runbook %s on host %s: if it "+
		"is right to, add a rule below allow", c.file, a.Runbook, a.Host.Name)
}

// reader collects what a file says, and its mistakes.
type reader struct {
	file     string
	mistakes fleet.Mistakes
}

// Parse reads the file with the rules of a node:
//
//	allow:                                # without a rule a node resolves nothing
//	  - refs: ["file:/etc/muster/secrets/*", "vault:kv/fw/{{host.name}}#password"]
//	    runbooks: [firmware, "dns*"]      # absent: all
//	    hosts: customer=acme              # a selector; absent: all
//	age: {identities: /etc/muster/age.key}
//	vault:
//	  address: https://vault.example.net:8200
//	  ca: /etc/muster/vault-ca.pem        # absent: the authorities of the system
//	  approle: {role_id: /etc/muster/vault/role_id, secret_id: /etc/muster/vault/secret_id}
//
// A file with a mistake is refused whole. The error is of type fleet.Mistakes and has all of them.
func Parse(src fleet.Source) (*Config, error) {
	r := &reader{file: src.Name}
	root, wrong := scripts.ReadYAML(src.Name, "a mapping with allow", src.Data)
	for _, m := range wrong {
		r.mistakes = append(r.mistakes, fleet.Mistake{File: r.file, Line: m.Line, Text: m.Text})
	}
	c := &Config{file: src.Name}
	if len(wrong) == 0 && root != nil {
		r.read(root, c)
	}
	if len(r.mistakes) > 0 {
		r.mistakes.Sort([]string{src.Name})
		return nil, r.mistakes
	}
	return c, nil
}

func (r *reader) mistake(n *yaml.Node, format string, args ...any) {
	r.mistakes = append(r.mistakes, fleet.Mistake{File: r.file, Line: n.Line,
		Text: fmt.Sprintf(format, args...)})
}

func (r *reader) read(root *yaml.Node, c *Config) {
	fields := r.fields(root, "the file", []string{"allow", "unsigned", "age", "vault"})
	if n := fields["allow"]; n != nil && n.Kind != yaml.SequenceNode {
		r.mistake(n, "allow: want a list of rules with refs")
	} else if n != nil {
		for _, one := range n.Content {
			c.rules = append(c.rules, r.rule(one))
		}
	}
	if n := fields["unsigned"]; n != nil {
		if n.Decode(&c.Unsigned) != nil {
			r.mistake(n, "unsigned: want true or false")
		}
	}
	if n := fields["age"]; n != nil {
		own := r.fields(n, "age", []string{"identities"})
		c.Identities = r.path(n, own, "identities", true)
	}
	if n := fields["vault"]; n != nil {
		c.Vault = r.vault(n)
	}
}

// fields returns the values of a mapping by their keys.
func (r *reader) fields(n *yaml.Node, what string, known []string) map[string]*yaml.Node {
	if n.Kind != yaml.MappingNode {
		r.mistake(n, "%s: want a mapping with %s", what, strings.Join(known, ", "))
		return nil
	}
	fields := map[string]*yaml.Node{}
	for i := 0; i+1 < len(n.Content); i += 2 {
		key, value := n.Content[i], n.Content[i+1]
		switch name := key.Value; {
		case fields[name] != nil:
			r.mistake(key, "key %s is there already, at line %d: keep one of them", fleet.Word(name),
				fields[name].Line)
		case !slices.Contains(known, name):
			r.mistake(key, "%s: unknown key %q: %s", what, fleet.Word(name), scripts.Instead(name, known))
		default:
			fields[name] = value
		}
	}
	return fields
}

// texts returns the texts of a list.
func (r *reader) texts(n *yaml.Node, what, want string) (list []*yaml.Node) {
	if n.Kind != yaml.SequenceNode || len(n.Content) == 0 {
		r.mistake(n, "%s: want a list of %s", what, want)
		return nil
	}
	for _, one := range n.Content {
		if one.Kind != yaml.ScalarNode || one.Value == "" {
			r.mistake(one, "%s: want a list of %s", what, want)
			continue
		}
		list = append(list, one)
	}
	return list
}

func (r *reader) rule(n *yaml.Node) (out rule) {
	fields := r.fields(n, "a rule", []string{"refs", "runbooks", "hosts"})
	if fields == nil {
		return out
	}
	const refs = "patterns of references, such as \"file:/etc/muster/secrets/*\""
	if fields["refs"] == nil {
		r.mistake(n, "refs is missing: want a list of %s", refs)
	} else {
		for _, one := range r.texts(fields["refs"], "refs", refs) {
			p, err := secretref.ParsePattern(one.Value)
			if err != nil {
				r.mistake(one, "refs: %s: %v", wording.Quote(one.Value), err)
			}
			out.refs = append(out.refs, p)
		}
	}
	if f := fields["runbooks"]; f != nil {
		for _, one := range r.texts(f, "runbooks", "names or globs, such as [firmware, \"dns*\"]") {
			if _, err := path.Match(one.Value, ""); err != nil {
				r.mistake(one, "runbooks: %s: want a name or a glob", wording.Quote(one.Value))
			}
			out.jobs.Runbooks = append(out.jobs.Runbooks, one.Value)
		}
	}
	if f := fields["hosts"]; f != nil {
		sel, err := fleet.ParseSelector(f.Value)
		if err == nil && (f.Kind != yaml.ScalarNode || f.Value == "") {
			err = errors.New("want a selector, such as customer=acme")
		}
		if err == nil && len(sel.Earlier()) > 0 {
			err = errors.New("a node knows no earlier task: want names or labels of hosts")
		}
		if err != nil {
			r.mistake(f, "hosts: %v", err)
		}
		out.jobs.Hosts = sel
	}
	return out
}

// text returns the text of a key.
func (r *reader) text(of *yaml.Node, fields map[string]*yaml.Node, key string, need bool) string {
	n := fields[key]
	switch {
	case n == nil && need && fields != nil:
		r.mistake(of, "%s is missing", key)
	case n != nil && (n.Kind != yaml.ScalarNode || n.Value == ""):
		r.mistake(n, "%s: want a text", key)
	case n != nil:
		return n.Value
	}
	return ""
}

// path returns the absolute path of a key.
func (r *reader) path(of *yaml.Node, fields map[string]*yaml.Node, key string, need bool) string {
	text := r.text(of, fields, key, need)
	if text != "" && !filepath.IsAbs(text) {
		r.mistake(fields[key], "%s %s: want an absolute path of a file", key, wording.Quote(text))
	}
	return text
}

// vaultTimeout is the time for one call, if nobody says another one.
const vaultTimeout = 10 * time.Second

func (r *reader) vault(n *yaml.Node) *Vault {
	fields := r.fields(n, "vault", []string{"address", "ca", "namespace", "mounts", "timeout",
		"approle", "jwt"})
	v := &Vault{Address: r.text(n, fields, "address", true), CA: r.path(n, fields, "ca", false),
		Namespace: r.text(n, fields, "namespace", false), Timeout: vaultTimeout}
	if v.Address != "" {
		if err := checkAddress(v.Address); err != nil {
			r.mistake(fields["address"], "address: %v", err)
		}
	}
	if m := fields["mounts"]; m != nil {
		for _, one := range r.texts(m, "mounts", "paths of KV stores, such as team/kv") {
			v.Mounts = append(v.Mounts, strings.Trim(one.Value, "/"))
		}
	}
	if text := r.text(n, fields, "timeout", false); text != "" {
		d, err := time.ParseDuration(text)
		if err != nil || d < time.Second || d > time.Minute {
			r.mistake(fields["timeout"], "timeout: want a time from 1s to 1m")
		}
		v.Timeout = d
	}
	approle, jwt := fields["approle"], fields["jwt"]
	switch {
	case fields == nil:
	case (approle == nil) == (jwt == nil):
		r.mistake(n, "vault: want one login: approle, or jwt")
	case approle != nil:
		own := r.fields(approle, "approle", []string{"role_id", "secret_id", "mount"})
		v.Login, v.Mount = "approle", r.mount(approle, own, "approle")
		v.RoleID = r.path(approle, own, "role_id", true)
		v.Secret = r.path(approle, own, "secret_id", true)
	default:
		own := r.fields(jwt, "jwt", []string{"role", "token", "mount"})
		v.Login, v.Mount = "jwt", r.mount(jwt, own, "jwt")
		v.JWTRole, v.Secret = r.text(jwt, own, "role", true), r.path(jwt, own, "token", true)
	}
	return v
}

// mount returns the path at which a login is mounted.
func (r *reader) mount(of *yaml.Node, fields map[string]*yaml.Node, usual string) string {
	text := strings.Trim(r.text(of, fields, "mount", false), "/")
	switch {
	case text == "":
		return usual
	case strings.ContainsAny(text, "?#%\\ ") || strings.Contains("/"+text+"/", "/../"):
		r.mistake(fields["mount"], "mount %s: want the path of the login, such as %s",
			wording.Quote(text), usual)
	}
	return text
}

// checkAddress refuses an address to which a login would go in the open.
func checkAddress(text string) error {
	u, err := url.Parse(text)
	if err != nil || u.Host == "" || u.User != nil || strings.Trim(u.Path, "/") != "" ||
		u.RawQuery != "" || u.Fragment != "" {
		return fmt.Errorf("%s: want https://HOST:PORT", wording.Quote(text))
	}
	ip := net.ParseIP(u.Hostname())
	here := ip != nil && ip.IsLoopback()
	if u.Scheme != "https" && !(u.Scheme == "http" && here) {
		return fmt.Errorf("%s: want https; http only for 127.0.0.1 and ::1", wording.Quote(text))
	}
	return nil
}
