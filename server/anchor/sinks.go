package anchor

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"path/filepath"
	"strings"

	"muster/internal/wording"
)

// Config says which places have copies of the log.
type Config struct {
	Sinks      []string // as ParseSpec reads them
	WebhookKey string   // file with the key that signs what webhooks get
	WebhookCA  string   // file with authorities of webhooks in PEM; empty: those of the system
}

// A Spec is a sink as a configuration names it.
type Spec struct {
	Text    string // without the secrets that a URL may have
	Kind    string // file, syslog or webhook
	Network string // of a syslog: local, tcp or udp
	Target  string
	Entries bool // it gets the entries, too
}

// entriesWord behind a sink says that it gets the entries.
const entriesWord = "entries"

// ParseSpec reads one sink of a configuration.
func ParseSpec(text string) (Spec, error) {
	place, more, found := strings.Cut(text, "#")
	bad := func(want string) (Spec, error) {
		return Spec{}, fmt.Errorf("audit.sinks: %q: want %s", wording.Clip(text), want)
	}
	if found && more != entriesWord {
		return bad("nothing or " + entriesWord + " behind the #")
	}
	s := Spec{Text: place, Entries: found}
	kind, rest, _ := strings.Cut(place, ":")
	switch kind {
	case "file":
		s.Kind, s.Target = "file", rest
		if !filepath.IsAbs(rest) || strings.HasSuffix(rest, "/") {
			return bad("an absolute path, such as file:/var/log/muster/audit.log")
		}
	case "syslog":
		return s.syslog(rest, bad)
	case "https":
		u, err := url.Parse(place)
		if err != nil || u.Host == "" {
			return bad("a URL, such as https://audit.example.org/muster")
		}
		s.Kind, s.Target, s.Text = "webhook", place, u.Redacted()
	default:
		return bad("file:/path, syslog:/dev/log, syslog:tcp:host:port, syslog:udp:host:port or " +
			"https://host/path, each with #entries behind it if it gets the entries, too")
	}
	return s, nil
}

func (s Spec) syslog(rest string, bad func(string) (Spec, error)) (Spec, error) {
	s.Kind, s.Network, s.Target = "syslog", "local", rest
	if filepath.IsAbs(rest) {
		return s, nil
	}
	s.Network, s.Target, _ = strings.Cut(rest, ":")
	_, _, err := net.SplitHostPort(s.Target)
	if s.Network != "tcp" && s.Network != "udp" || err != nil {
		return bad("syslog:/dev/log, syslog:tcp:host:port or syslog:udp:host:port")
	}
	return s, nil
}

// Validate reports every mistake at once.
func (c Config) Validate() error {
	list, err := c.specs()
	errs := []error{err}
	hooks := false
	for _, s := range list {
		hooks = hooks || s.Kind == "webhook"
	}
	if hooks && c.WebhookKey == "" {
		errs = append(errs, errors.New("audit.sinks names a webhook, which must be able to tell who "+
			"sends: set audit.webhook_key to a file with a key that both have"))
	}
	for name, path := range map[string]string{"webhook_key": c.WebhookKey, "webhook_ca": c.WebhookCA} {
		if path != "" && !filepath.IsAbs(path) {
			errs = append(errs, fmt.Errorf("audit.%s = %q: want an absolute path", name, path))
		}
	}
	return errors.Join(errs...)
}

func (c Config) specs() (list []Spec, err error) {
	var errs []error
	names := map[string]bool{}
	for _, text := range c.Sinks {
		s, err := ParseSpec(text)
		if err == nil && names[s.Text] {
			err = fmt.Errorf("audit.sinks: %q is there twice", wording.Clip(s.Text))
		}
		names[s.Text] = true
		errs, list = append(errs, err), append(list, s)
	}
	return list, errors.Join(errs...)
}

// A Batch is a part of the log on its way to a sink.
type Batch struct {
	ID    string // the same each time the batch is sent
	Lines [][]byte
}

// A sender takes batches. After an error nobody knows how much arrived.
type sender interface {
	send(ctx context.Context, b Batch) error
}

func (c Config) sender(s Spec, host string) sender {
	switch s.Kind {
	case "file":
		return fileSink{s.Target}
	case "syslog":
		return syslogSink{network: s.Network, target: s.Target, host: host}
	}
	return &webhook{url: s.Target, key: c.WebhookKey, ca: c.WebhookCA}
}
