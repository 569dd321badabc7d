package ansible_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"muster/fleet"
	"muster/fleet/ansible"
)

const (
	keyA = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIBEXwyoh5iqF2LwXfVlSFCTn9eezaetBSn2TWzW6b1ND"
	keyB = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIP+c/FYVxRkynBNfqFyPPnet2XBRqf+GTV1O2h823OVD"
)

// read reads one file.
func read(name, text string) fleet.Part {
	return ansible.Read(ansible.Tree{Files: []ansible.File{{Name: name, Data: []byte(text)}}},
		ansible.Options{Home: "/home/ops"})
}

// join joins a part that must be valid.
func join(t *testing.T, p fleet.Part) *fleet.Inventory {
	t.Helper()
	inv, err := fleet.Join(p)
	if err != nil {
		t.Fatal(err)
	}
	return inv
}

// The same inventory in the three forms.
var forms = map[string]string{
	"hosts": `
lone:2022 ansible_host=192.0.2.9 # a comment

[fw]
fw[001:002].example.com ansible_user=admin muster_group=pair

[edge:children]
fw
[fw:vars]
ansible_port = 2222
ansible_ssh_private_key_file = ~/.ssh/id_fw
muster_host_key = ` + keyA + `
role = firewall
muster_labels = role,nothing
[all:vars]
muster_customer=acme
muster_zone=zrh
muster_known_hosts=/kh
secret="of nobody's business"
`,
	"hosts.yml": `
all:
  vars: &vars {muster_customer: acme, muster_zone: zrh, muster_known_hosts: /kh, secret: x}
  hosts:
    lone:2022: {ansible_host: 192.0.2.9}
edge:
  children:
    fw:
      hosts:
        fw[001:002].example.com: &login {ansible_user: admin, muster_group: pair}
      vars:
        <<: *vars
        ansible_port: 2222
        ansible_ssh_private_key_file: ~/.ssh/id_fw
        muster_host_keys: ["` + keyA + `"]
        muster_labels: {role: firewall}
`,
	"list.json": `{
  "_meta": {"hostvars": {
    "lone": {"ansible_host": "192.0.2.9", "ansible_port": 2022},
    "fw001.example.com": {"ansible_user": "admin", "muster_group": "pair"},
    "fw002.example.com": {"ansible_user": "admin", "muster_group": "pair"},
    "stranger": {"x": 1}
  }},
  "all": {"children": ["ungrouped", "edge"],
    "vars": {"muster_customer": "acme", "muster_zone": "zrh", "muster_known_hosts": "/kh"}},
  "ungrouped": ["lone"],
  "edge": {"children": ["fw"]},
  "fw": {"hosts": ["fw001.example.com", "fw002.example.com"],
    "vars": {"ansible_port": 2222, "ansible_ssh_private_key_file": "~/.ssh/id_fw",
      "muster_host_key": "` + keyA + `", "role": "firewall", "muster_labels": ["role"]}}
}`,
}

func TestTheThreeFormsMeanTheSame(t *testing.T) {
	t.Parallel()
	var want []fleet.Host
	for i := range 2 {
		name := fmt.Sprintf("fw%03d.example.com", i+1)
		want = append(want, fleet.Host{Name: name, Address: name, Port: 2222, User: "admin",
			Key: "/home/ops/.ssh/id_fw", HostKeys: []string{keyA}, Customer: "acme", Zone: "zrh",
			Group: "pair", Fence: fleet.FenceAuto,
			Labels: map[string]string{"group.fw": "true", "group.edge": "true", "role": "firewall"}})
	}
	want = append(want, fleet.Host{Name: "lone", Address: "192.0.2.9", Port: 2022, User: "root",
		Customer: "acme", Zone: "zrh", Fence: fleet.FenceAuto})
	for name, text := range forms {
		p := read(name, text)
		inv := join(t, p)
		if diff := cmp.Diff(want, inv.Hosts()); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
		if inv.KnownHosts("lone") != "/kh" || inv.KnownHosts("fw001.example.com") != "" {
			t.Errorf("%s: known_hosts %q", name, inv.KnownHosts("lone"))
		}
		if len(p.Notes) > 0 {
			t.Errorf("%s: %v", name, p.Notes)
		}
	}
}

