package worker_test

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"muster/fleet"
	"muster/internal/seal"
	"muster/jobs"
	"muster/scripts"
	"muster/testkit/hosttest"
	"muster/testkit/queuetest"
	"muster/testkit/redistest"
	"muster/worker/attempt"
	"muster/worker/plays"
)

// collection is a repository of others, as the package ansible of Debian brings it: roles for hosts
// of MongoDB, with the playbooks by which their authors try them.
const collection = "/usr/lib/python3/dist-packages/ansible_collections/community/mongodb"

// team holds the files that a team has around the roles of others. Only hosts is not there, because
// it depends on the addresses of a run.
var team = map[string]string{
	"ansible.cfg": "[defaults]\nroles_path = roles\nnocows = true\n[ssh_connection]\npipelining = true\n",
	"site.yml": "- hosts: databases:!retired\n  become: true\n  roles:\n    - mongodb_mongod\n" +
		"- hosts: retired\n  tasks:\n    - ansible.builtin.command: touch /etc/never\n",
	"inventories/live/group_vars/databases/common.yml": "mongod_port: 27117\nrepl_set_name: \"{{ set }}\"\n" +
		"bind_ip: \"{{ groups['databases'] | map('extract', hostvars, 'ansible_host') | join(',') }}\"\n" +
		"openssl_keyfile_content: \"{{ vault_keyfile }}\"\n",
	"inventories/live/host_vars/right.yml": "ansible_user: nobody\n", // who cannot log in there
}

// foreignSteps are the steps of runbooks: a playbook of the others, unchanged, and one of the team.
const foreignSteps = `
name: foreign
timeout: 4m
arguments:
  vault: {type: secret}
  size: {type: string, default: "64000"}
steps:
  - name: system
    ansible:
      playbook: roles/mongodb_linux/molecule/default/playbook.yml
      skip_tags: [pkg, service]
      vars: {nproc_and_nofile_limit: "{{size}}"}
  - name: database
    ansible:
      playbook: site.yml
      inventory: inventories/live/hosts
      vault: vault
      vars: {set: blue}
      tags: [setup, vars]
      skip_tags: [pkg, service]
`

// A repository that nobody here wrote does the same by steps of kind ansible as by ansible-playbook
// itself: in check mode, for real, and again, when nothing changes any more.
func TestARepositoryOfOthersRunsUnchanged(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("-short: eight runs of Ansible on real hosts take half a minute")
	}
	if !hosttest.Inside(t) {
		return
	}
	s := newForeign(t)
	for _, run := range []struct {
		what, book, only string
		changes          bool
	}{{"check", "database", scripts.OnlyCheck, true}, {"for real", "all", "", true}, {"again", "database", "", false}} {
		before, plain := s.changes("right"), make(chan []string, 1)
		go func() { plain <- s.plain(run.book, run.only) }()
		got, want := s.muster(run.book, run.only, ""), <-plain
		if got.outcome != "succeeded" {
			t.Fatalf("%s: %+v", run.what, got)
		}
		if diff := cmp.Diff(want, got.recaps); diff != "" {
			t.Errorf("%s: -ansible-playbook +muster:\n%s\n%s", run.what, diff, got.said)
		}
		if nothing := strings.Contains(strings.Join(got.recaps, "\n"), " 0 changed"); nothing == run.changes {
			t.Errorf("%s: %q", run.what, got.recaps)
		}
		if after := s.changes("right"); (after != before) != (run.changes && run.only == "") {
			t.Errorf("%s changed %s to %s", run.what, before, after)
		}
		if diff := cmp.Diff(s.changes("left"), s.changes("right")); diff != "" {
			t.Errorf("%s: the hosts differ: -ansible-playbook +muster:\n%s", run.what, diff)
		}
	}
	conf := s.hosts["right"].Do("cat /etc/mongod.conf /etc/keyfile; stat -c %a:%U /etc/keyfile; ls /etc")
	for _, part := range []string{"port: 27117", "replSetName: blue", "the keyfile of the vault\n400:mongodb\n",
		"bindIp: " + s.hosts["left"].Address + "," + s.hosts["right"].Address} {
		if !strings.Contains(conf, part) {
			t.Errorf("the host lacks %q in\n%s", part, conf)
		}
	}
	if strings.Contains(conf, "never") {
		t.Error("a play for other hosts has run")
	}
	got := s.muster("system", "", "many") // a limit that is no number
	if got.outcome != "failed" || !strings.Contains(got.why, "task mongodb_linux : Set pam limits (nproc and nofile)") {
		t.Errorf("a wrong limit: %+v", got)
	}
}

