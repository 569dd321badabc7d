package cli

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"muster/api"
	"muster/jobs"
	"muster/testkit/apitest"
)

// TestServersThatDoNotAnswer is serial, because it looks for leftovers.
func TestASocketOfOthersIsNoServerThatIsAway(t *testing.T) {
	t.Parallel()
	err := &AwayError{Place: "unix:///s", Err: &net.OpError{Op: "dial", Net: "unix",
		Err: os.NewSyscallError("connect", syscall.EACCES)}}
	if text := err.Error(); strings.Contains(text, "muster up") || !strings.Contains(text, "ask for that group") {
		t.Errorf("got %q", text)
	}
}

func TestServersThatDoNotAnswer(t *testing.T) {
	before := goleak.IgnoreCurrent()
	t.Cleanup(func() { goleak.VerifyNone(t, before) })
	html := func(status int) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "text/html; charset=utf-8")
			w.WriteHeader(status)
			io.WriteString(w, "<html>\x1b]0;nice title\x07</html>")
		}
	}
	for _, c := range []struct {
		name   string
		answer http.HandlerFunc
		heard  bool // a server may have carried the request out
		words  string
	}{
		{"closes without a word", apitest.HangUp, true, "EOF"},
		{"closes in the middle", func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			w.Header().Set("Content-Length", "1000")
			io.WriteString(w, `{"tasks": [`)
			w.(http.Flusher).Flush()
			panic(http.ErrAbortHandler)
		}, true, "cut off"},
		{"never answers", func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }, true, "no answer within"},
		{"never ends", func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			io.WriteString(w, `{`)
			w.(http.Flusher).Flush()
			<-r.Context().Done()
		}, true, "cut off"},
		{"is a web site", html(200), false, `"text/html"`},
		{"is a proxy without a server", html(502), true, "502 Bad Gateway"},
		{"does not know the path", html(404), false, "404 Not Found"},
		{"is no JSON", apitest.Answer(`hello`), false, "cannot be read"},
		{"is half of a JSON", apitest.Answer(`{"tasks": [`), false, "cannot be read"},
		{"is another JSON", apitest.Answer(`[1, 2]`), false, "cannot be read"},
		{"says nothing", func(http.ResponseWriter, *http.Request) {}, false, "not with JSON"},
		{"points elsewhere", func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Location", "https://elsewhere.example/")
			w.WriteHeader(http.StatusFound)
		}, false, "points to"},
		{"has a broken problem", apitest.Deny(422, `{`), false, "422 Unprocessable Entity"},
	} {
		t.Run(c.name, func(t *testing.T) {
			a := apitest.New(t, map[string]http.HandlerFunc{"GET /v1/tasks": c.answer})
			cl := newTestClient(t, a.URL)
			var l api.TaskList
			err := cl.Do(t.Context(), Call{Method: "GET", Path: "/v1/tasks", Bound: 200 * time.Millisecond}, &l)
			var away *AwayError
			if !errors.As(err, &away) || CodeOf(err) != ExitUnreachable {
				t.Fatalf("error %v (exit %d), want one of exit 3", err, CodeOf(err))
			}
			if away.Heard != c.heard {
				t.Errorf("a server may have heard it: %v, want %v", away.Heard, c.heard)
			}
			apitest.WantParts(t, "the error", err.Error(), c.words, a.URL, "muster up")
			if strings.ContainsAny(err.Error(), "\x1b\x07") {
				t.Errorf("the error moves the cursor: %q", err)
			}
		})
	}
}

func TestServerThatIsNotThere(t *testing.T) {
	t.Parallel()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	free := "http://" + l.Addr().String()
	l.Close()
	for _, place := range []string{free, "unix://" + filepath.Join(t.TempDir(), "no.sock")} {
		_, err := newTestClient(t, place).Tasks(t.Context(), 1)
		var away *AwayError
		if !errors.As(err, &away) || away.Heard {
			t.Errorf("%s: error %v, want one that says that nobody heard", place, err)
			continue
		}
		apitest.WantParts(t, "the error", err.Error(), place, "muster up", "MUSTER_URL")
	}
}

func TestUnixSocket(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "api.sock")
	l, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	srv := httptest.NewUnstartedServer(apitest.Answer(`{"tasks": [` + apitest.TaskJSON(jobs.TaskRunning, "") + `]}`))
	srv.Listener.Close()
	srv.Listener = l
	srv.Start()
	defer srv.Close()
	list, err := newTestClient(t, "unix://"+path).Tasks(t.Context(), 1)
	if err != nil || len(list) != 1 || list[0].Task != apitest.ATask {
		t.Errorf("tasks over a unix socket: %v, %v", list, err)
	}
}

func TestTLSServerThatIsNotTrusted(t *testing.T) {
	t.Parallel()
	srv := httptest.NewUnstartedServer(apitest.Answer(`{}`))
	srv.Config.ErrorLog = log.New(io.Discard, "", 0)
	srv.StartTLS()
	defer srv.Close()
	_, err := newTestClient(t, srv.URL).Tasks(t.Context(), 1)
	var away *AwayError
	if !errors.As(err, &away) || away.Heard || !strings.Contains(err.Error(), "certificate") {
		t.Errorf("error %v, want one about the certificate, before anything was sent", err)
	}
}

