package idp

import (
	"errors"
	"fmt"
	"net/url"
	"strings"

	"muster/access"
	"muster/internal/loopback"
	"muster/internal/wording"
)

// Prefix begins the names of principals whom a provider has proven: oidc:ISSUER#SUBJECT.
const Prefix = "oidc:"

// CallbackPath is the path to which the provider sends browsers back.
const CallbackPath = "/login/oidc/callback"

// Config says which provider a server asks. The zero value asks none.
type Config struct {
	Issuer   string // URL, exactly as the provider calls itself
	ClientID string // by which the provider knows this server
	// Secret reads the secret that the provider has given to this client.
	Secret func() (string, error)

	GroupsClaim string   // that lists the groups of a person; with dots, it is inside another
	Groups      []string // NAME=group:NAME: which group of policies a name in that claim means
	Device      bool     // a person may log in with the device grant
}

// On reports whether there is a provider.
func (c Config) On() bool { return c.Issuer != "" }

// Validate reports every mistake at once. base is the URL of the server for browsers.
func (c Config) Validate(base string) error {
	if !c.On() {
		if c.ClientID != "" || len(c.Groups) > 0 || c.Device {
			return errors.New("server.oidc: there is no issuer: want the URL of the identity provider")
		}
		return nil
	}
	errs := []error{checkIssuer(c.Issuer)}
	if c.ClientID == "" {
		errs = append(errs, errors.New("server.oidc.client_id: want the id by which the identity "+
			"provider knows this server"))
	}
	if base == "" {
		errs = append(errs, fmt.Errorf("server.oidc needs server.url: the provider sends browsers back "+
			"to it, at %s", CallbackPath))
	}
	if _, err := mapping(c.Groups); err != nil {
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

// checkIssuer returns an error unless a provider can be asked at a URL without being overheard.
func checkIssuer(text string) error {
	u, err := url.Parse(text)
	switch {
	case err != nil, u.Host == "", u.User != nil, u.RawQuery != "", u.Fragment != "":
	case u.Scheme == "https", u.Scheme == "http" && loopback.Host(u.Hostname()):
		return access.CheckPrincipal(Prefix + text + "#x")
	}
	return fmt.Errorf("server.oidc.issuer = %q: want the https URL of the identity provider, exactly "+
		"as it calls itself in its .well-known/openid-configuration", text)
}

// mapping reads the lines that map names of a provider to groups of policies. A name may mean
// several groups.
func mapping(lines []string) (map[string][]string, error) {
	out := map[string][]string{}
	var errs []error
	for _, line := range lines {
		i := strings.LastIndex(line, "=")
		name, group := "", ""
		if i > 0 {
			name, group = strings.TrimSpace(line[:i]), strings.TrimSpace(line[i+1:])
		}
		if name == "" {
			errs = append(errs, fmt.Errorf("server.oidc.groups: %q: want NAME=group:NAME, the name of a "+
				"group at the identity provider and one that the access file has", wording.Clip(line)))
			continue
		}
		err := access.CheckGroup(group)
		if err == nil && !strings.HasPrefix(group, "group:") {
			err = fmt.Errorf("%q: only the machine says who is in an os-group: want group:NAME",
				wording.Clip(group))
		}
		if err != nil {
			errs = append(errs, fmt.Errorf("server.oidc.groups: %q: %w", wording.Clip(line), err))
			continue
		}
		out[name] = append(out[name], group)
	}
	return out, errors.Join(errs...)
}
