package fleet_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"muster/fleet"
)

func importConfig(text string) fleet.SSHImport {
	return fleet.ImportSSHConfig(fleet.SSHConfig{
		Files: []fleet.Source{source("config", text)}, Home: "/home/op", User: "op",
		Trust: func(address string, port int) fleet.Trust {
			if address == "unknown.example.com" {
				return fleet.Trust{}
			}
			if strings.HasSuffix(address, ".ca") {
				return fleet.Trust{HostCAs: []string{keyA}, Revoked: []string{keyEC}}
			}
			return fleet.Trust{HostKeys: []string{keyB}, Revoked: []string{keyEC}}
		},
	})
}

func TestSSHConfigIsImported(t *testing.T) {
	t.Parallel()
	got := importConfig(`
# of the night shift
Host fw1 fw2
	HostName %h.example.com
	User=admin
	IdentityFile "~/.ssh/id fw"   # quoted
	IdentityFile ~/.ssh/second
	ProxyJump bastion

host bastion
  hostname = 192.0.2.1
  PORT 2222
  User hop
  ProxyJump none

Host old
  HostName 10.0.0.9
  KexAlgorithms +diffie-hellman-group1-sha1
  ProxyJump bastion,root@10.9.9.9:22
  CertificateFile /etc/ssh/id-cert.pub
  HostKeyAlias old.ca

Host *.lab !secret.lab
  User lab

Host a.lab secret.lab
Host lost
  HostName unknown.example.com
Host *
  User fallback
  IdentityFile /etc/keys/%r_%n
`)
	names := map[string]fleet.Host{}
	for _, h := range got.Hosts {
		names[h.Name] = h
	}
	host := func(name, address, login string, way ...string) fleet.Host {
		h := fleet.Host{Name: name, Address: address, Port: 22,
			HostKeys: []string{keyB}, Zone: fleet.DefaultZone, Fence: fleet.FenceAuto}
		h.User, h.Key, _ = strings.Cut(login, " ")
		for _, name := range way {
			jump := names[name]
			h.Jump = append(h.Jump, jump.Hop())
		}
		return h
	}
	bastion := host("bastion", "192.0.2.1", "hop /etc/keys/hop_bastion")
	bastion.Port = 2222
	old := host("old", "10.0.0.9", "fallback /etc/keys/fallback_old", "bastion", "10.9.9.9")
	old.Profile, old.Certificate = fleet.ProfileLegacy, "/etc/ssh/id-cert.pub"
	old.HostKeys = nil
	old.HostCert = fleet.HostCert{HostCAs: []string{keyA}, Principals: []string{"old.ca"},
		Revoked: []string{keyEC}}
	lost := host("lost", "unknown.example.com", "fallback /etc/keys/fallback_lost")
	lost.HostKeys = nil
	want := []fleet.Host{
		host("10.9.9.9", "10.9.9.9", "root /etc/keys/root_10.9.9.9"),
		host("a.lab", "a.lab", "lab /etc/keys/lab_a.lab"),
		bastion,
		host("fw1", "fw1.example.com", "admin /home/op/.ssh/id fw", "bastion"),
		host("fw2", "fw2.example.com", "admin /home/op/.ssh/id fw", "bastion"),
		lost,
		old,
		host("secret.lab", "secret.lab", "fallback /etc/keys/fallback_secret.lab"),
	}
	if diff := cmp.Diff(want, got.Hosts); diff != "" {
		t.Errorf("hosts (-want +got):\n%s", diff)
	}
	wantNotes(t, got.Notes, "config:7: identityfile of fw1: only the first",
		"host lost: known_hosts has no key of unknown.example.com port 22: enroll it",
		"config:7: identityfile of fw2: only the first")
	if _, err := fleet.New(got.Hosts); err != nil {
		t.Errorf("these are no hosts of an inventory: %v", err)
	}
}

func wantNotes(t *testing.T, got fleet.Mistakes, wants ...string) {
	t.Helper()
	for _, want := range wants {
		if !slices.ContainsFunc(got, func(m fleet.Mistake) bool { return strings.Contains(m.Error(), want) }) {
			t.Errorf("no note %q in:\n%v", want, got)
		}
	}
	if len(got) > len(wants) {
		t.Errorf("%d notes, want %d:\n%v", len(got), len(wants), got)
	}
}

