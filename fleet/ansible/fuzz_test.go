package ansible_test

import (
	"strings"
	"testing"

	"muster/fleet"
	"muster/fleet/ansible"
)

// fuzz checks every form: any file becomes valid hosts or mistakes with a position, and
// reading it again gives the same result.
func fuzz(f *testing.F, name string, seeds ...string) {
	for n, text := range forms {
		if strings.HasSuffix(n, name) {
			f.Add([]byte(text))
		}
	}
	for _, s := range seeds {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		p := read(name, string(data))
		inv, err := fleet.Join(p)
		for _, m := range append(p.Mistakes, p.Notes...) {
			if m.File != name || m.Line < 1 || strings.TrimSpace(m.Text) == "" ||
				m.Line > 2+strings.Count(string(data), "\n")+strings.Count(string(data), "\r") {
				t.Errorf("without place or text: %#v", m)
			}
		}
		again, err2 := fleet.Join(read(name, string(data)))
		if (err == nil) != (err2 == nil) {
			t.Fatalf("once %v, once %v", err, err2)
		}
		if err == nil && inv.Version() != again.Version() {
			t.Error("read twice it is another inventory")
		}
	})
}

func FuzzINI(f *testing.F) {
	fuzz(f, "x.ini", forms["hosts"], "[a:children]\nb\n[b:children]\na", "a[1:2]x[a:c]:22 b='c' d=[1,{2:3}]",
		"a ansible_ssh_common_args='-J b,c@d:1 -o ProxyCommand=\"ssh -W %h:%p x\"'", "[all:vars]\nx=1#",
		"a ansible_port=22 muster_labels=x x=1\n[a]\na", "\\\n'\n\"", "a muster_host_key='ssh-ed25519 x'")
}

func FuzzYAML(f *testing.F) {
	fuzz(f, "x.yml", forms["hosts.yml"], "a: &a {children: {b: *a}}", "a: {<<: [{hosts: x}, *b]}",
		"all: {hosts: {a: {ansible_host: !vault x}}}", "all: {vars: {muster_labels: {a: [b]}}}", "plugin: x",
		"a: &a {children: {x: &b {children: {y: &c {hosts: {h: }}, z: *c}}, w: *b}}", "? {a: b}\n: c")
}

func FuzzJSON(f *testing.F) {
	fuzz(f, "x.json", forms["list.json"], `{"_meta": []}`, `{"a": {"b": 1}}`, `{"a": [null, 1, "x"]}`,
		`{"_meta": {"hostvars": {"x": 3}}, "x": ["x"]}`, `[`, `{"all": {"hosts": {"a": {"ansible_port": 1e3}}}}`)
}

func FuzzVariables(f *testing.F) {
	for _, s := range []string{"a: b", "$ANSIBLE_VAULT;1", "[1]", "ansible_host: {a: b}", "<<: x",
		"ansible_user: !unsafe x", "muster_host_keys: [a, &x b, *x]"} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		p := ansible.Read(ansible.Tree{
			Files: []ansible.File{{Name: "h", Data: []byte("[web]\nw1")}},
			Vars: []ansible.VarsFile{{Path: "web", File: ansible.File{Name: "v", Data: data}},
				{Hosts: true, Path: "w1/x.yml", File: ansible.File{Name: "w", Data: data}}},
		}, ansible.Options{})
		for _, m := range append(p.Mistakes, p.Notes...) {
			if m.File == "" || m.Line < 1 || strings.TrimSpace(m.Text) == "" {
				t.Errorf("without place or text: %#v", m)
			}
		}
	})
}
