package arrivals

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"

	"muster/api"
	"muster/fleet"
	"muster/ingress"
	"muster/jobs/queue"
	"muster/jobs/queue/inbox"
	"muster/testkit/redistest"
)

// plain signs nothing.
type plain struct{}

func (plain) Vouch(_, text string) (string, error)   { return text, nil }
func (plain) Vouched(_, kept string) (string, error) { return kept, nil }

const secretText = "0f1e2d3c4b5a69788796a5b4c3d2e1f0"

// site is a door on a Redis of its own.
type site struct {
	t       testing.TB
	url     string
	inbox   *inbox.Inbox
	redis   *redistest.Server
	refused atomic.Int64
}

func newSite(t testing.TB, sources string) *site {
	t.Helper()
	s := &site{t: t, redis: redistest.StartServer(t)}
	c, err := queue.Open(t.Context(), s.redis.Config())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	s.inbox = inbox.New(c, plain{})
	list, err := ingress.Parse(fleet.Source{Name: "events.yaml", Data: []byte(sources)})
	if err != nil {
		t.Fatal(err)
	}
	log := hclog.NewNullLogger()
	d := Door{Needs: Needs{Inbox: s.inbox, Secrets: func(one ingress.Source) ([]ingress.Secret, error) {
		if one.Name == "keyless" {
			return nil, io.ErrUnexpectedEOF
		}
		return ingress.ParseSecrets([]byte(secretText), one.Form.Proof)
	}}, Keeper: NewKeeper(func() (*ingress.Sources, error) { return list, nil }, log),
		Refused: func(*http.Request, string) { s.refused.Add(1) }, Durable: "well", Log: log,
		Now: time.Now}
	server := httptest.NewServer(d.Open())
	t.Cleanup(server.Close)
	s.url = server.URL
	return s
}

const sources = `sources:
  - {name: rules, preset: github, secret_file: /s, customer: acme}
  - {name: narrow, preset: github, secret_file: /s, waiting: 2}
  - {name: keyless, preset: github, secret_file: /s}
  - {name: printed, preset: program, command: [/bin/true]}
`

// send sends a signed body, whose head a function may change.
func (s *site) send(source, body string, change func(r *http.Request)) (*http.Response, string) {
	s.t.Helper()
	mac := hmac.New(sha256.New, []byte(secretText))
	mac.Write([]byte(body))
	r, err := http.NewRequestWithContext(context.Background(), http.MethodPost,
		s.url+"/v1/ingress/"+source, strings.NewReader(body))
	if err != nil {
		s.t.Error(err)
		return nil, ""
	}
	r.Header.Set("X-Hub-Signature-256", "sha256="+hex.EncodeToString(mac.Sum(nil)))
	r.Header.Set("X-GitHub-Event", "push")
	if change != nil {
		change(r)
	}
	res, err := http.DefaultClient.Do(r)
	if err != nil {
		s.t.Error(err)
		return nil, ""
	}
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	if err != nil {
		s.t.Error(err)
	}
	return res, string(text)
}

// An event is stored when its sender has the answer, and a repeated delivery is the same event.
func TestAnEventIsStoredBeforeItIsAnswered(t *testing.T) {
	t.Parallel()
	s := newSite(t, sources)
	res, text := s.send("rules", `{"ref":"main"}`, nil)
	var taken api.EventTaken
	if err := json.Unmarshal([]byte(text), &taken); err != nil || res.StatusCode != 202 ||
		!ingress.IsID(taken.Event) || taken.Seq != 1 || taken.Durable != "well" {
		t.Fatalf("%s: %s", res.Status, text)
	}
	k, err := s.inbox.Event(t.Context(), taken.Event)
	if err != nil || string(k.Body) != `{"ref":"main"}` || k.Kind != "push" || k.Customer != "acme" ||
		k.Source != "rules" || k.State != inbox.Waiting {
		t.Errorf("%+v, %v", k, err)
	}
	forged := func(r *http.Request) { r.Header.Set("X-GitHub-Delivery", "another") }
	if res, again := s.send("rules", `{"ref":"main"}`, forged); res.StatusCode != 202 || again != text {
		t.Errorf("repeated: %s: %s, want %s", res.Status, again, text)
	}
	list, _, err := s.inbox.List(t.Context(), inbox.Filter{Most: 10, Sees: func(string) bool { return true }})
	if err != nil || len(list) != 1 {
		t.Errorf("%+v, %v", list, err)
	}
}

