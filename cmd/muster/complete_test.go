package main

import (
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"muster/fleet"
	"muster/jobs"
)

// complete asks for completions as a shell does. The words come without their
// descriptions.
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
	a := newFakeAPI(t, lookRoutes())
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
		{[]string{"jobs", ""}, []string{aTask, "last"}},
		{[]string{"events", ""}, []string{aTask, "last"}},
		{[]string{"history", ""}, []string{aTask, "last"}},
		{[]string{"task", ""}, []string{aTask, "last"}},
		{[]string{"cancel", ""}, []string{aTask, "last"}},
		{[]string{"events", "--task", ""}, []string{aTask, "last"}},
		{[]string{"jobs", "--task", ""}, []string{aTask, "last"}},
		{[]string{"jobs", "--outcome", "s"}, texts(jobs.Outcomes())},
		{[]string{"jobs", "--state", ""}, texts(jobs.States())},
		{[]string{"logs", ""}, []string{aTask, "last"}},
		{[]string{"logs", aTask + ":"}, []string{aTask + ":fw001", aTask + ":fw002", aTask + ":fw003"}},
		{[]string{"run", "exec", "--on", ""}, []string{"all", "customer=", "fw001", "model=", "role=", "zone="}},
		{[]string{"run", "exec", "--on", "fw"}, []string{"fw001"}},
		{[]string{"run", "exec", "--on", "ro"}, []string{"role="}},
		{[]string{"run", "exec", "--on", "role=fw,zone="}, []string{"role=fw,zone=default"}},
		{[]string{"hosts", "f"}, []string{"fw001"}},
		{[]string{"hosts", "fw001", ""}, nil},
		{[]string{"cancel", aTask + ":"}, []string{aTask + ":fw001", aTask + ":fw002", aTask + ":fw003"}},
		{[]string{"cancel", aJob, ""}, []string{aTask + ":fw001", aTask + ":fw002", aTask + ":fw003"}},
		{[]string{"cancel", aTask, ""}, nil},
		{[]string{"pause", ""}, []string{aTask, "last"}},
		{[]string{"resume", "--zone", ""}, []string{"default", "z2"}},
		{[]string{"pause", "--customer", ""}, []string{"acme"}},
		{[]string{"group", "clear", ""}, []string{"g1"}}, // the frozen one
		{[]string{"nodes", "thaw", "--zone", ""}, []string{"default", "z2"}},
		{[]string{"retry", ""}, []string{aTask, "last"}},
		{[]string{"wait", ""}, []string{aTask, "last"}},
		{[]string{"retry", aTask, "--outcome", ""}, texts(jobs.Outcomes())},
		{[]string{"job", "x:"}, nil},
		{[]string{"job", aJob, ""}, nil},
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
	slow := newFakeAPI(t, map[string]http.HandlerFunc{
		"GET /v1/": func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }})
	away := newFakeAPI(t, nil)
	away.Close()
	denied := newFakeAPI(t, map[string]http.HandlerFunc{"GET /v1/": deny(401, `{"detail": "no"}`)})
	for _, url := range []string{slow.URL, away.URL, denied.URL, "nonsense"} {
		begun := time.Now()
		for _, args := range [][]string{{"task", ""}, {"logs", aTask + ":"}} {
			if got := complete(t, url, args...); len(got) > 0 {
				t.Errorf("%s %q: %q, want nothing", url, args, got)
			}
		}
		if d := time.Since(begun); d > 10*time.Second {
			t.Errorf("%s: a shell waited %s", url, d)
		}
	}
}

func TestSelectorWords(t *testing.T) {
	t.Parallel()
	hosts := []fleet.Host{
		{Name: "fw1", Zone: "default", Customer: "acme", Labels: map[string]string{"role": "fw", "site": "x"}},
		{Name: "fw2", Zone: "eu", Labels: map[string]string{"role": "fw", "drained": ""}},
		{Name: "vpn1", Zone: "eu", Labels: map[string]string{"role": "vpn"}},
	}
	for _, c := range []struct{ typed, want string }{
		{"", "all customer= fw1 fw2 role= site= vpn1 zone="},
		{"f", "fw1 fw2"},
		{"fw1", ""},
		{"fw1,", "fw1,all fw1,fw1 fw1,fw2 fw1,vpn1"},
		{"all!v", "all!vpn1"},
		{"fw1&f", "fw1&fw1 fw1&fw2"},
		{"fw[1-", ""},
		{"fw[1-2],v", "fw[1-2],vpn1"},
		{"role=", "role=fw role=vpn"},
		{"role=v", "role=vpn"},
		{"role==v", "role==vpn"},
		{"role!=v", "role!=vpn"},
		{"role=fw,", "role=fw,customer= role=fw,drained role=fw,role= role=fw,site= role=fw,zone="},
		{"role=fw,zone=e", "role=fw,zone=eu"},
		{"role=fw,!s", "role=fw,!site"},
		{"!", "!customer !drained !role !site !zone"},
		{"role=fw,d", "role=fw,drained"},
		{"role in (fw,", ""},
		{"fw1&{", "fw1&{customer= fw1&{drained fw1&{role= fw1&{site= fw1&{zone="},
		{"{role=vpn}!f", "{role=vpn}!fw1 {role=vpn}!fw2"},
		{"nosuch=", ""},
	} {
		if got := strings.Join(selectorWords(c.typed, hosts), " "); got != c.want {
			t.Errorf("%q: %q, want %q", c.typed, got, c.want)
		}
	}
}
