package notify

import (
	"errors"
	"fmt"
	"net"
	"net/mail"
	"net/netip"
	"net/url"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"

	"muster/fleet"
	"muster/internal/wording"
	"muster/scripts"
)

// reader collects rules and mistakes.
type reader struct {
	file     string
	rules    *Rules
	alone    bool         // only rules: the receivers are elsewhere
	names    []string     // of receivers
	to       []*yaml.Node // the receivers that rules name
	mistakes fleet.Mistakes
}

func (r *reader) mistake(line int, format string, args ...any) {
	r.mistakes = append(r.mistakes, fleet.Mistake{File: r.file, Line: line,
		Text: fmt.Sprintf(format, args...)})
}

func (r *reader) document(data []byte) *yaml.Node {
	root, wrong := scripts.ReadYAML(r.file, "a mapping with receivers and rules", data)
	for _, m := range wrong {
		r.mistake(m.Line, "%s", m.Text)
	}
	if len(wrong) > 0 {
		return nil
	}
	return root
}

// pair is a key of a mapping with its value.
type pair struct{ key, value *yaml.Node }

func (r *reader) pairs(n *yaml.Node, what string) (list []pair) {
	if !r.is(n, yaml.MappingNode, what, "a mapping") {
		return nil
	}
	seen := map[string]int{}
	for i := 0; i+1 < len(n.Content); i += 2 {
		key, value := n.Content[i], n.Content[i+1]
		if !r.is(key, yaml.ScalarNode, "a key", "a word") {
			continue
		}
		if line, twice := seen[key.Value]; twice {
			r.mistake(key.Line, "key %q is there already, at line %d: keep one of them",
				fleet.Word(key.Value), line)
			continue
		}
		seen[key.Value] = key.Line
		list = append(list, pair{key, value})
	}
	return list
}

// fields returns the values of a mapping with known keys; nil if it is none.
func (r *reader) fields(n *yaml.Node, what string, known []string) map[string]*yaml.Node {
	if !r.is(n, yaml.MappingNode, what, "a mapping with "+strings.Join(known, ", ")) {
		return nil
	}
	fields := map[string]*yaml.Node{}
	for _, p := range r.pairs(n, what) {
		if !slices.Contains(known, p.key.Value) {
			r.mistake(p.key.Line, "unknown key %q%s", fleet.Word(p.key.Value),
				instead(p.key.Value, known))
			continue
		}
		fields[p.key.Value] = p.value
	}
	return fields
}

func (r *reader) list(n *yaml.Node, what string) []*yaml.Node {
	if !r.is(n, yaml.SequenceNode, what, "a list") {
		return nil
	}
	return n.Content
}

// texts returns the items of a list of texts, one at least; a single text is a list of one. at is
// the place of a list that is missing.
func (r *reader) texts(n, at *yaml.Node, what, want string) (list []*yaml.Node) {
	if n == nil {
		r.mistake(at.Line, "%s is missing: want %s", what, want)
		return nil
	}
	items := []*yaml.Node{n}
	if n.Kind != yaml.ScalarNode {
		items = r.list(n, what)
		if len(items) == 0 {
			r.mistake(n.Line, "%s is empty: want %s", what, want)
		}
	}
	for _, item := range items {
		if _, ok := r.text(item, what); ok {
			list = append(list, item)
		}
	}
	return list
}

// words returns texts that must be known.
func (r *reader) words(n, at *yaml.Node, what string, known []string) (list []string) {
	for _, one := range r.texts(n, at, what, "some of "+strings.Join(known, ", ")) {
		list = append(list, r.word(one, what, known))
	}
	return list
}

func (r *reader) word(n *yaml.Node, what string, known []string) string {
	text, ok := r.text(n, what)
	if ok && !slices.Contains(known, text) {
		r.mistake(n.Line, "%s: %s is not known%s", what, wording.Quote(text), instead(text, known))
	}
	return text
}

func (r *reader) text(n *yaml.Node, what string) (string, bool) {
	if !r.is(n, yaml.ScalarNode, what, "a text") {
		return "", false
	}
	if strings.ContainsFunc(n.Value, func(c rune) bool { return c < ' ' || c == 0x7f }) {
		r.mistake(n.Line, "%s has a control character: remove it", what)
		return "", false
	}
	return n.Value, true
}

