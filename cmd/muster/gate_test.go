package main

import (
	"net/http"
	"slices"
	"strings"
	"testing"

	"muster/api"
	"muster/cli"
	"muster/jobs"
	"muster/testkit/apitest"
)

// gatedRunbook asks a person in its middle.
const gatedRunbook = `
name: gated
arguments: {limit: {type: duration, default: 1h}}
retry: {submit: 5, delay: 1s}
timeout: 20s
steps:
  - name: look
    check: sleep 1; echo "DS of "{{host.name}}
    save: {ds: {lines: true}}
  - name: person
    gate: {question: "Is the {{saved.ds}} there?", timeout: "{{limit}}"}
    on_fail: [{name: undo, run: echo undone}]
  - name: use
    check: ` + held + `
`

// wantText looks for words in the output of a command.
func (l *losing) wantText(code int, args, words string) {
	l.t.Helper()
	if out, got := l.muster(strings.Fields(args)...); got != code || !strings.Contains(out, words) {
		l.t.Errorf("muster %s: exit %d, want %d and %q:\n%s", args, got, code, words, out)
	}
}

// Jobs wait at a gate without any worker, whatever dies meanwhile, until people decide about them.
func TestJobsWaitAtAGateForAPerson(t *testing.T) {
	t.Parallel()
	l := newLosingOf(t, gatedRunbook)
	var task jobs.TaskInfo
	if code := l.query(&task, "run", "gated", "--on", "fw000[1-4]", "--detach"); code != cli.ExitOK || !task.Gates {
		t.Fatalf("muster run: exit %d, %+v", code, task)
	}
	l.killChild()
	id := string(task.Task)
	job := func(n string) string { return id + ":fw000" + n }
	for _, n := range []string{"1", "2", "3", "4"} {
		l.awaitJob(jobs.ID(job(n)), jobs.Waiting)
	}
	l.awaitNode(func(n jobs.Node) bool { return len(n.Children) == 0 })
	if pids := children(l.master.cmd.Process.Pid); len(pids) != 0 {
		t.Errorf("children %v while people think", pids)
	}

	l.wantText(0, "gate ls fw0002", `Is the "DS of fw0002" there?`)
	l.wantText(0, "job "+job("1"), "\nIt waits at the gate person for a person, since ")
	l.wantText(0, "job "+job("1"), "\n  | Is the \"DS of fw0001\" there?\nmuster gate open "+job("1")+" --reason")
	l.wantText(0, "task "+id, "4 jobs wait at a gate for a person: muster gate ls "+id)
	l.wantText(2, "gate open "+job("1"), "") // no reason
	l.wantText(1, "gate open --reason x "+id+":fw0009", "")

	for len(l.starts) > 0 {
		<-l.starts
	}
	l.wantText(0, "gate open --reason seen "+job("1"), "task "+id+": the gate person is open: fw0001\n")
	l.killChild()
	letGo(t, l.fleet)
	if j := l.awaitJob(jobs.ID(job("1")), jobs.Ended); j.Outcome != jobs.Succeeded {
		t.Errorf("opened: %+v", j)
	}
	l.wantText(0, "gate open --reason again "+job("1"), "is open already, opened by ")
	l.wantText(1, "gate refuse --reason no "+job("1"), "is open already, opened by ")

	l.master.kill()
	l.master = l.house.master()
	l.wantText(0, "gate refuse --reason wrong "+job("2"), "is refused: fw0002")
	j := l.awaitJob(jobs.ID(job("2")), jobs.Ended)
	if want := "step 2 (person): refused by "; j.Outcome != jobs.Failed || j.Class != jobs.ClassOperator ||
		!strings.HasPrefix(j.Error, want) || !strings.HasSuffix(j.Error, ": wrong") {
		t.Errorf("refused: %+v", j)
	}
	l.wantText(0, "logs "+job("2"), "undone")
	l.muster("cancel", job("4"))
	if j := l.awaitJob(jobs.ID(job("4")), jobs.Ended); j.Outcome != jobs.Cancelled {
		t.Errorf("cancelled: %+v", j)
	}
	l.wantText(1, "gate open --reason x "+job("4"), "waits at no gate: it has ended, cancelled\nthese do: "+job("3"))
	l.wantText(0, "gate open --reason all "+id, "the gate person is open: fw0003\n")
	l.wait(task.Task)
	if n := l.events()["gate"]; n != 3 {
		t.Errorf("%d events gate, want 3", n)
	}
	l.wantText(1, "gate open --reason all "+id, "no job waits at a gate; not ended: 0 jobs")
}

