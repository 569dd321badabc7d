package tasks

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"muster/api"
	"muster/cli"
	"muster/fleet/remote"
	"muster/jobs"
	"muster/testkit/apitest"
	"muster/testkit/clitest"
)

func TestAJobIsFollowedToItsEnd(t *testing.T) {
	t.Parallel()
	routes := func() map[string]http.HandlerFunc {
		return map[string]http.HandlerFunc{"GET /v1/jobs/" + apitest.AJob +
			"/output": apitest.InTurn(apitest.Part("one\x1b\r", 5, false),
			apitest.Part("", 5, false), apitest.Deny(503, `{"detail": "Redis is away"}`), apitest.Part("\ntwo\xe2\x82", 11,
				false),
			apitest.Part("\xac", 12, true))}
	}
	a := apitest.New(t, routes())
	s, out, _ := clitest.NewSession(clitest.NewClient(t, a.URL))
	if err := followJob(t.Context(), s, apitest.AJob); err != nil {
		t.Fatal(err)
	}
	if want := "one\x1b\r\ntwo€"; out.String() != want {
		t.Errorf("a pipe got %q, want the bytes %q", out, want)
	}
	want := []string{"?wait=25", "?from=5&wait=25", "?from=5&wait=25", "?from=5&wait=25", "?from=11&wait=25"}
	for i, r := range a.Requests() {
		if !strings.HasSuffix(r, want[i]) {
			t.Errorf("request %d: %s, want %s", i, r, want[i])
		}
	}

	s, out, _ = clitest.NewSession(clitest.NewClient(t, apitest.New(t, routes()).URL))
	s.OutTerm = true
	if err := followJob(t.Context(), s, apitest.AJob); err != nil || out.String() != "one\\x1b\ntwo€\n" {
		t.Errorf("a terminal got %q, %v", out, err)
	}

	s, out, _ = clitest.NewSession(clitest.NewClient(t, apitest.New(t, routes()).URL))
	s.JSON = true
	if err := followJob(t.Context(), s, apitest.AJob); err != nil {
		t.Fatal(err)
	}
	var all []byte
	var last jobPart
	for line := range strings.Lines(out.String()) {
		if err := json.Unmarshal([]byte(line), &last); err != nil {
			t.Fatalf("%q: %v", line, err)
		}
		all = append(all, last.Output...)
	}
	if string(all) != "one\x1b\r\ntwo€" || !last.Ended || last.Next != 12 {
		t.Errorf("JSON has %q, at last %+v", all, last)
	}
}

// However an output is split into pieces, it is washed like the whole.
func TestWashingPiecesIsWashingTheWhole(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		words := rapid.SampledFrom([]string{"a", "\r", "\n", "\x1b[2J", "é", "€", "𝄞", "\xff", "\xe2", "\x82", "\xac",
			"\u202e"})
		whole := []byte(strings.Join(rapid.SliceOfN(words, 0, 30).Draw(t, "words"), ""))
		var w washer
		var got strings.Builder
		for rest := whole; len(rest) > 0; {
			n := rapid.IntRange(1, len(rest)).Draw(t, "piece")
			got.WriteString(w.wash(rest[:n]))
			rest = rest[n:]
		}
		got.WriteString(w.rest())
		if want := remote.Printable(whole); got.String() != want {
			t.Fatalf("%q became %q, want %q", whole, got.String(), want)
		}
		if text := got.String(); w.open != (text != "" && !strings.HasSuffix(text, "\n")) {
			t.Fatalf("behind %q the line is open: %v", text, w.open)
		}
	})
}

