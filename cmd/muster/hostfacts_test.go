package main

import (
	"net/http"
	"testing"

	"muster/cli"
	"muster/testkit/apitest"
)

func TestFactsAreColumnsOfHosts(t *testing.T) {
	t.Parallel()
	a := apitest.New(t, map[string]http.HandlerFunc{
		"GET /v1/hosts": apitest.Answer(`{"total": 2, "hosts": [{"name": "fw1"}, {"name": "fw2"}]}`),
		"GET /v1/facts": apitest.Answer(`{"hosts": [{"host": "fw1", "facts": {"os": "debian", "kernel": "6.1\u001b"}}]}`)})
	code, out, words := muster(t, a.URL, "hosts", "ls", "fw*", "--columns", "host,fact.os,fact.kernel")
	want := "HOST  FACT.OS  FACT.KERNEL\nfw1   debian   6.1\\x1b\nfw2   -        -\n"
	if code != cli.ExitOK || out != want {
		t.Errorf("exit %d, %s:\n%swant\n%s", code, words, out, want)
	}
	if got := a.Requests()[1]; got != "GET /v1/facts?on=fw%2A" {
		t.Errorf("asked %s", got)
	}
	code, _, words = muster(t, a.URL, "hosts", "--columns", "fact.oss,nosuch")
	if code != cli.ExitUsage {
		t.Errorf("exit %d", code)
	}
	apitest.WantParts(t, "columns that are none", words, `--columns: there is no fact "oss": want some of fact.os, `,
		`--columns: "nosuch" is no column`)
}
