package main

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"muster/cli"
	"muster/jobs"
	"muster/testkit/apitest"
)

// looks holds the answers to the commands that only read: a route, and the answer below it.
const looks = `
GET /v1/tasks/0wcy7y2fb2/jobs
{"jobs": [
	{"id": "0wcy7y2fb2:fw001", "host": "fw001", "state": "ended", "outcome": "succeeded", "attempt": 1, "node": "n1",
	 "due": "2026-11-21T10:00:00.000Z", "started": "2026-11-21T10:00:01.000Z", "finished": "2026-11-21T10:00:02.500Z",
	 "exit_code": 0, "error": ""},
	{"id": "0wcy7y2fb2:fw002", "host": "fw002", "state": "ended", "outcome": "failed", "class": "user", "attempt": 2,
	 "node": "n1", "due": "2026-11-21T10:00:00.000Z", "started": "2026-11-21T10:00:01.000Z",
	 "finished": "2026-11-21T10:01:06.000Z", "exit_code": 127, "error": "not found\n\u001b[2J消防"},
	{"id": "0wcy7y2fb2:fw003", "host": "fw003", "state": "queued", "outcome": "", "attempt": 0, "node": "",
	 "due": null, "started": null, "finished": null, "exit_code": null, "error": ""}]}

GET /v1/jobs/0wcy7y2fb2:fw001
{"id": "0wcy7y2fb2:fw001", "host": "fw001", "state": "ended", "outcome": "failed", "class": "user",
 "exit_code": 3, "error": "no\u001bway", "attempt": 2, "tries": 1}

POST /v1/tasks/0wcy7y2fb2/cancel
{"task": "0wcy7y2fb2", "ended": 12, "running": 3, "already": 285}

GET /v1/hosts
{"version": "v1", "hosts": [
	{"name": "fw001", "address": "127.77.0.1", "port": 2222, "user": "root", "zone": "default", "fence": "none",
	 "customer": "acme", "host_keys": [], "labels": {"role": "fw", "model": "x\u001b200"}}]}

GET /v1/nodes
{"nodes": [
	{"id": "n1", "pid": 7, "state": "running", "zones": ["default"], "limit": 8, "slots": 2, "version": "v1",
	 "clock": {"skew_seconds": -2.5, "not_kept": "adjtimex"}, "note": "x",
	 "children": [{"pid": 8, "job": "0wcy7y2fb2:fw001"}, {"pid": 9, "job": "a", "jobs": ["a", "b"]}]},
	{"id": "n2", "children": null}]}

GET /v1/queue
{"zones": [
	{"zone": "default", "queued": 300, "again": 2, "due": 7, "oldest": "2026-11-21T10:00:00.000Z", "overdue": 65,
	 "frozen": "2026-11-21T10:05:00.000Z", "why": "another run id"},
	{"zone": "z2", "oldest": null, "frozen": null, "halted": "halted by bob", "paused": "paused by al"}]}

GET /v1/groups
{"groups": [
	{"name": "g1", "zone": "default", "frozen": "0wcy7y2fb2:fw001 ended unknown\u001b", "job": "0wcy7y2fb2:fw001",
	 "since": "2026-11-21T10:00:00.000Z", "waits": 2, "hosts": ["fw001", "fw002"]},
	{"name": "g2", "zone": "z2", "since": "2026-11-21T10:01:00.000Z", "holder": "0wcy7y2fb2:fw003", "waits": 0}]}

POST /v1/groups/g1/clear
{"group": "g1", "zone": "default", "already": false, "was": "unknown\u001b", "job": "0wcy7y2fb2:fw001", "holder": "0wcy7y2fb2:fw009"}

POST /v1/groups/g3/clear
{"group": "g3", "zone": "default", "already": true}

GET /v1/limits
{"limits": [
	{"name": "site/x", "zone": "default", "max": 2, "used": 2, "holders": ["0wcy7y2fb2:fw001", "0wcy7y2fb2:fw002"], "waits": 7},
	{"name": "mirror/y", "zone": "z2", "max": 5, "used": 0, "holders": null, "waits": 0}]}

POST /v1/tasks/0wcy7y2fb2/pause
{"what": "task", "name": "0wcy7y2fb2", "paused": true, "note": "paused by bob", "moved": 12, "running": 3, "missing": ["z2"]}

POST /v1/tasks/0wcy7y2fb2/resume
{"what": "task", "name": "0wcy7y2fb2", "paused": false, "note": "resumed by bob", "moved": 1}

POST /v1/tasks/0wcy7y2fb3/pause
{"what": "task", "name": "0wcy7y2fb3", "paused": false, "already": true, "ended": true, "note": "paused by bob"}

POST /v1/customers/acme/pause
{"what": "customer", "name": "acme", "paused": true, "already": true, "note": "paused by al\u001bice: theirs"}

POST /v1/zones/z2/resume
{"what": "zone", "name": "z2", "paused": false, "already": true, "note": ""}

POST /v1/halt
{"what": "all", "paused": true, "note": "halted by bob", "moved": 0, "running": 0, "missing": ["z2"]}

POST /v1/lift
{"what": "all", "paused": false, "note": "lifted by bob", "moved": 5,
 "stay": {"zones": {"z2": "paused by bob"}, "customers": {}, "tasks": {"0wcy7y2fb2": "paused by alice"}}}

POST /v1/zones/default/thaw
{"zone": "default", "already": false, "note": "thawed by bob: x"}

POST /v1/zones/z9/thaw
{"zone": "z9", "already": true, "note": "thawed by bob: x"}

GET /v1/runbooks
{"runbooks": [
	{"name": "exec", "description": "Run a command\nand more", "repeatable": true, "arguments": [
		{"name": "cmd", "type": "text", "required": true}, {"name": "timeout", "type": "duration"}]}]}

GET /v1/tokens
{"tokens": [{"id": "4x7hqk3a754z", "name": "laptop", "owner": "user:alice", "created": "2026-11-21T10:00:00.000Z",
	"expires": "2027-02-19T10:00:00.000Z", "scope": {"verbs": ["see"], "hosts": "customer=acme"}}]}

POST /v1/tokens
{"name": "laptop", "token": "mst_4x7hqk3a754z_s3cret"}

GET /v1/whoami
{"principal": "user:bob", "proof": "token", "token": "4x7hqk3a754z",
	"expires": "2027-02-19T10:00:00.000Z", "groups": ["os-group:ops"], "verbs": ["see", "plan"], "admin": false}

GET /v1/health
{"status": "ok", "version": "v1", "redis": "ok", "inventory": "abc", "hosts": 300}
`

