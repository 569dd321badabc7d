package tasks

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"github.com/google/go-cmp/cmp"

	"muster/cli"
	"muster/jobs"
	"muster/testkit/apitest"
	"muster/testkit/clitest"
)

func TestReadEvents(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, text string
		want       []event
		err        string
	}{
		{"nothing", "", nil, "EOF"},
		{"one", "id: default=1-0\nevent: take\ndata: {\"a\": 1}\n\n",
			[]event{{id: "default=1-0", name: "take", data: `{"a": 1}`}}, "EOF"},
		{"comments and blanks", ": muster\n\n\n: alive\n\ndata:x\n\n",
			[]event{{comment: "muster"}, {comment: "alive"}, {data: "x"}}, "EOF"},
		{"several lines and unknown fields", "data: a\nretry: 5\ndata: b\nnonsense\n\n", []event{{data: "a\nb"}}, "EOF"},
		{"carriage returns", "data: a\r\n\r\n", []event{{data: "a"}}, "EOF"},
		{"an id without data is no event", "id: 7\n\n", nil, "EOF"},
		{"cut off", "data: a\n\ndata: b", []event{{data: "a"}}, "unexpected EOF"},
		{"a line without end", "data: " + strings.Repeat("x", 2*eventMax), nil, "too long"},
		{"data without end", strings.Repeat("data: "+strings.Repeat("x", 1000)+"\n", 2000), nil, "too long"},
	} {
		var got []event
		slow := iotest.HalfReader
		if len(c.text) < 1000 {
			slow = iotest.OneByteReader
		}
		err := readEvents(slow(strings.NewReader(c.text)), func(e event) error {
			got = append(got, e)
			return nil
		})
		if diff := cmp.Diff(c.want, got, cmp.AllowUnexported(event{})); diff != "" {
			t.Errorf("%s (-want +got):\n%s", c.name, diff)
		}
		if err == nil || !strings.Contains(err.Error(), c.err) {
			t.Errorf("%s: error %v, want %s", c.name, err, c.err)
		}
	}
}

func FuzzReadEvents(f *testing.F) {
	for _, s := range []string{"id: 1\ndata: x\n\n", ":c\n\n", "data\n\n", "\r\n\r\n", "data: a\ndata: b\n\n: x"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		err := readEvents(strings.NewReader(text), func(e event) error {
			if e.data == "" && e.comment == "" {
				t.Errorf("an empty event: %+v", e)
			}
			return nil
		})
		if err == nil {
			t.Error("a stream that ended has no error")
		}
	})
}

func TestEventsGoOnWhereTheyWere(t *testing.T) {
	t.Parallel()
	a := apitest.New(t, map[string]http.HandlerFunc{"GET /v1/events": apitest.Streams(
		": muster\n\nid: z=1\ndata: {\"event\": \"put\", \"object\": \"first\"}\n\n",
		"id: z=2\ndata: {\"event\": \"end\", \"object\": \"after LAST\"}\n\n: trouble: redis is \x1baway\n\n"),
		"GET /v1/tasks/" + apitest.ATask: apitest.Answer(apitest.TaskJSON(jobs.TaskRunning, ""))})
	s, out, words := clitest.NewSession(clitest.NewClient(t, a.URL))
	err := (&listener{Session: s, task: apitest.ATask}).follow(t.Context())
	if err == nil || cli.CodeOf(err) != cli.ExitNotAll || err.Error() != "that is all" {
		t.Errorf("error %v, want the refusal", err)
	}
	apitest.WantParts(t, "the output", out.String(), "put       first\n", "end       after z=1\n")
	apitest.WantParts(t, "standard error", words.String(), "connecting again", `redis is \x1baway`)
	if got := a.Requests()[0]; got != "GET /v1/events?task="+apitest.ATask {
		t.Errorf("the request was %s", got)
	}
}

func TestEventsInJSONAreLines(t *testing.T) {
	t.Parallel()
	a := apitest.New(t, map[string]http.HandlerFunc{"GET /v1/events": apitest.Streams(
		"data: {\"new field\":\ndata:   \"\u202e\"}\n\n")})
	s, out, _ := clitest.NewSession(clitest.NewClient(t, a.URL))
	s.JSON = true
	if err := (&listener{Session: s}).follow(t.Context()); err == nil {
		t.Error("a refusal is no error")
	}
	if want := `{"new field":"\u202e"}` + "\n"; out.String() != want {
		t.Errorf("got %q, want %q", out.String(), want)
	}
}

