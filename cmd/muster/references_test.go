package main

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"filippo.io/age"

	"muster/jobs"
	"muster/jobs/queue/keys"
	"muster/testkit/redistest"
	"muster/testkit/sshtest"
	"muster/testkit/vaulttest"
)

// It shows the test its secrets, in a file, and prints them.
const fourSecrets = `
name: four
arguments:
  file: {type: secret}
  cred: {type: secret}
  age: {type: secret}
  vault: {type: secret}
  dir: {type: string}
timeout: 1m
steps:
  - name: use
    run: |
      (umask 077; printf '%s\n' {{file}} {{cred}} {{age}} {{vault}} > {{dir}}/got)
      printf 'they are %s, %s, %s, %s.\n' {{file}} {{cred}} {{age}} {{vault}}
      echo here > {{dir}}/gate
    save: {it: {match: 'they are ([^,]+), '}}
  - name: end
    run: echo {{saved.it}}; exit 3
`

// A vaultHouse is a house with a host, a pretended Vault, and files with secrets, which are in a
// folder of their own.
type vaultHouse struct {
	*house
	bao    *vaulttest.Server
	server *process
	master *process
	source string // the folder with secrets
	work   string // the folder of the step
}

// newVaultHouse starts all of a house but its master.
func newVaultHouse(t *testing.T, rules string) *vaultHouse {
	t.Helper()
	s := sshtest.StartSSHD(t, sshtest.Options{})
	h := &vaultHouse{bao: vaulttest.Start(t), source: t.TempDir(), work: t.TempDir(), house: newCellar(t,
		fmt.Sprintf("hosts:\n  - {name: fw1, address: %s, port: %d, user: %s, key: %s, host_key: %q}\n",
			s.Address, s.Port, s.User, s.Key, s.HostKey))}
	identity, err := age.GenerateX25519Identity()
	if err != nil {
		t.Fatal(err)
	}
	var sealed bytes.Buffer
	w, err := age.Encrypt(&sealed, identity.Recipient())
	if err != nil {
		t.Fatal(err)
	}
	fmt.Fprintf(w, `{"pw": "%s-age"}`, swordfish)
	errs := []error{w.Close(), os.MkdirAll(h.source+"/s/fw1", 0o700), os.Mkdir(h.source+"/cred", 0o700),
		syscall.Mkfifo(h.work+"/gate", 0o600)}
	for name, text := range map[string]string{"s/fw1/pw": swordfish + "-file\n", "cred/pw": swordfish + "-cred",
		"age.key": identity.String(), "s/all.age": sealed.String(), "ca": h.bao.CA(), "role": vaulttest.RoleID,
		"secret": h.bao.SecretID} {
		errs = append(errs, os.WriteFile(h.source+"/"+name, []byte(text), 0o400))
	}
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
	h.bao.Data["kv/fw1"] = map[string]any{"pw": swordfish + "-vault"}
	h.write("references.yaml", strings.NewReplacer("DIR", h.source, "VAULT", h.bao.URL).Replace(rules))
	h.write("own.yaml", fourSecrets)
	h.configure(map[string]any{"runbooks": []string{h.file("own.yaml")}, "log": map[string]any{"level": "trace"},
		"secrets": map[string]any{"references": h.file("references.yaml")}})
	h.server = h.start("server", "--config", h.file("muster.yaml"))
	h.server.await("server listens")
	return h
}

// withCredentials starts a master as systemd does if its unit has LoadCredential.
func (h *vaultHouse) withCredentials() *process {
	h.t.Helper()
	real := h.bin
	defer func() { h.bin = real }()
	h.write("as-a-unit", fmt.Sprintf("#!/bin/sh\nexport CREDENTIALS_DIRECTORY=%s/cred\nexec %s \"$@\"\n", h.source, real))
	if err := os.Chmod(h.file("as-a-unit"), 0o700); err != nil {
		h.t.Fatal(err)
	}
	h.bin = h.file("as-a-unit")
	m := h.start("master", "--config", h.file("muster.yaml"))
	m.await("master started")
	return m
}

// args returns the arguments of a run of the runbook.
func (h *vaultHouse) args() []string {
	return []string{"run", "four", "--on", "fw1", "--arg", "dir=" + h.work, "--arg", "cred=ref:cred:pw",
		"--arg", "age=ref:age:" + h.source + "/s/all.age#pw", "--arg", "vault=ref:vault:kv/{{host.name}}#pw",
		"--arg", "file=ref:file:" + h.source + "/s/{{host.name}}/pw", "--detach"}
}

// used lets the step go on once it has its secrets, and returns them.
func (h *vaultHouse) used(during func()) string {
	h.t.Helper()
	gate, err := os.Open(h.work + "/gate") // waits for the step, and the step for what follows
	if err != nil {
		h.t.Fatal(err)
	}
	during()
	var byte1 [1]byte
	_, err = gate.Read(byte1[:])
	got, err2 := os.ReadFile(h.work + "/got")
	if err := errors.Join(err, err2, gate.Close(), os.Remove(h.work+"/got")); err != nil {
		h.t.Fatal(err)
	}
	return strings.ReplaceAll(string(got), swordfish, "S")
}

const vaultRules = `
allow:
  - refs: ["file:DIR/s/{{host.name}}/*", "age:DIR/s/all.age", "cred:*", "vault:kv/{{host.name}}"]
    runbooks: [four]
age: {identities: DIR/age.key}
vault:
  address: VAULT
  ca: DIR/ca
  approle: {role_id: DIR/role, secret_id: DIR/secret}
`

