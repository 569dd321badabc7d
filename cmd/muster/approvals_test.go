package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	"muster/api"
	"muster/cli"
	"muster/internal/fakefleet"
	"muster/jobs"
)

// These tests let people sign tasks, as docs/TRUST.md describes it under "Four eyes".

// office is a house with a policy and people, each with a token and a key of their own.
type office struct {
	*house
	fleet  *fakefleet.Fleet
	tokens map[string]string
}

// newOffice starts a house whose nodes and server have a policy of these rules.
func newOffice(t *testing.T, rules string) *office {
	t.Helper()
	f, inventory := pretend(t, fakefleet.Config{Hosts: 3})
	o := &office{newCellar(t, inventory), f, map[string]string{}}
	o.write("trust/policy.yaml", "rules:\n"+rules)
	o.write("access.yaml", `who:
  - {principal: os:root, roles: [admin]}
  - {principal: user:ann, roles: [operator, approver]}
  - {principal: user:bob, roles: [approver]}
  - {principal: user:cem, roles: [approver]}
  - {principal: user:dan, roles: [approver]}
  - {principal: user:eve, roles: [viewer]}
`)
	signers, err := os.ReadFile(o.file("trust/allowed_signers"))
	if err != nil {
		t.Fatal(err)
	}
	lines := string(signers)
	for _, key := range []struct{ name, terms string }{
		{"ann", `user:ann namespaces="muster-order"`}, {"bob", `user:bob namespaces="muster-order"`},
		{"bob2", `user:bob namespaces="muster-order"`}, {"cem", `user:cem namespaces="muster-order"`},
		{"old", `user:dan namespaces="muster-order",valid-before="20200101Z"`},
		{"git", `user:dan namespaces="git"`}, {"root", `os:root namespaces="muster-order"`},
	} {
		out, err := exec.Command("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", o.file(key.name)).CombinedOutput()
		if err != nil {
			t.Fatalf("ssh-keygen: %v: %s", err, out)
		}
		public, err := os.ReadFile(o.file(key.name + ".pub"))
		if err != nil {
			t.Fatal(err)
		}
		lines += key.terms + " " + string(public)
	}
	o.write("trust/allowed_signers", lines)
	o.configure(map[string]any{"server": map[string]any{"access": o.file("access.yaml")}})
	o.server = o.start("server", "--config", o.file("muster.yaml"))
	o.server.await("server listens")
	for _, name := range []string{"ann", "bob", "cem", "dan", "eve"} {
		var made api.TokenAnswer
		o.query(&made, "token", "create", name, "--owner", "user:"+name)
		o.tokens[name] = made.Token
	}
	return o
}

// as runs a command of a person, and returns all that it printed.
func (o *office) as(name string, args ...string) (words string, code int) {
	o.t.Helper()
	cmd := exec.CommandContext(o.t.Context(), o.bin, args...)
	cmd.Env = append(os.Environ(), "MUSTER_URL="+o.url, "MUSTER_TOKEN="+o.tokens[name],
		"MUSTER_SIGN_KEY="+o.file(name), "HOME="+o.dir)
	out, err := cmd.CombinedOutput()
	if ended := new(exec.ExitError); err != nil && !errors.As(err, &ended) {
		o.t.Errorf("muster %q: %v", args, err)
	}
	return string(out), cmd.ProcessState.ExitCode()
}

// hold submits a task that waits for signatures.
func (o *office) hold(name, words string) jobs.TaskID {
	o.t.Helper()
	out, code := o.as(name, "run", "exec", "all", "--arg", "cmd=echo "+words, "--hold", "-o", "json")
	var held api.HeldTask
	if err := json.Unmarshal([]byte(out), &held); err != nil || code != 0 || held.Hash == "" {
		o.t.Fatalf("run --hold: exit %d, %v: %s", code, err, out)
	}
	return held.Task
}

// want runs a command of a person, which must end with a code and say some words.
func (o *office) want(name string, code int, words string, args ...string) string {
	o.t.Helper()
	out, got := o.as(name, args...)
	if got != code || !strings.Contains(out, words) {
		o.t.Errorf("%s: muster %s: exit %d, want %d and %q: %s", name, strings.Join(args, " "), got, code, words, out)
	}
	return out
}

