package playbook_test

import (
	"bytes"
	"errors"
	"os/exec"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"

	"muster/fleet"
	"muster/internal/seal"
	"muster/worker/playbook"
)

func host() fleet.Host {
	return fleet.Host{Name: "fw001", Address: "192.0.2.1", Port: 2222, User: "admin", Key: "/keys/100% id",
		HostKeys: []string{"ssh-ed25519 AAAA comment"}, Zone: "default",
		Labels: map[string]string{"group.web": "true", "group.db": "false", "note": "x"},
		Jump: []fleet.Hop{{Name: "j1", Address: "192.0.2.8", Port: 22, User: "hop", Key: "/keys/j",
			HostKeys: []string{"ssh-rsa BBBB"}}, {Name: "j2", Address: "192.0.2.9", Port: 22, User: "hop",
			HostCert: fleet.HostCert{HostCAs: []string{"ssh-ed25519 CCCC"}, Principals: []string{"jump.example"}}}}}
}

var place = playbook.Place{Dir: "/run/x", Agent: "/run/agent"}

func files(t *testing.T, p playbook.Play) map[string]playbook.File {
	t.Helper()
	all, err := p.Files(place)
	if err != nil {
		t.Fatal(err)
	}
	return all
}

func TestTheWayToTheHostChecksEachHostKey(t *testing.T) {
	t.Parallel()
	all := files(t, playbook.Play{Host: host()})
	want := "muster-jump-1 ssh-rsa BBBB\n@cert-authority jump.example ssh-ed25519 CCCC\n" +
		"muster-host ssh-ed25519 AAAA\n"
	if got := all["known_hosts"].Text; got != want {
		t.Errorf("known_hosts:\n%swant\n%s", got, want)
	}
	config := all["ssh_config"].Text
	for _, part := range []string{"Host muster-jump-2\n  HostName 192.0.2.9\n  Port 22\n  User hop\n" +
		"  HostKeyAlias jump.example\n  ProxyJump muster-jump-1\n  IdentityFile none\n  IdentitiesOnly no\n",
		"Host 192.0.2.1\n  HostName 192.0.2.1\n  Port 2222\n  User admin\n  HostKeyAlias muster-host\n" +
			"  ProxyJump muster-jump-2\n  IdentityFile \"/keys/100%% id\"\n  IdentitiesOnly yes\n" +
			"  IdentityAgent none\n",
		"Host *\n  StrictHostKeyChecking yes\n  UserKnownHostsFile \"/run/x/known_hosts\"\n" +
			"  GlobalKnownHostsFile /dev/null\n"} {
		if !strings.Contains(config, part) {
			t.Errorf("ssh_config lacks\n%s\nin\n%s", part, config)
		}
	}
}

func TestAHostThatOpenSSHCannotBeToldIsRefused(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(*fleet.Host){
		"address":   func(h *fleet.Host) { h.Address = "-oProxyCommand=x" },
		"user":      func(h *fleet.Host) { h.User = "a\nProxyCommand x" },
		"key":       func(h *fleet.Host) { h.Key = `a" x` },
		"principal": func(h *fleet.Host) { h.Principals = []string{"*"} },
		"legacy":    func(h *fleet.Host) { h.Profile = fleet.ProfileLegacy },
	} {
		h := host()
		change(&h)
		if _, err := (playbook.Play{Host: h}).Files(place); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("%s: %v", name, err)
		}
	}
	h := host()
	h.Key = ""
	if _, err := (playbook.Play{Host: h}).Files(playbook.Place{Dir: "/x"}); err == nil {
		t.Error("a host without any key was accepted")
	}
}

// FuzzValuesAreUnsafeTexts: whatever a value is, YAML gives it back, marked as unsafe.
func FuzzValuesAreUnsafeTexts(f *testing.F) {
	for _, seed := range []string{"", "{{ 1 }}", "a\n- b: !!python/x", "\"'\\ \x85 \u2028 \x00 \x7f", "yes",
		"ü\U0001F600"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, value string) {
		value = strings.ToValidUTF8(value, "")
		h := host()
		h.Labels["note"] = value
		all := files(t, playbook.Play{Host: h, Vars: map[string]string{"v": value},
			Secrets: map[string]seal.Text{"s": seal.Text(value)}, Become: "pw"})
		var vars map[string]yaml.Node
		if err := yaml.Unmarshal([]byte(all["vars.yml"].Text), &vars); err != nil {
			t.Fatalf("%q: %v in\n%s", value, err, all["vars.yml"].Text)
		}
		for _, name := range []string{"v", "s"} {
			if n := vars[name]; n.Value != value || n.Tag != "!unsafe" {
				t.Errorf("%s: got %q with tag %s, want %q", name, n.Value, n.Tag, value)
			}
		}
		var inventory struct {
			All struct {
				Hosts    map[string]map[string]yaml.Node
				Children map[string]yaml.Node
			}
		}
		if err := yaml.Unmarshal([]byte(all["hosts.yml"].Text), &inventory); err != nil {
			t.Fatalf("%q: %v in\n%s", value, err, all["hosts.yml"].Text)
		}
		var labels map[string]yaml.Node
		got := inventory.All.Hosts["fw001"]["muster_labels"]
		if err := got.Decode(&labels); err != nil || labels["note"].Value != value || labels["note"].Tag != "!unsafe" {
			t.Errorf("label: %v, %q", err, labels["note"].Value)
		}
		if _, web := inventory.All.Children["web"]; !web || len(inventory.All.Children) != 1 {
			t.Errorf("groups: %v", inventory.All.Children)
		}
	})
}

