package secrets

import (
	"errors"
	"fmt"
	"net"
	"net/url"
	"path"
	"slices"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"

	"muster/fleet"
	"muster/internal/secretref"
	"muster/internal/strictyaml"
	"muster/internal/wording"
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

// reader reads the file with the rules of a node.
type reader struct{ in *strictyaml.Reader }

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
	r := reader{strictyaml.New(src.Name)}
	c := &Config{file: src.Name}
	if root := r.in.Document(src.Data, "a mapping with allow"); root != nil {
		r.read(root, c)
	}
	if err := r.in.Err(); err != nil {
		return nil, err
	}
	return c, nil
}

func (r reader) read(root *yaml.Node, c *Config) {
	fields := r.in.Fields(root, "the file", []string{"allow", "unsigned", "age", "vault"})
	if n := fields["allow"]; n != nil {
		for _, one := range r.in.List(n, "allow") {
			c.rules = append(c.rules, r.rule(one))
		}
	}
	if n := fields["unsigned"]; n != nil {
		c.Unsigned = r.in.Flag(n, "unsigned")
	}
	if n := fields["age"]; n != nil {
		own := r.in.Fields(n, "age", []string{"identities"})
		c.Identities = r.path(n, own, "identities", true)
	}
	if n := fields["vault"]; n != nil {
		c.Vault = r.vault(n)
	}
}

func (r reader) rule(n *yaml.Node) (out rule) {
	fields := r.in.Fields(n, "a rule", []string{"refs", "runbooks", "hosts"})
	if fields == nil {
		return out
	}
	const refs = "patterns of references, such as \"file:/etc/muster/secrets/*\""
	if fields["refs"] == nil {
		r.in.Wrong(n.Line, "refs is missing: want %s", refs)
	} else {
		for _, one := range r.in.Texts(fields["refs"], "refs", refs) {
			p, err := secretref.ParsePattern(one.Value)
			if err != nil {
				r.in.Wrong(one.Line, "refs: %s: %v", wording.Quote(one.Value), err)
			}
			out.refs = append(out.refs, p)
		}
	}
	if f := fields["runbooks"]; f != nil {
		for _, one := range r.in.Texts(f, "runbooks", "names or globs, such as [firmware, \"dns*\"]") {
			if _, err := path.Match(one.Value, ""); err != nil {
				r.in.Wrong(one.Line, "runbooks: %s: want a name or a glob", wording.Quote(one.Value))
			}
			out.jobs.Runbooks = append(out.jobs.Runbooks, one.Value)
		}
	}
	if f := fields["hosts"]; f != nil {
		out.jobs.Hosts = r.hosts(f)
	}
	return out
}

func (r reader) hosts(n *yaml.Node) fleet.Selector {
	text, ok := r.in.Long(n, "hosts")
	if !ok {
		return fleet.Selector{}
	}
	sel, err := fleet.ParseSelector(text)
	switch {
	case err == nil && strings.TrimSpace(text) == "":
		err = errors.New("want a selector, such as customer=acme")
	case err == nil && len(sel.Earlier()) > 0:
		err = errors.New("a node knows no earlier task: want names or labels of hosts")
	}
	if err != nil {
		r.in.Wrong(n.Line, "hosts: %v", err)
	}
	return sel
}

// text returns the text of a key; a key that is needed must be there.
func (r reader) text(of *yaml.Node, fields map[string]*yaml.Node, key string, need bool) string {
	n := fields[key]
	if n == nil {
		if need && fields != nil {
			r.in.Wrong(of.Line, "%s is missing", key)
		}
		return ""
	}
	text, ok := r.in.Text(n, key)
	if ok && text == "" {
		r.in.Wrong(n.Line, "%s is empty: want a text", key)
	}
	return text
}

// path returns the absolute path of a key.
func (r reader) path(of *yaml.Node, fields map[string]*yaml.Node, key string, need bool) string {
	if fields[key] == nil {
		return r.text(of, fields, key, need)
	}
	return r.in.Path(fields[key], key)
}

// vaultTimeout is the time for one call, if nobody says another one.
const vaultTimeout = 10 * time.Second

func (r reader) vault(n *yaml.Node) *Vault {
	fields := r.in.Fields(n, "vault", []string{"address", "ca", "namespace", "mounts", "timeout",
		"approle", "jwt"})
	v := &Vault{Address: r.text(n, fields, "address", true), CA: r.path(n, fields, "ca", false),
		Namespace: r.text(n, fields, "namespace", false), Timeout: vaultTimeout}
	if v.Address != "" {
		if err := checkAddress(v.Address); err != nil {
			r.in.Wrong(fields["address"].Line, "address: %v", err)
		}
	}
	if m := fields["mounts"]; m != nil {
		for _, one := range r.in.Texts(m, "mounts", "paths of KV stores, such as team/kv") {
			v.Mounts = append(v.Mounts, strings.Trim(one.Value, "/"))
		}
	}
	if t := fields["timeout"]; t != nil {
		v.Timeout = r.in.Duration(t, "timeout", time.Second, time.Minute)
	}
	approle, jwt := fields["approle"], fields["jwt"]
	switch {
	case fields == nil:
	case (approle == nil) == (jwt == nil):
		r.in.Wrong(n.Line, "vault: want one login: approle, or jwt")
	case approle != nil:
		own := r.in.Fields(approle, "approle", []string{"role_id", "secret_id", "mount"})
		v.Login, v.Mount = "approle", r.mount(approle, own, "approle")
		v.RoleID = r.path(approle, own, "role_id", true)
		v.Secret = r.path(approle, own, "secret_id", true)
	default:
		own := r.in.Fields(jwt, "jwt", []string{"role", "token", "mount"})
		v.Login, v.Mount = "jwt", r.mount(jwt, own, "jwt")
		v.JWTRole, v.Secret = r.text(jwt, own, "role", true), r.path(jwt, own, "token", true)
	}
	return v
}

// mount returns the path at which a login is mounted.
func (r reader) mount(of *yaml.Node, fields map[string]*yaml.Node, usual string) string {
	text := strings.Trim(r.text(of, fields, "mount", false), "/")
	switch {
	case text == "":
		return usual
	case strings.ContainsAny(text, "?#%\\ ") || strings.Contains("/"+text+"/", "/../"):
		r.in.Wrong(fields["mount"].Line, "mount %s: want the path of the login, such as %s",
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
