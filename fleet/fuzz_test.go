package fleet_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"muster/fleet"
)

func FuzzParse(f *testing.F) {
	example, err := os.ReadFile(filepath.Join("..", "etc", "examples", "fleet.yaml"))
	if err != nil {
		f.Fatal(err)
	}
	f.Add(example)
	for _, seed := range []string{
		"", "hosts: []", "hosts:\n\t- name: a", "a: &a [*a]", "--- a\n---\n", "hosts: [{}]", "hosts: [[]]",
		"hosts: [{name: a, address: b, known_hosts: /k, labels: {a: b}, host_keys: [x]}]",
		"defaults: {port: 1, fence: none}\nhosts: [{name: a, address: '::1', host_key: " + keyA + "}]",
		"limits: {site/x: 5, mirror/y: {max: 1, customer: a, zone: z}}", "limits: {zone/z: 1}\nhosts: []",
		"hosts: [{name: a, address: b, known_hosts: /k, labels: {site: x}}]\nlimits: {site/x: 0, group/g: 1}",
		"defaults: {jump: b, profile: legacy}\nhosts: [{name: b, address: b, host_ca: " + keyA + "}]",
		"hosts: [{name: a, address: a, known_hosts: /k, jump: [b, a], principals: [x], revoked: []}]",
		"overrides: [{on: a, user: b, labels: {c: d}}, {on: 'x=y', host_key: z}]\nhosts: [{name: a}]",
		"overrides: [{on: a, jump: [b], known_hosts: /x}]\nhosts: [{name: a, address: b, known_hosts: /k}]",
		"? [a]: b\n: c", "%YAML 1.2\n---\n!!map {}", "hosts: |\n  x", "{<<: {hosts: []}}", "\xff\xfeh\x00",
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		inv, err := fleet.Parse(fleet.Source{Name: "f", Data: data})
		if err != nil {
			var mistakes fleet.Mistakes
			if inv != nil || !errors.As(err, &mistakes) || len(mistakes) == 0 {
				t.Fatalf("Parse = %v, %v", inv, err)
			}
			for _, m := range mistakes {
				if m.File != "f" || m.Line < 1 || strings.TrimSpace(m.Text) == "" ||
					m.Line > 2+strings.Count(string(data), "\n")+strings.Count(string(data), "\r") {
					t.Errorf("mistake without place or text: %#v", m)
				}
			}
			return
		}
		for _, h := range inv.Hosts() {
			if fleet.CheckName(h.Name) != nil || h.Address == "" || h.Port < 1 || h.Zone == "" {
				t.Errorf("accepted %+v", h)
			}
			if len(h.HostKeys)+len(h.HostCAs) == 0 && inv.KnownHosts(h.Name) == "" {
				t.Errorf("accepted without host key %+v", h)
			}
		}
		for _, l := range inv.Limits() {
			if fleet.CheckLimitName(l.Name) != nil || l.Zone == "" || l.Max < 0 {
				t.Errorf("accepted %+v", l)
			}
		}
		again, err := fleet.New(inv.Hosts(), inv.Limits()...)
		if err != nil || again.Version() != inv.Version() {
			t.Errorf("New refuses what Parse accepts: %v", err)
		}
	})
}

func FuzzParseSelector(f *testing.F) {
	for _, seed := range []string{
		"", "all", "fw[001-300]!fw007&fw*", "customer=acme,role in (fw,vpn),!drained", "{role=fw}!fw001",
		"fw[1-9/2,7]x[1-2]", "a,,b", "!", "{", "fw[1-999999999]", "x>1,y notin ()", "-oProxyCommand=x",
		"fw1\nfw2", "x in (", "é[1]", "*?*", "fw[1-100000]", "a^b", "((a))!(b,c)", "task:x/!failed&a",
		"rack*[1-2]", "(role=fw)", "@x", "a!(", "{a}b", "fw001&(", "task:",
	} {
		f.Add(seed)
	}
	inv := small(f)
	f.Fuzz(func(t *testing.T, text string) {
		sel, err := fleet.ParseSelector(text)
		if err != nil {
			if strings.TrimSpace(err.Error()) == "" || len(err.Error()) > 2000 {
				t.Errorf("unfit error %q", err)
			}
			var e *fleet.SelectorError
			if !errors.As(err, &e) || e.Column < 0 || e.Column > 1+len([]rune(text)) {
				t.Errorf("no column, or one that is not there: %#v", err)
			}
			return
		}
		hosts, err := inv.Select(sel)
		if (err == nil) == (len(hosts) == 0) {
			t.Errorf("%q picks %d hosts, error %v", text, len(hosts), err)
		}
		if err != nil && strings.TrimSpace(err.Error()) == "" {
			t.Errorf("%q: empty error", text)
		}
	})
}