func TestNoValueIsAnArgumentOrInTheEnvironment(t *testing.T) {
	t.Parallel()
	p := playbook.Play{Host: host(), Vars: map[string]string{"v": "value-one"},
		Secrets: map[string]seal.Text{"s": "value-two"}, Become: "value-three",
		Scope: playbook.Scope{Tags: []string{"a", "b"}, SkipTags: []string{"c"}, Check: true, Diff: true}}
	words := strings.Join(append(p.Args(place, "/books/-x.yml"), p.Env(place, "/books/ansible.cfg")...), " ")
	if strings.Contains(words, "value-") {
		t.Errorf("a value is in %s", words)
	}
	if !strings.Contains(words, "--check --diff --tags a,b --skip-tags c -- /books/-x.yml") {
		t.Errorf("got %s", words)
	}
	for name, file := range files(t, p) {
		if file.Mode&0o077 != 0 {
			t.Errorf("%s has mode %o", name, file.Mode)
		}
	}
}

func TestEndsOfPlays(t *testing.T) {
	t.Parallel()
	const (
		task  = `{"event": "task", "name": "t", "action": "ansible.builtin.copy"}` + "\n"
		ok    = `{"event": "result", "status": "ok", "host": "fw001"}` + "\n"
		bad   = `{"event": "result", "status": "failed", "host": "fw001", "msg": "a\nwhy"}` + "\n"
		away  = `{"event": "result", "status": "unreachable", "host": "fw001", "msg": "gone"}` + "\n"
		other = `{"event": "result", "status": "ok", "host": "localhost"}` + "\n"
		stats = `{"event": "stats", "host": "fw001", "ok": 1}` + "\n"
		lost  = `{"event": "stats", "host": "fw001", "ok": 1, "unreachable": 1}` + "\n"
	)
	var doubt *playbook.Doubt
	var unreachable *playbook.AwayError
	var mistake *playbook.MistakeError
	for name, test := range map[string]struct {
		events string
		exit   int
		want   any // the exit code, or the error
	}{
		"well":                     {task + ok + stats, 0, 0},
		"failed":                   {task + ok + task + bad + stats, 2, 2},
		"never reached":            {task + away + lost, 4, &unreachable},
		"lost":                     {task + ok + task + away + lost, 4, &doubt},
		"lost, and went on":        {task + ok + task + away + task + ok + stats, 0, 0},
		"only elsewhere":           {task + other + `{"event": "stats", "host": "localhost", "ok": 1}` + "\n", 0, &mistake},
		"nothing":                  {"", 0, &mistake},
		"a mistake":                {"", 4, &mistake},
		"killed":                   {task + ok, 137, &doubt},
		"said nothing of its end":  {task + ok, 0, &doubt},
		"not there":                {"", 127, playbook.ErrNoAnsible},
		"failed outside of a task": {task + ok + stats, 250, 250},
	} {
		var out bytes.Buffer
		teller := playbook.NewTeller("fw001", &out)
		for _, b := range []byte(test.events) { // in the smallest pieces
			if _, err := teller.Write([]byte{b}); err != nil {
				t.Fatal(err)
			}
		}
		exit, err := teller.Sum().Ended(playbook.End{Exit: test.exit, Words: []byte("x\nERROR! \x1b[31mwhy\nmore")})
		good := false
		switch want := test.want.(type) {
		case int:
			good = err == nil && exit == want
		case error:
			good = errors.Is(err, want)
		default:
			good = errors.As(err, want)
		}
		if !good || err != nil && (exit != -1 || strings.Contains(err.Error(), "\x1b")) {
			t.Errorf("%s: exit %d, %v, of %+v", name, exit, err, teller.Sum())
		}
	}
}