func (r *reader) name(n, at *yaml.Node, what string) string {
	if n == nil {
		r.mistake(at.Line, "%s needs a name", what)
		return ""
	}
	text, ok := r.text(n, "name")
	if ok && fleet.CheckName(text) != nil {
		r.mistake(n.Line, "name %s: use letters, digits, '.', '-' and '_'", wording.Quote(text))
	}
	return text
}

func (r *reader) yes(n *yaml.Node, what string) bool {
	if n == nil || !r.is(n, yaml.ScalarNode, what, "true or false") {
		return false
	}
	if n.ShortTag() != "!!bool" {
		r.mistake(n.Line, "%s: %s: want true or false", what, wording.Quote(n.Value))
	}
	return n.Value == "true"
}

func (r *reader) duration(n *yaml.Node, what string, least, most time.Duration) time.Duration {
	text, ok := r.text(n, what)
	if !ok {
		return 0
	}
	d, err := time.ParseDuration(text)
	if text == "0" {
		d, err = 0, nil
	}
	if err != nil || d < least || d > most {
		r.mistake(n.Line, "%s: %s: want a time from %s to %s, such as 30s or 15m", what,
			wording.Quote(text), least, most)
	}
	return d
}

// path returns an absolute path; empty if there is none.
func (r *reader) path(n *yaml.Node, what string) string {
	if n == nil {
		return ""
	}
	text, ok := r.text(n, what)
	if ok && !filepath.IsAbs(text) {
		r.mistake(n.Line, "%s: %s: want the absolute path of a file", what, wording.Quote(text))
	}
	return text
}

func (r *reader) is(n *yaml.Node, kind yaml.Kind, what, want string) bool {
	switch {
	case n.Kind == yaml.AliasNode, n.Anchor != "", n.Style&yaml.TaggedStyle != 0:
		r.mistake(n.Line, "%s has an alias, an anchor or a tag: write the value out", what)
	case n.Kind == yaml.ScalarNode && n.ShortTag() == "!!null":
		r.mistake(n.Line, "%s has no value: want %s", what, want)
	case n.Kind != kind:
		r.mistake(n.Line, "%s is of another kind: want %s", what, want)
	default:
		return true
	}
	return false
}

func (r *reader) mail(n *yaml.Node) *Mail {
	f := r.fields(n, "mail", []string{"server", "tls", "from", "to", "user", "password_file",
		"ca_file"})
	m := &Mail{TLS: "starttls", PasswordFile: r.path(f["password_file"], "password_file"),
		CAFile: r.path(f["ca_file"], "ca_file")}
	if f == nil {
		return m
	}
	for _, one := range r.texts(f["server"], n, "server", "host:port of a mail server") {
		m.Server = one.Value
		if host, port, err := net.SplitHostPort(m.Server); err != nil || host == "" || port == "" {
			r.mistake(one.Line, "server: %s: want host:port", wording.Quote(m.Server))
		}
	}
	if t := f["tls"]; t != nil {
		m.TLS = r.word(t, "tls", []string{"starttls", "tls", "none"})
		if host, _, _ := net.SplitHostPort(m.Server); m.TLS == "none" && !Own(host) {
			r.mistake(t.Line, "tls: none is for a server on this machine (127.0.0.1): everybody on the way "+
				"could read the messages")
		}
	}
	for _, one := range r.texts(f["from"], n, "from", "the address of the sender") {
		m.From = r.address(one, "from")
	}
	for _, one := range r.texts(f["to"], n, "to", "addresses") {
		m.To = append(m.To, r.address(one, "to"))
	}
	if u := f["user"]; u != nil {
		m.User, _ = r.text(u, "user")
	}
	if (f["user"] == nil) != (f["password_file"] == nil) {
		r.mistake(n.Line, "mail has one of user and password_file: want both or none")
	}
	return m
}

func (r *reader) address(n *yaml.Node, what string) string {
	a, err := mail.ParseAddress(n.Value)
	if err != nil || a.Name != "" || a.Address != n.Value {
		r.mistake(n.Line, "%s: %s: want an address, such as noc@example.org", what,
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
	case u.Scheme == "http" && !Own(u.Hostname()):
		return fmt.Errorf("%s is another machine: want https, because everybody on the way could read "+
			"the messages", wording.Quote(u.Hostname()))
	}
	return nil
}

// Own reports whether a host is this machine.
func Own(host string) bool {
	ip, err := netip.ParseAddr(host)
	return host == "localhost" || err == nil && ip.Unmap().IsLoopback()
}
