package worker_test

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/hashicorp/go-hclog"

	"muster/fleet"
	"muster/fleet/remote"
	"muster/internal/proc"
	"muster/jobs"
	"muster/testkit/porttest"
	"muster/testkit/queuetest"
	"muster/testkit/redistest"
	"muster/testkit/sshtest"
	"muster/worker"
	"muster/worker/attempt"
	"muster/worker/plays"
)

const playing = `
name: playing
timeout: 2m
retry: {submit: 1}
steps:
  - name: play
    ansible:
      playbook: site.yml
      vars: {place: DIR, who: "{{host.name}}"}
`

// site fails on one host, and waits on another one until it is stopped.
const site = `
- hosts: all
  gather_facts: false
  tasks:
    - ansible.builtin.copy: {content: "{{ who }}\n", dest: "{{ place }}/{{ who }}"}
    - {name: refuse, ansible.builtin.fail: {msg: "no, {{ who }}"}, when: "who == 'bad'"}
    - name: stay
      ansible.builtin.shell: sh -c 'echo $$ > {{ place }}/pipe; exec sleep 600' & wait
      when: "who == 'slow'"
`

// A playbook of Ansible is a step like others: each job ends with what is true of its host, and a
// cancel leaves nothing of it, here and there.
func TestAPlaybookOnRealParts(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("-short: each run of Ansible takes a second")
	}
	dir, nodes := t.TempDir(), shortDir(t)
	pipe := layOut(t, dir)
	one := sshtest.StartSSHD(t, sshtest.Options{Config: []string{"Subsystem sftp internal-sftp"}}).Host
	var hosts []fleet.Host
	for _, name := range []string{"good", "bad", "slow", "away"} {
		one.Name = name
		hosts = append(hosts, one)
	}
	hosts[3].Port = porttest.On(t, one.Address) // nobody listens there
	_, cfg := redistest.StartMini(t)
	q := openQueue(t, cfg, hosts)
	spec := specOf(t, strings.ReplaceAll(playing, "DIR", dir))
	spec.Retry.Tries = 1
	task := submit(t, q, spec, hosts)

	pid := make(chan string, 1)
	go func() {
		text, err := bufio.NewReader(pipe).ReadString('\n')
		if err != nil {
			return // the test is over
		}
		if _, err := q.CancelJobs(context.WithoutCancel(t.Context()), []jobs.ID{jobs.NewID(task, "slow")},
			"bob: enough"); err != nil {
			t.Error(err)
		}
		pid <- strings.TrimSpace(string(text))
	}()
	playOn(t, q, attempt.Doors{Play: plays.New(plays.Config{Folder: dir, Dir: nodes, OutputMax: 64 << 10}).Play})

	got := map[string]string{}
	for _, h := range hosts {
		j, err := q.Job(t.Context(), jobs.NewID(task, h.Name))
		if err != nil {
			t.Fatal(err)
		}
		got[h.Name] = fmt.Sprint(j.Outcome, " ", j.Class)
		if h.Name != "good" {
			got[h.Name] += ": " + strings.Split(j.Error, " (")[0]
		}
	}
	for name := range got {
		if strings.HasPrefix(got[name], "unreachable") {
			got[name] = "unreachable"
		}
	}
	want := map[string]string{"good": "succeeded ", "away": "unreachable",
		"bad":  `failed user: exit 2; the host said: "failed: task refuse \"no, bad\""`,
		"slow": "cancelled : bob: enough; stopped on the host"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	if text, err := os.ReadFile(filepath.Join(dir, "good")); string(text) != "good\n" {
		t.Errorf("the file of the good host is %q, %v", text, err)
	}
	if t.Failed() {
		return // nothing may have begun
	}
	if cmd, err := os.ReadFile("/proc/" + <-pid + "/cmdline"); err == nil && strings.Contains(string(cmd), "sleep") {
		t.Errorf("the command of the cancelled job still runs: %q", cmd)
	}
	if out, err := exec.Command("pgrep", "-f", nodes).Output(); err == nil {
		t.Errorf("processes are left on the node: %s", out)
	}
	if left, err := os.ReadDir(nodes); len(left) > 0 || err != nil {
		t.Errorf("private folders are left: %v, %v", left, err)
	}
}

// shortDir makes a folder with a short path, as sockets of OpenSSH need it.
func shortDir(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("/tmp", "plays")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	return dir
}

// layOut writes the playbook, and returns the pipe to which its task on the slow host writes.
func layOut(t *testing.T, dir string) *os.File {
	t.Helper()
	if err := os.WriteFile(filepath.Join(dir, "site.yml"), []byte(site), 0o644); err != nil {
		t.Fatal(err)
	}
	name := filepath.Join(dir, "pipe")
	if out, err := exec.Command("mkfifo", name).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	pipe, err := os.OpenFile(name, os.O_RDWR, 0) // an open for reading would wait
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { pipe.Close() })
	return pipe
}

// playOn lets a worker that runs playbooks do the due jobs.
func playOn(t *testing.T, q *queuetest.Queue, doors attempt.Doors) {
	t.Helper()
	client, err := remote.New(remote.Default())
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	doors.Queue, doors.Dial = q, attempt.SSH(client)
	settings := worker.Default()
	settings.Slots = 4
	w, err := worker.New(settings, worker.Doors{Queue: q, Times: q,
		Steps: doors, Clock: proc.Boot, Log: hclog.NewNullLogger()})
	if err != nil {
		t.Fatal(err)
	}
	h := jobs.Handover{Node: "n1", Slot: "0", Zone: fleet.DefaultZone, Sent: proc.Boot()}
	h.Reply, err = q.Step(t.Context(), h.Zone, jobs.Step{Node: h.Node, Slot: h.Slot, Request: fmt.Sprint(h.Sent), Want: 1})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	defer cancel()
	if err := w.Run(ctx, h, worker.Master{Report: func(jobs.Report) {}}); err != nil {
		t.Fatal(err)
	}
}
