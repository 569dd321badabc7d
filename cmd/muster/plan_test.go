package main

import (
	"encoding/json"
	"net/http"
	"testing"

	"muster/api"
	"muster/cli"
	"muster/testkit/apitest"
)

const foresight = `{"plan": "0wcy7y2fb2", "at": "2026-11-21T10:00:00.000Z", "runbook": "firmware", "on": "all", "hosts": 200,
	"never": 3, "begins": "2026-11-21T10:00:10.000Z", "half": "2026-11-21T11:00:00.000Z", "done": "2026-11-22T10:00:00.000Z",
	"openings": [{"start": "2026-11-21T10:00:00.000Z", "end": "2026-11-21T12:00:00.000Z", "windows": ["nightly"], "hosts": 60}],
	"left": [{"count": 3, "hosts": "fw[001-003]", "why": "no window\u001b"}],
	"slots": [{"zone": "default", "slots": 10, "want": 34}, {"zone": "eu", "slots": 10, "want": 3}],
	"others": [{"task": "0wcy7y2fb3", "runbook": "exec", "operator": "bob", "waiting": 12, "done": "2026-11-21T10:00:30.000Z"}],
	"takes": [{"model": "x200", "customer": "acme", "hosts": 190, "seconds": 60, "seconds_p90": 90, "successes": 7},
		{"model": "", "customer": "bolt", "hosts": 10, "seconds": 1200, "seconds_p90": 1200, "successes": 0},
		{"model": "", "customer": "cord", "hosts": 1, "seconds": 360, "seconds_p90": 360, "successes": 0,
			"unsaid": true}],
	"notes": ["2 paused tasks"]}`

const calibrated = `{"plans": 9, "median": 1.1, "wrong": 1, "compared": [
	{"plan": "p", "at": "2026-11-21T10:00:00.000Z", "task": "0wcy7y2fb2", "state": "ended", "runbook": "firmware", "hosts": 200,
	 "undone": 4, "expected_ns": 60000000000, "actual_ns": 600000000000, "off": 10},
	{"plan": "q", "task": "0wcy7y2fb3", "state": "running", "runbook": "exec", "hosts": 2}]}`

func planAPI(t *testing.T) *apitest.API {
	return apitest.New(t, map[string]http.HandlerFunc{"POST /v1/plan": apitest.Answer(foresight),
		"GET /v1/plan/calibration": apitest.Answer(calibrated)})
}

func TestPlanSaysWhenAndWhoIsLeft(t *testing.T) {
	t.Parallel()
	a := planAPI(t)
	code, out, words := muster(t, a.URL, "plan", "firmware", "--on", "all", "--arg", "image=x", "--priority",
		"low", "--disruptive")
	if code != cli.ExitStopped {
		t.Errorf("some hosts are left: exit %d, %s", code, words)
	}
	apitest.WantParts(t, "the plan", out, "200 hosts", "in 10s", "in 1h00m", "in 1d00h", "60", "nightly",
		"3 hosts would not be done", `no window\x1b`, "fw[001-003]", "10 slots: 34 would do", "0wcy7y2fb3", "bob",
		"2 paused tasks", "x200", "1m00s", "1m30s", "successes took, the last 7", "20m00s",
		"--expect or the runbook says", "the bound of an attempt: nobody knows")
	var sent api.Submit
	a.Sent(t, "POST /v1/plan", &sent)
	if sent.Runbook != "firmware" || sent.On != "all" || sent.Args["image"] != "x" ||
		!sent.Disruptive || sent.Priority != "low" {
		t.Errorf("sent %+v", sent)
	}
	muster(t, a.URL, "plan", "exec", "--on", "all", "--window", "--expect", "5m",
		"--override-freeze", "INC-7")
	a.Sent(t, "POST /v1/plan", &sent)
	if !sent.Window || sent.Expect != "5m" || sent.OverrideFreeze != "INC-7" {
		t.Errorf("sent %+v", sent)
	}
	var p api.Foresight
	_, out, _ = muster(t, a.URL, "plan", "firmware", "--on", "all", "-o", "json")
	if json.Unmarshal([]byte(out), &p) != nil || p.Never != 3 {
		t.Errorf("as JSON: %s", out)
	}
	for _, args := range [][]string{{"plan"}, {"plan", "exec"}, {"plan", "exec", "--calibrate"},
		{"plan", "--calibrate", "--days", "0"}, {"plan", "exec", "--on", "all", "--priority", "top"},
		{"plan", "exec", "--on", "all", "--override-freeze", " "}} {
		if code, _, words := muster(t, a.URL, args...); code != cli.ExitUsage {
			t.Errorf("muster %v: exit %d, %s", args, code, words)
		}
	}
}

func TestCalibrationShowsThePlanThatWasWrong(t *testing.T) {
	t.Parallel()
	code, out, _ := muster(t, planAPI(t).URL, "plan", "--calibrate")
	if code != 0 {
		t.Errorf("exit %d", code)
	}
	apitest.WantParts(t, "the comparison", out, "0wcy7y2fb2", "1m00s", "10m00s", "10.00 wrong", "running",
		"9 plans, 2 became tasks", "1 of them have ended", "1.10 times", "1 wrong")
}