// A task that needs two people runs when two people have signed it, none of whom ordered it.
func TestATaskWaitsForTwoPeople(t *testing.T) {
	t.Parallel()
	o := newOffice(t, "  - {runbooks: [exec], people: 2, mode: require}\n  - {level: server, mode: require}\n")
	o.master()
	other := o.hold("ann", "another")
	var first api.HeldDetail
	out, _ := o.as("eve", "approvals", "show", string(other), "-o", "json")
	if err := json.Unmarshal([]byte(out), &first); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	id := string(o.hold("ann", "reviewed"))
	for _, words := range []string{"cmd=echo reviewed", "fw[0001-0003]", "user:ann", "SHA256:", "2 more people"} {
		o.want("eve", 0, words, "approvals", "show", id)
	}
	o.want("eve", 0, id, "approvals", "ls")
	o.want("eve", 0, "approvals show "+id, "task", id)

	approve := func(key string) []string {
		return []string{"approvals", "approve", id, "--yes", "--key", o.file(key)}
	}
	o.want("bob", 2, "give --yes", "approvals", "approve", id)
	o.want("eve", 1, "may not approve", approve("cem")...)
	o.want("dan", 2, "2020", approve("old")...)
	o.want("dan", 2, "muster-order", approve("git")...)
	o.want("dan", 1, "you are user:dan", approve("cem")...)
	o.want("ann", 0, "2 more people must sign", approve("ann")...)
	o.want("bob", 0, "1 more person must sign", approve("bob")...)
	o.want("bob", 0, "1 more person must sign", approve("bob")...)
	o.want("bob", 0, "1 more person must sign", approve("bob2")...)
	o.refusesEarlier(jobs.TaskID(id), first)
	// The same submit with the same id commits nothing.
	o.want("ann", 0, id, "run", "exec", "all", "--arg", "cmd=echo reviewed", "--hold", "--id", id)
	o.want("ann", 2, "it waits for signatures", "run", "exec", "all", "--arg", "cmd=echo reviewed", "--id", id)
	if i := o.task(jobs.TaskID(id)); i.State != jobs.TaskSubmitting || len(o.fleet.Log()) > 0 {
		t.Fatalf("before the second person: %+v, %v", i, o.fleet.Log())
	}
	o.want("cem", 0, "it runs", approve("cem")...)
	wantOutcomes(t, o.wait(jobs.TaskID(id)), map[jobs.Outcome]int{jobs.Succeeded: 3})
	o.want("cem", 1, "does not wait for signatures", approve("cem")...)

	o.want("eve", 1, "may not approve", "approvals", "refuse", string(other), "--reason", "no")
	o.want("bob", 2, "a reason is needed", "approvals", "refuse", string(other))
	o.want("ann", 0, "3 jobs ended", "approvals", "refuse", string(other))
	o.want("eve", 0, "no task waits", "approvals", "ls")
	if i := o.task(other); i.State != jobs.TaskEnded || !strings.Contains(i.Cancelled, "withdrawn by user:ann") {
		t.Errorf("a task that was withdrawn: %+v", i)
	}
}

// refusesEarlier sends the signature for another plan.
func (o *office) refusesEarlier(id jobs.TaskID, earlier api.HeldDetail) {
	o.t.Helper()
	cmd := exec.Command("ssh-keygen", "-Y", "sign", "-q", "-f", o.file("cem"), "-n", "muster-order")
	cmd.Stdin = bytes.NewReader(earlier.Order)
	signature, err := cmd.Output()
	if err != nil {
		o.t.Fatal(err)
	}
	for hash, words := range map[string]string{earlier.Hash: "the plan has changed", o.hashOf(id): "message"} {
		body, err := json.Marshal(api.EndorseRequest{Hash: hash, Signature: string(signature)})
		if err != nil {
			o.t.Fatal(err)
		}
		c, err := cli.NewClient(o.url, o.tokens["cem"])
		if err != nil {
			o.t.Fatal(err)
		}
		err = c.Do(o.t.Context(), cli.Call{Method: http.MethodPost, Path: "/v1/approvals/" + string(id),
			Body: json.RawMessage(body), Bound: cli.CallTimeout}, nil)
		c.Close()
		if refusal := new(cli.Refusal); !errors.As(err, &refusal) || !strings.Contains(err.Error(), words) {
			o.t.Errorf("the signature of an earlier plan: %v, want words with %q", err, words)
		}
	}
}

func (o *office) hashOf(id jobs.TaskID) string {
	o.t.Helper()
	var d api.HeldDetail
	o.query(&d, "approvals", "show", string(id))
	return d.Hash
}

// Two people who sign at once are two people.
func TestTwoApprovalsAtOnceBothCount(t *testing.T) {
	t.Parallel()
	o := newOffice(t, "  - {people: 3, mode: require}\n")
	o.master()
	id := o.hold("ann", "at once")
	o.want("bob", 0, "2 more people must sign", "approvals", "approve", string(id), "--yes")
	var all sync.WaitGroup
	for _, key := range []string{"cem", "root"} {
		all.Go(func() {
			if out, code := o.as(key, "approvals", "approve", string(id), "--yes"); code != 0 {
				t.Errorf("%s: exit %d: %s", key, code, out)
			}
		})
	}
	all.Wait()
	wantOutcomes(t, o.wait(id), map[jobs.Outcome]int{jobs.Succeeded: 3})
}