func TestRefusals(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name   string
		status int
		body   string
		token  string
		code   int
		want   string
	}{
		{"several mistakes", 422, `{"title": "Unprocessable Entity", "detail": "3 mistakes", "errors": [
			{"location": "body.on", "message": "zones: unknown label"},
			{"location": "body.args", "message": "argument \"cmd\" is missing"},
			{"location": "weird\u001b[1m", "message": "line\u001b]0;x\u0007"}]}`, "", ExitUsage,
			"--on: zones: unknown label\nargument \"cmd\" is missing\n" + `weird\x1b[1m: line\x1b]0;x\x07`},
		{"words that name their place", 422, `{"errors": [{"location": "query.on", "message": "selector \"x\": gone"},
			{"location": "query.on", "message": "is empty"}]}`, "", ExitUsage, "selector \"x\": gone\nselector: is empty"},
		{"no token", 401, `{"title": "Unauthorized", "detail": "a token is needed"}`, "", ExitNotAll,
			"a token is needed\nset MUSTER_TOKEN to a token; `muster token create NAME` makes one, on " +
				"the server's machine over its unix socket"},
		{"no token, already said", 401, `{"detail": "a token is needed: set MUSTER_TOKEN"}`, "", ExitNotAll,
			"a token is needed: set MUSTER_TOKEN"},
		{"wrong token", 401, `{"detail": "this token is not known"}`, "muster_x", ExitNotAll,
			"this token is not known\nthe token in MUSTER_TOKEN, or the session of `muster login`, is not accepted for this"},
		{"forbidden", 403, `{"detail": "not this machine"}`, "", ExitNotAll,
			"not this machine"},
		{"not found", 404, `{"detail": "task is not known"}`, "", ExitNotAll, "task is not known"},
		{"Redis is away", 503, `{"detail": "redis: connection refused"}`, "", ExitNotAll, "redis: connection refused"},
		{"only a title", 500, `{"title": "Internal Server Error"}`, "", ExitNotAll, "Internal Server Error"},
		{"nothing", 500, `{}`, "", ExitNotAll, "the server answers 500 Internal Server Error"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			a := apitest.New(t, map[string]http.HandlerFunc{"GET /v1/tasks": apitest.Deny(c.status, c.body)})
			cl := newTestClient(t, a.URL)
			cl.token = c.token
			_, err := cl.Tasks(t.Context(), 1)
			if err == nil || CodeOf(err) != c.code {
				t.Fatalf("error %v, exit %d, want exit %d", err, CodeOf(err), c.code)
			}
			want := strings.ReplaceAll(c.want, "argument \"cmd\" is", "--arg: argument \"cmd\" is")
			if diff := cmp.Diff(want, err.Error()); diff != "" {
				t.Errorf("words (-want +got):\n%s", diff)
			}
		})
	}
}

func TestRequestsSayWhoAsks(t *testing.T) {
	t.Parallel()
	a := apitest.New(t, map[string]http.HandlerFunc{"GET /v1/tasks": apitest.Answer(`{"tasks": null}`)})
	cl := newTestClient(t, a.URL)
	cl.token = "muster_secret"
	for as, want := range map[string]string{"": "", "alice": "alice"} {
		cl.As = as
		if list, err := cl.Tasks(t.Context(), 7); err != nil || list == nil {
			t.Fatalf("tasks: %v, %v, want an empty list", list, err)
		}
		if got := a.Head.Get(api.UserHeader); got != want {
			t.Errorf("as %q: the header says %q, want %q", as, got, want)
		}
	}
	if got := a.Head.Get("Authorization"); got != "Bearer muster_secret" {
		t.Errorf("Authorization is %q", got)
	}
	if got := a.Requests()[0]; got != "GET /v1/tasks?limit=7" {
		t.Errorf("the request was %s", got)
	}
}

func TestTokenFollowsNoRedirect(t *testing.T) {
	t.Parallel()
	thief := apitest.New(t, map[string]http.HandlerFunc{})
	a := apitest.New(t, map[string]http.HandlerFunc{"GET /v1/tasks": func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, thief.URL, http.StatusTemporaryRedirect)
	}})
	cl := newTestClient(t, a.URL)
	cl.token = "muster_secret"
	if _, err := cl.Tasks(t.Context(), 1); err == nil {
		t.Error("a redirect was taken for an answer")
	}
	if n := len(thief.Requests()); n > 0 {
		t.Errorf("%d requests followed the redirect", n)
	}
}