// All mistakes are reported at once, each with its line.
func TestMistakes(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ name, text, want string }{
		{"vault.yml", "all:\n  hosts:\n    a:\n      ansible_host: !vault |\n        $ANSIBLE_VAULT;1.1\n",
			"vault.yml:4: ansible_host is encrypted by ansible-vault: give it in plain text"},
		{"h", "$ANSIBLE_VAULT;1.1;AES256\n33", "h:1: the file is encrypted by ansible-vault"},
		{"h", "[a]\nx ansible_host={{y}}\n", `h:2: ansible_host is a template, "{{y}}"`},
		{"h", "[a]\nx ansible_host='{{ y }}.z'\n[a:vars]\nansible_user={% if x %}a{% endif %}",
			"h:4: ansible_user is a template"},
		{"h", "x ansible_port=70000", "h:1: ansible_port 70000: want 1 to 65535"},
		{"h", "x ansible_host=10.0.0.1:22", "h:1: ansible_host \"10.0.0.1:22\" has a port in it"},
		{"h", "x ansible_host=[1,2]", "h:1: ansible_host is a list: want one value"},
		{"h", "x ansible_ssh_private_key_file=keys/id", "depends on where it is read"},
		{"h", "x y", `h:1: a word behind host "x" has no =: want key=value`},
		{"h", "x 'y", "h:1: the line has a quote that is not closed"},
		{"h", "\n[a:vars]\nx=1", "h:2: [a:vars] has no group"},
		{"h", "[a:children]\nb", "h:2: group \"b\" is a child here and has no section"},
		{"h", "[a:nonsense]\nb", `h:1: section "a:nonsense": want`},
		{"h", "[a b]\nb", `h:1: section "[a b]": want`},
		{"h", "[a:children]\na", `h:2: group "a" would be a part of itself`},
		{"h", "[a:children]\nb\n[b:children]\na", `h:4: group "a" would be a part of itself`},
		{"h", "[a]\n[a:vars]\nx", `h:3: "x": want key=value`},
		{"h", "f[3:1]", "h:1: host pattern \"f[3:1]\": range [3:1]: begins after its end"},
		{"h", "f[01:100]", "want the same length: 01:100"},
		{"h", "f[1:2:0]", "want a number from 1 on"},
		{"h", "f[1:3", "has a '[' without ']'"},
		{"h", "f[1:999999]", "stands for more than 100000 hosts"},
		{"h", "f[1:999]x[1:999]", "stands for more than 100000 hosts"},
		{"h.ini", "x:", "ends in ':'"},
		{"h", "x muster_custmer=a", `h:1: unknown variable "muster_custmer": want one of`},
		{"h", "x muster_fence=sometimes", `h:1: muster_fence "sometimes": want auto, none or required`},
		{"h", "x muster_host_key=AAAA", `h:1: muster_host_key "AAAA" has no known type`},
		{"h", "x muster_labels=k k=a/b", "h:1: label \"k\": value \"a/b\""},
		{"h", "x\n[g:vars]\n[g]\nx\n[g:vars]\nansible_group_priority=high",
			"h:6: ansible_group_priority \"high\" is not a number"},
		{"h", "x ansible_ssh_common_args='-o ProxyCommand=\"nc %h %p\"'",
			`h:1: ansible_ssh_common_args: ProxyCommand "nc %h %p" is not supported: give the way as ProxyJump`},
		{"h", "x ansible_ssh_extra_args='-J a@b:x'", `h:1: ansible_ssh_extra_args: jump host "a@b:x": port`},
		{"h", "x ansible_ssh_extra_args='-o'", "h:1: ansible_ssh_extra_args ends in -o: want its value"},
		{"h.yml", "all:\n  hosts: [a, b]", "h.yml:2: hosts of group \"all\": want a mapping"},
		{"h.yml", "all: [a]", `h.yml:1: group "all": want a mapping`},
		{"h.yml", "all:\n\thosts: x", "h.yml:2: not valid YAML"},
		{"h.yml", "plugin: aws_ec2\nregions: x", "h.yml:1: this configures the inventory plugin \"aws_ec2\""},
		{"h.yml", "all:\n  hosts:\n    a: 3\n", "h.yml:3: host \"a\": want a mapping of variables"},
		{"h.yml", "all:\n---\nall:", "a second YAML document"},
		{"h.yml", "all:\n  children: {b: {children: {all: }}}", "group all is a part of no other"},
		{"h.json", `{"all": {"hosts": ["a"]}}`, "h.json:1: _meta.hostvars is missing"},
		{"h.json", "{\"_meta\": {},\n\"a\": {\"hosts\": [{}]}", "h.json:2: not valid JSON: it ends too early"},
		{"h.json", "{\"_meta\": {\"hostvars\": {}},\n\"a\": {\"hosts\": [{}]}}", "h.json:2: a host of group"},
		{"h.json", "{\"_meta\": {}, \"a\": 3}", "h.json:1: group \"a\": want a list of hosts"},
		{"h.toml", "[a]", "h.toml:1: TOML is not read"},
		{"h", "ok\nb\xe4d", "h:2: the line is not UTF-8"},
	} {
		_, err := fleet.Join(read(tt.name, tt.text))
		if err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%q: %v\nwant %s", tt.text, err, tt.want)
		}
	}
}

