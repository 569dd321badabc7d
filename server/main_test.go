package server_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/user"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"
	"go.uber.org/goleak"

	"muster/access"
	"muster/api"
	"muster/fleet"
	"muster/history"
	"muster/internal/seal"
	"muster/internal/serverkey"
	"muster/jobs"
	"muster/jobs/queue"
	"muster/scripts"
	"muster/server"
	"muster/server/historian"
	"muster/server/stock"
	"muster/testkit/queuetest"
	"muster/testkit/redistest"
	"muster/testkit/sqltest"
)

func TestMain(m *testing.M) {
	// The reader of the log of a redis-server ends with its process.
	goleak.VerifyTestMain(ending{m},
		goleak.IgnoreAnyFunction("muster/testkit/redistest.newLineLog.func1"))
}

// ending ends what all tests share.
type ending struct{ *testing.M }

// Run runs the tests.
func (e ending) Run() int {
	defer sqltest.Done()
	return e.M.Run()
}

// world is a server at work, with a queue of its own.
type world struct {
	t      testing.TB
	server *server.Server
	queue  *queuetest.Queue
	client *http.Client
	url    string
	log    *logBook
	steps  atomic.Int64
	stop   func() // stops the server and waits for it
}

// setup says how a world differs from the usual one.
type setup struct {
	redis     *queue.Config // nil: an embedded one
	listen    string        // empty: a unix socket
	group     string        // of the socket
	url       string        // for browsers
	conf      server.Config // its identity provider, its policy of quarantine, its collector of traces
	strict    bool          // no name is taken from the caller's mouth
	inventory func() (*fleet.Inventory, error)
	source    stock.Source                      // instead of inventory
	runbooks  []string                          // beside label
	tls       [3]string                         // certificate, key, authority of callers
	wrap      func(*queuetest.Queue) everything // what the server gets instead of the queue
	history   *history.Store
	more      func(*server.Deps) // nil: nothing more
	now       func() time.Time   // nil: as it is
	chance    func() uint16      // of ids; nil: as it falls
}

// keyed returns the reader of a key of servers that begins with a byte.
func keyed(first byte) func() (serverkey.Keys, error) {
	return func() (serverkey.Keys, error) {
		return serverkey.Parse([]byte(serverkey.File("testworld", [serverkey.Size]byte{first})))
	}
}

// policyOf returns the reader of a policy; empty: the usual users of tests may do everything.
func policyOf(t testing.TB, text string) func() (*access.Policy, error) {
	t.Helper()
	if text == "" {
		own, err := user.Current()
		if err != nil {
			t.Fatal(err)
		}
		text = "who:\n"
		for _, who := range []string{"os:root", "os:" + own.Username, "os:61234", "user:61234", "user:carol", "user:dave"} {
			if !strings.Contains(text, who+",") {
				text += "  - {principal: " + who + ", roles: [admin]}\n"
			}
		}
		for _, who := range []string{"alice", "bob", "ops"} {
			text += "  - {principal: user:" + who + ", roles: [operator]}\n"
		}
	}
	p, err := access.Parse(fleet.Source{Name: "access.yaml", Data: []byte(text)})
	if err != nil {
		t.Fatal(err)
	}
	return func() (*access.Policy, error) { return p, nil }
}

// token makes a token of a user who has no other proof, over the socket.
func (w *world) token(user string) string {
	w.t.Helper()
	var a api.TokenAnswer
	res := w.call("POST", "/v1/tokens", api.TokenRequest{Name: "t", Owner: "user:" + user}, &a)
	if res.StatusCode != http.StatusCreated {
		w.t.Fatalf("a token of %s: %s", user, res.Status)
	}
	return a.Token
}

// bearing returns the header with a token.
func bearing(token string) http.Header { return http.Header{"Authorization": {"Bearer " + token}} }

// sealing gives a server keys of secrets.
func sealing(keys func() (seal.Keys, error)) func(*server.Deps) {
	return func(d *server.Deps) { d.SecretKeys = keys }
}

// label is a runbook that needs a label of its hosts.
const label = `
name: label
description: says its site
arguments:
  word: {type: string, required: true, pattern: '[a-z]+'}
  count: {type: int, default: 3, min: 1, max: 9}
repeatable: true
timeout: 15m
retry: {submit: 2, delay: 1s}
steps:
  - {name: say, timeout: 1m, run: "echo {{host.label.site}} {{word}} {{count}}"}
  - {name: wait, run: "true", timeout: 10m}
`

