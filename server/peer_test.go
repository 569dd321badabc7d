package server_test

import (
	"cmp"
	"context"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"muster/api"
	"muster/jobs"
)

// localName is the name of who runs the tests, as the kernel says it.
func localName(t *testing.T) string {
	t.Helper()
	u, err := user.Current()
	if err != nil {
		t.Fatal(err)
	}
	return "os:" + u.Username
}

// stranger is a user of this machine whom nobody has let in.
const stranger = 61234

// asStranger makes a request as another user: by a process of its own, as the kernel goes by
// processes. It prints the status and the answer.
func asStranger(t *testing.T, w *world, a ask) string {
	t.Helper()
	a.Address = strings.TrimPrefix(w.server.Addr(), "unix:")
	text, err := json.Marshal(a)
	if err != nil {
		t.Fatal(err)
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	// The test binary may be in a folder that others cannot enter: it is handed over open.
	file, err := os.Open(self)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	cmd := exec.Command("/proc/self/fd/3", "-test.run=^TestAskAsAStranger$")
	cmd.ExtraFiles = []*os.File{file}
	cmd.Env = []string{"ASK=" + string(text)}
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: stranger, Gid: stranger}}
	cmd.Dir = "/"
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	return string(out)
}

// ask is the request of a stranger: a submit, unless it has another.
type ask struct {
	Address, Method, Path string
	Body                  any
	Header                http.Header
}

// It does nothing unless asStranger has started it.
func TestAskAsAStranger(t *testing.T) {
	text := os.Getenv("ASK")
	if text == "" {
		return
	}
	var a ask
	if err := json.Unmarshal([]byte(text), &a); err != nil {
		t.Fatal(err)
	}
	a.Method, a.Path = cmp.Or(a.Method, "POST"), cmp.Or(a.Path, "/v1/tasks")
	network := "tcp"
	if filepath.IsAbs(a.Address) {
		network = "unix"
	}
	body, err := json.Marshal(a.Body)
	if err != nil {
		t.Fatal(err)
	}
	r, err := http.NewRequest(a.Method, "http://localhost"+a.Path, strings.NewReader(string(body)))
	if err != nil {
		t.Fatal(err)
	}
	r.Header = a.Header.Clone()
	if r.Header == nil {
		r.Header = http.Header{}
	}
	r.Header.Set("Content-Type", "application/json")
	c := &http.Client{Transport: &http.Transport{DisableKeepAlives: true,
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, network, a.Address)
		}}}
	res, err := c.Do(r)
	if err != nil {
		os.Stdout.WriteString(err.Error())
		return
	}
	defer res.Body.Close()
	answer, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	os.Stdout.WriteString(res.Status + " " + string(answer))
}

// open lets everybody reach the socket of a world, as the members of its group do.
func (w *world) open() {
	w.t.Helper()
	path := strings.TrimPrefix(w.server.Addr(), "unix:")
	for _, p := range []string{path, filepath.Dir(path)} {
		if err := os.Chmod(p, 0o777); err != nil {
			w.t.Fatal(err)
		}
	}
}

func TestAnotherUserOfTheMachineCannotOrderAnything(t *testing.T) {
	t.Parallel()
	claim := http.Header{api.UserHeader: {"alice"}}
	order := run("fw001")
	order.As = "alice"

	socket := start(t, setup{strict: true})
	if got := asStranger(t, socket, ask{Body: order, Header: claim}); !strings.Contains(got, "permission denied") {
		t.Errorf("over the socket it hears %s", got)
	}
	if os.Geteuid() == 0 { // whoever has the group of root is not root
		socket.open()
		got := asStranger(t, socket, ask{Body: run("fw001")})
		if !strings.HasPrefix(got, "403 ") || !strings.Contains(got, "for root only") {
			t.Errorf("with the group of root it hears %s", got)
		}
	}
	tcp := start(t, setup{strict: true, listen: "127.0.0.1:0"})
	for _, path := range []string{"/v1/tasks", "/metrics", "/openapi.json", "/v1/tokens"} {
		a := ask{Method: "GET", Path: path, Header: claim}
		if path == "/v1/tasks" {
			a = ask{Body: order, Header: claim}
		}
		if got := asStranger(t, tcp, a); !strings.HasPrefix(got, "401 ") {
			t.Errorf("%s over TCP hears %s", path, got)
		}
	}
	for _, w := range []*world{socket, tcp} {
		if list, err := w.queue.Tasks(t.Context(), 10); err != nil || len(list) > 0 {
			t.Errorf("there are tasks: %v, %v", list, err)
		}
	}
}