// FuzzEventsOfAHostileHost: no event panics, and no words of a host begin a line of the output.
func FuzzEventsOfAHostileHost(f *testing.F) {
	f.Add("fw001", "ok", "x\nfw001: 9 ok\r\n\r  ok\ntask x")
	f.Add("a", "failed", strings.Repeat("\n", 4_000))
	f.Fuzz(func(t *testing.T, host, status, msg string) {
		event := func(b *bytes.Buffer) {
			b.WriteString(`{"event": "result", "status": ` + quoted(status) + `, "host": ` + quoted(host) +
				`, "msg": ` + quoted(msg) + `, "diff": ` + quoted(msg) + "}\n")
		}
		var in, out bytes.Buffer
		event(&in)
		in.WriteString(msg + "\n")
		teller := playbook.NewTeller("fw001", &out)
		if n, err := teller.Write(in.Bytes()); n != in.Len() || err != nil {
			t.Fatal(n, err)
		}
		if sum := teller.Sum(); host != "fw001" && sum.Tasks+sum.Reached > 0 && !strings.Contains(msg, "fw001") {
			t.Errorf("another host counts: %+v", sum)
		}
		if strings.Contains(msg, `"event"`) {
			return // it is an event of its own
		}
		for i, line := range strings.Split(strings.TrimSuffix(out.String(), "\n"), "\n") {
			if i > 0 && !strings.HasPrefix(line, "    ") {
				t.Errorf("line %d is %q", i, line)
			}
		}
		if out.Len() > 64<<10 {
			t.Errorf("%d bytes", out.Len())
		}
	})
}

func quoted(text string) string {
	var b strings.Builder
	b.WriteByte('"')
	for _, r := range text {
		switch {
		case r == '"' || r == '\\':
			b.WriteString(`\` + string(r))
		case r == '\n':
			b.WriteString(`\n`)
		case r == '\r':
			b.WriteString(`\r`)
		case r < ' ':
			b.WriteString(" ")
		default:
			b.WriteRune(r)
		}
	}
	return b.String() + `"`
}

func TestTheSweepIsShellAndFindsNotItself(t *testing.T) {
	t.Parallel()
	for _, shell := range []string{"sh", "bash"} {
		out, err := exec.Command(shell, "-c", playbook.Sweep("no-such.host_1")).CombinedOutput()
		if err != nil || len(out) > 0 {
			t.Errorf("%s: %v: %s", shell, err, out)
		}
	}
	if err := exec.Command("sh", "-c", playbook.Sweep("x;touch y")).Run(); err == nil {
		t.Error("the name of a host was shell text")
	}
}

// With an inventory of a team the play is limited to its host, which is reached as ours says.
func TestAnInventoryBesideOurs(t *testing.T) {
	t.Parallel()
	p := playbook.Play{Host: host(), Vault: "open sesame"}
	beside := place
	beside.Inventory = "/books/live/hosts"
	args := strings.Join(p.Args(beside, "/books/site.yml"), " ")
	if want := "-i /books/live/hosts --limit fw001 -i /run/x/hosts.yml "; !strings.HasPrefix(args, want) ||
		!strings.Contains(args, " --vault-password-file /run/x/vault ") || strings.Contains(args, "sesame") {
		t.Errorf("arguments %s", args)
	}
	all, err := p.Files(beside)
	if err != nil {
		t.Fatal(err)
	}
	vars := all["host_vars/fw001.yml"].Text
	if !strings.Contains(vars, "ansible_host: !unsafe \"192.0.2.1\"\n") ||
		!strings.Contains(vars, "ansible_port: 2222\n") {
		t.Errorf("host_vars:\n%s", vars)
	}
	// Of two names of a variable Ansible takes the older one.
	for _, line := range []string{"ansible_ssh_host: !unsafe \"192.0.2.1\"\n", "ansible_ssh_port: 2222\n",
		"ansible_ssh_user: !unsafe \"admin\"\n"} {
		if !strings.Contains(vars, line) {
			t.Errorf("host_vars without %s:\n%s", line, vars)
		}
	}
	for _, line := range []string{"ansible_ssh_host_key_checking: true\n", "ansible_host_key_checking: true\n",
		"ansible_sftp_extra_args: !unsafe \"\"\n", "ansible_scp_extra_args: !unsafe \"\"\n",
		"ansible_ssh_executable: !unsafe \"ssh\"\n"} {
		if extra := all["vars.yml"].Text; !strings.Contains(extra, line) {
			t.Errorf("variables without %s:\n%s", line, extra)
		}
	}
	if f := all["vault"]; f.Text != "open sesame\n" || f.Mode != 0o600 {
		t.Errorf("vault: %+v", f)
	}
	alone := files(t, playbook.Play{Host: host()})
	if _, has := alone["vault"]; has || strings.Contains(strings.Join(p.Args(place, "/x"), " "), "--limit") {
		t.Error("without an inventory and a vault there are files and flags for them")
	}
}