// lookRoutes is a server that knows one task.
func lookRoutes() map[string]http.HandlerFunc {
	running := apitest.TaskJSON(jobs.TaskRunning, `"succeeded": 2, "failed": 1`)
	ended := apitest.TaskJSON(jobs.TaskEnded, `"succeeded": 4`)
	routes := map[string]http.HandlerFunc{
		"GET /v1/tasks":                                  apitest.Answer(`{"tasks": [` + running + `]}`),
		"GET /v1/tasks/" + apitest.ATask:                 apitest.Answer(ended),
		"GET /v1/tasks/" + apitest.ATask + "/summary":    apitest.Answer(`{"task": ` + ended + `, "groups": null}`),
		"GET /v1/jobs/" + apitest.AJob + "/output":       output("hello\x1b[2J\xff\n"),
		"GET /v1/jobs/" + apitest.ATask + ":mute/output": output(""),
		"DELETE /v1/tokens/laptop": func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(http.StatusNoContent)
		},
	}
	for block := range strings.SplitSeq(strings.TrimSpace(looks), "\n\n") {
		route, text, _ := strings.Cut(block, "\n")
		routes[route] = apitest.Answer(text)
	}
	return routes
}

func output(text string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/octet-stream")
		w.Write([]byte(text))
	}
}

