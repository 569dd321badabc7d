package herald

import (
	"bufio"
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/base64"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"

	"muster/fleet"
	"muster/history"
	"muster/history/outbox"
	"muster/jobs"
	"muster/jobs/queue/hub"
	"muster/jobs/staff"
	"muster/notify"
	"muster/testkit/promtest"
	"muster/testkit/sqltest"
)

// file writes a private file, and returns its path.
func file(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func delivery(t *testing.T) outbox.Delivery {
	t.Helper()
	m := notify.TestMessage("noc", "ann", time.Now())
	return outbox.Delivery{ID: m.ID, Title: m.Title, Body: string(m.JSON()), Created: time.Now()}
}

const key = "0123456789abcdef-key"

func TestAWebhookCanTellWhoSends(t *testing.T) {
	t.Parallel()
	d := delivery(t)
	got := make(chan error, 1)
	srv := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		want := func(key []byte) string {
			h := hmac.New(sha256.New, key)
			fmt.Fprintf(h, "%s.%s.%s", r.Header.Get("Webhook-Id"), r.Header.Get("Webhook-Timestamp"), body)
			return "v1," + base64.StdEncoding.EncodeToString(h.Sum(nil))
		}
		sent := r.Header.Get("Webhook-Signature")
		if all := want([]byte(key)) + " " + want(bytes.Repeat([]byte{7}, 24)); sent != all ||
			r.Header.Get("Webhook-Id") != d.ID ||
			string(body) != d.Body {
			got <- fmt.Errorf("signature %s, want %s", sent, all)
			return
		}
		got <- nil
	}))
	defer srv.Close()
	keys := file(t, key+"\nwhsec_"+base64.StdEncoding.EncodeToString(bytes.Repeat([]byte{7}, 24))+"\n")
	to := notify.Receiver{Webhook: &notify.Webhook{URLFile: file(t, srv.URL+"/hook\n"), KeyFile: keys}}
	if res := send(t.Context(), to, d); res.err != nil {
		t.Fatal(res.err)
	}
	if err := <-got; err != nil {
		t.Error(err)
	}
	if err := os.Chmod(keys, 0o644); err != nil {
		t.Fatal(err)
	}
	if res := send(t.Context(), to, d); res.err == nil || !strings.Contains(res.err.Error(), "mode 0644") {
		t.Errorf("a key that others can read: %v", res.err)
	}
}

// A receiver may fail, hang, send elsewhere, or want no more. No error shows the URL, which may be a
// secret.
func TestWhatReceiversAnswerIsUnderstood(t *testing.T) {
	t.Parallel()
	release := make(chan struct{})
	elsewhere := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		t.Error("a message went where a redirect led")
	}))
	defer elsewhere.Close()
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch strings.TrimPrefix(r.URL.Path, "/T0SECRET/") {
		case "fail":
			w.WriteHeader(500)
		case "gone":
			w.WriteHeader(410)
		case "busy":
			w.Header().Set("Retry-After", "120")
			w.WriteHeader(429)
		case "away":
			http.Redirect(w, r, elsewhere.URL, http.StatusTemporaryRedirect)
		case "found":
			http.Redirect(w, r, "/T0SECRET/ok", http.StatusFound)
		case "near":
			http.Redirect(w, r, "/T0SECRET/ok", http.StatusTemporaryRedirect)
		case "round":
			http.Redirect(w, r, "/T0SECRET/round", http.StatusPermanentRedirect)
		case "hang":
			<-release
		case "cut":
			panic(http.ErrAbortHandler)
		}
	}))
	defer srv.Close()
	defer close(release)
	for path, c := range map[string]struct {
		want  string
		gone  bool
		after time.Duration
	}{
		"ok": {}, "near": {}, "fail": {want: "127.0.0.1 answers 500"}, "gone": {want: "answers 410", gone: true},
		"busy": {want: "answers 429", after: 2 * time.Minute}, "away": {want: "it redirects to another place"},
		"found": {want: "it redirects to another place"}, "round": {want: "it redirects to another place"},
		"hang": {want: "did not answer within"}, "cut": {want: "127.0.0.1: EOF"},
	} {
		t.Run(path, func(t *testing.T) {
			ctx := t.Context()
			if path == "hang" {
				var cancel context.CancelFunc
				ctx, cancel = context.WithTimeout(ctx, 200*time.Millisecond)
				defer cancel()
			}
			res := send(ctx, notify.Receiver{Slack: &notify.Webhook{URL: srv.URL + "/T0SECRET/" + path}},
				delivery(t))
			text := fmt.Sprint(res.err)
			if c.want == "" && res.err != nil || !strings.Contains(text, c.want) && c.want != "" ||
				res.gone != c.gone ||
				res.after != c.after {
				t.Errorf("%+v, want %+v", res, c)
			}
			if strings.Contains(text, "SECRET") {
				t.Errorf("the URL is in %q", text)
			}
		})
	}
	res := send(t.Context(), notify.Receiver{Slack: &notify.Webhook{URL: "http://127.0.0.1:1/T0SECRET"}},
		delivery(t))
	if res.err == nil || strings.Contains(res.err.Error(), "SECRET") || !strings.Contains(res.err.Error(),
		"refused") {
		t.Errorf("nobody listens: %v", res.err)
	}
	chat := notify.Receiver{Slack: &notify.Webhook{URL: "https://hooks.example.org/T0SECRET"}}
	if p := Place(chat); p != "hooks.example.org" {
		t.Errorf("place %q", p)
	}
}

