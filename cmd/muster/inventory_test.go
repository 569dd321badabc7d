package main

import (
	"strings"
	"syscall"
	"testing"
	"time"

	"muster/api"
	"muster/cli"
	"muster/fleet"
	"muster/internal/fakefleet"
	"muster/jobs"
)

// ansibleForms is one inventory of Ansible in three forms, as users have them.
var ansibleForms = map[string]string{
	"hosts": `
bastion ansible_host=192.0.2.1
[fw]
fw[001:003]
[edge:children]
fw
[fw:vars]
ansible_user=admin
ansible_port=2222
`,
	"hosts.yml": `
all:
  hosts: {bastion: {ansible_host: 192.0.2.1}}
  children:
    edge:
      children:
        fw: {hosts: {"fw[001:003]": }, vars: {ansible_user: admin, ansible_port: 2222}}
`,
	"list.json": `{"_meta": {"hostvars": {"bastion": {"ansible_host": "192.0.2.1"}}},
 "all": {"children": ["ungrouped", "edge"]}, "ungrouped": {"hosts": ["bastion"]},
 "edge": {"children": ["fw"]},
 "fw": {"hosts": ["fw001", "fw002", "fw003"], "vars": {"ansible_user": "admin", "ansible_port": 2222}}}`,
}

// TestAnInventoryOfAnsibleWorksUnchanged configures each form after the other and lists its hosts,
// with the file alone: nobody reloads the server.
func TestAnInventoryOfAnsibleWorksUnchanged(t *testing.T) {
	t.Parallel()
	h := newHouse(t, ansibleForms["hosts.yml"])
	var versions []string
	for _, form := range []string{"hosts.yml", "list.json", "hosts"} {
		if form != "hosts.yml" {
			h.write("other", ansibleForms[form])
			h.configure(map[string]any{"inventory": []string{h.file("other")}})
			h.reload("configuration reloaded")
		}
		var list []fleet.Host
		h.query(&list, "hosts", "group.edge=true")
		if len(list) != 3 || list[0].Name != "fw001" || list[0].User != "admin" || list[2].Port != 2222 {
			t.Errorf("%s: %+v", form, list)
		}
		var health api.Health
		h.query(&health, "health")
		versions = append(versions, health.Inventory)
	}
	if versions[0] != versions[1] || versions[1] != versions[2] {
		t.Error(versions)
	}
}

// reload sends HUP and waits for words.
func (h *house) reload(words string) {
	h.t.Helper()
	said := strings.Count(h.server.log.String(), words)
	h.server.cmd.Process.Signal(syscall.SIGHUP)
	h.server.awaitTimes(words, said+1)
}

// TestAChangedInventoryIsInForceWithoutReload edits the file of a server.
func TestAChangedInventoryIsInForceWithoutReload(t *testing.T) {
	t.Parallel()
	_, inventory := pretend(t, fakefleet.Config{Hosts: 3})
	h := newHouse(t, inventory)
	task := h.submit("all", "hostname")
	less := strings.Replace(inventory, "name: fw0003", "name: renamed", 1)

	begun := time.Now()
	h.write("fleet.yaml", less)
	h.server.await("1 added: renamed; 1 removed: fw0003")
	t.Logf("in force %s after the change", time.Since(begun).Round(time.Millisecond))
	h.know(3, false, "no node works on zone default") // and nothing else is wrong

	h.write("fleet.yaml", less+"nonsense: 1\n")
	h.server.await("the changed inventory is refused")
	h.know(3, false, `unknown key "nonsense"`)
	h.write("fleet.yaml", less)
	h.server.await("the inventory is right again")
	h.know(3, false, "no node works on zone default") // and nothing else is wrong

	// The task continues with the hosts of its submit, and says so.
	for host, left := range map[string]bool{"fw0002": false, "fw0003": true} {
		job := string(jobs.NewID(task, host))
		text, _ := h.muster("job", job)
		var info jobs.JobInfo
		h.query(&info, "job", job)
		if info.HostLeft != left || strings.Contains(text, "no longer in the inventory") != left {
			t.Errorf("%s: %+v\n%s", host, info, text)
		}
	}
	h.master()
	if info := h.wait(task); info.Outcomes[jobs.Succeeded] != 3 {
		t.Errorf("%+v", info)
	}
	if text, _ := h.muster("job", string(jobs.NewID(task, "fw0003"))); strings.Contains(text, "no more") {
		t.Errorf("it is over: %s", text)
	}
}

// The selector of a task means more hosts by the time that a person opens its next wave: the person
// agreed to the hosts of the submit.
func TestATaskWhoseSelectorGrewKeepsItsHosts(t *testing.T) {
	t.Parallel()
	f, all := pretend(t, fakefleet.Config{Hosts: 12})
	lines := strings.SplitAfter(all, "\n")
	few, hosts := "", 0
	for _, line := range lines {
		if strings.Contains(line, "name: fw") {
			hosts++
		}
		if hosts <= 3 {
			few += line
		}
	}
	h := newHouse(t, few)
	h.master()
	var task jobs.TaskInfo
	if code := h.query(&task, "run", "exec", "--on", "fw*", "--arg", "cmd=hostname", "--waves", "1,100%",
		"--gate", "--detach"); code != cli.ExitOK || task.Total != 3 {
		t.Fatalf("exit %d: %+v", code, task)
	}
	h.awaitTask(task.Task, func(i jobs.TaskInfo) bool { return !i.Rollout.Over.IsZero() })
	h.write("fleet.yaml", all)
	h.server.await("9 added: fw[0004-0012]")
	if out, code := h.muster("rollout", "next", string(task.Task), "--reason", "three of three"); code != cli.ExitOK {
		t.Fatalf("exit %d: %s", code, out)
	}
	h.awaitTask(task.Task, func(i jobs.TaskInfo) bool { return i.State == jobs.TaskEnded })
	wantOutcomes(t, h.wait(task.Task), map[jobs.Outcome]int{jobs.Succeeded: 3})
	if log := f.Log(); len(log) != 3 {
		t.Errorf("%d commands on the hosts, want 3: %+v", len(log), log)
	}
	// The same submit would be another task today.
	if code := h.query(&task, "run", "exec", "--on", "fw*", "--arg", "cmd=hostname", "--detach"); code != cli.ExitOK ||
		task.Total != 12 {
		t.Errorf("exit %d: %+v", code, task)
	}
	h.wait(task.Task)
}