func TestCommandsShowTables(t *testing.T) {
	t.Parallel()
	a := apitest.New(t, lookRoutes())
	for line, want := range map[string]string{
		"tasks": "" +
			"TASK        RUNBOOK  OPERATOR  STATE    DONE  TOTAL  SUCCEEDED  OTHER  SUBMITTED             " +
			"TOOK  ON       ARGUMENTS\n" +
			"0wcy7y2fb2  exec     alice     running     3      4          2      1  2026-11-21 10:00:00Z  " +
			"8.1s  role=fw  cmd='uname -a' password=(secret)\n",
		"task " + apitest.ATask: "" +
			"runbook    exec, version 1, sha256 abcd\nargument   cmd='uname -a'\nargument   password=(secret)\n" +
			"on         role=fw\nsubmitted  2026-11-21 10:00:00Z\nstarted    2026-11-21 10:00:01Z\nfinished   -\n" +
			"inventory  v1\n\ntask 0wcy7y2fb2: exec on 4 hosts for alice (unproven), 8.1s\n4 succeeded\n",
		"task " + apitest.ATask + " --wait": "task 0wcy7y2fb2: exec on 4 hosts for alice (unproven), 8.1s\n4 succeeded\n",
		"jobs --task " + apitest.ATask: "" +
			"JOB               STATE   OUTCOME    ATTEMPT  NODE  STARTED                TOOK  EXIT  ERROR\n" +
			"0wcy7y2fb2:fw001  ended   succeeded        1  n1    2026-11-21 10:00:01Z   1.5s     0  -\n" +
			"0wcy7y2fb2:fw002  ended   failed           2  n1    2026-11-21 10:00:01Z  1m05s   127  not found\\n\\x1b[2J消防\n" +
			"0wcy7y2fb2:fw003  queued  -                0  -     -                         -     -  -\n",
		"job " + apitest.AJob: "" +
			"job        0wcy7y2fb2:fw001\nhost       fw001\nstate      ended\noutcome    failed (user)\nexit code  3\n" +
			"error      no\\x1bway\nattempt    2, 1 failed\nstep       0\ndue        -\nstarted    -\nfinished   -\n" +
			"took       -\n",
		"cancel " + apitest.ATask: "task 0wcy7y2fb2: 12 jobs cancelled, 3 running: they are stopped on their hosts, " +
			"285 had ended before\n",
		"hosts": "" +
			"HOST   ADDRESS          USER  ZONE     CUSTOMER  GROUP  FENCE  LABELS\n" +
			"fw001  127.77.0.1:2222  root  default  acme      -      none   model=x\\x1b200,role=fw\n",
		"nodes": "" +
			"NODE  PID  STATE    ZONES    CHILDREN  SLOTS  JOBS  VERSION  SEEN  NOTE\n" +
			"n1      7  running  default       2/8      2     3  v1       -     its clock is 2.5s off that of Redis: it " +
			"begins nothing that needs a window; no NTP; x\n" +
			"n2      0                         0/0      0     0           -     -\n",
		"queue": "" +
			"ZONE     QUEUED  AGAIN  DUE  OLDEST                OVERDUE  NOTE\n" +
			"default     300      2    7  2026-11-21 10:00:00Z    1m05s  frozen until 2026-11-21 10:05:00Z; another run id\n" +
			"z2            0      0    0  -                           -  halted by bob; paused by al\n",
		"pause " + apitest.ATask: "task 0wcy7y2fb2 is paused: 12 jobs laid aside, 3 running: they continue\n" +
			"not confirmed by zone z2: a server repeats it until it is\n",
		"resume " + apitest.ATask: "task 0wcy7y2fb2 is resumed: 1 job brought back\n",
		"pause 0wcy7y2fb3":        "task 0wcy7y2fb3 has ended: nothing to do\n",
		"pause --customer acme": "customer acme stays as it was, paused by al\\x1bice: theirs " +
			"(this order and its reason change nothing)\n",
		"resume --zone z2": "zone z2 was not paused: nothing to do\n",
		"halt": "everything is halted\n" +
			"not confirmed by zone z2: a server repeats it until it is\n",
		"resume --all --reason x": "everything is no longer halted: 5 jobs brought back\n" +
			"still: zone z2 is paused by bob\nstill: task 0wcy7y2fb2 is paused by alice\n",
		"nodes thaw --reason x":           "zone default is no longer frozen\n",
		"nodes thaw --zone z9 --reason x": "zone z9 was not frozen: nothing to do\n",
		"group ls": "" +
			"GROUP  ZONE     STATE   JOB               SINCE                 WAIT  HOSTS        WHY\n" +
			"g1     default  frozen  0wcy7y2fb2:fw001  2026-11-21 10:00:00Z     2  fw[001-002]  " +
			"0wcy7y2fb2:fw001 ended unknown\\x1b\n" +
			"g2     z2       in use  0wcy7y2fb2:fw003  2026-11-21 10:01:00Z     0  -            -\n",
		"group clear g1 --reason x": "group g1 in zone default is cleared; it was frozen: unknown\\x1b\n" +
			"job 0wcy7y2fb2:fw009 holds it: the next one starts when that has ended\n",
		"group clear g3 --reason x": "group g3 was not frozen; markers of jobs that nobody knows any more do not " +
			"count from now on\n",
		"limits": "" +
			"LIMIT     ZONE     USED  MAX  WAIT  HOSTS\n" +
			"site/x    default     2    2     7  fw[001-002]\n" +
			"mirror/y  z2          0    5     0  -\n",
		"wait " + apitest.ATask: "task 0wcy7y2fb2: exec on 4 hosts for alice (unproven), 8.1s\n4 succeeded\n",
		"runbooks": "" +
			"RUNBOOK  ARGUMENTS                    KIND        DESCRIPTION\n" +
			"exec     cmd=TEXT [timeout=DURATION]  repeatable  Run a command\n",
		"runbooks --no-headers": "exec  cmd=TEXT [timeout=DURATION]  repeatable  Run a command\n",
		"token ls": "ID            TOKEN   OWNER       CREATED               EXPIRES               USED  SCOPE\n" +
			"4x7hqk3a754z  laptop  user:alice  2026-11-21 10:00:00Z  2027-02-19 10:00:00Z  -     see; hosts customer=acme\n",
		"token create laptop": "mst_4x7hqk3a754z_s3cret\n",
		"token rm laptop":     "token laptop removed\n",
		"whoami": "user:bob, by token 4x7hqk3a754z, until 2027-02-19 10:00:00Z; may see, plan\n" +
			"  os-group:ops\n",
		"health":                          "status     ok\nversion    v1\nredis      ok\ninventory  abc\nhosts      300\n",
		"logs " + apitest.AJob:            "hello\x1b[2J\xff\n", // unchanged in a pipe
		"logs --raw " + apitest.AJob:      "hello\x1b[2J\xff\n",
		"logs " + apitest.ATask + ":mute": "",
	} {
		code, out, words := muster(t, a.URL, strings.Fields(line)...)
		if diff := cmp.Diff(want, out); code != 0 || diff != "" {
			t.Errorf("muster %s: exit %d, %s (-want +got):\n%s", line, code, words, diff)
		}
	}
}

