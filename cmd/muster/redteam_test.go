package main

import (
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"
	"golang.org/x/crypto/ssh"

	"muster/internal/fakefleet"
	"muster/internal/sshsig"
	"muster/jobs"
	"muster/jobs/queue/keys"
	"muster/testkit/redistest"
	"muster/trust"
)

// This file attacks a house as somebody who can write to Redis (issue 16). Each attack has a host of
// its own, whose log judges it: no command may run that nobody ordered.

// An attacker writes to Redis.
type attacker struct {
	*redis.Client
	t   *testing.T
	ctx context.Context
	h   *house

	other  jobs.TaskID // a task that was ordered for other hosts
	signer ssh.Signer  // a key of the attacker
}

// target is the job that an attack is about.
type target struct {
	task jobs.TaskID
	host string
}

func (g target) key() string   { return keys.Zone("default", "task:", string(g.task)) }
func (g target) field() string { return ":" + g.host }

func (a *attacker) get(key, field string) string {
	text, err := a.HGet(a.ctx, key, field).Result()
	if err != nil {
		a.t.Fatalf("HGET %s %s: %v", key, field, err)
	}
	return text
}

func (a *attacker) set(key string, pairs ...any) {
	if err := a.HSet(a.ctx, key, pairs...).Err(); err != nil {
		a.t.Fatalf("HSET %s: %v", key, err)
	}
}

// replace changes a text in a field. The text must be there.
func (a *attacker) replace(key, field, old, with string) {
	text := a.get(key, field)
	changed := strings.Replace(text, old, with, 1)
	if changed == text {
		a.t.Fatalf("%s %s does not have %q: %s", key, field, old, text)
	}
	a.set(key, field, changed)
}

// host changes the record of a host in the inventory that a task has pinned.
func (a *attacker) host(g target, change func(map[string]any)) {
	key := keys.Zone("default", "hosts:", a.get(g.key(), "inventory"))
	var record map[string]any
	if err := json.Unmarshal([]byte(a.get(key, g.host)), &record); err != nil {
		a.t.Fatal(err)
	}
	change(record)
	text, err := json.Marshal(record)
	if err != nil {
		a.t.Fatal(err)
	}
	a.set(key, g.host, text)
}

// with returns an attack that sets one key of the host's record.
func with(key string, value any) func(*attacker, target) {
	return func(a *attacker, g target) {
		a.host(g, func(record map[string]any) { record[key] = value })
	}
}

// signedBy puts a signature of the attacker's key beside an order, in a namespace.
func signedBy(namespace string) func(*attacker, target) {
	return func(a *attacker, g target) {
		text, err := sshsig.Sign(a.signer, namespace, []byte(a.get(g.key(), "order")))
		if err != nil {
			a.t.Fatal(err)
		}
		list, err := json.Marshal([]string{string(text)})
		if err != nil {
			a.t.Fatal(err)
		}
		a.set(g.key(), "signatures", list)
	}
}

// An attack changes what Redis has of a job that waits.
type attack struct {
	name string
	do   func(*attacker, target)
}

// inRecord returns an attack on the record of a job: it replaces a text.
func inRecord(old, with string) func(*attacker, target) {
	return func(a *attacker, g target) { a.replace(g.key(), g.field(), old, with) }
}

