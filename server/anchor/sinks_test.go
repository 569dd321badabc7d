package anchor_test

import (
	"bufio"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/pem"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"muster/audit"
	"muster/history"
	"muster/server/anchor"
)

// sql carries out statements as somebody does who can write to the database.
func (b *bench) sql(statements ...string) {
	b.t.Helper()
	for _, text := range statements {
		if err := b.handle.Exec(b.t.Context(), "test", history.Statement{Text: text}); err != nil {
			b.t.Fatal(err)
		}
	}
}

func TestSinksAreReadWithAllMistakes(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]anchor.Spec{
		"file:/var/log/a.log":         {Text: "file:/var/log/a.log", Kind: "file", Target: "/var/log/a.log"},
		"file:/var/log/a.log#entries": {Text: "file:/var/log/a.log", Kind: "file", Target: "/var/log/a.log", Entries: true},
		"syslog:/dev/log":             {Text: "syslog:/dev/log", Kind: "syslog", Network: "local", Target: "/dev/log"},
		"syslog:udp:[::1]:514": {Text: "syslog:udp:[::1]:514", Kind: "syslog", Network: "udp",
			Target: "[::1]:514"},
		"syslog:tcp:log.example.org:601#entries": {Text: "syslog:tcp:log.example.org:601", Kind: "syslog", Network: "tcp",
			Target: "log.example.org:601", Entries: true},
		"https://u:secret@a.example.org/x?y": {Text: "https://u:xxxxx@a.example.org/x?y", Kind: "webhook",
			Target: "https://u:secret@a.example.org/x?y"},
	} {
		if got, err := anchor.ParseSpec(text); err != nil || got != want {
			t.Errorf("%s: %+v, %v", text, got, err)
		}
	}
	c := anchor.Config{Sinks: []string{"file:relative", "http://a.example.org", "file:/x#all", "syslog:sctp:a:1",
		"syslog:udp:a", "https://", "file:/x/", "file:/y", "file:/y", "mail:x", "https://a.example.org"}, WebhookCA: "ca.pem"}
	err := c.Validate()
	for _, words := range []string{`"file:relative": want an absolute path`, `"http://a.example.org": want file:`,
		`"file:/x#all": want nothing or entries`, `"syslog:sctp:a:1"`, `"syslog:udp:a"`, `"https://"`, `"file:/x/"`,
		`"file:/y" is there twice`, `"mail:x"`, "set audit.webhook_key", `audit.webhook_ca = "ca.pem"`} {
		if err == nil || !strings.Contains(err.Error(), words) {
			t.Errorf("%v\nlacks %s", err, words)
		}
	}
}

func FuzzSpec(f *testing.F) {
	f.Add("syslog:tcp:log.example.org:601#entries")
	f.Add("https://u:secret@a.example.org/x?y")
	f.Fuzz(func(t *testing.T, text string) {
		if s, err := anchor.ParseSpec(text); err == nil && (s.Kind == "" || s.Target == "" || s.Text == "") {
			t.Errorf("%q: %+v", text, s)
		}
	})
}

// message cuts a line out of a message of RFC 5424.
func message(t *testing.T, text string) string {
	t.Helper()
	head, line, found := strings.Cut(text, " audit - ")
	if !found || !strings.HasPrefix(head, "<109>1 ") || !strings.Contains(head, "Z s1 muster ") {
		t.Fatalf("message %q", text)
	}
	return line
}

func TestASyslogGetsEachLine(t *testing.T) {
	t.Parallel()
	for _, network := range []string{"unixgram", "unix", "udp", "tcp"} {
		t.Run(network, func(t *testing.T) {
			t.Parallel()
			place, read := listen(t, network)
			b := newBench(t, anchor.Config{Sinks: []string{"syslog:" + place + "#entries"}})
			b.add(2)
			b.round()
			var kinds string
			for range 3 {
				l, err := audit.ParseLine([]byte(message(t, read())))
				if err != nil {
					t.Fatal(err)
				}
				kinds += map[bool]string{true: "entry ", false: "checkpoint "}[l.Entry != nil]
			}
			if kinds != "entry entry checkpoint " {
				t.Errorf("it got %s", kinds)
			}
		})
	}
}

// listen starts a syslog, and returns its place and a function that reads a message.
func listen(t *testing.T, network string) (place string, read func() string) {
	t.Helper()
	dir, err := os.MkdirTemp("", "syslog")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	address := map[string]string{"udp": "127.0.0.1:0", "tcp": "127.0.0.1:0"}[network]
	if address == "" {
		address = filepath.Join(dir, "log")
	}
	name := func(a net.Addr) string {
		if strings.HasPrefix(network, "unix") {
			return address
		}
		return network + ":" + a.String()
	}
	if network == "unixgram" || network == "udp" {
		p, err := net.ListenPacket(network, address)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { p.Close() })
		return name(p.LocalAddr()), func() string {
			data := make([]byte, 64<<10)
			n, _, err := p.ReadFrom(data)
			if err != nil {
				t.Fatal(err)
			}
			return string(data[:n])
		}
	}
	l, err := net.Listen(network, address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	return name(l.Addr()), streamOf(t, l)
}

