package herald

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"muster/history/outbox"
	"muster/internal/files"
	"muster/internal/proc"
	"muster/internal/wording"
	"muster/notify"
)

const (
	sendTimeout = 10 * time.Second
	answerMax   = 64 << 10 // bytes
	secretMax   = 16 << 10 // bytes
	keyMin      = 16       // bytes
	pemMax      = 4 << 20  // bytes
	afterMax    = time.Hour
	redirects   = 3
)

// A result says how a try ended.
type result struct {
	err   error         // nil: the receiver has it
	gone  bool          // it wants no messages any more
	after time.Duration // it asks for a pause so long
}

// send sends a message once. No error repeats a URL or a secret.
func send(ctx context.Context, to notify.Receiver, d outbox.Delivery) result {
	var m notify.Message
	if err := json.Unmarshal([]byte(d.Body), &m); err != nil {
		return result{err: fmt.Errorf("the message cannot be read: %w", err)}
	}
	switch {
	case to.Webhook != nil:
		return post(ctx, *to.Webhook, call{id: d.ID, body: []byte(d.Body), signed: true})
	case to.Slack != nil:
		return post(ctx, *to.Slack, call{id: d.ID, body: m.Slack()})
	case to.Alerts != nil:
		return post(ctx, *to.Alerts, call{id: d.ID, body: m.Alerts(), path: "/api/v2/alerts"})
	case to.Mail != nil:
		ctx, cancel := context.WithTimeout(ctx, 3*sendTimeout)
		defer cancel()
		return result{err: sendMail(ctx, *to.Mail, m)}
	case to.Program != nil:
		return result{err: run(ctx, *to.Program, []byte(d.Body))}
	}
	return result{err: errors.New("this receiver has no way")}
}

// A call is a request that posts something.
type call struct {
	id     string
	body   []byte
	path   string // of the API, behind the URL; empty: the URL is whole
	signed bool
}

// run gives a message to a program.
func run(ctx context.Context, p notify.Program, body []byte) error {
	ctx, cancel := context.WithTimeoutCause(ctx, p.Timeout,
		fmt.Errorf("it ran longer than %s, and was killed", p.Timeout))
	defer cancel()
	_, err := proc.Output(ctx, proc.Program{Path: p.Argv[0], Args: p.Argv[1:], Dir: "/",
		Env: []string{"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
			"LANG=C.UTF-8"},
		Most: answerMax, In: body})
	if err != nil {
		return errors.New(wording.OneLine(err.Error(), 500))
	}
	return nil
}

func post(ctx context.Context, w notify.Webhook, c call) result {
	place, err := target(w)
	if err != nil {
		return result{err: err}
	}
	if !strings.HasSuffix(place.Path, c.path) {
		place.Path = strings.TrimRight(place.Path, "/") + c.path
	}
	client, err := clientOf(w)
	if err != nil {
		return result{err: err}
	}
	defer client.CloseIdleConnections()
	ctx, cancel := context.WithTimeout(ctx, sendTimeout)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, place.String(),
		bytes.NewReader(c.body))
	if err != nil {
		return result{err: fmt.Errorf("%s: the URL cannot be used", place.Hostname())}
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("User-Agent", "muster")
	if err := prove(req, w, c); err != nil {
		return result{err: err}
	}
	res, err := client.Do(req)
	if err != nil {
		return result{err: fmt.Errorf("%s: %w", place.Hostname(), plain(err))}
	}
	defer res.Body.Close()
	// The rest of the answer is of no use, but lets the connection end in order.
	_, _ = io.Copy(io.Discard, io.LimitReader(res.Body, answerMax))
	if res.StatusCode >= 200 && res.StatusCode <= 299 {
		return result{}
	}
	return result{err: fmt.Errorf("%s answers %s", place.Hostname(), wording.OneLine(res.Status, 100)),
		gone: res.StatusCode == http.StatusGone, after: afterOf(res)}
}

// afterOf returns the pause that an answer asks for.
func afterOf(res *http.Response) time.Duration {
	n, err := strconv.Atoi(res.Header.Get("Retry-After"))
	if err != nil || n < 0 {
		return 0
	}
	return min(time.Duration(n)*time.Second, afterMax)
}

// prove adds what shows the receiver who sends. The form of signed messages is that of
// https://www.standardwebhooks.com.
func prove(req *http.Request, w notify.Webhook, c call) error {
	if c.signed {
		keys, err := keysOf(w.KeyFile)
		if err != nil {
			return err
		}
		at := strconv.FormatInt(time.Now().Unix(), 10)
		var list []string
		for _, key := range keys {
			h := hmac.New(sha256.New, key)
			fmt.Fprintf(h, "%s.%s.", c.id, at)
			h.Write(c.body)
			list = append(list, "v1,"+base64.StdEncoding.EncodeToString(h.Sum(nil)))
		}
		req.Header.Set("Webhook-Id", c.id)
		req.Header.Set("Webhook-Timestamp", at)
		req.Header.Set("Webhook-Signature", strings.Join(list, " "))
	}
	if w.User == "" {
		return nil
	}
	password, err := secret(w.Password, "password_file")
	if err == nil {
		req.SetBasicAuth(w.User, password)
	}
	return err
}