func TestAnAlertmanagerGetsAlerts(t *testing.T) {
	t.Parallel()
	got := make(chan string, 1)
	srv := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		user, password, _ := r.BasicAuth()
		got <- r.URL.Path + " " + user + ":" + password + " " + string(body)
	}))
	defer srv.Close()
	to := notify.Receiver{Alerts: &notify.Webhook{URL: srv.URL + "/am/", User: "m", Password: file(t, "pw\n")}}
	if res := send(t.Context(), to, delivery(t)); res.err != nil {
		t.Fatal(res.err)
	}
	if text := <-got; !strings.HasPrefix(text, `/am/api/v2/alerts m:pw [{"labels":{"alertname":"muster-test"`) {
		t.Error(text)
	}
}

// A real Alertmanager takes our alerts, and has them until they end.
func TestARealAlertmanagerTakesOurAlerts(t *testing.T) {
	t.Parallel()
	am := promtest.StartAlertmanager(t, "http://127.0.0.1:1/nobody", "unused")
	to := notify.Receiver{Alerts: &notify.Webhook{URL: am.URL() + "/"}}
	if res := send(t.Context(), to, delivery(t)); res.err != nil {
		t.Fatal(res.err)
	}
	list, err := am.Alerts()
	if err != nil || len(list) != 1 || list[0].Labels["alertname"] != "muster-test" ||
		!list[0].EndsAt.After(time.Now()) {
		t.Errorf("it has %+v, %v", list, err)
	}
}

func TestAProgramGetsTheMessageAndIsEnded(t *testing.T) {
	t.Parallel()
	out := filepath.Join(t.TempDir(), "out")
	program := func(timeout time.Duration, script string) error {
		return send(t.Context(), notify.Receiver{Program: &notify.Program{Argv: []string{"/bin/sh", "-c", script,
			"x",
			out},
			Timeout: timeout}}, delivery(t)).err
	}
	if err := program(30*time.Second, `cat > "$1"; env >> "$1"`); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(out)
	if err != nil || !strings.HasPrefix(string(text), `{"id":"msg_`) || strings.Contains(string(text),
		"HOME=") {
		t.Errorf("%s, %v", text, err)
	}
	if err := program(30*time.Second, "echo no such pager >&2; exit 3"); err == nil ||
		err.Error() != "exit status 3: no such pager" {
		t.Errorf("%v", err)
	}
	if err := program(100*time.Millisecond, "sleep 600 & sleep 600"); err == nil ||
		!strings.Contains(err.Error(),
			"longer than 100ms") {
		t.Errorf("%v", err)
	}
}

// mailServer is a server of SMTP for one test.
type mailServer struct {
	addr string
	ca   string // file
	got  chan string
}