func start(t testing.TB, with setup) *world {
	t.Helper()
	cfg := queue.Config{}
	if with.redis != nil {
		cfg = *with.redis
	} else {
		_, cfg = redistest.StartMini(t)
	}
	q, err := queuetest.Open(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { q.Close() })
	sources := []scripts.Source{{File: "label.yaml", Data: []byte(label)}}
	for i, text := range with.runbooks {
		sources = append(sources, scripts.Source{File: fmt.Sprint(i), Data: []byte(text)})
	}
	catalog, err := scripts.NewCatalog(sources)
	if err != nil {
		t.Fatal(err)
	}
	if with.listen == "" {
		with.listen = "unix:" + shortPath(t)
	}
	if with.inventory == nil {
		with.inventory = fixed(hosts())
	}
	if with.source == nil {
		with.source = given(with.inventory)
	}
	w := &world{t: t, queue: q, log: &logBook{}, client: &http.Client{Transport: &http.Transport{}}}
	var fake everything = q
	if with.wrap != nil {
		fake = with.wrap(q)
	}
	deps := server.Deps{Queue: stores(fake), Catalog: catalog, Inventory: with.source,
		Log: hclog.New(&hclog.LoggerOptions{Output: w.log, Level: hclog.Debug}), ServerKeys: keyed(1)}
	deps.Policy = policyOf(t, "")
	if with.more != nil {
		with.more(&deps)
	}
	if with.history != nil {
		deps.History = with.history
	}
	w.server, err = server.New(server.Config{Listen: with.listen, Version: "1.2.3", Claims: !with.strict,
		Quarantine: with.conf.Quarantine, Traces: with.conf.Traces,
		SocketGroup: with.group, URL: with.url, OIDC: with.conf.OIDC,
		TLSCert: with.tls[0], TLSKey: with.tls[1], TLSClientCA: with.tls[2]}, deps)
	if err != nil {
		t.Fatal(err)
	}
	w.server.Fix(with.now, with.chance) // before it runs: it looks at its clock by itself
	w.run()
	return w
}

// shortPath is a path for a socket, which may have 107 bytes.
func shortPath(t testing.TB) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "api")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	return filepath.Join(dir, "s")
}

// historian is a term of who writes history, on a server beside that of the test.
func (w *world) historian(store *history.Store) *historian.Historian {
	w.t.Helper()
	catalog, err := scripts.NewCatalog(nil)
	if err != nil {
		w.t.Fatal(err)
	}
	srv, err := server.New(server.DefaultConfig(), server.Deps{Queue: stores(w.queue), Catalog: catalog,
		Inventory: given(fixed(hosts())), History: store, Log: hclog.NewNullLogger()})
	if err != nil {
		w.t.Fatal(err)
	}
	h, err := server.NewHistorian(w.t.Context(), srv)
	if err != nil {
		w.t.Fatal(err)
	}
	return h
}

// run runs the server until the test ends.
func (w *world) run() {
	w.t.Helper()
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- w.server.Run(ctx) }()
	select {
	case err := <-ended:
		stop()
		w.t.Fatal(err)
	case <-w.server.Ready():
	}
	w.dial(w.server.Addr())
	w.stop = sync.OnceFunc(func() {
		stop()
		w.client.CloseIdleConnections()
		if err := <-ended; err != nil {
			w.t.Error(err)
		}
	})
	w.t.Cleanup(w.stop)
}

// dial lets the client call a place.
func (w *world) dial(place string) {
	w.url = "http://" + place
	if path, ok := strings.CutPrefix(place, "unix:"); ok {
		w.url = "http://localhost"
		w.client.Transport = &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, "unix", path)
		}}
	}
}

// hosts are two zones, and one host without the label site.
func hosts() []fleet.Host {
	list := []fleet.Host{
		{Name: "fw001", Zone: "default", Customer: "acme", Labels: map[string]string{"site": "x"}},
		{Name: "fw002", Zone: "default", Customer: "acme", Labels: map[string]string{"site": "x"}},
		{Name: "fw003", Zone: "eu", Customer: "acme", Labels: map[string]string{"site": "y"}},
		{Name: "vpn1", Zone: "eu"},
	}
	for i := range list {
		list[i].Address, list[i].Port = fmt.Sprintf("10.0.0.%d", i+1), 22
		list[i].User, list[i].Fence = "root", fleet.FenceNone
	}
	return list
}

// many are n hosts of one zone: h0000 and so on.
func many(n int) []fleet.Host {
	list := make([]fleet.Host, n)
	for i := range list {
		list[i] = fleet.Host{Name: fmt.Sprintf("h%04d", i), Zone: "default", User: "root", Port: 22,
			Address: fmt.Sprintf("10.1.%d.%d", i/250, i%250+1), Fence: fleet.FenceNone}
	}
	return list
}