func TestIgnoredSettingsOfSSHAreNoted(t *testing.T) {
	t.Parallel()
	got := importConfig(`Host a
  Port 70000
  ProxyCommand nc %h %p
  IdentityFile ./here
Match host b exec "true"
  User never
  Port 1
Host b
  StrictHostKeyChecking no
  ProxyJump b2
Host b2
  ProxyJump b
Host -oProxyCommand=x
Host c d
  HostName
  User "open
  ProxyJump c:99999
  IdentityAgent none
Include more.conf
`)
	var names []string
	for _, h := range got.Hosts {
		names = append(names, h.Name)
		if h.User != "op" || h.Port != 22 || h.Key != "" || h.Jump != nil && h.Name != "b" {
			t.Errorf("%+v", h)
		}
	}
	if want := []string{"a", "b", "b2", "c", "d"}; !slices.Equal(names, want) {
		t.Errorf("hosts %q, want %q", names, want)
	}
	wantNotes(t, got.Notes, `config:2: Port "70000"`, "config:3: proxycommand is not supported",
		`config:4: identityfile "./here" depends`, "config:5: Match is not supported",
		"config:9: StrictHostKeyChecking no", "config:12: ProxyJump goes in a circle, b → b2 → b",
		`config:13: host "-oProxyCommand=x" was left out`, "config:15: HostName has no value",
		`config:16: a quote " is not closed`, `config:17: ProxyJump "c:99999": port`,
		"config:19: Include /home/op/.ssh/more.conf was not followed")
}

func TestAnIncludedFileAppliesToTheHostsAroundTheInclude(t *testing.T) {
	t.Parallel()
	files := map[string]string{
		"/home/op/.ssh/a.conf": "User inner\nHost x\n  Port 1\nHost y\n  Port 2\nInclude ~/b.conf\n",
		"/home/op/b.conf":      "ProxyJump none\nInclude ~/b.conf\n",
	}
	var asked []string
	got := fleet.ImportSSHConfig(fleet.SSHConfig{
		Files: []fleet.Source{source("c", "Host x\n  Include a.conf\n  IdentityFile /k\nHost y\n  User outer\n")},
		Home:  "/home/op",
		Include: func(pattern string) ([]fleet.Source, error) {
			asked = append(asked, pattern)
			return []fleet.Source{source(pattern, files[pattern])}, nil
		},
	})
	x, y := got.Hosts[0], got.Hosts[1]
	if x.User != "inner" || x.Port != 1 || x.Key != "/k" || y.User != "outer" || y.Port != 22 {
		t.Errorf("x %+v\ny %+v", x, y)
	}
	wantNotes(t, got.Notes, "it is included 17 files deep")
	if len(asked) != 17 || asked[0] != "/home/op/.ssh/a.conf" {
		t.Errorf("asked for %q", asked)
	}
}

// A ProxyJump with another login than the lines of that host creates another host.
func TestAJumpHostWithAnotherLoginIsAnotherHost(t *testing.T) {
	t.Parallel()
	got := importConfig("Host b\n Port 2022\nHost x\n ProxyJump ssh://admin@b:22\nHost y\n ProxyJump b\n" +
		"Host z\n ProxyJump [2001:db8::1]:22\n")
	ways := map[string]string{}
	for _, h := range got.Hosts {
		for _, hop := range h.Jump {
			ways[h.Name] += fmt.Sprintf("%s %s@%s:%d", hop.Name, hop.User, hop.Address, hop.Port)
		}
	}
	want := map[string]string{"x": "b-admin-22 admin@b:22", "y": "b op@b:2022"}
	if diff := cmp.Diff(want, ways); diff != "" {
		t.Errorf("ways (-want +got):\n%s", diff)
	}
	wantNotes(t, got.Notes, `config:8: host "2001:db8::1" was left out: name`)
}