// A real redis-server and a real sshd, during the step and after it. The secret of each source is
// nowhere but in its source and in the step; the login to Vault is nowhere at all.
func TestASecretOfAReferenceIsFoundNowhereButInItsStep(t *testing.T) {
	t.Parallel()
	h := newVaultHouse(t, vaultRules)
	h.master = h.withCredentials()
	var task jobs.TaskInfo
	if code := h.query(&task, h.args()...); code != 0 {
		t.Fatalf("run: exit %d", code)
	}
	got := h.used(func() {
		for _, text := range []string{swordfish, h.bao.SecretID, "hvs.token-of-this-test"} {
			wantNoProcess(t, text)
		}
	})
	if got != "S-file\nS-cred\nS-age\nS-vault\n" {
		t.Errorf("the step got %q", got)
	}
	j := h.jobs(h.wait(task.Task).Task)[0]
	said, _ := h.muster("logs", string(j.ID))
	const covered = "they are (secret), (secret), (secret), (secret)."
	if j.Outcome != jobs.Failed || !strings.Contains(said, covered) {
		t.Errorf("%+v\n%s", j, said)
	}
	wantShownNowhere(t, h.house, task.Task)
	if shown, _ := h.muster("task", string(task.Task)); !strings.Contains(shown, "vault=") ||
		!strings.Contains(shown, "ref:vault:kv/{{host.name}}#pw") {
		t.Errorf("the task shows no reference: %s", shown)
	}
	for _, text := range []string{swordfish, h.bao.SecretID, "hvs.token-of-this-test", "AGE-SECRET-KEY"} {
		if n := wantNowhere(t, text, "", h.dir, h.redis.Dir); n < 5 {
			t.Errorf("only %d files", n)
		}
		for _, p := range []*process{h.server, h.master} {
			if strings.Contains(p.log.String(), text) {
				t.Errorf("%s says %s: %s", p.name, text, p.log)
			}
		}
	}
}

// A job waits for a Vault that is sealed, people see why, and it runs when Vault is back. A job
// with a reference that the node does not allow fails at once. Neither touches the host.
func TestAJobWaitsForVaultAndTakesNothingThatIsNotAllowed(t *testing.T) {
	t.Parallel()
	h := newVaultHouse(t, vaultRules)
	h.master = h.withCredentials()
	var refused jobs.TaskInfo
	args := h.args()
	for i, a := range args {
		if strings.HasPrefix(a, "file=") {
			args[i] = "file=ref:file:" + h.source + "/secret"
		}
	}
	if code := h.query(&refused, args...); code != 0 {
		t.Fatalf("run: exit %d", code)
	}
	j := h.jobs(h.wait(refused.Task).Task)[0]
	if j.Outcome != jobs.Failed || j.Class != jobs.ClassOperator ||
		!strings.Contains(j.Error, "on node node1: no rule of ") {
		t.Errorf("a reference that is not allowed: %+v", j)
	}

	h.bao.Do(func() { h.bao.Sealed = true })
	var task jobs.TaskInfo
	if code := h.query(&task, h.args()...); code != 0 {
		t.Fatalf("run: exit %d", code)
	}
	for late, tick := h.late(), time.Tick(commandEvery); ; {
		j = h.jobs(task.Task)[0]
		shown, _ := h.muster("job", string(j.ID))
		if strings.Contains(shown, "a secret cannot be had yet") && strings.Contains(shown, "Vault is sealed") {
			break
		}
		select {
		case <-late:
			t.Fatalf("nobody sees why the job waits: %s", shown)
		case <-tick:
		}
	}
	h.bao.Do(func() { h.bao.Sealed = false })
	if got := h.used(func() {}); got != "S-file\nS-cred\nS-age\nS-vault\n" {
		t.Errorf("the step got %q", got)
	}
	if j = h.jobs(h.wait(task.Task).Task)[0]; !strings.Contains(j.Error, "exit 3") {
		t.Errorf("afterwards: %+v", j)
	}
}

// A policy that only warns lets a changed task run, and gives it no secret.
func TestAWriterToRedisGetsNoSecretByAReference(t *testing.T) {
	t.Parallel()
	h := newVaultHouse(t, vaultRules)
	h.write("trust/policy.yaml", "rules:\n  - {level: server, mode: warn}\n")
	var task jobs.TaskInfo
	if code := h.query(&task, h.args()...); code != 0 {
		t.Fatalf("run: exit %d", code)
	}
	redistest.NewIntruder(t, h.redis).Replace(keys.Zone("default", "task:", string(task.Task)), "spec",
		"printf 'they are", "cat /etc/hostname; printf 'they are")
	h.master = h.withCredentials()
	j := h.jobs(h.wait(task.Task).Task)[0]
	if j.Outcome != jobs.Failed || !strings.Contains(j.Error, "no signed order holds for the job") {
		t.Errorf("a changed task: %+v", j)
	}
	if _, err := os.Stat(h.work + "/got"); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the step ran: %v", err)
	}
	if calls := h.bao.Called(); calls != "" {
		t.Errorf("Vault was asked: %s", calls)
	}
	if code := h.query(&task, h.args()...); code != 0 { // as it was ordered
		t.Fatalf("run: exit %d", code)
	}
	if got := h.used(func() {}); got != "S-file\nS-cred\nS-age\nS-vault\n" {
		t.Errorf("the step got %q", got)
	}
}