// startMail starts a server that offers STARTTLS or not, and refuses a recipient "refused@…".
func startMail(t *testing.T, starttls, wrapped bool) mailServer {
	t.Helper()
	cert, ca := certificate(t)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	conf := &tls.Config{Certificates: []tls.Certificate{cert}}
	if wrapped {
		l = tls.NewListener(l, conf)
	}
	s := mailServer{l.Addr().String(), ca, make(chan string, 10)}
	var all sync.WaitGroup
	all.Go(func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			all.Go(func() { s.serve(conn, conf, starttls) })
		}
	})
	t.Cleanup(func() { l.Close(); all.Wait() })
	return s
}

func (s mailServer) serve(conn net.Conn, conf *tls.Config, starttls bool) {
	defer func() { conn.Close() }()
	r := bufio.NewReader(conn)
	said := func(text string) { fmt.Fprintf(conn, "%s\r\n", text) }
	said("220 test ESMTP")
	user := "nobody"
	for {
		line, err := r.ReadString('\n')
		if err != nil {
			return
		}
		word := strings.ToUpper(strings.Fields(line + " x")[0])
		switch {
		case word == "EHLO" && starttls:
			said("250-test\r\n250-AUTH PLAIN\r\n250 STARTTLS")
		case word == "EHLO":
			said("250-test\r\n250 AUTH PLAIN")
		case word == "STARTTLS":
			said("220 go")
			conn, starttls = tls.Server(conn, conf), false
			r = bufio.NewReader(conn)
		case word == "AUTH":
			text, _ := base64.StdEncoding.DecodeString(strings.Fields(line)[2])
			if user = strings.ReplaceAll(string(text), "\x00", "/"); user != "/muster/pass word" {
				said("535 no")
				continue
			}
			said("235 ok")
		case strings.Contains(line, "refused@"):
			said("550 no such box")
		case word == "DATA":
			said("354 go")
			var body strings.Builder
			for {
				line, err := r.ReadString('\n')
				if err != nil {
					return
				}
				if line == ".\r\n" {
					break
				}
				body.WriteString(line)
			}
			s.got <- user + "\n" + body.String()
			said("250 taken")
		case word == "QUIT":
			said("221 bye")
			return
		default:
			said("250 ok")
		}
	}
}

func certificate(t *testing.T) (tls.Certificate, string) {
	t.Helper()
	k, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	c := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "test"},
		NotAfter:  time.Now().Add(time.Hour),
		NotBefore: time.Now().Add(-time.Hour), IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, IsCA: true,
		BasicConstraintsValid: true}
	der, err := x509.CreateCertificate(rand.Reader, c, c, k.Public(), k)
	if err != nil {
		t.Fatal(err)
	}
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: k},
		file(t, string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})))
}

func TestMailGoesOverTLSOnly(t *testing.T) {
	t.Parallel()
	start, wrapped, bare := startMail(t, true, false), startMail(t, false, true), startMail(t, false, false)
	password := file(t, "pass word\n")
	mail := func(s mailServer, how string) *notify.Mail {
		return &notify.Mail{Server: s.addr, TLS: how, From: "muster@example.org", To: []string{"noc@example.org",
			"b@example.org"},
			User: "muster", PasswordFile: password, CAFile: s.ca}
	}
	strange, refused, wrong := mail(start, "starttls"), mail(start, "starttls"), mail(start, "starttls")
	strange.CAFile, refused.To, wrong.PasswordFile = "", []string{"noc@example.org", "refused@example.org"},
		file(t,
			"guess")
	for name, c := range map[string]struct {
		to   *notify.Mail
		want string
	}{
		"starttls": {mail(start, "starttls"), ""}, "tls": {mail(wrapped, "tls"), ""}, "this machine": {mail(bare,
			"none"), ""},
		"no STARTTLS": {mail(bare, "starttls"), "it offers no STARTTLS"}, "unknown authority": {strange,
			"certificate"},
		"refused": {refused, `550 "no such box"`}, "wrong password": {wrong, `535 "no"`},
	} {
		t.Run(name, func(t *testing.T) {
			d := delivery(t)
			err := send(t.Context(), notify.Receiver{Mail: c.to}, d).err
			if c.want != "" {
				if err == nil || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "guess") {
					t.Errorf("%v, want %s", err, c.want)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			s := map[string]mailServer{"starttls": start, "tls": wrapped, "this machine": bare}[name]
			text := <-s.got
			for _, want := range []string{"/muster/pass word\n", "From: muster@example.org\r\n",
				"To: noc@example.org, b@example.org\r\n", "Message-ID: <" + d.ID + "@example.org>\r\n",
				"Subject: muster: this is a test", "nothing has happened"} {
				if !strings.Contains(text, want) {
					t.Errorf("%q is missing in %s", want, text)
				}
			}
		})
	}
}

// fixed is a term that lasts.
type fixed struct{}

func (fixed) Trusted() bool { return true }

// stage is a herald at work, with a receiver that hangs and one that takes all.
type stage struct {
	t    *testing.T
	box  *outbox.Outbox
	keep *Keeper
	got  chan string // ids that the one has taken
	hung chan struct{}

	mu     sync.Mutex
	rules  *notify.Rules
	broken error
}

func (s *stage) read() (*notify.Rules, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.broken != nil {
		return nil, s.broken
	}
	return s.rules, nil
}

// receivers starts the two receivers, and makes the rules.
func (s *stage) receivers() {
	s.t.Helper()
	release := make(chan struct{})
	srv := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/hang" {
			s.got <- r.Header.Get("Webhook-Id")
			return
		}
		s.hung <- struct{}{}
		select {
		case <-release:
		case <-r.Context().Done():
		}
	}))
	s.t.Cleanup(srv.Close)
	s.t.Cleanup(func() { close(release) })
	rules, err := notify.Parse(fleet.Source{Name: "n", Data: []byte(fmt.Sprintf(`
receivers:
  dead: {slack: {url: "%s/hang"}}
  live: {webhook: {url: "%s/live", key_file: %s}}
rules:
  - {name: r, what: [schedule-failed, node-gone], wait: 0, to: [dead, live]}
`, srv.URL, srv.URL, file(s.t, key)))})
	if err != nil {
		s.t.Fatal(err)
	}
	s.rules = rules
}