func TestAllMistakesAtOnce(t *testing.T) {
	t.Parallel()
	_, err := fleet.Join(read("h", "a ansible_port=x ansible_user='b c'\nb@d\n[g]\ng[1:0]\n"))
	want := `h:1: ansible_user "b c" has a blank or a control character: remove it
h:1: ansible_port "x" is not a number: want 1 to 65535
h:2: host "b@d": name "b@d" has '@': use letters, digits, '.', '-' and '_'
h:2: host "b@d": address "b@d" has a user in it: put that under user
h:4: host pattern "g[1:0]": range [1:0]: begins after its end`
	if err == nil || err.Error() != want {
		t.Errorf("%v\nwant\n%s", err, want)
	}
}

func TestNotes(t *testing.T) {
	t.Parallel()
	p := read("h", `
[win]
w ansible_connection=winrm
[lin]
a ansible_connection=ansible.builtin.ssh ansible_password=x
b ansible_ssh_args='-C -o ControlMaster=auto -oControlPersist=60s -o Ciphers=aes128-cbc'
c ansible_ssh_common_args="-o StrictHostKeyChecking=no -o UserKnownHostsFile=/dev/null"
d ansible_ssh_common_args="-o UserKnownHostsFile=/kh -o StrictHostKeyChecking=yes"
`)
	inv := join(t, p)
	if inv.Len() != 4 || inv.KnownHosts("d") != "/kh" || inv.KnownHosts("c") != "" {
		t.Errorf("%v, %q", inv.Hosts(), inv.KnownHosts("d"))
	}
	want := `h:3: hosts with ansible_connection "winrm" are left out: muster reaches hosts over SSH
h:5: ansible_password is not used: muster logs in with keys
h:6: ansible_ssh_args: option "Ciphers" is not used
h:7: ansible_ssh_common_args: StrictHostKeyChecking is not used: muster talks to hosts only whose key it knows
h:7: ansible_ssh_common_args: UserKnownHostsFile is not used: muster talks to hosts only whose key it knows`
	if inv.Notes().Error() != want {
		t.Errorf("%v\nwant\n%s", inv.Notes(), want)
	}
}

func TestJumpHosts(t *testing.T) {
	t.Parallel()
	inv := join(t, read("h", `
bastion ansible_host=192.0.2.1 ansible_user=hop ansible_port=2200
by-name   ansible_ssh_common_args='-o ProxyJump=bastion'
by-addr   ansible_ssh_common_args='-J hop@192.0.2.1:2200'
by-cmd    ansible_ssh_common_args='-o ProxyCommand="ssh -W %h:%p -q bastion"'
chain     ansible_ssh_common_args='-J bastion,ops@far.example.com:2222' ansible_private_key_file=/k
other     ansible_ssh_common_args='-J ops@far.example.com:2222' ansible_private_key_file=/k
as-ops    ansible_ssh_common_args='-J ops@bastion'
none      ansible_ssh_common_args='-o ProxyJump=none'
`))
	bastion := fleet.Hop{Name: "bastion", Address: "192.0.2.1", Port: 2200, User: "hop"}
	far := fleet.Hop{Name: "far.example.com", Address: "far.example.com", Port: 2222, User: "ops", Key: "/k"}
	asOps := fleet.Hop{Name: "bastion_1", Address: "192.0.2.1", Port: 2200, User: "ops"}
	for name, want := range map[string][]fleet.Hop{"bastion": nil, "by-name": {bastion},
		"by-addr": {bastion}, "by-cmd": {bastion}, "chain": {bastion, far}, "other": {far},
		"as-ops": {asOps}, "none": nil} {
		h, _ := inv.Host(name)
		if diff := cmp.Diff(want, h.Jump); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
	if diff := cmp.Diff([]fleet.Hop{asOps, far}, inv.Strangers()); diff != "" {
		t.Error(diff)
	}
	if err := inv.SetHostKeys("far.example.com", []string{keyB}); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"chain", "other"} {
		h, _ := inv.Host(name)
		if hop := h.Jump[len(h.Jump)-1]; len(hop.HostKeys) != 1 || hop.HostKeys[0] != keyB {
			t.Errorf("%s: %+v", name, hop)
		}
	}
}