// A foreign is a repository with two hosts: left is for ansible-playbook, right is for muster.
type foreign struct {
	*testing.T
	dir, nodes string
	hosts      map[string]*hosttest.Host
	fleet      fleet.Host // right
	q          *queuetest.Queue
	keys       seal.Keys
}

func newForeign(t *testing.T) *foreign {
	t.Helper()
	if _, err := os.Stat(collection); err != nil {
		t.Fatalf("%v: tools/install.sh ansible", err)
	}
	s := &foreign{T: t, dir: t.TempDir(), nodes: shortDir(t), hosts: map[string]*hosttest.Host{}}
	if err := os.CopyFS(s.dir, os.DirFS(collection)); err != nil {
		t.Fatal(err)
	}
	inventory := "[databases]\n"
	for _, name := range []string{"left", "right"} {
		h := hosttest.New(t, hosttest.Options{Name: name, Boot: "mount -t tmpfs vm /proc/sys/vm\n" +
			"for v in swappiness zone_reclaim_mode dirty_ratio dirty_background_ratio; do echo 9 > /proc/sys/vm/$v; done"})
		h.Do("useradd --system --user-group --no-create-home mongodb; : > /etc/sysctl.conf")
		s.hosts[name] = h
		inventory += fmt.Sprintf("%s ansible_host=%s ansible_ssh_private_key_file=%s\n", name, h.Address, h.Key)
	}
	right := s.hosts["right"]
	s.fleet = fleet.Host{Name: "right", Address: right.Address, Port: 22, User: "root", Key: right.Key,
		HostKeys: []string{right.HostKey}, Zone: fleet.DefaultZone}
	for name, text := range team {
		s.write(name, text)
	}
	s.write("inventories/live/hosts", inventory+"[retired]\n")
	s.write("../vault", "open sesame\n")
	if out, err := s.command("ansible-vault", "encrypt_string", "--vault-password-file", "../vault", "--output",
		"inventories/live/group_vars/databases/vault.yml", "--name", "vault_keyfile",
		"the keyfile of the vault").CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	keys, err := seal.ParseKeys([]byte(seal.FormatKey([seal.KeySize]byte{1})))
	if err != nil {
		t.Fatal(err)
	}
	s.keys = keys
	_, cfg := redistest.StartMini(t)
	s.q = openQueue(t, cfg, []fleet.Host{s.fleet})
	for _, name := range []string{"left", "right"} { // what changes from now on is what plays change
		s.hosts[name].Do("cp -a /etc /run/before; touch /run/before.time")
	}
	return s
}

func (s *foreign) write(name, text string) {
	s.Helper()
	path := filepath.Join(s.dir, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		s.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		s.Fatal(err)
	}
}

// command returns a program of Ansible in the repository.
func (s *foreign) command(name string, args ...string) *exec.Cmd {
	cmd := exec.Command(name, args...)
	cmd.Dir = s.dir
	cmd.Env = append(os.Environ(), "ANSIBLE_HOST_KEY_CHECKING=False", "HOME="+s.nodes, "ANSIBLE_NOCOLOR=1")
	return cmd
}

// recap finds the counts of a host at the end of a play, as Ansible has them.
var recap = regexp.MustCompile(`left +: ok=(\d+) +changed=(\d+) +unreachable=0 +failed=0 +skipped=(\d+)`)