func TestTheHostsOfATaskAreFollowed(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name  string
		flags logFlags
		want  string
	}{
		{"clean", logFlags{follow: true}, "fw1: hello\nfw2: \\x1b[2Jtwo\nfw1: half\nfw1: rest\nfw1: … 2.0 kB left out …\n" +
			"fw1: tail\nfw1: open\n"},
		{"raw", logFlags{raw: true}, "fw1: hello\nfw2: \x1b[2Jtwo\r\nfw1: half\nfw1: rest\nfw1: … 2.0 kB left out …\n" +
			"fw1: tail\nfw1: open\n"},
	} {
		a := apitest.New(t, apitest.TailRoutes())
		s, out, words := clitest.NewSession(clitest.NewClient(t, a.URL))
		if err := tailTask(t.Context(), s, c.flags, apitest.ATask); err != nil {
			t.Errorf("%s: %v", c.name, err)
		}
		if diff := cmp.Diff(c.want, out.String()); diff != "" {
			t.Errorf("%s (-want +got):\n%s", c.name, diff)
		}
		apitest.WantParts(t, c.name, words.String(), "fw2: failed, exit code 7: exit 7\n", "connecting again", "Redis sleeps")
		if strings.Count(words.String(), "exit code 7") != 1 {
			t.Errorf("%s: the end was told twice: %s", c.name, words)
		}
		if got := a.Head.Get("Last-Event-ID"); got != "z=1-0" {
			t.Errorf("%s: it came back behind %q", c.name, got)
		}
		if r := a.Requests()[0]; !strings.HasSuffix(r, fmt.Sprintf("?follow=%t", c.flags.follow)) {
			t.Errorf("%s: %s", c.name, r)
		}
	}

	s, out, _ := clitest.NewSession(clitest.NewClient(t, apitest.New(t, apitest.TailRoutes()).URL))
	s.JSON = true
	if err := tailTask(t.Context(), s, logFlags{follow: true}, apitest.ATask); err != nil {
		t.Fatal(err)
	}
	text := map[string]string{}
	for line := range strings.Lines(out.String()) {
		var p struct {
			api.Said
			Outcome jobs.Outcome
		}
		if err := json.Unmarshal([]byte(line), &p); err != nil {
			t.Fatalf("%q: %v", line, err)
		}
		text[p.Host] += string(p.Data) + string(p.Outcome)
	}
	if diff := cmp.Diff(map[string]string{"fw1": "hello\nhalf\nresttail\nopensucceeded", "fw2": "\x1b[2Jtwo\r\nfailed"},
		text); diff != "" {
		t.Errorf("JSON (-want +got):\n%s", diff)
	}
}

// An endless line is shown in parts, and little of it is held back.
func TestALineWithoutEndIsShownInParts(t *testing.T) {
	t.Parallel()
	s, out, _ := clitest.NewSession(nil)
	l := &lineLog{Session: s, open: map[string][]byte{}}
	for range 100 {
		if err := l.said(api.Said{Host: "h", Data: bytes.Repeat([]byte("€"), 100)}, 0); err != nil {
			t.Fatal(err)
		}
		if n := len(l.open["h"]); n > openMax {
			t.Fatalf("%d bytes are held back", n)
		}
	}
	if err := l.close(); err != nil {
		t.Fatal(err)
	}
	if n := strings.Count(out.String(), "€"); n != 10_000 || strings.Contains(out.String(), `\x`) {
		t.Errorf("%d of 10,000 letters are shown", n)
	}
	for line := range strings.Lines(out.String()) {
		if len(line) > openMax+10 || !strings.HasPrefix(line, "h: ") {
			t.Errorf("a line of %d bytes: %.20q…", len(line), line)
		}
	}
}

func foldJSON(state jobs.TaskState, groups ...api.Alike) string {
	text, err := json.Marshal(groups)
	if err != nil {
		return err.Error()
	}
	task := strings.ReplaceAll(apitest.TaskJSON(state, `"succeeded": 4`), "\n", " ")
	return fmt.Sprintf(`{"task": %s, "groups": %s}`, task, text)
}

func alike(o jobs.Outcome, n int, hosts, output string) api.Alike {
	return api.Alike{Outcome: o, Count: n, Hosts: hosts, Output: []byte(output), Example: apitest.AJob}
}