// Strangers learn nothing, and those who are known are told what is wrong.
func TestTheDoorRefuses(t *testing.T) {
	t.Parallel()
	s := newSite(t, sources)
	head := func(name, value string) func(*http.Request) {
		return func(r *http.Request) { r.Header.Set(name, value) }
	}
	var stranger string
	for _, c := range []struct {
		what, source, body string
		change             func(*http.Request)
		status             int
		words              string
	}{
		{"a wrong signature", "rules", "{}", head("X-Hub-Signature-256", "sha256=00"), 401, "not accepted"},
		{"no signature", "rules", "{}", func(r *http.Request) { r.Header.Del("X-Hub-Signature-256") }, 401,
			"not accepted"},
		{"no such source", "nobody", "{}", nil, 401, "not accepted"},
		{"a program's source", "printed", "{}", nil, 401, "not accepted"},
		{"a token of muster", "nobody", "{}", head("Authorization", "Bearer muster_x"), 401, "not accepted"},
		{"a large body", "rules", strings.Repeat(" ", ingress.BodyMax+1), nil, 413, "more than 1048576"},
		{"a large body without a length", "rules", strings.Repeat(" ", ingress.BodyMax+1),
			func(r *http.Request) { r.ContentLength = -1 }, 413, "more than 1048576"},
		{"no JSON", "rules", "payload=x", nil, 422, "application/json"},
		{"an encoding", "rules", "{}", head("Content-Encoding", "gzip"), 415, "as it was signed"},
		{"our secret is gone", "keyless", "{}", nil, 503, "at the moment"},
		{"another method", "rules", "", func(r *http.Request) { r.Method = http.MethodGet }, 405, ""},
	} {
		res, text := s.send(c.source, c.body, c.change)
		if res.StatusCode != c.status || !strings.Contains(text, c.words) {
			t.Errorf("%s: %s: %s, want %d with %q", c.what, res.Status, text, c.status, c.words)
		}
		if c.status != 401 {
			continue
		}
		if stranger == "" {
			stranger = text
		}
		if text != stranger {
			t.Errorf("%s: %s, but another stranger was told %s", c.what, text, stranger)
		}
	}
	if n := s.refused.Load(); n != 5 {
		t.Errorf("%d strangers were counted, want 5", n)
	}
	if tallies, err := s.inbox.Tallies(t.Context()); err != nil || len(tallies) != 0 {
		t.Errorf("something was stored: %+v, %v", tallies, err)
	}
}

// One address never has all places, and a network of IPv6 is one.
func TestOneAddressLeavesPlacesForOthers(t *testing.T) {
	t.Parallel()
	for _, c := range [][3]string{{"192.0.2.1:5", "192.0.2.1:6", "192.0.2.2:5"},
		{"[2001:db8::1]:5", "[2001:db8::2]:5", "[2001:db8:0:1::1]:5"},
		{"[::ffff:192.0.2.1]:5", "192.0.2.1:7", "192.0.2.3:7"}} {
		d := Door{}.Open()
		from := func(remote string) func() {
			r := httptest.NewRequest(http.MethodPost, "/", nil)
			r.RemoteAddr = remote
			leave, err := d.enter(r)
			if err != nil {
				return nil
			}
			return leave
		}
		var all []func()
		for range ofOne {
			all = append(all, from(c[0]))
		}
		if from(c[1]) != nil {
			t.Errorf("%s has a place beside %d of %s", c[1], ofOne, c[0])
		}
		if leave := from(c[2]); leave == nil {
			t.Errorf("%s has no place", c[2])
		} else {
			leave()
		}
		for _, leave := range all {
			leave()
		}
		if len(d.guests.by) > 0 || len(d.places) > 0 {
			t.Errorf("places are left: %v, %d", d.guests.by, len(d.places))
		}
	}
	if got := addressOf("@"); got != "" {
		t.Errorf("a unix socket has the address %q", got)
	}
}

func TestAFloodIsAnsweredWithATimeToTryAgain(t *testing.T) {
	t.Parallel()
	s := newSite(t, sources)
	for i := range 2 {
		if res, text := s.send("narrow", fmt.Sprint(i), nil); res.StatusCode != 202 {
			t.Fatalf("%s: %s", res.Status, text)
		}
	}
	res, text := s.send("narrow", "3", nil)
	if res.StatusCode != 429 || res.Header.Get("Retry-After") != "60" ||
		!strings.Contains(text, "too many events of this source wait") {
		t.Errorf("%s, Retry-After %q: %s", res.Status, res.Header.Get("Retry-After"), text)
	}
	if res, text := s.send("rules", "3", nil); res.StatusCode != 202 {
		t.Errorf("another source: %s: %s", res.Status, text)
	}
}

// Without a place to keep it, no event is accepted.
func TestWithoutRedisNoEventIsAccepted(t *testing.T) {
	t.Parallel()
	s := newSite(t, sources)
	s.redis.Stop()
	if res, text := s.send("rules", "{}", nil); res.StatusCode != 503 || res.Header.Get("Retry-After") == "" {
		t.Errorf("%s: %s", res.Status, text)
	}
}

// BenchmarkDoor takes events of 2 kB from eight senders, and reports the 99th percentile of the time
// to the answer beside the mean.
func BenchmarkDoor(b *testing.B) {
	s := newSite(b, "sources:\n  - {name: rules, preset: github, secret_file: /s, per_minute: 60000, "+
		"waiting: 100000}\n")
	body := `{"n": %d, "more": "` + strings.Repeat("x", 2000) + `"}`
	var mu sync.Mutex
	var times []time.Duration
	var n atomic.Int64
	var senders sync.WaitGroup
	b.ResetTimer()
	for range 8 {
		senders.Go(func() {
			for {
				i := n.Add(1)
				if i > int64(b.N) {
					return
				}
				begun := time.Now()
				res, text := s.send("rules", fmt.Sprintf(body, i), nil)
				if res == nil || res.StatusCode != 202 {
					b.Errorf("%v: %s", res, text)
					return
				}
				mu.Lock()
				times = append(times, time.Since(begun))
				mu.Unlock()
			}
		})
	}
	senders.Wait()
	slices.Sort(times)
	if len(times) > 0 {
		b.ReportMetric(float64(times[len(times)*99/100].Microseconds()), "p99-µs")
	}
}
