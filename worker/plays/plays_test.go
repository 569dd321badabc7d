package plays_test

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"muster/fleet"
	"muster/fleet/remote"
	"muster/internal/seal"
	"muster/testkit/sshtest"
	"muster/worker/playbook"
	"muster/worker/plays"
)

// A stand is an sshd with a node that runs playbooks for it.
type stand struct {
	*testing.T
	dir    string // the playbooks, and what they write
	host   fleet.Host
	player *plays.Player
	nodes  string // the private folders
}

func newStand(t *testing.T, name string, books map[string]string) *stand {
	t.Helper()
	if testing.Short() {
		t.Skip("-short: each run of Ansible takes a second")
	}
	if _, err := exec.LookPath("ansible-playbook"); err != nil {
		t.Fatal("there is no ansible-playbook: tools/install.sh ansible")
	}
	// The path of the socket of OpenSSH must be short.
	nodes, err := os.MkdirTemp("/tmp", "plays")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(nodes) })
	s := &stand{T: t, dir: t.TempDir(), host: sshtest.StartSSHD(t, sshtest.Options{
		Config: []string{"Subsystem sftp internal-sftp"}}).Host, nodes: nodes}
	s.host.Name = name
	for name, text := range books {
		path := filepath.Join(s.dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	s.player = plays.New(plays.Config{Folder: s.dir, Dir: nodes, OutputMax: 64 << 10})
	return s
}

func (s *stand) play(p playbook.Play) (remote.Result, error) {
	s.Helper()
	if p.Host.Name == "" {
		p.Host = s.host
	}
	if p.Bound == 0 {
		p.Bound = 2 * time.Minute
	}
	if p.Vars == nil {
		p.Vars = map[string]string{}
	}
	p.Vars["place"] = s.dir
	r, _, err := s.player.Play(s.Context(), p)
	if left, _ := os.ReadDir(s.nodes); len(left) > 0 {
		s.Errorf("the private folder is still there: %v", left)
	}
	return r, err
}

func (s *stand) read(name string) string {
	text, err := os.ReadFile(filepath.Join(s.dir, name))
	if err != nil {
		return "(" + err.Error() + ")"
	}
	return string(text)
}

const ordinary = `
- hosts: web
  gather_facts: false
  vars: {greeting: hello}
  handlers:
    - name: reload
      ansible.builtin.command: touch {{ place }}/reloaded
  tasks:
    - name: the folder
      ansible.builtin.file: {path: "{{ place }}/site", state: directory, mode: "0755"}
    - name: the page
      ansible.builtin.template: {src: page.j2, dest: "{{ place }}/site/index", mode: "0644"}
      notify: reload
    - name: the state
      ansible.builtin.command: echo {{ word | quote }}
      changed_when: false
`

const page = "{{ greeting }} {{ word }} of {{ inventory_hostname }}, {{ muster_customer }}, " +
	"{{ muster_labels.note }}, {{ token }}\n"

// hostile is a value that would run a program on the node if Ansible read it as a template, and on
// the host if a shell read it.
func (s *stand) hostile() string {
	return `it's "{{ lookup('pipe', 'touch ` + s.dir + `/owned') }}" $(touch ` + s.dir +
		"/owned2) \u0085 ü\n- x: {% raw %}"
}

func TestAnOrdinaryPlaybook(t *testing.T) {
	t.Parallel()
	s := newStand(t, "fw001", map[string]string{"web/site.yml": ordinary, "web/templates/page.j2": page})
	evil := s.hostile()
	s.host.Customer, s.host.Labels = "acme", map[string]string{"note": evil, "group.web": "true"}
	p := playbook.Play{File: "web/site.yml", Vars: map[string]string{"word": evil},
		Secrets: map[string]seal.Text{"token": seal.Text("s3cret " + evil)}}

	dry := p
	dry.Check, dry.Diff = true, true
	r, err := s.play(dry)
	if err != nil || r.ExitCode != 0 || !strings.Contains(string(r.Output.Head), "  changed\n") {
		t.Fatalf("check: exit %d, %v:\n%s", r.ExitCode, err, r.Output.Bytes())
	}
	if _, err := os.Stat(filepath.Join(s.dir, "site")); !os.IsNotExist(err) {
		t.Errorf("the check made the folder: %v", err)
	}

	var live bytes.Buffer
	p.Live = &live
	r, err = s.play(p)
	if err != nil || r.ExitCode != 0 || !strings.Contains(string(r.Output.Head),
		"fw001: 4 ok, 3 changed, 0 failed, 0 unreachable, 0 skipped\n") {
		t.Fatalf("exit %d, %v:\n%s", r.ExitCode, err, r.Output.Bytes())
	}
	if live.String() != string(r.Output.Bytes()) {
		t.Errorf("said %q, and live %q", r.Output.Bytes(), &live)
	}
	want := "hello " + evil + " of fw001, acme, " + evil + ", s3cret " + evil + "\n"
	if got := s.read("site/index"); got != want {
		t.Errorf("the page is\n%s\nwant\n%s", got, want)
	}
	for _, name := range []string{"owned", "owned2"} {
		if _, err := os.Stat(filepath.Join(s.dir, name)); !os.IsNotExist(err) {
			t.Errorf("a value was run as a program: %s, %v", name, err)
		}
	}
	if _, err := os.Stat(filepath.Join(s.dir, "reloaded")); err != nil {
		t.Errorf("the handler did not run: %v", err)
	}

	p.Live = nil
	r, err = s.play(p)
	if err != nil || !strings.Contains(string(r.Output.Head), "3 ok, 0 changed") {
		t.Errorf("again: exit %d, %v:\n%s", r.ExitCode, err, r.Output.Bytes())
	}
}

func TestAPlaybookThatEndsBadly(t *testing.T) {
	t.Parallel()
	const tasks = "- hosts: all\n  gather_facts: false\n  tasks:\n"
	if testing.Short() {
		t.Skip("-short: each run of Ansible takes a second")
	}
	other := sshtest.StartSSHD(t, sshtest.Options{Address: "127.0.0.3"}) // its host key is not told
	s := newStand(t, "fw002", map[string]string{
		"fails.yml": tasks + "    - ansible.builtin.command: echo before\n" +
			"    - name: breaks\n      ansible.builtin.shell: 'echo \"ok: muster\"; echo why >&2; exit 3'\n",
		"other.yml": "- hosts: others\n  tasks:\n    - ansible.builtin.command: echo never\n",
		"here.yml":  "- hosts: localhost\n  gather_facts: false\n  tasks:\n    - ansible.builtin.command: echo here\n",
		"delegates.yml": tasks + fmt.Sprintf("    - add_host: {name: other, ansible_host: %s, ansible_port: %d}\n",
			other.Address, other.Port) + "    - {delegate_to: other, ansible.builtin.command: echo away}\n",
		"syntax.yml": "- hosts: all\n  tasks:\n    - no_such_module_here: {}\n",
		"true.yml":   tasks + "    - ansible.builtin.raw: 'true'\n",
		"loses.yml":  tasks + "    - ansible.builtin.raw: 'true'\n    - ansible.builtin.raw: kill -KILL $PPID\n",
	})
	_, strange := sshtest.NewKey(t)
	wrong := s.host
	wrong.HostKeys = []string{strange}
	refused := s.host
	refused.Key, _ = sshtest.NewKey(t)
	tests := map[string]struct {
		file string
		host fleet.Host
		exit int
		kind remote.Kind
		sent bool
		says string // by the error, or the output without one
	}{
		"fails": {file: "fails.yml", exit: 2,
			says: "    why\n"},
		"for others":     {file: "other.yml", exit: -1, kind: remote.KindInvalid, says: "no task for this host"},
		"no module":      {file: "syntax.yml", exit: -1, kind: remote.KindInvalid, says: "before any task"},
		"elsewhere":      {file: "here.yml", exit: -1, kind: remote.KindInvalid, says: "no task for this host"},
		"delegates":      {file: "delegates.yml", exit: -1, kind: remote.KindLost, sent: true, says: "erification failed"},
		"not there":      {file: "no.yml", exit: -1, kind: remote.KindNode, says: "no.yml is not in"},
		"outside":        {file: "../no.yml", exit: -1, kind: remote.KindNode, says: "escapes"},
		"wrong host key": {file: "true.yml", host: wrong, exit: -1, kind: remote.KindUnreachable, says: "erification failed"},
		"login refused":  {file: "true.yml", host: refused, exit: -1, kind: remote.KindUnreachable, says: "ermission denied"},
		"lost":           {file: "loses.yml", exit: -1, kind: remote.KindLost, sent: true, says: "the host after 1 task"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			s := *s
			s.T = t
			r, err := s.play(playbook.Play{File: test.file, Host: test.host})
			said := string(r.Output.Bytes())
			if err != nil {
				said = err.Error()
			}
			var e *remote.Error
			errors.As(err, &e)
			if r.ExitCode != test.exit || remote.KindOf(err) != test.kind || e != nil && e.Sent != test.sent ||
				!strings.Contains(said, test.says) {
				t.Errorf("exit %d, %v:\n%s", r.ExitCode, err, r.Output.Bytes())
			}
		})
	}
}