func TestGroupsAreComparedWithTheMajority(t *testing.T) {
	t.Parallel()
	seven := 7
	bad := alike(jobs.Failed, 500, "fw[1-500]", "no\n")
	bad.ExitCode, bad.Error = &seven, "exit 7"
	most := alike(jobs.Succeeded, 300, "fw[501-800]", "a\nb\x1b\nc\n")
	other := alike(jobs.Succeeded, 2, "fw[801-802]", "a\nB\nc")
	other.LeftOut = 9
	silent := alike(jobs.Unreachable, 1, "fw804", "")
	silent.Error = "connection refused"
	same := alike(jobs.Timeout, 1, "fw803", "a\nb\x1b\nc\n")
	rest := api.Alike{Outcome: "other", Count: 9, Hosts: "x[1-9]", Error: "9 more groups"}
	want := `500 failed, exit code 7: fw[1-500]
  exit 7
  @@ -1,3 +1 @@
  |-a
  |-b\x1b
  |-c
  |+no

300 succeeded, the majority: fw[501-800]
  | a
  | b\x1b
  | c

2 succeeded: fw[801-802]
  @@ -1,3 +1,3 @@
  | a
  |-b\x1b
  |-c
  |+B
  |+c
  |\ No newline at end of file
  | … 9 bytes more: muster logs 0wcy7y2fb2:fw001

1 timeout: fw803
  the same output as the majority

1 unreachable: fw804
  connection refused

9 other: x[1-9]
  9 more groups
`
	groups := compare([]api.Alike{bad, most, other, same, silent, rest}, true)
	if diff := cmp.Diff(want, foldText(groups, false)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if got := groups[2].Diff; got != "--- fw[501-800]\n+++ fw[801-802]\n@@ -1,3 +1,3 @@\n a\n-b\x1b\n-c\n+B\n+c\n"+
		"\\ No newline at end of file\n" {
		t.Errorf("the diff for programs: %q", got)
	}
	for _, g := range compare([]api.Alike{bad, rest}, false) {
		if g.Majority || g.Diff != "" {
			t.Errorf("compared, though nobody asked: %+v", g)
		}
	}
	if g := compare([]api.Alike{bad, same}, true); !g[0].Majority {
		t.Error("where nothing succeeded the biggest group is no majority")
	}
	if g := compare([]api.Alike{rest}, true); g[0].Majority {
		t.Error("the rest is a majority")
	}
	if text := foldText(compare([]api.Alike{most, other}, true), true); strings.Contains(text, "\x1b\n") {
		t.Errorf("what a host said is not harmless: %q", text)
	}
}

func foldRoutes() map[string]http.HandlerFunc {
	one, two := alike(jobs.Succeeded, 3, "fw[001-003]", "same\n"), alike(jobs.Succeeded, 1, "fw004", "other\n")
	summary := func(text string) string { return "event: summary\ndata: " + text + "\n\n" }
	return map[string]http.HandlerFunc{
		"GET /v1/tasks/" + apitest.ATask + "/summaries": apitest.InTurn(
			apitest.StreamOf(summary(foldJSON(jobs.TaskRunning)), summary(foldJSON(jobs.TaskRunning, one))),
			apitest.StreamOf(summary(foldJSON(jobs.TaskRunning, one)), summary(foldJSON(jobs.TaskEnded, one, two)),
				apitest.OverEvent)),
		"GET /v1/tasks/" + apitest.ATask + "/summary": apitest.Answer(foldJSON(jobs.TaskEnded, one, two)),
	}
}

func TestFoldsAreFollowedToTheEnd(t *testing.T) {
	t.Parallel()
	const end = "3 succeeded: fw[001-003]\n  | same\n\n1 succeeded: fw004\n  | other\n"
	a := apitest.New(t, foldRoutes())
	s, out, _ := clitest.NewSession(clitest.NewClient(t, a.URL))
	if err := foldLogs(t.Context(), s, logFlags{follow: true}, apitest.ATask); err != nil || out.String() != end {
		t.Errorf("a pipe got %q, %v", out, err)
	}
	apitest.WantParts(t, "the requests", strings.Join(a.Requests(), "\n"), "summaries?excerpt=4096",
		"summary?excerpt=163840")

	s, out, _ = clitest.NewSession(clitest.NewClient(t, apitest.New(t, foldRoutes()).URL))
	s.OutTerm, s.Height = true, func() int { return 6 }
	if err := foldLogs(t.Context(), s, logFlags{follow: true, diff: true}, apitest.ATask); err != nil {
		t.Fatal(err)
	}
	screens := strings.Split(out.String(), cli.EraseScreen)
	if len(screens) != 5 || !strings.Contains(screens[2], "3 succeeded, the majority: fw[001-003]") ||
		!strings.Contains(screens[4], "  |-same\n  |+other\n") {
		t.Errorf("%d screens: %q", len(screens), screens)
	}

	s, out, _ = clitest.NewSession(clitest.NewClient(t, apitest.New(t, foldRoutes()).URL))
	s.JSON = true
	if err := foldLogs(t.Context(), s, logFlags{follow: true}, apitest.ATask); err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSpace(out.String()), "\n")
	var last FoldedTask
	if err := json.Unmarshal([]byte(lines[len(lines)-1]), &last); err != nil || len(lines) != 4 || len(last.Groups) != 2 {
		t.Errorf("%d lines of JSON, the last %+v, %v", len(lines), last, err)
	}
}

func TestAWindowShowsWhatThereIsRoomFor(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		text          string
		width, height int
		want          string
	}{
		{"a\nb\n", 0, 0, "a\nb\n"},
		{"a\nb\n", 80, 24, "a\nb\n"},
		{"a\nb\nc\nd\ne\nf\n", 80, 4, "a\nb\n… 4 lines more\n"},
		{"abcdefghij\n", 6, 24, "abcd…\n"},
	} {
		got := window(c.text, c.width, c.height)
		if got != c.want {
			t.Errorf("%q at %d×%d is %q, want %q", c.text, c.width, c.height, got, c.want)
		}
	}
}