// beforeTheStart are attacks on jobs that have not begun.
var beforeTheStart = []attack{
	{"the command of the spec", func(a *attacker, g target) {
		a.replace(g.key(), "spec", "ordered", "invented")
	}},
	{"the command of the order", func(a *attacker, g target) {
		a.replace(g.key(), "order", "ordered", "invented")
	}},
	{"the command of both", func(a *attacker, g target) {
		a.replace(g.key(), "spec", "ordered", "invented")
		a.replace(g.key(), "order", "ordered", "invented")
	}},
	{"the order signed anew", func(a *attacker, g target) {
		a.replace(g.key(), "spec", "ordered", "invented")
		a.replace(g.key(), "order", "ordered", "invented")
		signedBy(trust.NamespaceOrder)(a, g)
	}},
	{"another signer", signedBy(trust.NamespaceOrder)},
	{"a signature for something else", signedBy("file")},
	{"no signature", func(a *attacker, g target) { a.set(g.key(), "signatures", "[]") }},
	{"a signature that is none", func(a *attacker, g target) { a.set(g.key(), "signatures", `["x"]`) }},
	{"signatures that are no list", func(a *attacker, g target) { a.set(g.key(), "signatures", "{") }},
	{"no order", func(a *attacker, g target) { a.HDel(a.ctx, g.key(), "order") }},
	{"an order that is none", func(a *attacker, g target) { a.set(g.key(), "order", "{}") }},
	{"the order of another task", func(a *attacker, g target) {
		other := target{a.other, g.host}
		for _, field := range []string{"spec", "order", "signatures", "share:0"} {
			a.set(g.key(), field, a.get(other.key(), field))
		}
	}},
	{"the signature of another task", func(a *attacker, g target) {
		a.set(g.key(), "signatures", a.get(target{a.other, ""}.key(), "signatures"))
	}},
	{"another operator", func(a *attacker, g target) {
		a.replace(g.key(), "spec", `"operator":"`, `"operator":"user:`)
	}},
	{"longer steps", func(a *attacker, g target) {
		a.replace(g.key(), "spec", `"timeout":`, `"timeout":9`)
	}},
	{"more tries", func(a *attacker, g target) { a.replace(g.key(), "spec", `"tries":`, `"tries":9`) }},
	{"repeatable", func(a *attacker, g target) {
		a.replace(g.key(), "spec", `"repeatable":false`, `"repeatable":true`)
	}},
	{"no hosts of the order", func(a *attacker, g target) { a.HDel(a.ctx, g.key(), "share:0") }},
	{"the hosts of the order", func(a *attacker, g target) {
		a.replace(g.key(), "share:0", g.host+" ", g.host+" A")
	}},
	{"the address of the host", with("address", "127.9.9.9")},
	{"its port", with("port", 22)},
	{"its login", with("user", "nobody")},
	{"its keys", with("host_keys", []string{"ssh-ed25519 AAAA"})},
	{"the authority of its keys", with("host_cas", []string{"ssh-ed25519 AAAA"})},
	{"the key of the node", with("key", "/etc/ssh/ssh_host_ed25519_key")},
	{"its labels", with("labels", map[string]string{"role": "spare"})},
	{"its customer", with("customer", "acme")},
	{"its group", with("group", "none")},
	{"its fence", with("fence", "none")},
	{"a jump host", with("jump", []map[string]any{{"name": "j", "address": "127.9.9.9", "port": 22,
		"user": "x"}})},
	{"another user for commands", with("become", "sudo")},
	{"old algorithms", with("profile", "legacy")},
	{"the name in its record", with("name", "fw0001")},
	{"the host in a changed record and list", func(a *attacker, g target) {
		with("port", 22)(a, g)
		a.replace(g.key(), "share:0", g.host+" ", g.host+" A")
	}},
	{"the record of another inventory", func(a *attacker, g target) {
		key := keys.Zone("default", "hosts:", a.get(g.key(), "inventory"))
		record := strings.Replace(a.get(key, g.host), `"fence":"auto"`, `"fence":"none"`, 1)
		a.set(keys.Zone("default", "hosts:", "evil"), g.host, record)
		a.set(g.key(), "inventory", "evil")
	}},
	{"a step that it has not reached", func(a *attacker, g target) {
		a.ZRem(a.ctx, keys.Zone("default", "queue", ""), string(g.task)+":"+g.host)
		a.set(g.key(), g.field(), "retry 0 0 7 1 1 0 0 0 7 0 7 node1 - \n{\"saved\":{\"x\":\"y\"}}\n\n")
		a.ZAdd(a.ctx, keys.Zone("default", "again", ""), redis.Z{Score: 7,
			Member: string(g.task) + ":" + g.host})
	}},
}

// atTheGate are attacks on jobs half way.
var atTheGate = []attack{
	{"a saved value", inRecord("DS of ", "DS; of ")},
	{"another saved value", inRecord(`"saved":{`, `"saved":{"more":"x",`)},
	{"the step", func(a *attacker, g target) {
		a.replace(g.key(), g.field(), g.rest(a, 8), strings.Replace(g.rest(a, 8), " 1 ", " 2 ", 1))
	}},
	{"no proof of the state", func(a *attacker, g target) {
		text := a.get(g.key(), g.field())
		_, rest, _ := strings.Cut(text, `{"mac":"`)
		mac, _, _ := strings.Cut(rest, `"`)
		a.replace(g.key(), g.field(), `"mac":"`+mac+`",`, "")
	}},
	{"the proof of another job", func(a *attacker, g target) {
		other := g.record(a, "fw0001")
		own := g.record(a, g.host)
		a.replace(g.key(), g.field(), own, other)
	}},
	{"the time of the proof", inRecord(`{"mac":"1`, `{"mac":"2`)},
	{"the beginning", func(a *attacker, g target) {
		a.replace(g.key(), g.field(), g.record(a, g.host), `{"failed":{"step":0}}`)
	}},
}

// rest returns the words of the first line of the job's record from one on: those with the step.
func (g target) rest(a *attacker, from int) string {
	line, _, _ := strings.Cut(a.get(g.key(), g.field()), "\n")
	return " " + strings.Join(strings.Fields(line)[from:], " ")
}

// record returns the saved data of a job of the same task.
func (g target) record(a *attacker, host string) string {
	return strings.Split(a.get(g.key(), ":"+host), "\n")[1]
}