func TestAMemberOfTheGroupIsWhoTheKernelSays(t *testing.T) {
	t.Parallel()
	w := start(t, setup{strict: true, group: "61234"})
	w.open()
	var got jobs.TaskInfo
	_, answer, _ := strings.Cut(asStranger(t, w, ask{Body: run("fw001")}), "Created ")
	if err := json.Unmarshal([]byte(answer[:strings.LastIndex(answer, "}")+1]), &got); err != nil ||
		got.Operator != "os:61234" || !got.Proven {
		t.Errorf("got %s, %v", answer, err)
	}
	as := run("fw001")
	as.As = "alice"
	for name, said := range map[string]string{
		"in the body": asStranger(t, w, ask{Body: as}),
		"in the header": asStranger(t, w, ask{Body: run("fw001"),
			Header: http.Header{api.UserHeader: {"alice"}}}),
	} {
		if !strings.HasPrefix(said, "422 ") || !strings.Contains(said, "you are os:61234") {
			t.Errorf("another name %s: %s", name, said)
		}
	}
	said := asStranger(t, w, ask{Body: run("fw001"), Header: bearing(w.token("61234"))})
	if !strings.Contains(said, `"operator":"user:61234"`) {
		t.Errorf("a token with the name of a user looks like that user: %s", said)
	}
}

// Whatever passes a port on to the socket, as ssh -L does, lets pages in a browser reach it.
func TestAPageUnderAnotherNameGetsNothingOverTheSocket(t *testing.T) {
	t.Parallel()
	w := start(t, setup{strict: true})
	for host, want := range map[string]int{"rebound.test:7070": 403, "muster": 403, "127.0.0.1.rebound.test": 403,
		"localhost": 200, "localhost:7070": 200, "127.0.0.1:7070": 200, "[::1]:7070": 200} {
		r, err := http.NewRequest("GET", w.url+"/v1/tasks", nil)
		if err != nil {
			t.Fatal(err)
		}
		r.Host = host
		res, err := w.client.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		res.Body.Close()
		if res.StatusCode != want {
			t.Errorf("host %s: %s, want %d", host, res.Status, want)
		}
	}
}

func TestOneServerListensOnSeveralPlaces(t *testing.T) {
	t.Parallel()
	path := shortPath(t)
	w := start(t, setup{strict: true, listen: "127.0.0.1:0, unix:" + path})
	tcp, rest, _ := strings.Cut(w.server.Addr(), ",")
	if rest != "unix:"+path {
		t.Fatalf("it listens on %s", w.server.Addr())
	}
	w.url = "http://" + tcp
	if res, text := w.raw("GET", "/v1/tasks", nil, nil); res.StatusCode != 401 {
		t.Errorf("over TCP: %s %s", res.Status, text)
	}
	w.dial("unix:" + path)
	if res, text := w.raw("GET", "/v1/tasks", nil, http.Header{api.UserHeader: nil}); res.StatusCode != 200 {
		t.Errorf("over the socket: %s %s", res.Status, text)
	}
}

func TestRefusedLoginsAreCountedAndABoundedNumberIsLogged(t *testing.T) {
	t.Parallel()
	w := start(t, setup{strict: true})
	const wrong = "Bearer not-to-be-logged"
	for range 30 {
		r := httptest.NewRequest("GET", "/v1/tasks", nil)
		r.Header.Set("Authorization", wrong)
		w.from("192.0.2.7:4711", r)
	}
	w.from("192.0.2.7:4711", httptest.NewRequest("GET", "/v1/tasks", nil))
	_, text := w.raw("GET", "/metrics", nil, nil)
	for _, want := range []string{`muster_logins_refused_total{reason="unknown_token"} 30`,
		`muster_logins_refused_total{reason="no_token"} 1`,
		`muster_logins_refused_total{reason="proxy"} 0`} {
		if !strings.Contains(string(text), want) {
			t.Errorf("the metrics lack %s", want)
		}
	}
	log := w.log.String()
	if n := strings.Count(log, "login refused"); n != 10 {
		t.Errorf("%d lines are logged, want 10", n)
	}
	if !strings.Contains(log, "from=192.0.2.7:4711") || !strings.Contains(log, "only counted") ||
		strings.Contains(log, "not-to-be-logged") {
		t.Errorf("the log says:\n%s", log)
	}
}