// If a jump host applies to all hosts, the jump host itself is reached without it.
func TestAJumpHostOfAllHosts(t *testing.T) {
	t.Parallel()
	inv := join(t, read("h", "jump\nfw1\n[all:vars]\nansible_ssh_common_args='-J jump'\n"))
	for name, want := range map[string]int{"jump": 0, "fw1": 1} {
		if h, _ := inv.Host(name); len(h.Jump) != want {
			t.Errorf("%s: %v", name, h.Jump)
		}
	}
}

// As in Ansible, a group without a priority has priority 1: among groups of the same depth
// the last one in the alphabet wins against a 1, and loses against a 2.
func TestAGroupWithoutAPriorityHasOne(t *testing.T) {
	t.Parallel()
	for priority, want := range map[int]string{0: "web", 1: "web", 2: "db"} {
		text := fmt.Sprintf("[web]\nx muster_host_key='%[1]s'\n[web:vars]\nmuster_customer=web\n[db]\nx\n"+
			"[db:vars]\nmuster_customer=db\nansible_group_priority=%[2]d\n", keyA, priority)
		if h, _ := join(t, read("hosts", text)).Host("x"); h.Customer != want {
			t.Errorf("with priority %d of db the customer is %q, want %q", priority, h.Customer, want)
		}
	}
}

func TestVariablesBesideTheInventory(t *testing.T) {
	t.Parallel()
	file := func(hosts bool, path, text string) ansible.VarsFile {
		return ansible.VarsFile{Hosts: hosts, Path: path,
			File: ansible.File{Name: path, Data: []byte(text)}}
	}
	tree := ansible.Tree{
		Files: []ansible.File{
			{Name: "1", Data: []byte("[web]\nw1 ansible_user=line\nw2\n[web:vars]\nansible_port=1\n")},
			{Name: "2.yml", Data: []byte("web: {hosts: {w3: , w2: {ansible_user: later}}}")},
		},
		Vars: []ansible.VarsFile{
			file(false, "all/users.yml", "ansible_user: all\nansible_port: 2\n"),
			file(false, "all/vault.yml", "$ANSIBLE_VAULT;1.1;AES256\n6162\n"),
			file(false, "web.yml", "muster_zone: zrh\n"),
			file(false, "web.yaml", "muster_zone: never\n"),
			file(true, "w3.json", `{"ansible_user": "three"}`),
			file(true, "w9", "ansible_user: nobody"),
		},
	}
	p := ansible.Read(tree, ansible.Options{})
	got := map[string]string{}
	for _, h := range join(t, p).Hosts() {
		got[h.Name] = fmt.Sprintf("%s %d %s", h.User, h.Port, h.Zone)
	}
	want := map[string]string{"w1": "line 2 zrh", "w2": "later 2 zrh", "w3": "three 2 zrh"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if len(p.Notes) != 1 || !strings.HasPrefix(p.Notes[0].Error(), "all/vault.yml:1: the file is encrypted") {
		t.Error(p.Notes)
	}
}

func TestFormOf(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name, text string
		want       ansible.Form
	}{
		{"hosts", "[web]\na", ansible.FormINI},
		{"hosts", "# all\n\nweb1 a=b", ansible.FormINI},
		{"hosts", "a:2222", ansible.FormINI},
		{"hosts", "192.0.2.1", ansible.FormINI},
		{"prod.ini", "all:", ansible.FormINI},
		{"hosts", "---\nall:", ansible.FormYAML},
		{"hosts", "all:\n  hosts:", ansible.FormYAML},
		{"x.yml", "web:\n  hosts:\n    a:", ansible.FormYAML},
		{"x.yml", "hosts:\n  hosts:\n    a:", ansible.FormYAML},
		{"fleet.yaml", "hosts:\n- name: a", ansible.FormOwn},
		{"fleet.yaml", "hosts:\n  # one\n  - name: a", ansible.FormOwn},
		{"fleet.yaml", "hosts: [{name: a}]", ansible.FormOwn},
		{"fleet.yaml", "defaults: {user: a}\nhosts:\n", ansible.FormOwn},
		{"limits", "limits: {a/b: 1}", ansible.FormOwn},
		{"o.yaml", "overrides:\n- on: a", ansible.FormOwn},
		{"fleet.yaml", "- name: a", ansible.FormOwn},
		{"fleet.yaml", "", ansible.FormOwn},
		{"out", `{"_meta": {"hostvars": {}}}`, ansible.FormJSON},
		{"out", `{"all": {"hosts": {"a": null}}}`, ansible.FormJSON},
		{"out", `{"hosts": [{"name": "a"}]}`, ansible.FormOwn},
		{"out", `{hosts: [{name: a}]}`, ansible.FormOwn},
		{"x.toml", "[a]", ansible.FormTOML},
	} {
		if got := ansible.FormOf(tt.name, []byte(tt.text)); got != tt.want {
			t.Errorf("%s %q: %q, want %q", tt.name, tt.text, got, tt.want)
		}
	}
}