// given is the inventory of a function, or none.
func given(read func() (*fleet.Inventory, error)) stock.Source {
	if read == nil {
		return nil
	}
	return stock.SourceFunc(read)
}

func fixed(list []fleet.Host) func() (*fleet.Inventory, error) {
	return func() (*fleet.Inventory, error) { return fleet.New(list) }
}

// call makes a request and reads the answer into out, unless that is nil.
func (w *world) call(method, path string, body, out any) *http.Response {
	w.t.Helper()
	res, text := w.raw(method, path, body, nil)
	if out != nil {
		if err := json.Unmarshal(text, out); err != nil {
			w.t.Fatalf("%s %s: %s: %v: %s", method, path, res.Status, err, text)
		}
	}
	return res
}

// raw makes a request with more headers and returns the bytes of the answer.
func (w *world) raw(method, path string, body any, header http.Header) (*http.Response, []byte) {
	w.t.Helper()
	res, text, err := w.try(method, path, body, header)
	if err != nil {
		w.t.Fatal(err)
	}
	return res, text
}

func (w *world) try(method, path string, body any, header http.Header) (*http.Response, []byte, error) {
	var in io.Reader
	switch b := body.(type) {
	case nil:
	case string:
		in = strings.NewReader(b)
	default:
		text, err := json.Marshal(b)
		if err != nil {
			return nil, nil, err
		}
		in = bytes.NewReader(text)
	}
	req, err := http.NewRequestWithContext(w.t.Context(), method, w.url+path, in)
	if err != nil {
		return nil, nil, err
	}
	if body != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	req.Header.Set(api.UserHeader, "alice")
	for k, v := range header {
		req.Header[k] = v
	}
	if h := req.Header.Get("Host"); h != "" {
		req.Host = h
	}
	res, err := w.client.Do(req)
	if err != nil {
		return nil, nil, err
	}
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	return res, text, err
}

// problem is an RFC 9457 answer.
type problem struct {
	Status int
	Title  string
	Detail string
	Errors []struct{ Message, Location string }
}

// words are all texts of a problem, for tests that look for some.
func (p problem) words() string {
	out := p.Detail
	for _, e := range p.Errors {
		out += "\n" + e.Location + ": " + e.Message
	}
	return out
}

// submit submits a task, which must be accepted.
func (w *world) submit(body api.Submit) api.Submitted {
	w.t.Helper()
	var out api.Submitted
	if res := w.call("POST", "/v1/tasks", body, &out); res.StatusCode != http.StatusCreated {
		w.t.Fatalf("submit %+v: %s", body, res.Status)
	}
	return out
}

// run is a task of the built-in runbook.
func run(on string) api.Submit {
	return api.Submit{Runbook: "exec", On: on, Args: map[string]string{"cmd": "true"}}
}

// work takes all jobs that are due in a zone and ends each as f says.
func (w *world) work(zone string, f func(host string) jobs.Result) {
	w.t.Helper()
	step := jobs.Step{Node: "n1", Slot: "1", Want: 100}
	for {
		step.Request = fmt.Sprint(w.steps.Add(1))
		reply, err := w.queue.Step(w.t.Context(), zone, step)
		if err != nil {
			w.t.Fatal(err)
		}
		step.Results = nil
		for _, g := range reply.Jobs {
			r := f(g.Job.Host())
			r.Job, r.Token, r.Kind = g.Job, g.Token, jobs.KindEnd
			step.Results = append(step.Results, r)
		}
		if len(reply.Jobs) == 0 && reply.Status != jobs.StatusMore {
			return
		}
	}
}

// succeed ends every job well.
func succeed(string) jobs.Result {
	return jobs.Result{Outcome: jobs.Succeeded, ExitCode: new(int),
		Said: jobs.Said{Output: []byte("fine\n")}}
}

// jobsOf lists the jobs of a task.
func (w *world) jobsOf(id jobs.TaskID) []jobs.JobInfo {
	w.t.Helper()
	var page api.JobList
	w.call("GET", "/v1/tasks/"+string(id)+"/jobs", nil, &page)
	return page.Jobs
}

// logBook keeps a log, and is safe for the server and the test.
type logBook struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (b *logBook) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.Write(p)
}

func (b *logBook) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.String()
}

var errBroken = errors.New("fleet.yaml:3: host fw009: port 0: want 1 to 65535")