// An onWord closes a channel when a word was written to it.
type onWord struct {
	word string
	said chan struct{}
	once sync.Once
	all  bytes.Buffer
}

// Write takes output.
func (w *onWord) Write(p []byte) (int, error) {
	if w.all.Write(p); strings.Contains(w.all.String(), w.word) {
		w.once.Do(func() { close(w.said) })
	}
	return len(p), nil
}

// sleeps tells by a pipe that its command has begun on the host, and then sleeps.
const sleeps = `
- hosts: all
  gather_facts: false
  tasks:
    - ansible.builtin.command: "true"
    - name: sleeps
      ansible.builtin.shell: sh -c 'echo $$ > {{ place }}/pid; exec sleep 600' & wait
`

func TestAStoppedPlaybookLeavesNothing(t *testing.T) {
	t.Parallel()
	s := newStand(t, "fw003", map[string]string{"sleeps.yml": sleeps})
	pipe := filepath.Join(s.dir, "pid")
	if out, err := exec.Command("mkfifo", pipe).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	begun, err := os.OpenFile(pipe, os.O_RDWR, 0) // an open for reading would wait
	if err != nil {
		t.Fatal(err)
	}
	defer begun.Close()
	stop, pid := make(chan struct{}), ""
	go func() {
		text, err := bufio.NewReader(begun).ReadString('\n')
		if err != nil {
			return // the test is over
		}
		pid = strings.TrimSpace(text)
		close(stop)
	}()
	r, err := s.play(playbook.Play{File: "sleeps.yml", Stop: stop})
	if err == nil {
		t.Fatalf("exit %d:\n%s", r.ExitCode, r.Output.Bytes())
	}
	var e *remote.Error
	if !errors.As(err, &e) || e.Kind != remote.KindStopped || !e.Sent {
		t.Fatalf("exit %d, %v:\n%s", r.ExitCode, err, r.Output.Bytes())
	}
	if out, err := exec.Command("pgrep", "-f", s.nodes).Output(); err == nil {
		t.Errorf("processes of it are left on the node: %s", out)
	}
	// The host still runs the command, until it is swept.
	if _, err := os.Stat("/proc/" + pid); err != nil {
		t.Errorf("its command: %v", err)
	}
	client, err := remote.New(remote.Default())
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	conn, err := client.Connect(t.Context(), s.host)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	for range 2 { // there is nothing to sweep the second time
		swept, err := conn.Run(t.Context(), remote.Command{Shell: playbook.Sweep(s.host.Name), Bound: time.Minute})
		if err != nil || swept.ExitCode != playbook.SweptAll || swept.Output.Size() > 0 {
			t.Errorf("exit %d, %v: %s", swept.ExitCode, err, swept.Output.Bytes())
		}
		if cmd, err := os.ReadFile("/proc/" + pid + "/cmdline"); err == nil && len(cmd) > 0 {
			t.Errorf("its command still runs: %q", cmd)
		}
	}
}

func TestAPlaybookEndsAtItsBoundAndWithItsContext(t *testing.T) {
	t.Parallel()
	s := newStand(t, "fw004", map[string]string{"sleeps.yml": strings.ReplaceAll(sleeps, "{{ place }}/pid", "/dev/null")})
	ctx, cancel := context.WithCancel(t.Context())
	live := &onWord{word: "task sleeps", said: make(chan struct{})}
	go func() {
		<-live.said
		cancel()
	}()
	_, _, err := s.player.Play(ctx, playbook.Play{File: "sleeps.yml", Host: s.host, Bound: time.Hour, Live: live})
	if remote.KindOf(err) != remote.KindCancelled {
		t.Errorf("its context: %v", err)
	}
	_, err = s.play(playbook.Play{File: "sleeps.yml", Bound: time.Millisecond})
	if remote.KindOf(err) != remote.KindTimeout {
		t.Errorf("its bound: %v", err)
	}
}