func TestSubmitIsRepeatedUntilItIsAnswered(t *testing.T) {
	t.Parallel()
	accepted := apitest.Answer(apitest.TaskJSON(jobs.TaskQueued, ""))
	a := apitest.New(t, map[string]http.HandlerFunc{"POST /v1/tasks": apitest.InTurn(apitest.HangUp,
		apitest.Deny(503, `{"detail": "redis is away"}`), apitest.HangUp, accepted)})
	noted := 0
	got, err := newTestClient(t, a.URL).Submit(t.Context(), api.Submit{ID: apitest.ATask, Runbook: "exec", On: "all"},
		func(error, time.Duration) { noted++ })
	if err != nil || got.Task != apitest.ATask {
		t.Fatalf("submit: %+v, %v", got, err)
	}
	if n := len(a.Requests()); n != 4 || noted != 3 {
		t.Errorf("%d requests, %d notes, want 4 and 3", n, noted)
	}
	var b api.Submit
	a.Sent(t, "POST /v1/tasks", &b)
	if b.ID != apitest.ATask || b.On != "all" {
		t.Errorf("the repeated body is %+v", b)
	}
}

func TestSubmitIsNotRepeatedIfNobodyHeardIt(t *testing.T) {
	t.Parallel()
	a := apitest.New(t, map[string]http.HandlerFunc{
		"POST /v1/tasks": apitest.Deny(503, `{"detail": "redis: OOM command not allowed"}`)})
	cl := newTestClient(t, a.URL)
	_, err := cl.Submit(t.Context(), api.Submit{ID: apitest.ATask}, nil)
	if err == nil || len(a.Requests()) != 1 || !strings.Contains(err.Error(), "OOM") {
		t.Errorf("error %v after %d requests, want the words of the first", err, len(a.Requests()))
	}
	a.Close()
	var unsure *unsureError
	_, err = newTestClient(t, a.URL).Submit(t.Context(), api.Submit{ID: apitest.ATask}, nil)
	if CodeOf(err) != ExitUnreachable || errors.As(err, &unsure) {
		t.Errorf("error %v, want one that the server is away", err)
	}
}

func TestSubmitWithoutAnAnswerIsUnsure(t *testing.T) {
	t.Parallel()
	a := apitest.New(t, map[string]http.HandlerFunc{"POST /v1/tasks": apitest.HangUp})
	cl := newTestClient(t, a.URL)
	cl.Patience.Whole = 20 * time.Millisecond
	_, err := cl.Submit(t.Context(), api.Submit{ID: apitest.ATask}, nil)
	var unsure *unsureError
	if !errors.As(err, &unsure) || CodeOf(err) != ExitUnreachable {
		t.Fatalf("error %v, want that nobody knows", err)
	}
	apitest.WantParts(t, "the error", err.Error(), "not known whether task "+apitest.ATask, "--id "+apitest.ATask,
		"muster task "+apitest.ATask)
}

func TestJobsAreReadPageByPage(t *testing.T) {
	t.Parallel()
	page := func(next string, hosts ...string) http.HandlerFunc {
		l := api.JobList{Next: next}
		for _, h := range hosts {
			l.Jobs = append(l.Jobs, jobs.JobInfo{ID: jobs.NewID(apitest.ATask, h), Host: h})
		}
		text, err := json.Marshal(l)
		if err != nil {
			t.Fatal(err)
		}
		return apitest.Answer(string(text))
	}
	route := "GET /v1/tasks/" + apitest.ATask + "/jobs"
	a := apitest.New(t, map[string]http.HandlerFunc{
		route: apitest.InTurn(page("2", "fw1", "fw2"), page("3", "fw3"), page(""))})
	list, err := newTestClient(t, a.URL).Jobs(t.Context(), apitest.ATask, jobs.Ended, jobs.Failed)
	if err != nil || len(list) != 3 || list[2].Host != "fw3" {
		t.Errorf("jobs: %+v, %v", list, err)
	}
	query := " /v1/tasks/" + apitest.ATask + "/jobs?"
	want := []string{"GET" + query + "limit=500&outcome=failed&state=ended",
		"GET" + query + "cursor=2&limit=500&outcome=failed&state=ended",
		"GET" + query + "cursor=3&limit=500&outcome=failed&state=ended"}
	if diff := cmp.Diff(want, a.Requests()); diff != "" {
		t.Errorf("requests (-want +got):\n%s", diff)
	}

	for name, bad := range map[string]http.HandlerFunc{"turns in a circle": page("2", "fw1"), "gives nothing": page("9")} {
		a := apitest.New(t, map[string]http.HandlerFunc{route: bad})
		if _, err := newTestClient(t, a.URL).Jobs(t.Context(), apitest.ATask, "", ""); CodeOf(err) != ExitUnreachable {
			t.Errorf("a list that %s: error %v, want that it has no end", name, err)
		}
	}
}

func TestAgainStopsWithItsContext(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	tries := 0
	_, err := Again(ctx, defaultPatience, func() (int, error) {
		if tries++; tries == 2 {
			cancel()
		}
		return 0, &AwayError{Err: errors.New("away")}
	}, nil)
	if !errors.Is(err, context.Canceled) || tries != 2 {
		t.Errorf("error %v after %d tries, want context canceled after 2", err, tries)
	}
}

// newTestClient is clitest.NewClient, which imports this package.
func newTestClient(t *testing.T, url string) *Client {
	t.Helper()
	c, err := NewClient(url, "")
	if err != nil {
		t.Fatal(err)
	}
	c.Patience = Patience{First: time.Millisecond, Most: 2 * time.Millisecond, Whole: 30 * time.Second}
	t.Cleanup(c.Close)
	return c
}