// keysOf reads the keys of signatures, one a line: while a key is exchanged, both sign. The file is
// read each time, so that a changed one is in force at once.
func keysOf(path string) (keys [][]byte, err error) {
	text, err := secret(path, "key_file")
	if err != nil {
		return nil, err
	}
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		if line == "" {
			continue
		}
		key := []byte(line)
		if code, ok := strings.CutPrefix(line, "whsec_"); ok {
			if key, err = base64.StdEncoding.DecodeString(code); err != nil {
				return nil, fmt.Errorf("key_file: %s has whsec_ and no base64 behind it", path)
			}
		}
		if len(key) < keyMin {
			return nil, fmt.Errorf("key_file: %s has a key of %d bytes: want %d or more", path, len(key),
				keyMin)
		}
		keys = append(keys, key)
	}
	if len(keys) == 0 {
		return nil, fmt.Errorf("key_file: %s has no key", path)
	}
	return keys, nil
}

// secret reads a file that only its owner may read.
func secret(path, what string) (string, error) {
	data, mode, err := files.Private(path, secretMax)
	if err != nil {
		return "", fmt.Errorf("%s: %w", what, err)
	}
	if mode.Perm()&0o077 != 0 {
		return "", fmt.Errorf("%s: %s has mode %04o, so others can use it: chmod 400 it", what, path,
			mode.Perm())
	}
	text := strings.TrimSpace(string(data))
	if text == "" {
		return "", fmt.Errorf("%s: %s is empty", what, path)
	}
	return text, nil
}

// target returns the URL of a receiver.
func target(w notify.Webhook) (*url.URL, error) {
	text := w.URL
	if text == "" {
		var err error
		if text, err = secret(w.URLFile, "url_file"); err != nil {
			return nil, err
		}
		if err := notify.CheckURL(text); err != nil {
			return nil, fmt.Errorf("url_file: %s: %w", w.URLFile, err)
		}
	}
	u, err := url.Parse(text)
	if err != nil {
		return nil, errors.New("the URL cannot be read")
	}
	return u, nil
}

// errMoved refuses an answer that sends messages elsewhere.
var errMoved = errors.New("it redirects to another place, and messages go nowhere but where the " +
	"rules say")

// clientOf takes no proxy from the environment and follows no redirect to another host.
func clientOf(w notify.Webhook) (*http.Client, error) {
	c, err := trusting(w.CAFile)
	if err != nil {
		return nil, err
	}
	return &http.Client{Transport: &http.Transport{TLSClientConfig: c, ForceAttemptHTTP2: true,
		ResponseHeaderTimeout: sendTimeout},
		CheckRedirect: func(next *http.Request, had []*http.Request) error {
			first := had[0].URL
			if next.Method != http.MethodPost || next.URL.Host != first.Host ||
				next.URL.Scheme != first.Scheme || len(had) > redirects {
				return errMoved
			}
			return nil
		}}, nil
}

func trusting(ca string) (*tls.Config, error) {
	c := &tls.Config{MinVersion: tls.VersionTLS12}
	if ca == "" {
		return c, nil
	}
	pem, err := files.Read(ca, pemMax)
	if err != nil {
		return nil, fmt.Errorf("ca_file: %w", err)
	}
	c.RootCAs = x509.NewCertPool()
	if !c.RootCAs.AppendCertsFromPEM(pem) {
		return nil, fmt.Errorf("ca_file: %s has no certificate in PEM", ca)
	}
	return c, nil
}

// plain takes the URL out of an error of HTTP.
func plain(err error) error {
	var u *url.Error
	if errors.As(err, &u) {
		if u.Timeout() {
			return fmt.Errorf("it did not answer within %s", sendTimeout)
		}
		return plain(u.Err)
	}
	return errors.New(wording.OneLine(err.Error(), 300))
}

// Place returns for people where messages to a receiver go: a host, a mail server with the number
// of addresses, or a program. It never returns a whole URL.
func Place(r notify.Receiver) string {
	switch {
	case r.Mail != nil:
		return r.Mail.Server + ", " + wording.Count(len(r.Mail.To), "recipient")
	case r.Program != nil:
		return r.Program.Argv[0]
	}
	for _, w := range []*notify.Webhook{r.Webhook, r.Slack, r.Alerts} {
		if w == nil {
			continue
		}
		u, err := target(*w)
		if err != nil {
			return "not known: " + err.Error()
		}
		return u.Host
	}
	return ""
}