func TestCommandsShowJSON(t *testing.T) {
	t.Parallel()
	a := apitest.New(t, lookRoutes())
	for line, want := range map[string]string{ // key letters that commands outside rely on
		"tasks":                             "[task runbook state total outcomes",
		"task " + apitest.ATask:             "{task outcomes groups",
		"task " + apitest.ATask + " --wait": "{task outcomes groups",
		"jobs --task " + apitest.ATask:      "[id host state outcome attempt node due started finished exit_code error",
		"job " + apitest.AJob:               "{id host state",
		"cancel " + apitest.ATask:           "{task ended running already",
		"pause " + apitest.ATask:            "{what name paused already note moved running zones missing",
		"halt":                              "{what paused already",
		"resume --all --reason x":           "{what paused stay",
		"nodes thaw --reason x":             "[zone already note",
		"group ls":                          "[name zone frozen job since waits hosts",
		"group clear g1 --reason x":         "{group zone was job holder",
		"limits":                            "[name zone max used holders waits",
		"wait " + apitest.ATask:             "{task outcomes",
		"hosts":                             "[name address",
		"nodes":                             "[id pid state zones children slots version seen",
		"queue":                             "[zone queued due",
		"runbooks":                          "[name arguments",
		"token ls":                          "[id name",
		"token create laptop":               "{id name",
		"token rm laptop":                   "{removed",
		"whoami":                            "{principal proof",
		"health":                            "{status redis",
		"logs " + apitest.AJob:              "{job bytes output",
		"logs " + apitest.ATask + ":mute":   "{job bytes output",
	} {
		code, out, words := muster(t, a.URL, append(strings.Fields(line), "-o", "json")...)
		var v any
		if err := json.Unmarshal([]byte(out), &v); code != 0 || err != nil {
			t.Errorf("muster %s: exit %d, %v, %s\n%s", line, code, err, words, out)
			continue
		}
		keys, isList := strings.CutPrefix(want, "[")
		if list, ok := v.([]any); ok != isList {
			t.Errorf("muster %s: a list %v, want %v", line, ok, isList)
			continue
		} else if ok {
			v = list[0]
		}
		object := v.(map[string]any)
		for _, key := range strings.Fields(strings.TrimPrefix(keys, "{")) {
			if _, ok := object[key]; !ok {
				t.Errorf("muster %s: no key %q in\n%s", line, key, out)
			}
		}
		if strings.Contains(out, "\x1b") {
			t.Errorf("muster %s: an escape in %q", line, out)
		}
	}
}

