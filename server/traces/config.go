// Package traces sends traces of tasks and jobs to a collector of OpenTelemetry, over OTLP/HTTP.
// It makes them after the end of a job out of what history has stored, so that no job and no node
// waits for a collector: what does not fit into a bounded queue is dropped, and counted.
//
// Floor 5: may import history, history/courses, server/spans, and what is below.
package traces

import (
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"

	"muster/internal/certs"
	"muster/internal/loopback"
	"muster/internal/wording"
)

// Config says where traces go, and which.
type Config struct {
	// Endpoint is the URL of the collector. Without a path it gets /v1/traces. Empty: no traces.
	Endpoint string
	// Headers reads the headers that prove to the collector who sends; nil: there are none.
	Headers func() (http.Header, error)
	OneIn   int           // of the tasks whose jobs end well; 0: none of them
	Timeout time.Duration // of one request
	CA      string        // file with the authorities of the collector; empty: those of the system
	Cert    string        // file with the certificate of this server; empty: none
	Key     string        // file with its key
}

// Header has headers of requests.
type Header = http.Header

// The defaults of a configuration, and its bounds.
const (
	DefaultOneIn   = 100
	DefaultTimeout = 10 * time.Second
	timeoutMax     = time.Minute
)

// tracesPath is the path at which collectors take traces.
const tracesPath = "/v1/traces"

// Default sends no traces.
func Default() Config { return Config{OneIn: DefaultOneIn, Timeout: DefaultTimeout} }

// Validate reports every mistake at once.
func (c Config) Validate() error {
	var errs []error
	wrong := func(format string, args ...any) { errs = append(errs, fmt.Errorf(format, args...)) }
	if c.OneIn < 0 {
		wrong("traces.one_in = %d: want 1 for all tasks, N for one in N, or 0 for none whose jobs end "+
			"well", c.OneIn)
	}
	if c.Timeout <= 0 || c.Timeout > timeoutMax {
		wrong("traces.timeout = %s: want more than 0s and at most %s", c.Timeout, timeoutMax)
	}
	if (c.Cert == "") != (c.Key == "") {
		wrong("traces.tls.cert = %q, traces.tls.key = %q: want both or none", c.Cert, c.Key)
	}
	if c.Endpoint == "" {
		if c.Headers != nil || c.CA != "" || c.Cert != "" {
			wrong("traces.headers_file and traces.tls are for traces.endpoint, which is empty: set it, " +
				"or leave them out")
		}
		return errors.Join(errs...)
	}
	u, err := c.target()
	if err != nil {
		return errors.Join(append(errs, err)...)
	}
	if u.Scheme == "http" && (c.CA != "" || c.Cert != "") {
		wrong("traces.tls is for https://, and traces.endpoint is %s: leave one of them out",
			wording.Clip(c.Endpoint))
	}
	if u.Scheme == "http" && c.Headers != nil && !loopback.Host(u.Hostname()) {
		wrong("traces.headers_file: the headers would travel to %s unencrypted: use https://",
			u.Hostname())
	}
	return errors.Join(errs...)
}

// target returns the URL that takes traces. No error repeats a password.
func (c Config) target() (*url.URL, error) {
	const want = "want the URL of a collector, such as https://collector.example:4318"
	u, err := url.Parse(c.Endpoint)
	switch {
	case err != nil:
		return nil, errors.New("traces.endpoint cannot be read: " + want)
	case u.User != nil:
		return nil, errors.New("traces.endpoint has a user or a password: write them into " +
			"traces.headers_file, as in Authorization: Basic …")
	case u.RawQuery != "" || u.ForceQuery:
		return nil, errors.New("traces.endpoint has a query: write keys into traces.headers_file")
	case u.Scheme != "https" && u.Scheme != "http" || u.Hostname() == "" || u.Fragment != "":
		return nil, errors.New("traces.endpoint is no such URL: " + want)
	case u.Path == "" || u.Path == "/":
		u.Path = tracesPath
	}
	return u, nil
}

// errMoved refuses an answer that sends traces elsewhere.
var errMoved = errors.New("it redirects to another place, and traces go nowhere but to " +
	"traces.endpoint")

// client makes a client of the collector. It takes no proxy from the environment.
func (c Config) client() (*http.Client, error) {
	t := &tls.Config{MinVersion: tls.VersionTLS12}
	var err error
	if c.CA != "" {
		if t.RootCAs, err = certs.Pool(c.CA); err != nil {
			return nil, fmt.Errorf("traces.tls.ca: %w", err)
		}
	}
	if c.Cert != "" {
		pair, err := certs.Pair(c.Cert, c.Key)
		if err != nil {
			return nil, fmt.Errorf("traces.tls.cert, traces.tls.key: %w", err)
		}
		t.Certificates = []tls.Certificate{pair}
	}
	return &http.Client{Timeout: c.Timeout,
		Transport: &http.Transport{TLSClientConfig: t, ForceAttemptHTTP2: true,
			DialContext:     (&net.Dialer{Timeout: c.Timeout}).DialContext,
			IdleConnTimeout: time.Minute, MaxIdleConnsPerHost: 1},
		CheckRedirect: func(*http.Request, []*http.Request) error { return errMoved }}, nil
}

// CheckFiles reads the files with certificates once, and reports every mistake in them.
func (c Config) CheckFiles() error {
	_, err := c.client()
	return err
}

// headersMax bounds the headers of a file.
const headersMax = 20

// ParseHeaders reads lines of the form "Name: value". Empty lines, and those that begin with #,
// say nothing. Errors name the line, and never a value.
func ParseHeaders(name string, data []byte) (http.Header, error) {
	out := http.Header{}
	var errs []error
	no := 0
	for line := range strings.Lines(string(data)) {
		no++
		line = strings.TrimSpace(line)
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		key, value, ok := strings.Cut(line, ":")
		key, value = strings.TrimSpace(key), strings.TrimSpace(value)
		switch {
		case !ok || !isToken(key):
			errs = append(errs, fmt.Errorf("%s:%d: want Name: value, as in Authorization: Bearer …", name,
				no))
		case value == "" || strings.ContainsFunc(value, isControl):
			errs = append(errs, fmt.Errorf("%s:%d: %s: want a value of one line without control "+
				"characters", name, no, key))
		case reserved[http.CanonicalHeaderKey(key)]:
			errs = append(errs, fmt.Errorf("%s:%d: %s is set by muster: leave it out", name, no, key))
		default:
			out.Add(key, value)
		}
	}
	if len(out) > headersMax {
		errs = append(errs, fmt.Errorf("%s: %d headers: want at most %d", name, len(out), headersMax))
	}
	if len(errs) == 0 && len(out) == 0 {
		errs = append(errs, fmt.Errorf("%s: no header: want lines such as Authorization: Bearer …",
			name))
	}
	return out, errors.Join(errs...)
}

// reserved are the headers that say what a request is.
var reserved = map[string]bool{"Content-Type": true, "Content-Encoding": true,
	"Content-Length": true, "Host": true, "Connection": true, "Transfer-Encoding": true,
	"User-Agent": true}

func isToken(s string) bool {
	return s != "" && len(s) <= 100 && !strings.ContainsFunc(s, func(r rune) bool {
		return !(r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '-' ||
			r == '_')
	})
}

func isControl(r rune) bool { return r < ' ' || r == 0x7f }