// plain plays one playbook, or all, by ansible-playbook on the left host, and returns the counts in
// the words of muster. Without counts it has failed.
func (s *foreign) plain(book, only string) (recaps []string) {
	for _, one := range []struct {
		name string
		args []string
	}{{"system", []string{"roles/mongodb_linux/molecule/default/playbook.yml", "-e", "nproc_and_nofile_limit=64000"}},
		{"database", []string{"site.yml", "-e", "set=blue", "--tags", "setup,vars", "--vault-password-file", "../vault"}}} {
		if book != "all" && book != one.name {
			continue
		}
		args := append(one.args, "-i", "inventories/live/hosts", "--limit", "left", "--skip-tags", "pkg,service")
		if only != "" {
			args = append(args, "--check")
		}
		out, err := s.command("ansible-playbook", args...).CombinedOutput()
		n := recap.FindSubmatch(out)
		if n == nil {
			return append(recaps, fmt.Sprintf("ansible-playbook %v: %v\n%s", args, err, out))
		}
		recaps = append(recaps, fmt.Sprintf("right: %s ok, %s changed, 0 failed, 0 unreachable, %s skipped",
			n[1], n[2], n[3]))
	}
	return recaps
}

// A played is how a task of the runbook ended.
type played struct {
	outcome, why string
	recaps       []string
	said         string
}

// muster submits a step of the runbook, or all, for the right host, and lets a worker do it.
func (s *foreign) muster(step, only, size string) (out played) {
	s.Helper()
	text := foreignSteps
	if head, rest, _ := strings.Cut(text, "  - name: system\n"); step == "database" {
		text = head + rest[strings.Index(rest, "  - name: database"):]
	} else if step == "system" {
		text, _, _ = strings.Cut(text, "  - name: database\n")
	}
	rb, err := scripts.Parse("foreign.yaml", []byte(text))
	if err != nil {
		s.Fatal(err)
	}
	given := scripts.Given{Args: map[string]string{}, Secrets: map[string]seal.Text{"vault": "open sesame"}}
	if size != "" {
		given.Args["size"] = size
	}
	values, err := rb.BindGiven(given)
	if err != nil {
		s.Fatal(err)
	}
	frozen, err := rb.Freeze(values).Only(only)
	if err != nil {
		s.Fatal(err)
	}
	const sealedFor = "0000000001" // whatever task it is
	if err := frozen.Seal(func(argument string, text seal.Text) (string, error) {
		return s.keys.Seal(sealedFor, argument, text)
	}); err != nil {
		s.Fatal(err)
	}
	action, err := json.Marshal(frozen)
	if err != nil {
		s.Fatal(err)
	}
	task := submit(s.T, s.q, jobs.Spec{Runbook: rb.Name, Inventory: "v1", Timeout: jobs.AttemptTimeout(rb.Timeout),
		Expire: jobs.DefaultExpire, Retry: jobs.Policy{Tries: 1}, Created: jobs.MicrosOf(time.Now()), Action: action},
		[]fleet.Host{s.fleet})
	playOn(s.T, s.q, attempt.Doors{
		Play:   plays.New(plays.Config{Folder: s.dir, Dir: s.nodes, OutputMax: 256 << 10}).Play,
		Unseal: func(_, argument, sealed string) (seal.Text, error) { return s.keys.Open(sealedFor, argument, sealed) }})
	id := jobs.NewID(task, "right")
	j, err := s.q.Job(s.Context(), id)
	if err != nil {
		s.Fatal(err)
	}
	output, err := s.q.Output(s.Context(), id)
	if err != nil {
		s.Fatal(err)
	}
	out = played{outcome: string(j.Outcome), why: j.Error}
	for _, piece := range output {
		out.said += string(piece.Data)
	}
	for line := range strings.Lines(out.said) {
		if strings.HasPrefix(line, "right: ") {
			out.recaps = append(out.recaps, strings.TrimSpace(line))
		}
	}
	return out
}

// changes returns what differs on a host from the beginning, with the rights of files.
func (s *foreign) changes(name string) string {
	s.Helper()
	return s.hosts[name].Do("cd /run/before && diff -rN . /etc; cd /etc && find . -newer /run/before.time " +
		"-type f -exec stat -c '%n %a %U:%G' {} + | sort; true")
}