func TestEventsThatAreNone(t *testing.T) {
	t.Parallel()
	for name, h := range map[string]http.HandlerFunc{
		"not JSON":  apitest.Streams("data: hello\n\n"),
		"no stream": apitest.Answer(`{}`),
		"cut off":   apitest.HangUp,
	} {
		a := apitest.New(t, map[string]http.HandlerFunc{"GET /v1/events": h})
		for _, asJSON := range []bool{false, true} {
			s, _, _ := clitest.NewSession(clitest.NewClient(t, a.URL))
			s.Patience.Whole = 10 * time.Millisecond
			s.JSON = asJSON
			ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
			err := (&listener{Session: s}).follow(ctx)
			cancel()
			if err == nil || errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("%s: error %v", name, err)
			}
		}
	}
}

func TestEventsOfATaskEndWithIt(t *testing.T) {
	t.Parallel()
	running, ended := apitest.TaskJSON(jobs.TaskRunning, ""), apitest.TaskJSON(jobs.TaskEnded, "")
	both := strings.Replace(ended, `["default"]`, `["default", "eu"]`, 1)
	endOf := func(zone string) string {
		return fmt.Sprintf("id: z=1\ndata: {\"zone\": %q, \"event\": \"task\", \"object\": %q}\n\n", zone, apitest.ATask)
	}
	const ofOther = "data: {\"event\": \"task\", \"object\": \"0wcy7y2fb3\"}\n\n"
	for name, c := range map[string]struct {
		stream string
		tasks  []string
		end    bool
	}{
		"at its end":                      {": muster\n\n" + endOf("default"), []string{running, ended}, true},
		"ended before":                    {": muster\n\n", []string{ended}, true},
		"its last event was lost":         {": muster\n\n: alive\n\n", []string{running, ended}, true},
		"not before":                      {": muster\n\n: alive\n\n", []string{running}, false},
		"not at the end of another":       {": muster\n\n" + ofOther, []string{running, ended}, false},
		"not while a zone has to tell":    {": muster\n\n" + endOf("eu"), []string{running, both}, false},
		"when all zones have told":        {": muster\n\n" + endOf("eu") + endOf("default"), []string{running, both}, true},
		"a server that says no is passed": {": muster\n\n: alive\n\n", []string{"", ended}, true},
	} {
		var tasks []http.HandlerFunc
		for _, text := range c.tasks {
			if text == "" {
				tasks = append(tasks, apitest.Deny(503, `{"detail": "no redis"}`))
			} else {
				tasks = append(tasks, apitest.Answer(text))
			}
		}
		a := apitest.New(t, map[string]http.HandlerFunc{"GET /v1/events": apitest.Streams(c.stream),
			"GET /v1/tasks/" + apitest.ATask: apitest.InTurn(tasks...)})
		s, _, words := clitest.NewSession(clitest.NewClient(t, a.URL))
		err := (&listener{Session: s, task: apitest.ATask}).follow(t.Context())
		if (err == nil) != c.end || strings.Contains(words.String(), "has ended") != c.end {
			t.Errorf("%s: error %v, it says %q; want an end: %v", name, err, words, c.end)
		}
	}
}

type brokenPipe struct{}

func (brokenPipe) Write([]byte) (int, error) { return 0, io.ErrClosedPipe }

func TestEventsEndWhenNobodyReadsThem(t *testing.T) {
	t.Parallel()
	a := apitest.New(t, map[string]http.HandlerFunc{"GET /v1/events": apitest.Streams("data: {}\n\n", "data: {}\n\n")})
	s, _, _ := clitest.NewSession(clitest.NewClient(t, a.URL))
	s.Out = brokenPipe{}
	if err := (&listener{Session: s}).follow(t.Context()); !errors.Is(err, io.ErrClosedPipe) {
		t.Errorf("error %v, want the one of writing", err)
	}
	if n := len(a.Requests()); n != 1 {
		t.Errorf("%d requests after that, want none", n-1)
	}
}
