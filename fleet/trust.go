package fleet

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

// Trust holds the keys that identify a host. Keys are written "ssh-ed25519 AAAA…".
type Trust struct {
	HostKeys []string // the host's own keys
	HostCAs  []string // keys of authorities that may sign the host's key
	Revoked  []string // keys that are refused
}

// SetTrust sets the keys that were found for a host and adds the authorities and
// revocations, also wherever the host is a jump host. This changes Version. Call it only
// after the inventory was created and before anybody else uses it, because it takes no
// lock.
func (v *Inventory) SetTrust(name string, t Trust) error {
	h := new(Host)
	if i, ok := v.index[name]; ok {
		h = &v.hosts[i]
	} else if v.hops[name] == nil {
		return fmt.Errorf("host %q is not in the inventory", abbreviate(name))
	}
	if len(t.HostKeys)+len(t.HostCAs)+len(h.HostCAs) == 0 {
		return fmt.Errorf("host %s: no host key given: want at least one", name)
	}
	keys, keysErr := normalHostKeys(t.HostKeys, hostKeysMax)
	cas, casErr := normalHostKeys(slices.Concat(h.HostCAs, t.HostCAs), listMax)
	if len(cas) == 0 {
		t.Revoked = nil // only its own keys count, and they have just been found
	}
	revoked, revokedErr := normalHostKeys(slices.Concat(h.Revoked, t.Revoked), listMax)
	if err := errors.Join(keysErr, casErr, revokedErr); err != nil {
		return fmt.Errorf("host %s: %w", name, err)
	}
	h.HostKeys, h.HostCAs, h.Revoked = keys, cas, revoked
	for _, hop := range v.hops[name] {
		hop.HostKeys, hop.HostCAs, hop.Revoked = keys, cas, revoked
	}
	return nil
}

// SetHostKeys is SetTrust with keys only.
func (v *Inventory) SetHostKeys(name string, keys []string) error {
	if i, ok := v.index[name]; ok && len(keys) == 0 {
		return fmt.Errorf("host %s: no host key given: want at least one", v.hosts[i].Name)
	}
	return v.SetTrust(name, Trust{HostKeys: keys})
}

// values reads a single value or a list of values, each once. An empty list overrules the
// defaults.
func (r *reader) values(n *yaml.Node, what string, into *[]string, check func(string) error) {
	r.each(n, what, into, func(s string) (string, error) { return s, check(s) })
}

// keys reads a public key or a list of them.
func (r *reader) keys(n *yaml.Node, what string, into *[]string) {
	r.each(n, what, into, normalHostKey)
}

func (r *reader) each(
	n *yaml.Node, what string, into *[]string, normal func(string) (string, error),
) {
	if n == nil {
		return
	}
	nodes := []*yaml.Node{n}
	if n.Kind != yaml.ScalarNode {
		nodes = r.list(n, what)
	}
	if len(nodes) > listMax {
		r.mistake(n.Line, "%s has %d items: at most %d", what, len(nodes), listMax)
		return
	}
	var items []string
	for _, n := range nodes {
		s, err := scalar(n)
		if err == nil {
			s, err = normal(s)
		}
		switch {
		case err != nil:
			r.mistake(n.Line, "%s %v", what, err)
		case !slices.Contains(items, s):
			items = append(items, s)
		}
	}
	*into = items
}

// checkEach returns the first mistake in a list.
func checkEach(items []string, check func(string) error) error {
	if len(items) > listMax {
		return fmt.Errorf("has %d items: at most %d", len(items), listMax)
	}
	for _, s := range items {
		if err := check(s); err != nil {
			return err
		}
	}
	return nil
}

// checkPrincipal accepts nearly any text, because a certificate may carry any word.
func checkPrincipal(s string) error {
	switch {
	case s == "":
		return errors.New("is empty: want a name that the host certificate carries")
	case len(s) > nameMax:
		return fmt.Errorf("%q has %d bytes: at most %d", abbreviate(s), len(s), nameMax)
	case strings.ContainsFunc(s, isBlankOrControl):
		return fmt.Errorf("%q has a blank or a control character: remove it", s)
	case strings.ContainsAny(s, "*?"):
		return fmt.Errorf("%q has a wildcard: give the names themselves", s)
	}
	return nil
}

func checkProfile(s string) error {
	if s == ProfileLegacy {
		return nil
	}
	return fmt.Errorf("%q: want %s or nothing%s", abbreviate(s), ProfileLegacy,
		suggest(s, []string{ProfileLegacy}))
}
