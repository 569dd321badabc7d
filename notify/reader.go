package notify

import (
	"errors"
	"fmt"
	"net"
	"net/mail"
	"net/url"
	"strings"

	"go.yaml.in/yaml/v3"

	"muster/internal/loopback"
	"muster/internal/strictyaml"
	"muster/internal/wording"
)

// reader collects rules.
type reader struct {
	in    *strictyaml.Reader
	rules *Rules
	alone bool         // only rules: the receivers are elsewhere
	names []string     // of receivers
	to    []*yaml.Node // the receivers that rules name
}

// texts returns the texts of a list, one at least. at is the place of a list that is missing.
func (r *reader) texts(n, at *yaml.Node, what, want string) []*yaml.Node {
	if n == nil {
		r.in.Wrong(at.Line, "%s is missing: want %s", what, want)
		return nil
	}
	return r.in.Texts(n, what, want)
}

// words returns texts that must be known.
func (r *reader) words(n, at *yaml.Node, what string, known []string) (list []string) {
	for _, one := range r.texts(n, at, what, "some of "+strings.Join(known, ", ")) {
		if word := r.in.Word(one, what, known); word != "" {
			list = append(list, word)
		}
	}
	return list
}

// path returns the path of a file; empty: the key is not there.
func (r *reader) path(f map[string]*yaml.Node, key string) string {
	if f[key] == nil {
		return ""
	}
	return r.in.Path(f[key], key)
}

// yes reports whether a key is there and says true.
func (r *reader) yes(f map[string]*yaml.Node, key string) bool {
	return f[key] != nil && r.in.Flag(f[key], key)
}

func (r *reader) name(n, at *yaml.Node, what string) string {
	if n == nil {
		r.in.Wrong(at.Line, "%s needs a name", what)
		return ""
	}
	return r.in.Name(n, "name")
}

func (r *reader) mail(n *yaml.Node) *Mail {
	f := r.in.Fields(n, "mail", []string{"server", "tls", "from", "to", "user", "password_file",
		"ca_file"})
	m := &Mail{TLS: "starttls", PasswordFile: r.path(f, "password_file"), CAFile: r.path(f, "ca_file")}
	if f == nil {
		return m
	}
	for _, one := range r.texts(f["server"], n, "server", "host:port of a mail server") {
		m.Server = one.Value
		if host, port, err := net.SplitHostPort(m.Server); err != nil || host == "" || port == "" {
			r.in.Wrong(one.Line, "server: %s: want host:port", wording.Quote(m.Server))
		}
	}
	if t := f["tls"]; t != nil {
		m.TLS = r.in.Word(t, "tls", []string{"starttls", "tls", "none"})
		if host, _, _ := net.SplitHostPort(m.Server); m.TLS == "none" && !loopback.Host(host) {
			r.in.Wrong(t.Line, "tls: none is for a server on this machine (127.0.0.1): everybody on the "+
				"way could read the messages")
		}
	}
	for _, one := range r.texts(f["from"], n, "from", "the address of the sender") {
		m.From = r.address(one, "from")
	}
	for _, one := range r.texts(f["to"], n, "to", "addresses") {
		m.To = append(m.To, r.address(one, "to"))
	}
	if u := f["user"]; u != nil {
		m.User, _ = r.in.Text(u, "user")
	}
	if (f["user"] == nil) != (f["password_file"] == nil) {
		r.in.Wrong(n.Line, "mail has one of user and password_file: want both or none")
	}
	return m
}

func (r *reader) address(n *yaml.Node, what string) string {
	a, err := mail.ParseAddress(n.Value)
	if err != nil || a.Name != "" || a.Address != n.Value {
		r.in.Wrong(n.Line, "%s: %s: want an address, such as noc@example.org", what,
			wording.Quote(n.Value))
		return ""
	}
	return a.Address
}

// CheckURL reports what is wrong with a URL, without repeating it: it may be a secret.
func CheckURL(text string) error {
	u, err := url.Parse(text)
	switch {
	case err != nil || u.Host == "" || u.Scheme != "https" && u.Scheme != "http":
		return errors.New("it cannot be read: want https://host/path")
	case u.User != nil:
		return fmt.Errorf("the URL of %s has a user in it: give user and password_file, or put it into "+
			"url_file", wording.Quote(u.Hostname()))
	case u.Scheme == "http" && !loopback.Host(u.Hostname()):
		return fmt.Errorf("%s is another machine: want https, because everybody on the way could read "+
			"the messages", wording.Quote(u.Hostname()))
	}
	return nil
}
