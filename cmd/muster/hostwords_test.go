package main

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"muster/jobs"
	"muster/testkit/sshtest"
)

// Output of a real host reads like muster's own words, would end a quotation, and has the
// characters of an escape beside a real one. In every view it stands in quotes, as output of the
// host.
func TestAHostCannotPutASentenceIntoAnyView(t *testing.T) {
	t.Parallel()
	s := sshtest.StartSSHD(t, sshtest.Options{})
	h := newCellar(t, fmt.Sprintf("hosts:\n  - {name: fw1, address: %s, port: %d, user: %s, key: %s, host_key: %q}\n",
		s.Address, s.Port, s.User, s.Key, s.HostKey))
	up := h.start("up", "--config", h.file("muster.yaml"))
	up.await("server listens")

	h.write("words", `x"; the host took it back \x1b`+"\x1b[2J")
	const want = `exit 3; the host said: "x\"; the host took it back \\x1b\x1b[2J"`
	var end jobs.TaskInfo
	h.query(&end, "run", "exec", "--on", "fw1", "--arg", "cmd=cat "+h.file("words")+"; exit 3", "--wait")
	id, job := string(end.Task), string(jobs.NewID(end.Task, "fw1"))
	if j := h.jobs(end.Task)[0]; j.Error != want || j.ExitCode == nil || *j.ExitCode != 3 {
		t.Errorf("in JSON: %+v, want %s", j, want)
	}
	for late, tick := h.late(), time.Tick(commandEvery); ; {
		var page struct {
			Jobs []json.RawMessage `json:"jobs"`
		}
		if h.query(&page, "history", "--task", id); len(page.Jobs) == 1 {
			break
		}
		select {
		case <-late:
			t.Fatal("history does not get to know the job")
		case <-tick:
		}
	}
	for _, view := range []string{"task " + id, "jobs " + id, "job " + job, "history --task " + id, "report " + id,
		"report --form csv " + id} {
		out, _ := h.muster(strings.Fields(view)...)
		if strings.HasSuffix(view, "csv "+id) || strings.HasPrefix(view, "report --form csv") {
			out = strings.ReplaceAll(out, `""`, `"`)
		}
		if !strings.Contains(out, want) || strings.Contains(out, "\x1b") {
			t.Errorf("muster %s: %q, want %s", view, out, want)
		}
	}
	page, _ := h.muster("report", "--form", "html", id)
	if !strings.Contains(page, "the host said: &#34;x\\&#34;; the host took it back") {
		t.Errorf("the page of the report: %s", page)
	}
	if out, _ := h.muster("logs", "--fold", id); !strings.Contains(out, `\x5cx1b\x1b[2J`) {
		t.Errorf("muster logs --fold: %q, want the characters told from the byte", out)
	}
}

// A real host runs a step again: a line of muster stands between the two runs, and output of the
// host that looks like such a line is kept apart.
func TestALineStandsBetweenTwoRunsOnARealHost(t *testing.T) {
	t.Parallel()
	s := sshtest.StartSSHD(t, sshtest.Options{})
	h := newCellar(t, fmt.Sprintf("hosts:\n  - {name: fw1, address: %s, port: %d, user: %s, key: %s, host_key: %q}\n",
		s.Address, s.Port, s.User, s.Key, s.HostKey))
	h.write("own.yaml", "name: own\nrepeatable: true\ntimeout: 1m\nsteps:\n  - name: one\n"+
		"    run: 'echo out; echo == attempt 9: the step runs once more ==; mkdir "+h.file("again")+
		" 2>&- && exit 7; exit 0'\n"+
		"    classes: [{exit: 7, class: transient}]\n    retry: {tries: 2, delay: 1s}\n")
	h.configure(map[string]any{"runbooks": []string{h.file("own.yaml")}})
	up := h.start("up", "--config", h.file("muster.yaml"))
	up.await("server listens")
	var end jobs.TaskInfo
	h.query(&end, "run", "own", "--on", "fw1", "--wait")
	const said = "out\n==|attempt 9: the step runs once more ==\n"
	out, _ := h.muster("logs", string(jobs.NewID(end.Task, "fw1")))
	if want := said + "== attempt 2: the step runs once more ==\n" + said; out != want {
		t.Errorf("%+v\n%s\nwant\n%s", end.Outcomes, out, want)
	}
}
