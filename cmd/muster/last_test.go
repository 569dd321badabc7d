package main

import (
	"net/http"
	"strings"
	"testing"

	"muster/jobs"
	"muster/server"
)

func TestLastIsTheNewestTaskOfWhoAsks(t *testing.T) {
	t.Parallel()
	routes := lookRoutes()
	mine := answer(`{"tasks": [` + taskJSON(jobs.TaskEnded, `"succeeded": 4`) + `]}`)
	routes["GET /v1/tasks"] = func(w http.ResponseWriter, r *http.Request) {
		if q := r.URL.Query(); q.Get("mine") != "true" || q.Get("limit") != "1" {
			t.Errorf("asked for %s", r.URL.RawQuery)
		}
		mine(w, r)
	}
	a := newFakeAPI(t, routes)
	for line, want := range map[string]string{
		"task last": "task " + aTask, "jobs last": aTask + ":fw001", "jobs --task last": aTask + ":fw001",
		"cancel last": "task " + aTask, "job last:fw001": aJob, "logs last:fw001": "hello", "wait last": "task " + aTask,
		"pause last": "task " + aTask + " is paused",
	} {
		code, out, words := muster(t, a.URL, strings.Fields(line)...)
		if code != 0 || !strings.Contains(out, want) {
			t.Errorf("muster %s: exit %d, %q, %q, want %q", line, code, out, words, want)
		}
		if said := "last is task " + aTask + ": exec on role=fw\n"; !strings.Contains(words, said) {
			t.Errorf("muster %s: said %q, want %q", line, words, said)
		}
	}
	none := newFakeAPI(t, map[string]http.HandlerFunc{"GET /v1/tasks": answer(`{"tasks": []}`)})
	code, _, words := muster(t, none.URL, "cancel", "last")
	if code != exitNotAll || !strings.Contains(words, "you have no task") {
		t.Errorf("without tasks: exit %d, %q", code, words)
	}
}

func TestExecIsRunExecInShort(t *testing.T) {
	t.Parallel()
	a := newFakeAPI(t, map[string]http.HandlerFunc{"POST /v1/tasks": answer(taskJSON(jobs.TaskRunning, ""))})
	for _, c := range []struct {
		args []string
		cmd  string
	}{
		{[]string{"exec", "role=fw", "--detach", "--", "uname", "-a"}, "uname -a"},
		{[]string{"exec", "--detach", "role=fw", "--", "df -h | tail -1"}, "df -h | tail -1"},
		{[]string{"exec", "role=fw", "--detach", "--", "touch", "a b", "it's", "$x", ""}, `touch 'a b' 'it'\''s' '$x' ''`},
		{[]string{"run", "exec", "role=fw", "--detach", "--arg", "cmd=id"}, "id"},
		{[]string{"run", "exec", "--on", "role=fw", "--detach", "--arg", "cmd=id"}, "id"},
	} {
		args := append([]string{c.args[0], "--server", a.URL}, c.args[1:]...)
		if code, _, words := muster(t, "", args...); code != 0 {
			t.Errorf("muster %q: exit %d, %s", args, code, words)
		}
		var b server.Submit
		a.sent(t, "POST /v1/tasks", &b)
		if b.Runbook != "exec" || b.On != "role=fw" || b.Args["cmd"] != c.cmd {
			t.Errorf("muster %q: sent %q on %q: %q, want %q", c.args, b.Runbook, b.On, b.Args["cmd"], c.cmd)
		}
	}
	for line, want := range map[string]string{
		"exec":                         "nothing is named",
		"exec role=fw":                 "there is no command",
		"exec role=fw uname":           "write -- before the command",
		"exec -- uname":                "write the selector of the hosts before --",
		"exec role=fw x -- uname":      `"x" is too much before --`,
		"run exec fw1 --on fw2":        `the hosts are named twice, "fw1" and --on "fw2"`,
		"jobs 0wcy7y2fb2 --task x":     `two tasks are named, "0wcy7y2fb2" and "x"`,
		"plan exec fw1 --on fw2":       "the hosts are named twice",
		"events 0wcy7y2fb2 --task abc": "two tasks are named",
	} {
		args := strings.Fields(line)
		args = append([]string{args[0], "--server", a.URL}, args[1:]...)
		if code, _, words := muster(t, "", args...); code != exitUsage || !strings.Contains(words, want) {
			t.Errorf("muster %s: exit %d, %q, want %q", line, code, words, want)
		}
	}
}
