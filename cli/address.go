package cli

import (
	"errors"
	"fmt"
	"net/url"
	"path"
	"strings"

	"muster/internal/loopback"
)

// address is the address of a server.
type address struct {
	Place  string // for people
	base   string // begins the URL of every request
	socket string // path of a unix socket; empty: TCP
}

// parseAddress reads http://host:port, https://host:port or unix:///path.
func parseAddress(text string) (address, error) {
	wrong := func(why string) (address, error) {
		return address{}, fmt.Errorf("server %q: %s; want unix:///path, http://127.0.0.1:7070 or "+
			"https://host:port (--server or MUSTER_URL)", text, why)
	}
	if strings.Contains(text, "@") {
		// The text is not repeated: it may contain a secret.
		return address{}, errors.New("server: a name or password does not belong into the URL; " +
			"put the token into MUSTER_TOKEN")
	}
	u, err := url.Parse(text)
	if err != nil {
		var parse *url.Error
		if errors.As(err, &parse) {
			err = parse.Err
		}
		return wrong(err.Error())
	}
	switch {
	case u.RawQuery != "" || u.Fragment != "":
		return wrong("nothing may follow behind the path")
	case u.Scheme == "unix":
		if u.Host != "" || !path.IsAbs(u.Path) {
			return wrong("the path of a socket is absolute")
		}
		return address{Place: "unix://" + u.Path, base: "http://localhost", socket: u.Path}, nil
	case u.Scheme != "http" && u.Scheme != "https":
		return wrong("it does not start with http://, https:// or unix://")
	case u.Hostname() == "":
		return wrong("there is no host")
	}
	base := strings.TrimRight(u.String(), "/")
	return address{Place: base, base: base}, nil
}

// checkToken refuses to send a token over a connection that others can read.
func (a address) checkToken(token string) error {
	switch {
	case token == "":
		return nil
	case strings.ContainsFunc(token, func(r rune) bool { return r <= ' ' || r > '~' }):
		return errors.New("MUSTER_TOKEN has blanks or other characters that no token has: " +
			"set it to what `muster token create` printed")
	case a.socket == "" && strings.HasPrefix(a.base, "http://") && !a.loopback():
		return fmt.Errorf("MUSTER_TOKEN would travel to %s unencrypted: use https://", a.Place)
	}
	return nil
}

// loopback reports whether the server is on this machine.
func (a address) loopback() bool {
	u, err := url.Parse(a.base)
	return err == nil && loopback.Host(u.Hostname())
}