// run runs the herald of a house with one node that is gone, until the test ends.
func (s *stage) run() {
	s.t.Helper()
	store, err := history.Open(sqltest.SQLite(s.t))
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() { store.Close() })
	s.keep = NewKeeper(s.read, nil, hclog.NewNullLogger())
	s.box = outbox.New(store, s.keep.Wanted)
	if err := store.Migrate(s.t.Context()); err != nil {
		s.t.Fatal(err)
	}
	gone := []jobs.Node{{ID: "n1", State: jobs.NodeGone}, {ID: "n2", State: "running"}}
	h := New(Needs{Outbox: s.box, Keeper: s.keep, Log: hclog.NewNullLogger(), Now: time.Now, Watch: Watch{
		Nodes:     func(context.Context) ([]jobs.Node, error) { return gone, nil },
		Staff:     func(context.Context) (map[string]*staff.Zone, error) { return nil, nil },
		Schedules: func(context.Context) ([]hub.Schedule, error) { return nil, nil },
		Held:      func(context.Context, time.Time) ([]jobs.TaskID, error) { return nil, nil }}}, fixed{})
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- h.Run(ctx) }()
	s.t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			s.t.Error(err)
		}
	})
}

func (s *stage) takes(what string) {
	s.t.Helper()
	select {
	case <-s.got:
	case <-time.After(60 * time.Second):
		s.t.Fatal("in vain: ", what)
	}
}

// A receiver that hangs holds up no other, and a file with a mistake leaves the rules as they are.
func TestAReceiverThatHangsHoldsUpNoOther(t *testing.T) {
	t.Parallel()
	s := &stage{t: t, got: make(chan string, 100), hung: make(chan struct{}, 100)}
	s.receivers()
	s.run()
	s.takes("the node that is gone")
	<-s.hung
	s.mu.Lock()
	s.broken = errors.New("n:1: a mistake")
	s.mu.Unlock()
	for i := range 20 {
		one := notify.Signal{Key: fmt.Sprint(i), What: notify.ScheduleFailed, Object: fmt.Sprint("s", i)}
		if err := s.box.Tell(t.Context(), one); err != nil {
			t.Fatal(err)
		}
	}
	for range 20 {
		s.takes("a message to the receiver that lives")
	}
	if text := Words(t.Context(), s.box, s.keep, time.Now()); !strings.Contains(text, "a mistake") {
		t.Errorf("health says %q", text)
	}
	select {
	case id := <-s.got:
		t.Errorf("one more message: %s", id)
	default:
	}
}
