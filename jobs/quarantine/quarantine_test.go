package quarantine

import (
	"testing"
)

func TestThePolicyNamesTheTasks(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name      string
		policy    Policy
		runbook   string
		customers []string
		check     bool
		want      Kind
	}{
		{"it is off", Policy{}, "firewall", []string{"acme"}, false, Plain},
		{"all", Policy{Unknown: true}, "firewall", []string{""}, false, Sets},
		{"a check", Policy{Unknown: true}, "firewall (check)", nil, true, Check},
		{"a check, and it is off", Policy{}, "firewall (check)", nil, true, Check},
		{"another runbook", Policy{Unknown: true, Runbooks: []string{"firmware"}}, "firewall", nil, false, Plain},
		{"this runbook", Policy{Unknown: true, Runbooks: []string{"firewall"}}, "firewall", nil, false, Sets},
		{"one customer of two", Policy{Unknown: true, Customers: []string{"acme"}}, "exec",
			[]string{"beta", "acme"}, false, Sets},
		{"another customer", Policy{Unknown: true, Customers: []string{"acme"}}, "exec", []string{"beta"}, false,
			Plain},
	} {
		if got := c.policy.Of(c.runbook, c.customers, c.check); got != c.want {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
	}
}

func TestAnEntryIsReadAsItIsWritten(t *testing.T) {
	t.Parallel()
	h := Hosts{}
	lost := End{Host: "fw1", Job: "0bjya00001:fw1", At: "17", Outcome: "unknown", Error: "the line broke"}
	if got := h.After(Sets, lost); got != SetAside {
		t.Fatalf("event %q", got)
	}
	want := Mark{Since: 17, Job: "0bjya00001:fw1", Why: "the line broke"}
	if got := ReadMark(h["fw1"]); got != want ||
		got.Note() != "in quarantine: job 0bjya00001:fw1 ended unknown: the line broke" {
		t.Errorf("%+v: %s", got, got.Note())
	}
	for name, text := range map[string]string{"nothing": "", "a word": "x", "two": "17 -"} {
		if got := ReadMark(text); got.Job != "" {
			t.Errorf("%s: %+v", name, got)
		}
	}
	if h.After(Sets, End{Host: "fw1", Outcome: "succeeded"}) != "" || h.After(Check, End{Host: "fw1",
		Outcome: "failed"}) != "" || !h.Keeps("fw1", Sets) || h.Keeps("fw1", Check) || h.Keeps("fw2", Sets) {
		t.Errorf("hosts: %v", h)
	}
	if h.After(Check, End{Host: "fw1", Outcome: "succeeded", Began: 17}) != "" || len(h) != 1 {
		t.Errorf("after a check that began before: %v", h)
	}
	if h.After(Check, End{Host: "fw1", Outcome: "succeeded", Began: 18}) != Release || len(h) > 0 {
		t.Errorf("after a clean check: %v", h)
	}
}
