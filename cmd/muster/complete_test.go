package main

import (
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"muster/cli"
	"muster/jobs"
	"muster/testkit/apitest"
)

// complete asks for completions as a shell does. It returns the words without their descriptions.
func complete(t *testing.T, url string, args ...string) []string {
	t.Helper()
	n := 1 // words of the command
	if args[0] == "group" || args[0] == "nodes" {
		n = 2
	}
	args = slices.Concat([]string{"__complete"}, args[:n], []string{"--server", url}, args[n:])
	_, out, _ := muster(t, "", args...)
	var words []string
	for line := range strings.Lines(out) {
		if line = strings.TrimSpace(line); !strings.HasPrefix(line, ":") {
			word, _, _ := strings.Cut(line, "\t")
			words = append(words, word)
		}
	}
	return words
}

func TestCompletions(t *testing.T) {
	t.Parallel()
	a := apitest.New(t, lookRoutes())
	for _, c := range []struct {
		args []string
		want []string
	}{
		{[]string{"run", ""}, []string{"exec"}},
		{[]string{"run", "exec", "--arg", ""}, []string{"cmd=", "timeout="}},
		{[]string{"run", "exec", "--arg", "cmd=l"}, nil},
		{[]string{"run", "nosuch", "--arg", ""}, nil},
		{[]string{"run", "exec", "-o", ""}, []string{"table", "json"}},
		{[]string{"run", "exec", "fw"}, []string{"fw001"}},
		{[]string{"run", "exec", "fw001", ""}, nil},
		{[]string{"plan", "exec", "fw"}, []string{"fw001"}},
		{[]string{"exec", "fw"}, []string{"fw001"}},
		{[]string{"jobs", ""}, []string{apitest.ATask, "last"}},
		{[]string{"events", ""}, []string{apitest.ATask, "last"}},
		{[]string{"history", ""}, []string{apitest.ATask, "last"}},
		{[]string{"task", ""}, []string{apitest.ATask, "last"}},
		{[]string{"cancel", ""}, []string{apitest.ATask, "last"}},
		{[]string{"events", "--task", ""}, []string{apitest.ATask, "last"}},
		{[]string{"jobs", "--task", ""}, []string{apitest.ATask, "last"}},
		{[]string{"jobs", "--outcome", "s"}, cli.Texts(jobs.Outcomes())},
		{[]string{"jobs", "--state", ""}, cli.Texts(jobs.States())},
		{[]string{"logs", ""}, []string{apitest.ATask, "last"}},
		{[]string{"logs", apitest.ATask + ":"}, []string{apitest.ATask + ":fw001", apitest.ATask + ":fw002", apitest.ATask +
			":fw003"}},
		{[]string{"run", "exec", "--on", ""}, []string{"all", "customer=", "fw001", "model=", "role=", "zone="}},
		{[]string{"run", "exec", "--on", "fw"}, []string{"fw001"}},
		{[]string{"run", "exec", "--on", "ro"}, []string{"role="}},
		{[]string{"run", "exec", "--on", "role=fw,zone="}, []string{"role=fw,zone=default"}},
		{[]string{"hosts", "f"}, []string{"fw001"}},
		{[]string{"hosts", "fw001", ""}, nil},
		{[]string{"cancel", apitest.ATask + ":"}, []string{apitest.ATask + ":fw001", apitest.ATask + ":fw002", apitest.ATask +
			":fw003"}},
		{[]string{"cancel", apitest.AJob, ""}, []string{apitest.ATask + ":fw001", apitest.ATask + ":fw002", apitest.ATask +
			":fw003"}},
		{[]string{"cancel", apitest.ATask, ""}, nil},
		{[]string{"pause", ""}, []string{apitest.ATask, "last"}},
		{[]string{"resume", "--zone", ""}, []string{"default", "z2"}},
		{[]string{"pause", "--customer", ""}, []string{"acme"}},
		{[]string{"group", "clear", ""}, []string{"g1"}}, // the frozen one
		{[]string{"nodes", "thaw", "--zone", ""}, []string{"default", "z2"}},
		{[]string{"retry", ""}, []string{apitest.ATask, "last"}},
		{[]string{"wait", ""}, []string{apitest.ATask, "last"}},
		{[]string{"retry", apitest.ATask, "--outcome", ""}, cli.Texts(jobs.Outcomes())},
		{[]string{"job", "x:"}, nil},
		{[]string{"job", apitest.AJob, ""}, nil},
	} {
		got := complete(t, a.URL, c.args...)
		slices.Sort(got)
		want := slices.Sorted(slices.Values(c.want))
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%q (-want +got):\n%s", c.args, diff)
		}
	}
}

func TestCompletionsAreSilentAboutTrouble(t *testing.T) {
	t.Parallel()
	slow := apitest.New(t, map[string]http.HandlerFunc{
		"GET /v1/": func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }})
	away := apitest.New(t, nil)
	away.Close()
	denied := apitest.New(t, map[string]http.HandlerFunc{"GET /v1/": apitest.Deny(401, `{"detail": "no"}`)})
	for _, url := range []string{slow.URL, away.URL, denied.URL, "nonsense"} {
		begun := time.Now()
		for _, args := range [][]string{{"task", ""}, {"logs", apitest.ATask + ":"}} {
			if got := complete(t, url, args...); len(got) > 0 {
				t.Errorf("%s %q: %q, want nothing", url, args, got)
			}
		}
		if d := time.Since(begun); d > 10*time.Second {
			t.Errorf("%s: a shell waited %s", url, d)
		}
	}
}
