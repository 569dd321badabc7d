package server_test

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"muster/api"
	"muster/fleet"
	"muster/jobs"
)

func TestSummaryFoldsWhatEndedAlike(t *testing.T) {
	t.Parallel()
	list := hosts()
	for i := range 20 {
		list = append(list, fleet.Host{Name: fmt.Sprintf("web%02d", i), Zone: "eu", User: "root", Port: 22,
			Address: fmt.Sprintf("10.0.1.%d", i+1), Fence: fleet.FenceNone})
	}
	w := start(t, setup{inventory: fixed(list)})
	task := w.submit(run("all")).Task
	long := bytes.Repeat([]byte("x"), 5000)
	one := 1
	end := func(host string) jobs.Result {
		switch {
		case host == "vpn1":
			return jobs.Result{Outcome: jobs.Failed, ExitCode: &one, Error: "exit 1: no",
				Said: jobs.Said{Output: []byte("no\n")}}
		case host == "fw003":
			return jobs.Result{Outcome: jobs.Succeeded, ExitCode: new(int), Said: jobs.Said{Output: long}}
		case strings.HasPrefix(host, "web"):
			inv, _ := fleet.New(list)
			h, _ := inv.Host(host)
			return jobs.Result{Outcome: jobs.Unreachable,
				Error: fmt.Sprintf("3 tries, the last: connect %s:22: connection refused by %s", h.Address, host)}
		}
		return succeed(host)
	}
	w.work("eu", end)
	var early api.Summary
	w.call("GET", "/v1/tasks/"+string(task)+"/summary", nil, &early)
	if len(early.Groups) != 3 || early.Task.State != jobs.TaskRunning {
		t.Errorf("while it runs: %+v", early)
	}
	w.work("default", end)

	var s api.Summary
	res := w.call("GET", "/v1/tasks/"+string(task)+"/summary", nil, &s)
	if res.StatusCode != 200 || s.Task.Task != task || len(s.Groups) != 4 {
		t.Fatalf("%s %+v", res.Status, s)
	}
	for i, want := range []struct {
		outcome jobs.Outcome
		hosts   string
		count   int
		output  string
		error   string
		leftOut int
		example string
	}{
		{jobs.Unreachable, "web[00-19]", 20, "",
			"3 tries, the last: connect ADDRESS: connection refused by HOST", 0, "web00"},
		{jobs.Succeeded, "fw[001-002]", 2, "fine\n", "", 0, "fw001"},
		{jobs.Failed, "vpn1", 1, "no\n", "exit 1: no", 0, "vpn1"},
		{jobs.Succeeded, "fw003", 1, string(long[:4096]), "", 904, "fw003"},
	} {
		g := s.Groups[i]
		if g.Outcome != want.outcome || g.Hosts != want.hosts || g.Count != want.count ||
			string(g.Output) != want.output || g.Error != want.error || g.LeftOut != want.leftOut ||
			g.Example != jobs.NewID(task, want.example) {
			t.Errorf("group %d: %+v", i, g)
		}
	}
	if g := s.Groups[2]; g.ExitCode == nil || *g.ExitCode != 1 {
		t.Errorf("exit code of the failure: %v", g.ExitCode)
	}
}