func TestEmptyListsAreListsAndSaid(t *testing.T) {
	t.Parallel()
	null := apitest.Answer(`{"tasks": null, "jobs": null, "hosts": null, "nodes": null, "zones": null, "runbooks": null,
		"tokens": null, "groups": null, "limits": null}`)
	a := apitest.New(t, map[string]http.HandlerFunc{"GET /v1/": null})
	for _, line := range []string{"tasks", "jobs --task " + apitest.ATask, "hosts", "nodes",
		"queue", "runbooks", "runbooks ls", "token ls", "group ls",
		"limits"} {
		code, out, words := muster(t, a.URL, strings.Fields(line)...)
		if code != 0 || out != "" || words == "" {
			t.Errorf("muster %s: exit %d, %q, %q, want only words", line, code, out, words)
		}
		code, out, words = muster(t, a.URL, append(strings.Fields(line), "-o", "json")...)
		if code != 0 || out != "[]\n" || words != "" {
			t.Errorf("muster %s -o json: exit %d, %q, %q, want []", line, code, out, words)
		}
	}
}

// The jobs of a task that Redis has forgotten are not all that it had: nobody must take the list
// for complete, also if it is empty.
func TestTheJobsOfAForgottenTaskAreNotAll(t *testing.T) {
	t.Parallel()
	task := apitest.Answer(`{"task": "` + apitest.ATask + `", "state": "queued", "total": 3, "forgotten": true,
		"outcomes": {"failed": 1}}`)
	const words = "task " + apitest.ATask + " was forgotten by Redis before it ended; " +
		"1 of its 3 jobs are known to have ended"
	for list, seen := range map[string]string{"": "", `{"id": "` + apitest.AJob + `", "host": "fw001", "state": "ended",
		"outcome": "failed"}`: "fw001"} {
		a := apitest.New(t, map[string]http.HandlerFunc{"GET /v1/tasks/" + apitest.ATask: task,
			"GET /v1/tasks/" + apitest.ATask + "/jobs": apitest.Answer(`{"jobs": [` + list + `]}`)})
		for _, more := range [][]string{nil, {"-o", "json"}} {
			code, out, said := muster(t, a.URL, append([]string{"jobs", apitest.ATask}, more...)...)
			if code != cli.ExitNotAll || !strings.Contains(said, words) || !strings.Contains(out, seen) ||
				strings.Contains(said, "no such jobs") {
				t.Errorf("%v: exit %d, %q, %q, want %q", more, code, out, said, words)
			}
		}
	}
}