// If a person thinks for too long the job fails.
func TestAGateThatNobodyOpens(t *testing.T) {
	t.Parallel()
	l := newLosingOf(t, gatedRunbook)
	var task jobs.TaskInfo
	if code := l.query(&task, "run", "gated", "--on", "fw0001", "--arg", "limit=1s", "--detach"); code != cli.ExitOK {
		t.Errorf("muster run: exit %d", code)
	}
	l.wait(task.Task)
	j := l.awaitJob(jobs.NewID(task.Task, "fw0001"), jobs.Ended)
	if j.Outcome != jobs.Failed || j.Class != jobs.ClassOperator ||
		j.Error != "step 2 (person): nobody opened the gate within 1s" {
		t.Errorf("%+v", j)
	}
	l.wantText(1, "gate open --reason late "+string(j.ID), "was not opened in time already")
	l.wantText(0, "logs "+string(j.ID), "undone")
}

// A dry run on the hosts shows the question of the gate.
func TestACheckSaysWhatAGateWouldAsk(t *testing.T) {
	t.Parallel()
	l := newLosingOf(t, gatedRunbook)
	var task jobs.TaskInfo
	if code := l.query(&task, "run", "gated", "--on", "fw0001", "--check", "--detach"); code != cli.ExitOK || task.Gates {
		t.Errorf("muster run --check: exit %d, %+v", code, task)
	}
	wantOutcomes(t, l.wait(task.Task), map[jobs.Outcome]int{jobs.Succeeded: 1})
	l.wantText(0, "logs "+string(task.Task)+":fw0001", "a dry run, so no person is asked")
	l.wantText(0, "logs "+string(task.Task)+":fw0001", `Is the "DS of fw0001" there?`)
}

// gateRoutes is a server with two jobs at a gate, one of them answered. The question contains
// output of a host.
func gateRoutes() map[string]http.HandlerFunc {
	const gate = `"step": 1, "name": "ds", "question": "Is DS\u001b[2J\n| there?",
		"since": "2026-11-21T10:00:00.000Z", "until": "2026-11-21T12:00:00.000Z"`
	return map[string]http.HandlerFunc{
		"GET /v1/gates": apitest.Answer(`{"total": 3, "gates": [
			{"job": "` + apitest.AJob + `", "task": "` + apitest.ATask + `", "host": "fw001", "runbook": "dnssec", ` + gate + `},
			{"job": "` + apitest.ATask + `:fw002", "task": "` + apitest.ATask + `", "host": "fw002", "runbook": "dnssec",
			 ` + gate + `, "answer": "opened by al\u001bice"}]}`),
		"GET /v1/jobs/" + apitest.AJob: apitest.Answer(`{"id": "` + apitest.AJob +
			`", "host": "fw001", "state": "wait", "gate": {` + gate + `}}`),
		"POST /v1/tasks/" + apitest.ATask + "/gates/open": apitest.Answer(`{"task": "` + apitest.ATask + `", "answered": [
			{"job": "` + apitest.AJob + `", "step": 1, "name": "ds", "word": "open", "note": "opened by bob: x"},
			{"job": "` + apitest.ATask + `:fw002", "step": 1, "name": "ds", "word": "refuse", "already": true,
			 "note": "refused by al\u001bice"},
			{"job": "` + apitest.ATask + `:fw003", "step": 1, "name": "ds", "word": "open", "note": "opened by bob: x"}],
			"elsewhere": [{"job": "` + apitest.ATask + `:fw004", "state": "running", "step": 0}], "stand": ["` + apitest.ATask + `:fw005"]}`),
		"POST /v1/tasks/" + apitest.ATask + "/gates/refuse": apitest.Answer(`{"task": "` + apitest.ATask +
			`", "answered": [], "rest": 3}`),
	}
}

