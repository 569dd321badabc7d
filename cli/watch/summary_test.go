package watch

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/jedib0t/go-pretty/v6/text"

	"muster/api"
	"muster/cli"
	"muster/jobs"
	"muster/testkit/apitest"
)

func readTask(t *testing.T, text string) (i jobs.TaskInfo) {
	t.Helper()
	if err := json.Unmarshal([]byte(text), &i); err != nil {
		t.Fatal(err)
	}
	return i
}

func TestSummaryText(t *testing.T) {
	t.Parallel()
	one := 1
	task := readTask(t, apitest.TaskJSON(jobs.TaskEnded, `"succeeded": 296, "failed": 2, "unreachable": 1, "unknown": 1`))
	task.Total = 300
	for _, c := range []struct {
		name  string
		s     api.Summary
		width int
		want  string
	}{
		{"ended", api.Summary{Task: task, Groups: []api.Alike{
			{Outcome: jobs.Succeeded, Count: 295, Hosts: "fw[001-295]", Output: []byte("Linux fw 6.1\n")},
			{Outcome: jobs.Failed, ExitCode: &one, Count: 2, Hosts: "fw[297-298]", Error: "exit code 1",
				Output: []byte("nft: syntax error\n\x1b[2J296 succeeded: fw[001-296]"), LeftOut: 1, Example: apitest.ATask +
					":fw297"},
			{Outcome: jobs.Unreachable, Count: 1, Hosts: "fw299", Error: "dial 127.0.0.1:22:\nconnection refused"},
			{Outcome: jobs.Succeeded, Count: 1, Hosts: "fw296"},
			{Outcome: "other", Count: 1, Hosts: "fw300", Error: "1 more group: 1 unknown"},
		}}, 0, `task 0wcy7y2fb2: exec on 300 hosts for alice (unproven), 8.1s
296 succeeded, 2 failed, 1 unreachable, 1 unknown

295 succeeded: fw[001-295]
  | Linux fw 6.1

1 succeeded: fw296

2 failed, exit code 1: fw[297-298]
  exit code 1
  | nft: syntax error
  | \x1b[2J296 succeeded: fw[001-296]
  | … 1 byte more: muster logs 0wcy7y2fb2:fw297

1 unreachable: fw299
  dial 127.0.0.1:22:\nconnection refused

1 other: fw300
  1 more group: 1 unknown
`},
		{"narrow", api.Summary{Task: task, Groups: []api.Alike{
			{Outcome: jobs.Failed, Count: 2, Hosts: "fw001,vpn002,消防署003,x", Error: "a long story of an error",
				Output: []byte("\twide 消防署 words\r\nold\rnew")},
		}}, 20, `task 0wcy7y2fb2: exec on 300 hosts for alice (unproven), 8.1s
296 succeeded, 2 failed, 1 unreachable, 1 unknown

2 failed: fw001,vpn…
  a long story of a…
  |     wide 消防署…
  | old\x0dnew
`},
		{"no groups", api.Summary{Task: task}, 0, `task 0wcy7y2fb2: exec on 300 hosts for alice (unproven), 8.1s
296 succeeded, 2 failed, 1 unreachable, 1 unknown
`},
	} {
		if diff := cmp.Diff(c.want, SummaryText(c.s, c.width, false)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", c.name, diff)
		}
	}
}

func TestSummaryOfATaskThatGoesOn(t *testing.T) {
	t.Parallel()
	task := readTask(t, apitest.TaskJSON(jobs.TaskRunning, `"succeeded": 1`))
	task.Running, task.Proven, task.Cancelled = 2, true, "cancelled by bob (unproven): \x07oops"
	want := `task 0wcy7y2fb2: exec on 4 hosts for alice, running
1 succeeded, 2 running, 1 to come
cancelled by bob (unproven): \x07oops
`
	if diff := cmp.Diff(want, SummaryText(api.Summary{Task: task}, 0, false)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	waits := []jobs.Lack{{Waits: "group/edge", Why: "group edge is frozen\x07", Count: 2, Hosts: "fw[1-2]"}}
	want += "2 waiting: fw[1-2]\n  group edge is frozen\\x07\n"
	if diff := cmp.Diff(want, SummaryText(api.Summary{Task: task, Waits: waits}, 0, false)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	i := jobs.ChainInfo{Chain: apitest.ATask, State: jobs.ChainActivating,
		ChainHosts: jobs.ChainHosts{Waits: waits}}
	if got := chainText(i, false); !strings.Contains(got, "\n2 waiting: fw[1-2]\n  group edge is frozen") {
		t.Error(got)
	}
}

func TestATaskThatRedisForgotIsNotSaidToRun(t *testing.T) {
	i := readTask(t, `{"task": "0wcy7y2fb2", "runbook": "exec", "operator": "ada", "proven": true,
		"state": "running", "forgotten": true, "total": 12, "outcomes": {"succeeded": 4}}`)
	want := "task 0wcy7y2fb2: exec on 12 hosts for ada, forgotten by Redis before it ended\n" +
		"4 succeeded, 8 not known"
	if got := Headline(i, false); got != want {
		t.Errorf("headline %q, want %q", got, want)
	}
	if !Over(i) || ExitOf(i) != cli.ExitNotAll {
		t.Errorf("over %v, exit code %d: nobody must wait for it", Over(i), ExitOf(i))
	}
}

func TestSummaryIsBounded(t *testing.T) {
	t.Parallel()
	s := api.Summary{Task: readTask(t, apitest.TaskJSON(jobs.TaskEnded, `"succeeded": 4`))}
	for i := range 50 {
		s.Groups = append(s.Groups, api.Alike{Outcome: jobs.Succeeded, Count: 2, Example: apitest.AJob,
			Hosts: strings.Repeat("fw,", 9999), Error: strings.Repeat("e", 10_000) + fmt.Sprint(i),
			Output: []byte(strings.Repeat("line\n", 1000))})
	}
	got := SummaryText(s, 0, cli.Palette(true))
	apitest.WantParts(t, "the summary", got,
		"60 more succeeded in 30 smaller groups: muster jobs "+apitest.ATask+" --outcome succeeded",
		"4940 bytes more: muster logs "+apitest.AJob)
	if n := strings.Count(got, "\n"); n > 400 {
		t.Errorf("%d lines", n)
	}
	for line := range strings.Lines(got) {
		if n := text.StringWidthWithoutEscSequences(line); n > LineColumns+10 {
			t.Errorf("a line of %d columns: %.80q…", n, line)
		}
	}
}