// The test compares the import with the output of ssh -G.
func TestSSHConfigMeansWhatSSHSays(t *testing.T) {
	t.Parallel()
	ssh, err := exec.LookPath("ssh")
	if err != nil {
		t.Fatal("there is no ssh: apt-get install openssh-client")
	}
	dir := t.TempDir()
	pick := func(t *rapid.T, what string, from ...string) string {
		return rapid.SampledFrom(from).Draw(t, what)
	}
	names := []string{"a", "b1", "b2", "c.x", "D"}
	rapid.Check(t, func(t *rapid.T) {
		var text strings.Builder
		for range rapid.IntRange(1, 12).Draw(t, "lines") {
			switch pick(t, "kind", "host", "option", "option", "option") {
			case "host":
				text.WriteString("Host")
				for range rapid.IntRange(1, 3).Draw(t, "patterns") {
					text.WriteString(" " + pick(t, "pattern", "a", "b1", "b?", "*", "!b2", "*.x", "D", "d", "!*x"))
				}
			default:
				text.WriteString(pick(t, "indent", "", "  ", "\t") + pick(t, "option",
					"HostName %h.example.com", "hostname=10.0.0.1", `HostName "h"`, "User u1", "USER = u2",
					`User "u3"`, "Port 2022", "Port=1", "IdentityFile /k/a", "IdentityFile '/k b'",
					"IdentityFile /k/c # comment", "CertificateFile /c", "# Port 9", "ProxyJump j", "ProxyJump none"))
			}
			text.WriteString(pick(t, "end", "\n", " \n", "\r\n", "\n\n"))
		}
		text.WriteString("Host " + strings.Join(names, " ") + "\n")
		file := filepath.Join(dir, "config")
		if err := os.WriteFile(file, []byte(text.String()), 0o600); err != nil {
			t.Fatal(err)
		}
		got := map[string]fleet.Host{}
		for _, h := range importConfig(text.String()).Hosts {
			got[h.Name] = h
		}
		name := pick(t, "name", names...)
		said, err := exec.Command(ssh, "-G", "-F", file, name).CombinedOutput()
		if err != nil {
			t.Fatalf("%v: %s", err, said)
		}
		compareWithSSH(t, string(said), got[name], text.String())
	})
}

func compareWithSSH(t *rapid.T, said string, h fleet.Host, text string) {
	want := map[string]string{}
	for _, line := range strings.Split(said, "\n") {
		key, value, _ := strings.Cut(line, " ")
		if _, twice := want[key]; !twice {
			want[key] = strings.Trim(value, `"`)
		}
	}
	key := h.Key
	if key == "" {
		key = want["identityfile"] // no identity file was given: these are the defaults of ssh
	}
	user := h.User
	if user == "op" {
		user = want["user"] // the user who runs the test
	}
	way := "none"
	if len(h.Jump) > 0 {
		way = h.Jump[0].Name
	}
	got := map[string]string{"hostname": h.Address, "user": user, "port": fmt.Sprint(h.Port),
		"identityfile": key, "certificatefile": h.Certificate, "proxyjump": way}
	for k, v := range got {
		w := want[k]
		if k == "proxyjump" && w == "" {
			w = "none"
		}
		if k == "hostname" {
			w = strings.ToLower(w)
			v = strings.ToLower(v)
		}
		if w != v {
			t.Errorf("%s of %s is %q, ssh says %q; in\n%s", k, h.Name, v, w, text)
		}
	}
}

func FuzzImportSSHConfig(f *testing.F) {
	for _, seed := range []string{"", "Host a\n User x", "Host *\nMatch all\n", "Host a b\nProxyJump b,a\n",
		"Include *\n", "Host \"a\\\"b\" 'c'\n", "host=a\nproxyjump=ssh://x@[::1]:22", "Host a\nProxyJump a@a@a:1"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		got := importConfig(text)
		if _, err := fleet.New(got.Hosts); err != nil {
			t.Errorf("hosts that are none: %v", err)
		}
		for _, n := range got.Notes {
			if strings.TrimSpace(n.Text) == "" || len(n.Text) > 2000 {
				t.Errorf("note %+v", n)
			}
		}
	})
}
