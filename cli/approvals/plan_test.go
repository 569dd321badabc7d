package approvals

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"muster/api"
	"muster/fleet"
	"muster/jobs"
	"muster/scripts"
	"muster/trust"
)

// plannedAs returns a held task as an honest server shows it, for a change by a dishonest one.
func plannedAs(t *testing.T, name string, change func(*api.HeldDetail)) api.HeldDetail {
	t.Helper()
	action, err := json.Marshal(scripts.Frozen{Runbook: name, Hash: "abc", Steps: []scripts.Step{{Name: "look"}},
		Values: scripts.Values{Args: map[string]string{"cmd": "uptime\x1b[2J"}}})
	if err != nil {
		t.Fatal(err)
	}
	spec, err := json.Marshal(jobs.Spec{Runbook: "exec", Operator: "user:ann", On: "all", Action: action,
		Timing: jobs.Timing{Window: true, Override: "INC-7"}})
	if err != nil {
		t.Fatal(err)
	}
	now := time.Date(2026, 11, 28, 12, 0, 0, 0, time.UTC)
	order, lines, err := trust.New(trust.Order{Installation: "i1", Task: "0000000001", NotBefore: now,
		NotAfter: now.Add(time.Hour), Spec: spec},
		[]fleet.Host{{Name: "fw1", Zone: "default"}, {Name: "fw2", Zone: "default"}}, trust.RecordOf)
	if err != nil {
		t.Fatal(err)
	}
	missing := 2
	d := api.HeldDetail{HeldTask: api.HeldTask{Task: "0000000001", Hash: trust.HashOf(order), Signed: []string{"bob"}},
		Order: order, Missing: &missing, Zones: []api.HeldZone{{Zone: "default", Hosts: 2, Shares: lines["default"]}},
		Customers: []api.HeldCustomer{{Customer: "acme", Count: 2, Hosts: "fw[1-2]"}}}
	change(&d)
	return d
}

// A plan is shown only if it is that of the bytes which are signed.
func TestAPlanIsThatOfTheBytes(t *testing.T) {
	t.Parallel()
	for _, x := range []struct {
		name, runbook string
		change        func(*api.HeldDetail)
		words         string // empty: it is shown
	}{
		{"an honest server", "exec", func(*api.HeldDetail) {}, ""},
		{"another hash", "exec", func(d *api.HeldDetail) { d.Hash = "SHA256:x" }, "sign nothing"},
		{"other bytes", "exec", func(d *api.HeldDetail) { d.Order = []byte("{}") }, "sign nothing"},
		{"no order", "exec", func(d *api.HeldDetail) { d.Order, d.Hash = nil, trust.HashOf(nil) }, "no order"},
		{"another task", "exec", func(d *api.HeldDetail) { d.Task = "0000000002" }, "sign nothing"},
		{"other steps", "firmware", func(*api.HeldDetail) {}, "has the steps of firmware"},
		{"no hosts", "exec", func(d *api.HeldDetail) { d.Zones = nil }, "which hosts"},
		{"other hosts", "exec", func(d *api.HeldDetail) { d.Zones[0].Shares[0] = "fw9 x\n" }, "not the one that was signed"},
	} {
		p, err := planOf(plannedAs(t, x.runbook, x.change), "0000000001")
		if (err == nil) != (x.words == "") || err != nil && !strings.Contains(err.Error(), x.words) {
			t.Errorf("%s: %v, want words with %q", x.name, err, x.words)
		}
		if err != nil {
			continue
		}
		for _, words := range []string{"cmd=uptime", "look", "user:ann", "2: fw[1-2]", "acme, 2 hosts",
			"windows of the hosts", "INC-7", "SHA256:", "bob: 2 more people must sign"} {
			if !strings.Contains(p.text(), words) {
				t.Errorf("the plan has no %q: %s", words, p.text())
			}
		}
		if strings.Contains(p.text(), "\x1b") {
			t.Errorf("a value controls the terminal: %q", p.text())
		}
	}
}

// Only a yes signs.
func TestOnlyAYesSigns(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]bool{"y\n": true, " YES\n": true, "yes": true, "\n": false, "": false,
		"n\n": false, "yy\n": false} {
		var asked strings.Builder
		if err := answered(strings.NewReader(text), &asked); (err == nil) != want ||
			!strings.Contains(asked.String(), "[y/N]") {
			t.Errorf("%q: %v after %q", text, err, asked.String())
		}
	}
	if err := consents(strings.NewReader("y\n"), os.Stderr); err == nil || !strings.Contains(err.Error(), "--yes") {
		t.Errorf("without a terminal: %v", err)
	}
}

// The first usual key that is there signs.
func TestTheFirstUsualKeySigns(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if got := usualKey(dir); got != "" {
		t.Errorf("no key: %q", got)
	}
	for _, name := range []string{"id_ecdsa", "id_ed25519", "id_ed25519_sk"} {
		if err := os.WriteFile(filepath.Join(dir, name), nil, 0o600); err != nil {
			t.Fatal(err)
		}
		if got := usualKey(dir); filepath.Base(got) != name {
			t.Errorf("with %s: %q", name, got)
		}
	}
	if _, err := NewSigner(filepath.Join(dir, "none")); err == nil || !strings.Contains(err.Error(), "none") {
		t.Errorf("a key that is not there: %v", err)
	}
}

// The plan says how the runbook differs from its last run.
func TestAPlanIsComparedWithTheLastRun(t *testing.T) {
	t.Parallel()
	for _, x := range []struct {
		name  string
		last  *api.HeldLast
		words []string
	}{
		{"the same", &api.HeldLast{Task: "0000000009", Hash: "abc"}, []string{"task 0000000009", "the same runbook"}},
		{"forgotten", &api.HeldLast{Task: "0000000009", Hash: "xyz"}, []string{"another text", "kept no more"}},
		{"other steps", &api.HeldLast{Task: "0000000009", Hash: "xyz", Plan: []byte(`[{"name":"peek\u001b[2J"}]`)},
			[]string{"another text", "steps since the last run", "look", "peek"}},
	} {
		p, err := planOf(plannedAs(t, "exec", func(d *api.HeldDetail) { d.Last = x.last }), "0000000001")
		if err != nil {
			t.Fatal(err)
		}
		for _, words := range x.words {
			if !strings.Contains(p.text(), words) {
				t.Errorf("%s: no %q in %s", x.name, words, p.text())
			}
		}
		if strings.Contains(p.text(), "\x1b") {
			t.Errorf("%s: a step controls the terminal: %q", x.name, p.text())
		}
	}
}