// streamOf reads messages with the frame of RFC 6587.
func streamOf(t *testing.T, l net.Listener) func() string {
	var from *bufio.Reader
	return func() string {
		if from == nil {
			conn, err := l.Accept()
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { conn.Close() })
			from = bufio.NewReader(conn)
		}
		size, err := from.ReadString(' ')
		if err != nil {
			t.Fatal(err)
		}
		n, err := strconv.Atoi(strings.TrimSpace(size))
		if err != nil {
			t.Fatal(err)
		}
		data := make([]byte, n)
		if _, err := io.ReadFull(from, data); err != nil {
			t.Fatal(err)
		}
		return string(data)
	}
}

// receiver is a webhook that refuses some calls before it takes what comes.
type receiver struct {
	t      *testing.T
	key    string
	refuse int

	mu    sync.Mutex
	lines []string
	ids   []string
}

func (r *receiver) ServeHTTP(w http.ResponseWriter, q *http.Request) {
	r.mu.Lock()
	defer r.mu.Unlock()
	body, err := io.ReadAll(q.Body)
	if err != nil {
		r.t.Error(err)
	}
	id, at := q.Header.Get("Webhook-Id"), q.Header.Get("Webhook-Timestamp")
	h := hmac.New(sha256.New, []byte(r.key))
	fmt.Fprintf(h, "%s.%s.%s", id, at, body)
	if want := "v1," + base64.StdEncoding.EncodeToString(h.Sum(nil)); q.Header.Get("Webhook-Signature") != want {
		r.t.Errorf("signature %q, want %q", q.Header.Get("Webhook-Signature"), want)
	}
	r.ids = append(r.ids, id)
	if r.refuse > 0 {
		r.refuse--
		http.Error(w, "not now", http.StatusServiceUnavailable)
		return
	}
	for line := range strings.Lines(string(body)) {
		r.lines = append(r.lines, line)
	}
}

func TestAWebhookGetsWhatItRefusedAgain(t *testing.T) {
	t.Parallel()
	r := &receiver{t: t, key: "0123456789abcdef-secret", refuse: 2}
	srv := httptest.NewTLSServer(r)
	defer srv.Close()
	c := webhookOf(t, srv, r.key)
	b := newBench(t, c)
	b.add(3)
	for range 2 {
		if err := b.RunOnce(t.Context()); err == nil || !strings.Contains(err.Error(), "503") {
			t.Fatalf("a webhook that refuses: %v", err)
		}
		b.now = b.now.Add(10 * time.Minute)
	}
	b.round()
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.lines) != 4 || len(r.ids) != 3 || r.ids[0] != r.ids[2] {
		t.Errorf("%d lines, ids %q", len(r.lines), r.ids)
	}
}

func webhookOf(t *testing.T, srv *httptest.Server, key string) anchor.Config {
	t.Helper()
	dir := t.TempDir()
	c := anchor.Config{Sinks: []string{srv.URL + "/log#entries"}, WebhookKey: filepath.Join(dir, "key"),
		WebhookCA: filepath.Join(dir, "ca.pem")}
	ca := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: srv.Certificate().Raw})
	for path, data := range map[string][]byte{c.WebhookKey: []byte(key + "\n"), c.WebhookCA: ca} {
		if err := os.WriteFile(path, data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return c
}

func TestAWebhookIsFollowedNowhereAndItsKeyIsPrivate(t *testing.T) {
	t.Parallel()
	var elsewhere int
	other := httptest.NewTLSServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { elsewhere++ }))
	defer other.Close()
	srv := httptest.NewTLSServer(http.RedirectHandler(other.URL, http.StatusTemporaryRedirect))
	defer srv.Close()
	c := webhookOf(t, srv, "0123456789abcdef")
	b := newBench(t, c)
	b.add(1)
	if err := b.RunOnce(t.Context()); err == nil || !strings.Contains(err.Error(), "it redirects") || elsewhere > 0 {
		t.Errorf("a redirect: %v", err)
	}
	for words, do := range map[string]func() error{
		"chmod 400": func() error { return os.Chmod(c.WebhookKey, 0o644) },
		"16 or more": func() error {
			return os.WriteFile(c.WebhookKey, []byte("short\n"), 0o600)
		},
	} {
		if err := os.Chmod(c.WebhookKey, 0o600); err != nil {
			t.Fatal(err)
		}
		if err := do(); err != nil {
			t.Fatal(err)
		}
		b.now = b.now.Add(10 * time.Minute)
		if err := b.RunOnce(t.Context()); err == nil || !strings.Contains(err.Error(), words) {
			t.Errorf("%v, want %s", err, words)
		}
	}
}