func TestWrongUse(t *testing.T) {
	t.Parallel()
	a := apitest.New(t, nil) // no request may be made
	for _, c := range []struct {
		args  []string
		words []string
	}{
		{[]string{"run"}, []string{"nothing is named"}},
		{[]string{"run", "exec"}, []string{"no hosts are named"}},
		{[]string{"run", "exec", "--on", "", "--arg", "x"}, []string{"no hosts are named", "no '='"}},
		{[]string{"run", "exec", "--on", "all", "--wait", "--detach"}, []string{"detach", "wait"}},
		{[]string{"run", "exec", "--on", "all", "-o", "xml"}, []string{"want table or json"}},
		{[]string{"run", "exec", "--on", "all", "--as", "a b"}, []string{"--as", "use letters"}},
		{[]string{"task", "nonsense"}, []string{"want 10 characters", "muster tasks"}},
		{[]string{"task", apitest.AJob}, []string{"is a job", apitest.ATask}},
		{[]string{"task", "\x1b[2J"}, []string{"want 10 characters"}},
		{[]string{"job", apitest.ATask}, []string{"want <task>:<host>", "muster jobs"}},
		{[]string{"logs", apitest.ATask + ":-oProxyCommand=x"}, []string{"starts with"}},
		{[]string{"logs", apitest.AJob, "--raw", "-o", "json"}, []string{"--raw"}},
		{[]string{"cancel"}, []string{"nothing is named"}},
		{[]string{"cancel", apitest.ATask, apitest.ATask}, []string{"one task at a time"}},
		{[]string{"cancel", apitest.AJob, "0wcy7y2fb3:fw001"}, []string{"jobs of one task at a time"}},
		{[]string{"pause"}, []string{"want one of TASK, --customer and --zone", "muster halt"}},
		{[]string{"pause", apitest.ATask, "--zone", "z"}, []string{"want one of"}},
		{[]string{"pause", "--zone", "hub"}, []string{"--zone:", "taken by muster"}},
		{[]string{"pause", "--customer", "a b"}, []string{"--customer:", "use letters"}},
		{[]string{"pause", "x"}, []string{"want 10 characters"}},
		{[]string{"resume", "--all"}, []string{"--reason is missing"}},
		{[]string{"resume", "--all", "--reason", " "}, []string{"--reason is empty"}},
		{[]string{"pause", "", "--zone", "z"}, []string{"want one of"}},
		{[]string{"resume", "", "--customer", "c"}, []string{"want one of"}},
		{[]string{"fsck", "--mend", "--zone", "", "--reason", " "}, []string{"--zone is empty", "--reason is empty"}},
		{[]string{"fsck", "x", "--zone", ""}, []string{"takes no argument", "--zone is empty"}},
		{[]string{"resume", "--all", "--zone", "z", "--reason", "x"}, []string{"want one of"}},
		{[]string{"resume"}, []string{"--all (which ends a halt)"}},
		{[]string{"halt", "now"}, []string{"takes no argument"}},
		{[]string{"group", "clear", "g"}, []string{"--reason is missing"}},
		{[]string{"group", "clear", "a b", "--reason", "x"}, []string{"use letters"}},
		{[]string{"nodes", "thaw"}, []string{"--reason is missing"}},
		{[]string{"nodes", "thaw", "--zone", "hub", "--reason", "x"}, []string{"--zone:"}},
		{[]string{"retry", apitest.ATask}, []string{"say which jobs: --failed"}},
		{[]string{"retry", "x", "--outcome", "good,failed"}, []string{"want 10 characters", `--outcome "good"`}},
		{[]string{"retry", apitest.ATask, "--failed", "--wait", "--dry-run"}, []string{"dry-run", "wait"}},
		{[]string{"wait", apitest.ATask, "--timeout", "soon"}, []string{"want a time such as"}},
		{[]string{"wait", apitest.ATask, "--timeout", "-1s"}, []string{"--timeout -1s"}},
		{[]string{"jobs"}, []string{"no task is named"}},
		{[]string{"jobs", "--task", ""}, []string{"no task is named"}},
		{[]string{"jobs", "--task", "x", "--state", "dead", "--outcome", "good"},
			[]string{`task id "x"`, `--state "dead": want one of held, queued,`,
				`--outcome "good": want one of succeeded, failed,`}},
		{[]string{"tasks", "--limit", "0"}, []string{"want 1 to 500"}},
		{[]string{"hosts", " "}, []string{"selector is empty: leave it out to see all hosts"}},
		{[]string{"facts", "ls", ""}, []string{"selector is empty: leave it out"}},
		{[]string{"facts", "gather", " "}, []string{"selector is empty: name the hosts"}},
		{[]string{"facts", "gather", "@/nosuch"}, []string{"/nosuch: no such file"}},
		{[]string{"hosts", "a", "b"}, []string{"it got 2 arguments"}},
		{[]string{"hosts", "show", "a*"}, []string{"want one host"}},
		{[]string{"hosts", "drain", ""}, []string{"selector is empty: name the hosts, such as fw001 or role=fw, or"}},
		{[]string{"hosts", "undrain", " "}, []string{"selector is empty: name the hosts"}},
		{[]string{"hosts", "drain", "@/nosuch"}, []string{"/nosuch: no such file"}},
		{[]string{"hosts", "ls", "--fold", "--columns", "host"}, []string{"fold", "columns"}},
		{[]string{"events", "--task", "x"}, []string{"want 10 characters"}},
		{[]string{"token", "create", "a b"}, []string{"use letters"}},
		{[]string{"token", "rm", ""}, []string{"name is empty"}},
		{[]string{"token", "rm"}, []string{"want the name or id of a token, or --of"}},
		{[]string{"token", "rm", "x", "--of", "user:x"}, []string{"want the name or id of a token, or --of"}},
		{[]string{"nosuch"}, []string{"there is no command"}},
		{[]string{"tasks", "--nosuch"}, []string{"has no flag --nosuch"}},
	} {
		url := a.URL
		if c.args[0] == "nosuch" {
			url = ""
		}
		code, out, words := muster(t, url, c.args...)
		if code != cli.ExitUsage || out != "" {
			t.Errorf("muster %q: exit %d, want 2; output %q", c.args, code, out)
		}
		apitest.WantParts(t, strings.Join(c.args, " "), words, c.words...)
		if strings.Contains(words, "\x1b") {
			t.Errorf("muster %q: an escape in %q", c.args, words)
		}
	}
	if n := len(a.Requests()); n > 0 {
		t.Errorf("wrong use made requests: %v", a.Requests())
	}
}

