package main

import (
	"net/http"
	"strings"
	"testing"

	"muster/api"
	"muster/cli"
	"muster/jobs"
	"muster/testkit/apitest"
)

// A host that was retried before is left out, with the earlier retry and advice in the answer.
func TestARetryThatWasMadeBefore(t *testing.T) {
	t.Parallel()
	const route, other = "POST /v1/tasks/" + apitest.ATask + "/retry", "0wcy7y2fb3"
	one := `{"task": "` + other + `", "operator": "al\u001b", "proven": true, "at": "2026-11-21T09:00:00.000Z",
		"hosts": "fw[1-2]", "count": 2, "open": 0, "outcomes": {"succeeded": 1, "failed": 1}}`
	two := `{"task": "0wcy7y2fb4", "operator": "bob", "at": "2026-11-21T09:30:00.000Z", "hosts": "fw9",
		"count": 1, "open": 0, "outcomes": {"failed": 1, "unknown": 2}}`
	with := func(more string) http.HandlerFunc {
		return apitest.Answer(strings.Replace(apitest.TaskJSON(jobs.TaskQueued, ""), "{", "{"+more+",", 1))
	}
	routes := lookRoutes()
	routes["GET /v1/tasks/"+apitest.ATask] = apitest.Answer(apitest.TaskJSON(jobs.TaskEnded,
		`"succeeded": 3, "failed": 1`))
	for _, c := range []struct {
		name, more, flags string
		code              int
		out               string
		words             []string
	}{
		{"a part", `"earlier": [` + one + `]`, "", 0, apitest.ATask + "\n",
			[]string{`retried before, left out: fw[1-2], by task ` + other + ` of al\x1b at 2026-11-21 09:00:00Z`,
				"1 succeeded, 1 failed there; `muster retry " + other + " --failed` does that again", "exec on 4 hosts"}},
		{"all of it", `"already": true, "earlier": [` + one + `]`, "", 0, other + "\n",
			[]string{"no task was made: all hosts were retried before; --again retries them once more"}},
		{"all of it, by two", `"already": true, "earlier": [` + one + `,` + two + `]`, "", 0,
			other + "\n0wcy7y2fb4\n", []string{"`muster retry 0wcy7y2fb4 --outcome failed,unknown` does"}},
		{"followed", `"already": true, "earlier": [` + one + `]`, "--wait", cli.ExitNotAll, "", nil},
		{"two cannot be followed", `"already": true, "earlier": [` + one + `,` + two + `]`, "--wait", cli.ExitNotAll,
			"", []string{"these are several tasks: follow each with `muster wait`"}},
		{"a dry run", `"already": true, "earlier": [` + one + `]`, "--dry-run", 0, "",
			[]string{"no task would be made"}},
		{"for programs", `"already": true, "earlier": [` + one + `]`, "-o json", 0, `"already": true`, nil},
	} {
		routes[route] = with(c.more)
		a := apitest.New(t, routes)
		code, out, words := muster(t, a.URL, append([]string{"retry", apitest.ATask, "--failed", "--again"},
			strings.Fields(c.flags)...)...)
		exact := c.flags == "" || c.flags == "--dry-run"
		if code != c.code || exact && out != c.out || !strings.Contains(out, c.out) {
			t.Errorf("%s: exit %d, %q, %s", c.name, code, out, words)
		}
		apitest.WantParts(t, c.name, words, c.words...)
		var sent api.RetryRequest
		if a.Sent(t, route, &sent); !sent.Again {
			t.Errorf("%s: sent %+v", c.name, sent)
		}
	}
}