// steadyRunbook waits for a person between two commands.
const steadyRunbook = `
name: steady
timeout: 20s
retry: {submit: 1}
steps:
  - name: look
    check: echo "DS of "{{host.name}}
    save: {ds: {lines: true}}
  - name: person
    gate: {question: "Is the {{saved.ds}} there?"}
  - name: use
    run: echo {{saved.ds}}
`

// redTeam is a house with a fleet whose hosts keep no records, so that nothing but the orders
// protects them.
func redTeam(t *testing.T, hosts int) (*house, *fakefleet.Fleet, *attacker) {
	t.Helper()
	f, inventory := pretend(t, fakefleet.Config{Hosts: hosts})
	h := newCellar(t, inventory)
	h.write("steady.yaml", steadyRunbook)
	h.configure(map[string]any{"runbooks": []string{h.file("steady.yaml")}})
	h.server = h.start("server", "--config", h.file("muster.yaml"))
	h.server.await("server listens")
	_, private, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	signer, err := ssh.NewSignerFromKey(private)
	if err != nil {
		t.Fatal(err)
	}
	return h, f, &attacker{Client: redistest.Login(t, h.redis, string(keys.RoleNode)), t: t,
		ctx: t.Context(), h: h, signer: signer}
}

func hostOf(i int) string { return fmt.Sprintf("fw%04d", i+2) }

// commandsOn returns what a host was told to do.
func commandsOn(f *fakefleet.Fleet, host string) (all []string) {
	for _, e := range f.Log() {
		if e.Host == host {
			all = append(all, e.Command)
		}
	}
	return all
}

// judge checks that the job of each attack ended failed, for its order, and that its host was told
// nothing since.
func (h *house) judge(f *fakefleet.Fleet, attacks []attack, tasks []jobs.TaskID, before []int) {
	h.t.Helper()
	for i, x := range attacks {
		h.wait(tasks[i])
		var j jobs.JobInfo
		h.query(&j, "job", string(tasks[i])+":"+hostOf(i))
		if j.Outcome != jobs.Failed || j.Class != jobs.ClassOperator ||
			!strings.Contains(j.Error, "the order does not hold: ") {
			h.t.Errorf("%s: %s %s %q", x.name, j.Outcome, j.Class, j.Error)
		}
		if did := commandsOn(f, hostOf(i)); len(did) != before[i] {
			h.t.Errorf("%s: the host was told: %q", x.name, did[before[i]:])
		}
	}
}

// A writer to Redis, with the user of a node, runs nothing that nobody ordered, and nothing that was
// ordered for something else.
func TestAWriterToRedisRunsNothing(t *testing.T) {
	t.Parallel()
	h, f, a := redTeam(t, len(beforeTheStart)+1)
	a.other = h.submit("fw0001", "echo ordered for another")
	var tasks []jobs.TaskID
	for i, x := range beforeTheStart {
		id := h.submit(hostOf(i), "echo ordered")
		tasks = append(tasks, id)
		x.do(a, target{id, hostOf(i)})
	}
	h.master()
	if got := h.wait(a.other); got.Outcomes[jobs.Succeeded] != 1 {
		t.Errorf("a task that nobody changed: %+v", got.Outcomes)
	}
	h.judge(f, beforeTheStart, tasks, make([]int, len(tasks)))
	if n := h.events()["order-doubted"]; n != len(tasks) {
		t.Errorf("people were told of %d of %d attacks", n, len(tasks))
	}
}

// The state of a job that has begun is not believed either.
func TestAWriterToRedisChangesNoJobHalfWay(t *testing.T) {
	t.Parallel()
	h, f, a := redTeam(t, len(atTheGate)+1)
	m := h.master()
	var task jobs.TaskInfo
	h.query(&task, "run", "steady", "--on", "all", "--detach")
	tasks := slices.Repeat([]jobs.TaskID{task.Task}, len(atTheGate))
	h.awaitJob(jobs.NewID(task.Task, "fw0001"), jobs.Waiting)
	for i := range atTheGate {
		h.awaitJob(jobs.NewID(task.Task, hostOf(i)), jobs.Waiting)
	}
	m.kill()
	before := make([]int, len(atTheGate))
	for i, x := range atTheGate {
		x.do(a, target{task.Task, hostOf(i)})
		before[i] = len(commandsOn(f, hostOf(i)))
	}
	if out, code := h.muster("gate", "open", "--reason", "seen", string(task.Task)); code != 0 {
		t.Fatalf("gate open: exit %d: %s", code, out)
	}
	h.master()
	h.judge(f, atTheGate, tasks, before)
	if did := commandsOn(f, "fw0001"); !slices.ContainsFunc(did, func(c string) bool {
		return strings.Contains(c, "echo 'DS of fw0001'")
	}) {
		t.Errorf("a job that nobody changed did not continue: %q", did)
	}
}