// A flag with an empty text is usually the variable of a shell that is not set. It must not count
// as a missing flag: fewer conditions mean more hosts, zones or jobs.
func TestNoCommandTakesAnEmptyText(t *testing.T) {
	t.Parallel()
	a, tried := apitest.New(t, nil), 0 // no request may be made
	var walk func(c *cobra.Command, words []string)
	walk = func(c *cobra.Command, words []string) {
		c.Flags().VisitAll(func(f *pflag.Flag) {
			_, told := f.Annotations[cli.SaysItself]
			if kind := f.Value.Type(); told || !strings.HasPrefix(kind, "string") {
				return
			}
			tried++
			url := a.URL
			if c.Flags().Lookup("server") == nil || f.Name == "server" {
				url = ""
			}
			code, out, said := muster(t, url, append(words[:len(words):len(words)], "--"+f.Name, "")...)
			if code != cli.ExitUsage || out != "" || !strings.Contains(said, "--"+f.Name+" is empty") {
				t.Errorf("muster %q --%s '': exit %d, %q, %q", words, f.Name, code, out, said)
			}
		})
		for _, sub := range c.Commands() {
			walk(sub, append(words[:len(words):len(words)], sub.Name()))
		}
	}
	walk(newRoot(), nil)
	if tried < 100 || len(a.Requests()) > 0 {
		t.Errorf("%d flags tried, requests: %v", tried, a.Requests())
	}
}

func TestEveryLookSaysThatTheServerIsAway(t *testing.T) {
	t.Parallel()
	a := apitest.New(t, nil)
	a.Close()
	for _, line := range []string{"tasks", "task " + apitest.ATask, "jobs --task " + apitest.ATask, "job " + apitest.AJob,
		"logs " + apitest.AJob,
		"cancel " + apitest.ATask, "hosts", "hosts ls fw*", "hosts show a", "hosts drain a",
		"hosts undrain a", "nodes", "queue", "runbooks ls", "token ls", "token create a", "token rm a", "health",
		"wait " + apitest.ATask, "retry " + apitest.ATask + " --failed", "pause " + apitest.ATask, "resume --zone z", "halt",
		"group ls",
		"group clear g --reason x", "limits", "nodes thaw --reason x", "nodes thaw --zone z --reason x"} {
		code, out, words := muster(t, a.URL, strings.Fields(line)...)
		if code != cli.ExitUnreachable || out != "" || !strings.Contains(words, "muster up") {
			t.Errorf("muster %s: exit %d, output %q, words %q", line, code, out, words)
		}
	}
}

func TestCancelSaysWhyAndWho(t *testing.T) {
	t.Parallel()
	a := apitest.New(t, lookRoutes())
	muster(t, a.URL, "cancel", apitest.ATask, "--reason", "wrong ruleset", "--as", "bob")
	var got map[string]string
	a.Sent(t, "POST /v1/tasks/"+apitest.ATask+"/cancel", &got)
	if want := map[string]string{"reason": "wrong ruleset", "as": "bob"}; !cmp.Equal(got, want) {
		t.Errorf("sent %v, want %v", got, want)
	}
}

func TestHostsSendsTheSelector(t *testing.T) {
	t.Parallel()
	a := apitest.New(t, lookRoutes())
	muster(t, a.URL, "hosts", "customer=acme,role in (fw,vpn)")
	const want = "GET /v1/hosts?fold=true&limit=2000&on=customer%3Dacme%2Crole+in+%28fw%2Cvpn%29"
	if got := a.Requests()[0]; got != want {
		t.Errorf("asked %s, want %s", got, want)
	}
	no := func(where string) http.HandlerFunc {
		return apitest.Deny(422, `{"detail": "1 mistake", "errors": [{"location": "`+where+
			`", "message": "no host matches"}]}`)
	}
	a = apitest.New(t, map[string]http.HandlerFunc{"GET /v1/hosts": no("query.on"),
		"POST /v1/hosts/query": no("body.on"), "POST /v1/hosts/drain": no("body.on")})
	for _, args := range [][]string{{"hosts", "x=y"}, {"hosts", "x=y" + strings.Repeat(",x=y", 600)},
		{"hosts", "drain", "x=y"}} {
		if code, _, words := muster(t, a.URL, args...); code != cli.ExitUsage || words != "selector: no host matches\n" {
			t.Errorf("%.60q: exit %d, %q", args, code, words)
		}
	}
}