// If Ansible runs a host's commands as another user, muster does so with sudo. Where that is
// impossible, muster warns, because commands would fail or, worse, do half of their work.
func TestBecomeIsReadOrWarnedOf(t *testing.T) {
	t.Parallel()
	p := read("h", `
[fw]
a ansible_user=ops ansible_become=yes
b ansible_user=ops ansible_become=true ansible_become_user=backup ansible_become_password=s3cret
c ansible_user=root ansible_become=yes
d ansible_user=ops ansible_become=no ansible_become_method=su
e ansible_user=ops ansible_become="{{ up }}"
f ansible_user=ops ansible_become=yes ansible_become_user=ops
g ansible_user=ops
h ansible_user=ops ansible_become=1 ansible_become_method=enable ansible_become_flags=-n
i ansible_user=ops ansible_become=on ansible_become_method=ansible.builtin.sudo ansible_become_user=root
j ansible_user=ops ansible_become=yes ansible_become_user="{{ x }}"
k ansible_user=ops ansible_become=yes ansible_become_method="{{ x }}"
[old]
o ansible_user=ops ansible_sudo=1 ansible_sudo_user=www
s ansible_user=ops ansible_su=1
`)
	inv := join(t, p)
	becomes, cannot := map[string]string{}, map[string]string{}
	for _, h := range inv.Hosts() {
		if user := h.BecomesUser(); user != "" {
			becomes[h.Name] = user
		}
		if user, ok := h.Labels[fleet.BecomeLabel]; ok {
			cannot[h.Name] = user
		}
	}
	want := map[string]string{"a": "root", "b": "backup", "i": "root", "o": "www"}
	if diff := cmp.Diff(want, becomes); diff != "" {
		t.Errorf("becomes: -want +got:\n%s", diff)
	}
	want = map[string]string{"e": "root", "h": "root", "j": "true", "k": "root", "s": "root"}
	if diff := cmp.Diff(want, cannot); diff != "" {
		t.Errorf("cannot: -want +got:\n%s", diff)
	}
	const end = ": tasks on such a host are refused; write what it should be, or override it with become: sudo or " +
		"become: none"
	const words = `h:7: ansible_become is not used, it is neither yes nor no` + end + `
h:10: ansible_become is not used, by "enable": muster becomes another user by sudo alone` + end + `
h:12: ansible_become is not used, ansible_become_user is no plain name of a user` + end + `
h:13: ansible_become is not used, its method is a template, "{{ x }}": templates are not worked out here, write the value` +
		end + `
h:16: ansible_su is not used, by "su": muster becomes another user by sudo alone` + end
	if inv.Warnings().Error() != words {
		t.Errorf("%v\nwant\n%s", inv.Warnings(), words)
	}
	const notes = `h:4: ansible_become_password is not used: give the password of sudo to a task, with --become-password
h:10: ansible_become_flags is not used: muster runs sudo -H -u USER`
	if inv.Notes().Error() != notes {
		t.Errorf("%v\nwant\n%s", inv.Notes(), notes)
	}
}