func TestWhatIsSaidOfGates(t *testing.T) {
	t.Parallel()
	a := apitest.New(t, gateRoutes())
	for line, want := range map[string]string{
		"gate ls": "JOB               RUNBOOK  GATE  SINCE                 UNTIL                 " +
			"QUESTION               ANSWER\n" +
			"0wcy7y2fb2:fw001  dnssec   ds    2026-11-21 10:00:00Z  2026-11-21 12:00:00Z  " +
			"Is DS\\x1b[2J | there?  -\n" +
			"0wcy7y2fb2:fw002  dnssec   ds    2026-11-21 10:00:00Z  2026-11-21 12:00:00Z  " +
			"Is DS\\x1b[2J | there?  opened by al\\x1bice\n",
		"gate open --reason x " + apitest.ATask: "task 0wcy7y2fb2: the gate ds is open: fw[001,003]\n" +
			"task 0wcy7y2fb2: the gate ds is refused already, refused by al\\x1bice: fw002\n" +
			"job 0wcy7y2fb2:fw004 waits at no gate: it is running, at step 1\n" +
			"these do: 0wcy7y2fb2:fw005; muster gate ls 0wcy7y2fb2\n",
		"gate refuse --reason x " + apitest.ATask: "task 0wcy7y2fb2: no job waits at a gate; not ended: 3 jobs\n",
	} {
		code, out, words := muster(t, a.URL, strings.Fields(line)...)
		if wrong := strings.HasPrefix(line, "gate ls"); out != want || (code == 0) != wrong {
			t.Errorf("muster %s: exit %d, %s\n%s\nwant\n%s", line, code, words, out, want)
		}
	}
	const shown = "\nIt waits at the gate ds for a person, since 2026-11-21 10:00:00Z and until 2026-11-21 12:00:00Z:\n" +
		"  | Is DS\\x1b[2J\n  | | there?\nmuster gate open " + apitest.AJob
	if _, out, _ := muster(t, a.URL, "job", apitest.AJob); !strings.Contains(out, shown) {
		t.Errorf("%s", out)
	}
	if code, out, _ := muster(t, a.URL, "gate", "ls", "-o", "json"); code != 0 || strings.Contains(out, "\x1b") ||
		!strings.HasPrefix(out, "[\n") {
		t.Errorf("exit %d, %s", code, out)
	}
	var sent api.GateRequest
	muster(t, a.URL, "gate", "open", "--reason", "a b", apitest.AJob, apitest.ATask+":fw002", "--as", "bob")
	a.Sent(t, "POST /v1/tasks/"+apitest.ATask+"/gates/open", &sent)
	if len(sent.Jobs) != 2 || sent.Reason != "a b" || sent.As != "bob" {
		t.Errorf("sent %+v", sent)
	}
	for _, c := range []struct{ args, want string }{
		{"gate open " + apitest.AJob, "--reason is missing"}, {"gate refuse x --reason x", "want 10 characters"},
		{"gate open x:y --reason x", "want 10 characters"}, {"gate open --reason x", "nothing is named"},
		{"gate ls a b", "it got 2 arguments"},
	} {
		code, _, words := muster(t, a.URL, strings.Fields(c.args)...)
		if code != cli.ExitUsage || !strings.Contains(words, c.want) {
			t.Errorf("muster %s: exit %d, %s", c.args, code, words)
		}
	}
	got := complete(t, a.URL, "gate", "open", "")
	if slices.Sort(got); !slices.Equal(got, []string{apitest.ATask, apitest.AJob}) {
		t.Errorf("completes %v", got)
	}
}