func TestHealthOfAServerThatCannotWork(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		h    http.HandlerFunc
		code int
		want string
	}{
		{func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(http.StatusServiceUnavailable)
			w.Write([]byte(`{"status": "redis cannot be used", "redis": "dial: \u001brefused"}`))
		}, cli.ExitNotAll, "status  redis cannot be used\nredis   dial: \\x1brefused\n"},
		{apitest.Answer(`{"status": "redis is full: submits are refused", "redis": "OOM", "full": true}`), cli.ExitNotAll,
			"status  redis is full: submits are refused\nredis   OOM\n"},
		{apitest.Answer(`{"status": "history is not written since 02:00: no disk", "redis": "ok"}`), cli.ExitNotAll,
			"status  history is not written since 02:00: no disk\nredis   ok\n"},
		{apitest.Deny(503, `{"detail": "overloaded"}`), cli.ExitNotAll, ""},
		{apitest.Deny(401, `{"detail": "no"}`), cli.ExitNotAll, ""},
		{apitest.Answer(`{}`), cli.ExitUnreachable, ""},
		{apitest.Answer(`nonsense`), cli.ExitUnreachable, ""},
		{apitest.HangUp, cli.ExitUnreachable, ""},
	} {
		a := apitest.New(t, map[string]http.HandlerFunc{"GET /v1/health": c.h})
		if code, out, words := muster(t, a.URL, "health"); code != c.code || out != c.want || out+words == "" {
			t.Errorf("exit %d, output %q, words %q, want %d and %q", code, out, words, c.code, c.want)
		}
	}
}

// TestHelpIsWhole walks over every command of operators.
func TestHelpIsWhole(t *testing.T) {
	t.Parallel()
	var walk func(c *cobra.Command)
	walk = func(c *cobra.Command) {
		if c.Short == "" || c.RunE == nil || c.Example == "" {
			t.Errorf("%s: no help or no example", c.CommandPath())
		}
		for line := range strings.Lines(c.Long + "\n" + c.Example) {
			if len(line) > 90 {
				t.Errorf("%s: a line of %d columns: %s", c.CommandPath(), len(line), line)
			}
		}
		// Commands that read the configuration, or only files, ask no server.
		if !c.HasSubCommands() && c.Flag("config") == nil && c.Annotations[cli.Offline] == "" {
			for _, flag := range []string{"server", "as", "output", "no-headers"} {
				if c.Flag(flag) == nil {
					t.Errorf("%s has no flag --%s", c.CommandPath(), flag)
				}
			}
		}
		for _, sub := range c.Commands() {
			walk(sub)
		}
	}
	for _, c := range clientCommands() {
		if c.GroupID == "" {
			t.Errorf("%s is in no group", c.Name())
		}
		walk(c)
	}
}

func TestEnvironment(t *testing.T) {
	a := apitest.New(t, lookRoutes())
	t.Setenv("MUSTER_URL", a.URL)
	t.Setenv("MUSTER_AS", "alice")
	t.Setenv("MUSTER_TOKEN", "muster_s3cret")
	if code, _, words := muster(t, "", "tasks"); code != 0 {
		t.Fatalf("exit %d: %s", code, words)
	}
	if got := a.Head.Get("Authorization") + " " + a.Head.Get("X-Muster-User"); got != "Bearer muster_s3cret alice" {
		t.Errorf("sent %q", got)
	}
	_, _, words := muster(t, "", "tasks", "--help")
	if out := words; strings.Contains(out, "s3cret") {
		t.Errorf("the token is in the help: %s", out)
	}
	t.Setenv("MUSTER_TOKEN", "muster s3cret")
	code, _, words := muster(t, "", "tasks")
	if code != cli.ExitUsage || strings.Contains(words, "s3cret") {
		t.Errorf("exit %d, %q, want 2 without the token", code, words)
	}
}
