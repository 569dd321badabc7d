package main

import (
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"muster/api"
	"muster/cli"
	"muster/jobs"
	"muster/testkit/apitest"
)

func TestLastIsTheNewestTaskOfWhoAsks(t *testing.T) {
	t.Parallel()
	routes := lookRoutes()
	mine := apitest.Answer(`{"tasks": [` + apitest.TaskJSON(jobs.TaskEnded, `"succeeded": 4`) + `]}`)
	routes["GET /v1/tasks"] = func(w http.ResponseWriter, r *http.Request) {
		if q := r.URL.Query(); q.Get("mine") != "true" || q.Get("limit") != "1" {
			t.Errorf("asked for %s", r.URL.RawQuery)
		}
		mine(w, r)
	}
	a := apitest.New(t, routes)
	for line, want := range map[string]string{
		"task last": "task " + apitest.ATask, "jobs last": apitest.ATask + ":fw001", "jobs --task last": apitest.ATask +
			":fw001",
		"cancel last": "task " + apitest.ATask, "job last:fw001": apitest.AJob, "logs last:fw001": "hello",
		"wait last":  "task " + apitest.ATask,
		"pause last": "task " + apitest.ATask + " is paused",
	} {
		code, out, words := muster(t, a.URL, strings.Fields(line)...)
		if code != 0 || !strings.Contains(out, want) {
			t.Errorf("muster %s: exit %d, %q, %q, want %q", line, code, out, words, want)
		}
		if said := "last is task " + apitest.ATask + ": exec on role=fw\n"; !strings.Contains(words, said) {
			t.Errorf("muster %s: said %q, want %q", line, words, said)
		}
	}
	none := apitest.New(t, map[string]http.HandlerFunc{"GET /v1/tasks": apitest.Answer(`{"tasks": []}`)})
	code, _, words := muster(t, none.URL, "cancel", "last")
	if code != cli.ExitNotAll || !strings.Contains(words, "you have no task") {
		t.Errorf("without tasks: exit %d, %q", code, words)
	}
}

// task:last means the hosts of the newest task, wherever a selector stands, and nowhere else.
func TestLastIsAPartOfSelectors(t *testing.T) {
	t.Parallel()
	routes := lookRoutes()
	routes["GET /v1/tasks"] = apitest.Answer(`{"tasks": [` + apitest.TaskJSON(jobs.TaskEnded, `"succeeded": 4`) + `]}`)
	var on string
	routes["POST /v1/tasks"] = func(w http.ResponseWriter, r *http.Request) {
		var b api.Submit
		if err := json.NewDecoder(r.Body).Decode(&b); err != nil {
			t.Error(err)
		}
		on = b.On + " " + b.Args["cmd"]
		apitest.Answer(apitest.TaskJSON(jobs.TaskRunning, ""))(w, r)
	}
	routes["GET /v1/hosts"] = func(w http.ResponseWriter, r *http.Request) {
		on = r.URL.Query().Get("on") + " "
		apitest.Answer(`{"hosts": [], "total": 0}`)(w, r)
	}
	a := apitest.New(t, routes)
	for _, c := range []struct {
		args []string
		want string
		said bool
	}{
		{[]string{"run", "exec", "task:last/failed", "--arg", "cmd=id", "--detach"}, "task:" + apitest.ATask + "/failed id",
			true},
		{[]string{"run", "exec", "--on", "fw*!task:last", "--arg", "cmd=task:last", "--detach"},
			"fw*!task:" + apitest.ATask + " task:last", true},
		{[]string{"exec", "(task:last/!succeeded)&fw*,task:last/failed", "--detach", "--", "task:last"},
			"(task:" + apitest.ATask + "/!succeeded)&fw*,task:" + apitest.ATask + "/failed task:last", true},
		{[]string{"exec", "fw1", "--detach", "--", "id", "task:last"}, "fw1 id task:last", false},
		{[]string{"hosts", "ls", "task:last/failed"}, "task:" + apitest.ATask + "/failed ", true},
		{[]string{"hosts", "task:lasting"}, "task:lasting ", false},
	} {
		on = ""
		args := slices.Clone(c.args)
		if at := slices.Index(args, "--"); at >= 0 {
			args = slices.Insert(args, at, "--server", a.URL)
		} else {
			args = append(args, "--server", a.URL)
		}
		code, _, words := muster(t, "", args...)
		if code != 0 || on != c.want {
			t.Errorf("muster %q: exit %d, %s; asked for %q, want %q", c.args, code, words, on, c.want)
		}
		if said := strings.Contains(words, "last is task "+apitest.ATask); said != c.said {
			t.Errorf("muster %q: said which is the last: %v, want %v", c.args, said, c.said)
		}
	}
}

// Nobody has to know which commands list alone, and which need the word.
func TestWhatListsDoesSoWithAndWithoutLs(t *testing.T) {
	t.Parallel()
	for _, c := range newRoot().Commands() {
		at := slices.IndexFunc(c.Commands(), func(sub *cobra.Command) bool { return sub.Name() == "ls" })
		if at < 0 {
			if strings.HasPrefix(c.Short, "List ") {
				t.Errorf("%s has no ls", c.CommandPath())
			}
			continue
		}
		if ls := c.Commands()[at]; !ls.HasAlias("list") || ls.Flags().Lookup("output") == nil {
			t.Errorf("%s: aliases %q, or no -o", ls.CommandPath(), ls.Aliases)
		}
		if c.Flags().Lookup("output") == nil {
			t.Errorf("%s does not list by itself", c.CommandPath())
		}
	}
	a := apitest.New(t, lookRoutes())
	for _, line := range []string{"tasks", "nodes", "limits", "token", "hosts", "jobs " + apitest.ATask, "queue"} {
		name, arg, _ := strings.Cut(line, " ")
		_, want, _ := muster(t, a.URL, strings.Fields(line)...)
		for _, word := range []string{"ls", "list"} {
			code, out, words := muster(t, a.URL, strings.Fields(name+" "+word+" "+arg)...)
			if code != 0 || out != want || want == "" {
				t.Errorf("muster %s %s: exit %d, %q %q, want %q", name, word, code, out, words, want)
			}
		}
	}
}

func TestExecIsRunExecInShort(t *testing.T) {
	t.Parallel()
	a := apitest.New(t, map[string]http.HandlerFunc{"POST /v1/tasks": apitest.Answer(apitest.TaskJSON(jobs.TaskRunning,
		""))})
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
		var b api.Submit
		a.Sent(t, "POST /v1/tasks", &b)
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
		if code, _, words := muster(t, "", args...); code != cli.ExitUsage || !strings.Contains(words, want) {
			t.Errorf("muster %s: exit %d, %q, want %q", line, code, words, want)
		}
	}
}