// A person runs a task that needs the word of a person in one command; a server alone cannot.
func TestAPersonSignsTheOwnTask(t *testing.T) {
	t.Parallel()
	o := newOffice(t, "  - {hosts: fw0001, people: 1, mode: require}\n  - {level: person, mode: require}\n")
	o.master()
	o.want("ann", 0, "2 succeeded: fw", "run", "exec", "fw[0002,0003]", "--arg", "cmd=echo signed", "--sign")
	o.want("ann", 1, "no person has signed it", "run", "exec", "fw0002", "--arg", "cmd=echo unsigned")
	out := o.want("ann", 0, "1 more person must sign", "run", "exec", "all", "--arg", "cmd=echo both", "--sign")
	if n := strings.Count(fmt.Sprint(o.fleet.Log()), "echo both"); n > 0 {
		t.Errorf("a part of a task ran: %s", out)
	}
	o.want("eve", 2, "no key to sign with", "run", "exec", "fw0002", "--arg", "cmd=echo x", "--sign")
	for entry, verb := range map[string]string{"approval.give": "approval.*"} {
		if out, code := o.muster("audit", "ls", "--verb", verb); code != 0 || !strings.Contains(out, entry) {
			t.Errorf("the audit log has no %s: exit %d: %s", entry, code, out)
		}
	}
}

// A person signs with a key of an agent that asks for each use: without a yes nothing is signed.
func TestAnAgentAsksBeforeItSigns(t *testing.T) {
	t.Parallel()
	o := newOffice(t, "  - {people: 1, mode: require}\n")
	o.master()
	id := string(o.hold("ann", "confirmed"))
	answer := o.file("answer") // the exit code of the program that asks
	asked := o.file("asked")
	script := fmt.Sprintf("#!/bin/sh\necho \"$1\" >>%s\nexit $(cat %s)\n", asked, answer)
	o.write("askpass", script)
	o.write("answer", "1")
	if err := os.Chmod(o.file("askpass"), 0o700); err != nil {
		t.Fatal(err)
	}
	env := append(os.Environ(), "SSH_ASKPASS="+o.file("askpass"), "SSH_ASKPASS_REQUIRE=force", "DISPLAY=:none",
		"SSH_AUTH_SOCK="+o.file("agent"))
	agent := exec.Command("ssh-agent", "-D", "-a", o.file("agent"))
	agent.Env = env
	if err := agent.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = agent.Process.Kill()
		_ = agent.Wait()
	})
	add := func() error {
		cmd := exec.CommandContext(t.Context(), "ssh-add", "-q", "-c", o.file("bob"))
		cmd.Env = env
		return cmd.Run()
	}
	late, tick := o.late(), time.Tick(20*time.Millisecond)
	for add() != nil { // until the agent listens
		select {
		case <-late:
			t.Fatal("the agent takes no key")
		case <-tick:
		}
	}
	// Only the agent has the key from now on.
	if err := os.Remove(o.file("bob")); err != nil {
		t.Fatal(err)
	}
	approve := func() (string, error) {
		cmd := exec.CommandContext(t.Context(), o.bin, "approvals", "approve", id, "--yes", "--key", o.file("bob.pub"))
		cmd.Env = append(env, "MUSTER_URL="+o.url, "MUSTER_TOKEN="+o.tokens["bob"], "HOME="+o.dir)
		out, err := cmd.CombinedOutput()
		return string(out), err
	}
	if out, err := approve(); err == nil || !strings.Contains(out, "has not signed") {
		t.Errorf("the agent was told no: %v: %s", err, out)
	}
	o.want("eve", 0, "1 more person must sign", "approvals", "show", id)
	o.write("answer", "0")
	if out, err := approve(); err != nil || !strings.Contains(out, "it runs") {
		t.Errorf("the agent was told yes: %v: %s", err, out)
	}
	if got := o.wait(jobs.TaskID(id)); got.Outcomes[jobs.Succeeded] != 3 {
		t.Errorf("the task that was confirmed: %+v", got.Outcomes)
	}
	o.awaitPast(jobs.TaskID(id), 3)
	next := string(o.hold("ann", "next"))
	o.want("cem", 0, "task "+id+" of ", "approvals", "show", next)
	if text, err := os.ReadFile(asked); err != nil || strings.Count(string(text), "Allow use of key") != 2 {
		t.Errorf("the agent asked: %s, %v", text, err)
	}
}
