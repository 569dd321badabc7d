package main

import (
	"crypto/ed25519"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"muster/api"
	"muster/internal/fakefleet"
	"muster/internal/sshsig"
	"muster/jobs"
	"muster/jobs/queue/keys"
	"muster/testkit/redistest"
	"muster/trust"
)

// This file attacks a house as somebody who can write to Redis (issue 16). Each attack has a host of
// its own, whose log judges it: no command may run that nobody ordered.

// An attacker writes to Redis, and has a key of their own.
type attacker struct {
	*redistest.Intruder
	t     *testing.T
	other jobs.TaskID // a task that was ordered for another host
	key   ed25519.PrivateKey
}

// target is the job that an attack changes.
type target struct {
	task jobs.TaskID
	host string
}

func (g target) key() string   { return keys.Zone("default", "task:", string(g.task)) }
func (g target) field() string { return ":" + g.host }
func (g target) job() string   { return string(g.task) + ":" + g.host }

// host has a task use another record of its host. Servers mend the inventory in force, so the record
// is in another one.
func (a *attacker) host(g target, change func(map[string]any)) {
	key := keys.Zone("default", "hosts:", a.Get(g.key(), "inventory"))
	was := a.Get(key, g.host)
	var record map[string]any
	if err := json.Unmarshal([]byte(was), &record); err != nil {
		a.t.Fatal(err)
	}
	change(record)
	text, err := json.Marshal(record)
	if err != nil {
		a.t.Fatal(err)
	}
	evil := "evil-" + g.host
	a.Set(keys.Zone("default", "hosts:", evil), g.host, string(text))
	a.Set(g.key(), "inventory", evil)
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
		text, err := sshsig.SignEd25519(a.key, namespace, []byte(a.Get(g.key(), "order")))
		if err != nil {
			a.t.Fatal(err)
		}
		list, err := json.Marshal([]string{string(text)})
		if err != nil {
			a.t.Fatal(err)
		}
		a.Set(g.key(), "signatures", string(list))
	}
}

// An attack changes what Redis has of a job that waits.
type attack struct {
	name string
	do   func(*attacker, target)
}

// inRecord returns an attack on the record of a job: it replaces a text.
func inRecord(old, with string) func(*attacker, target) {
	return func(a *attacker, g target) { a.Replace(g.key(), g.field(), old, with) }
}

// beforeTheStart are attacks on jobs that have not begun.
var beforeTheStart = []attack{
	{"the command of the spec", func(a *attacker, g target) {
		a.Replace(g.key(), "spec", "ordered", "invented")
	}},
	{"the command of the order", func(a *attacker, g target) {
		a.Replace(g.key(), "order", "ordered", "invented")
	}},
	{"the command of both", func(a *attacker, g target) {
		a.Replace(g.key(), "spec", "ordered", "invented")
		a.Replace(g.key(), "order", "ordered", "invented")
	}},
	{"the order signed anew", func(a *attacker, g target) {
		a.Replace(g.key(), "spec", "ordered", "invented")
		a.Replace(g.key(), "order", "ordered", "invented")
		signedBy(trust.NamespaceOrder)(a, g)
	}},
	{"another signer", signedBy(trust.NamespaceOrder)},
	{"a signature for something else", signedBy("file")},
	{"no signature", func(a *attacker, g target) { a.Set(g.key(), "signatures", "[]") }},
	{"a signature that is none", func(a *attacker, g target) { a.Set(g.key(), "signatures", `["x"]`) }},
	{"signatures that are no list", func(a *attacker, g target) { a.Set(g.key(), "signatures", "{") }},
	{"no order", func(a *attacker, g target) { a.Remove(g.key(), "order") }},
	{"an order that is none", func(a *attacker, g target) { a.Set(g.key(), "order", "{}") }},
	{"the order of another task", func(a *attacker, g target) {
		other := target{a.other, g.host}
		for _, field := range []string{"spec", "order", "signatures", "share:0"} {
			a.Set(g.key(), field, a.Get(other.key(), field))
		}
	}},
	{"the signature of another task", func(a *attacker, g target) {
		a.Set(g.key(), "signatures", a.Get(target{a.other, ""}.key(), "signatures"))
	}},
	{"another operator", func(a *attacker, g target) {
		a.Replace(g.key(), "spec", `"operator":"`, `"operator":"user:`)
	}},
	{"longer steps", func(a *attacker, g target) {
		a.Replace(g.key(), "spec", `"timeout":`, `"timeout":9`)
	}},
	{"more tries", func(a *attacker, g target) { a.Replace(g.key(), "spec", `"tries":`, `"tries":9`) }},
	{"repeatable", func(a *attacker, g target) {
		a.Replace(g.key(), "spec", `"repeatable":false`, `"repeatable":true`)
	}},
	{"not bound to a window", func(a *attacker, g target) {
		a.Replace(g.key(), "spec", `"retry":`, `"window":false,"override":"x","retry":`)
	}},
	{"a change of who proved it", func(a *attacker, g target) {
		a.Replace(g.key(), "spec", `"proven":true`, `"proven":false`)
	}},
	{"disruptive work as harmless", func(a *attacker, g target) {
		a.Replace(g.key(), "spec", `"retry":`, `"needs":["x"],"retry":`)
	}},
	{"a later end of the order", func(a *attacker, g target) {
		a.Replace(g.key(), "order", `"not_after":"20`, `"not_after":"21`)
	}},
	{"an earlier beginning of the order", func(a *attacker, g target) {
		a.Replace(g.key(), "order", `"not_before":"20`, `"not_before":"19`)
	}},
	{"another installation", func(a *attacker, g target) {
		a.Replace(g.key(), "order", `"installation":"`, `"installation":"x`)
	}},
	{"another zone", func(a *attacker, g target) {
		a.Replace(g.key(), "order", `"zone":"default"`, `"zone":"moon"`)
	}},
	{"blanks in the order", func(a *attacker, g target) { a.Replace(g.key(), "order", `{"order"`, `{ "order"`) }},
	{"bytes behind the order", func(a *attacker, g target) { a.Replace(g.key(), "order", `{"order"`, ` {"order"`) }},
	{"a spec that is none", func(a *attacker, g target) { a.Set(g.key(), "spec", "{}") }},
	{"two signatures, none of which counts", func(a *attacker, g target) {
		signedBy(trust.NamespaceOrder)(a, g)
		one := a.Get(g.key(), "signatures")
		a.Set(g.key(), "signatures", strings.TrimSuffix(one, "]")+","+strings.TrimPrefix(one, "["))
	}},
	{"no hosts of the order", func(a *attacker, g target) { a.Remove(g.key(), "share:0") }},
	{"the hosts of the order", func(a *attacker, g target) {
		a.Replace(g.key(), "share:0", g.host+" ", g.host+" A")
	}},
	{"the address of the host", with("address", "127.9.9.9")},
	{"its port", with("port", 22)},
	{"its login", with("user", "nobody")},
	{"its keys", with("host_keys", []string{"ssh-ed25519 AAAA"})},
	{"the authority of its keys", with("host_cas", []string{"ssh-ed25519 AAAA"})},
	{"the key of the node", with("key", "/etc/ssh/ssh_host_ed25519_key")},
	{"its labels", with("labels", map[string]string{"role": "spare"})},
	{"its customer", with("customer", "evil")},
	{"its group", with("group", "none")},
	{"its fence", with("fence", "auto")},
	{"a jump host", with("jump", []map[string]any{{"name": "j", "address": "127.9.9.9", "port": 22,
		"user": "x"}})},
	{"another user for commands", with("become", "sudo")},
	{"old algorithms", with("profile", "legacy")},
	{"the name in its record", with("name", "fw0001")},
	{"the host in a changed record and list", func(a *attacker, g target) {
		with("port", 22)(a, g)
		a.Replace(g.key(), "share:0", g.host+" ", g.host+" A")
	}},
	{"the record of another host", func(a *attacker, g target) {
		key := keys.Zone("default", "hosts:", a.Get(g.key(), "inventory"))
		a.host(g, func(record map[string]any) {
			clear(record)
			if err := json.Unmarshal([]byte(a.Get(key, "fw0001")), &record); err != nil {
				a.t.Fatal(err)
			}
			record["name"] = g.host
		})
	}},
	{"a step that it has not reached", func(a *attacker, g target) {
		a.Set(g.key(), g.field(), "retry 0 0 7 1 1 0 0 0 7 0 7 node1 - \n{\"saved\":{\"x\":\"y\"}}\n\n")
		a.Due("default", g.job())
	}},
}

// atTheGate are attacks on jobs half way.
var atTheGate = []attack{
	{"a saved value", inRecord(`"ds":"DS of`, `"ds":"DS; of`)},
	{"another saved value", inRecord(`"saved":{`, `"saved":{"more":"x",`)},
	{"the step", func(a *attacker, g target) {
		a.Replace(g.key(), g.field(), g.rest(a, 8), strings.Replace(g.rest(a, 8), " 1 ", " 2 ", 1))
	}},
	{"no proof of the state", func(a *attacker, g target) {
		text := a.Get(g.key(), g.field())
		_, rest, _ := strings.Cut(text, `{"mac":"`)
		mac, _, _ := strings.Cut(rest, `"`)
		a.Replace(g.key(), g.field(), `"mac":"`+mac+`",`, "")
	}},
	{"the proof of another job", func(a *attacker, g target) {
		other := g.record(a, "fw0001")
		own := g.record(a, g.host)
		a.Replace(g.key(), g.field(), own, other)
	}},
	{"the time of the proof", inRecord(`{"mac":"1`, `{"mac":"2`)},
	{"the beginning", func(a *attacker, g target) {
		a.Replace(g.key(), g.field(), g.record(a, g.host), `{"failed":{"step":0}}`)
		a.Due("default", g.job())
	}},
}

// rest returns the words of the first line of the job's record from one on: those with the step.
func (g target) rest(a *attacker, from int) string {
	line, _, _ := strings.Cut(a.Get(g.key(), g.field()), "\n")
	return " " + strings.Join(strings.Fields(line)[from:], " ")
}

// record returns the saved data of a job of the same task.
func (g target) record(a *attacker, host string) string {
	return strings.Split(a.Get(g.key(), ":"+host), "\n")[1]
}

// byGate are attacks on the answers at gates. The job must not pass its gate.
var byGate = []attack{
	{"an answer", func(a *attacker, g target) { a.answer(g, "open opened by somebody: seen") }},
	{"a refusal", func(a *attacker, g target) { a.answer(g, "refuse refused by somebody: no") }},
	{"an answer with the proof of another job", func(a *attacker, g target) {
		note := "open opened by os:root: seen"
		for name, value := range a.All(g.key()) {
			if proof, ok := strings.CutPrefix(name, "proof:1:fw0001:"); ok {
				a.Set(g.key(), "proof:1:"+g.host+":"+proof, value)
				_, note, _ = strings.Cut(a.Get(g.key(), "gate:1:fw0001"), " ")
			}
		}
		a.answer(g, note)
	}},
}

// answer writes an answer at the gate of a job, and makes the job due.
func (a *attacker) answer(g target, words string) {
	a.Set(g.key(), "gate:1:"+g.host, fmt.Sprint(time.Now().UnixMicro(), " ", words))
	a.Due("default", g.job())
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
	_, key, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return h, f, &attacker{Intruder: redistest.NewIntruder(t, h.redis), t: t, key: key}
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
		j := h.awaitJob(jobs.NewID(tasks[i], hostOf(i)), jobs.Ended)
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
	h.awaitJob(jobs.NewID(task.Task, "fw0001"), jobs.Ended)
	if did := commandsOn(f, "fw0001"); len(did) != 2 {
		t.Errorf("a job that nobody changed did not continue: %q", did)
	}
}

// An answer at a gate counts only if a server has signed it for the job, its step and its words.
func TestAWriterToRedisOpensNoGate(t *testing.T) {
	t.Parallel()
	h, f, a := redTeam(t, len(byGate)+1)
	m := h.master()
	var task jobs.TaskInfo
	h.query(&task, "run", "steady", "--on", "all", "--detach")
	h.awaitJob(jobs.NewID(task.Task, "fw0001"), jobs.Waiting)
	for i := range byGate {
		h.awaitJob(jobs.NewID(task.Task, hostOf(i)), jobs.Waiting)
	}
	m.kill()
	if out, code := h.muster("gate", "open", "--reason", "seen", string(task.Task)+":fw0001"); code != 0 {
		t.Fatalf("gate open: exit %d: %s", code, out)
	}
	for i, x := range byGate {
		x.do(a, target{task.Task, hostOf(i)})
	}
	h.master()
	h.awaitJob(jobs.NewID(task.Task, "fw0001"), jobs.Ended)
	for i, x := range byGate {
		j := h.awaitJob(jobs.NewID(task.Task, hostOf(i)), jobs.Ended)
		if j.Outcome != jobs.Failed || j.Attempt != 2 || !strings.Contains(j.Error, "the answer at its gate: ") {
			t.Errorf("%s: %+v", x.name, j)
		}
		if did := commandsOn(f, hostOf(i)); len(did) != 1 {
			t.Errorf("%s: the host was told: %q", x.name, did[1:])
		}
	}
	if did := commandsOn(f, "fw0001"); len(did) != 2 {
		t.Errorf("the gate that a person opened: %q", did)
	}
}

// Servers make tasks of others, of schedules and of chains, and sign them. They believe no text that
// no server wrote.
func TestNoServerSignsWhatAWriterToRedisInvented(t *testing.T) {
	t.Parallel()
	h, f, a := redTeam(t, 3)
	h.write("s.yaml", `schedules:
- {name: daily, cron: "0 4 * * *", zone: UTC, runbook: exec, on: fw0002, args: {cmd: echo ordered}, enabled: true}
`)
	if out, code := h.muster("schedules", "apply", h.file("s.yaml")); code != 0 {
		t.Fatalf("schedules apply: exit %d: %s", code, out)
	}
	schedules := keys.Hub("schedules", "")
	a.Replace(schedules, "daily", "ordered", "invented")
	h.refuses("what Redis has of schedule daily is not believed", "schedules", "run", "daily")
	h.refuses("is not believed", "schedules", "pause", "daily", "--reason", "x")
	if out, _ := h.muster("schedules", "show", "daily"); !strings.Contains(out, "is not believed") {
		t.Errorf("schedules show: %s", out)
	}
	out, code := h.muster("schedules", "apply", h.file("s.yaml"))
	if code != 0 || !strings.Contains(out, "all of it is written anew, because what Redis has of it is not "+
		"believed") || strings.Contains(out, "(none)") {
		t.Fatalf("schedules apply: exit %d: %s", code, out)
	}
	if out, code := h.muster("schedules", "run", "daily"); code != 0 {
		t.Errorf("a schedule that was applied anew: exit %d: %s", code, out)
	}
	_, text, _ := strings.Cut(a.Get(schedules, "daily"), " ")
	a.Set(schedules, "daily", text)
	h.refuses("no server has vouched for it", "schedules", "run", "daily")

	m := h.master()
	id := h.submit("fw0001", "exit 1")
	h.wait(id)
	m.kill()
	g := target{id, "fw0001"}
	spec := a.Get(g.key(), "spec")
	a.Replace(g.key(), "spec", "exit 1", "echo invented")
	h.refuses("its spec is not the one that was signed", "retry", "--failed", string(id))
	a.Set(g.key(), "spec", spec)
	a.Remove(g.key(), "order")
	h.refuses("the task has no signed order", "retry", "--failed", string(id))

	for _, e := range f.Log() {
		if strings.Contains(e.Command, "invented") {
			t.Errorf("%s was told: %s", e.Host, e.Command)
		}
	}
}

// refuses runs a command that the server must refuse with these words.
func (h *house) refuses(words string, args ...string) {
	h.t.Helper()
	if code, out, err := musterWith(h.t.Context(), h.url, args...); code == 0 || !strings.Contains(err, words) {
		h.t.Errorf("muster %s: exit %d, want %q in\n%s%s", strings.Join(args, " "), code, words, out, err)
	}
}

// A job that somebody makes due before its time goes back to it.
func TestAWriterToRedisBringsNothingForward(t *testing.T) {
	t.Parallel()
	h, f, a := redTeam(t, 2)
	var task jobs.TaskInfo
	if code := h.query(&task, "run", "exec", "--on", "fw0002", "--arg", "cmd=echo ordered", "--at", "+2h",
		"--detach"); code != 0 {
		t.Fatalf("run: exit %d", code)
	}
	g := target{task.Task, "fw0002"}
	a.Set(g.key(), g.field(), "retry 0 0 7 0 0 0 0 0 7 0 0  - \n\n\n")
	a.Due("default", g.job())
	m := h.master()
	m.await("the order begins at ")
	j := h.awaitJob(jobs.ID(g.job()), jobs.Deferred)
	if left := time.Until(j.Next.Time); left < time.Hour || left > 2*time.Hour {
		t.Errorf("it comes again in %s: %+v", left, j)
	}
	if did := commandsOn(f, "fw0002"); len(did) > 0 {
		t.Errorf("the host was told: %q", did)
	}
}

// byResults are attacks on what history believes: each invents that a job has succeeded which no worker
// ever took. honest is the record of a job that did succeed.
var byResults = []struct {
	name   string
	record func(honest string, g target) string
}{
	{"no proof", func(honest string, _ target) string { return honest[:strings.Index(honest, "~")] + " " }},
	{"the proof of another job", func(honest string, _ target) string { return honest }},
	{"half of a proof", func(honest string, _ target) string { return strings.Replace(honest, ".", "", 1) }},
	{"an invented proof", func(honest string, _ target) string {
		return honest[:strings.Index(honest, "~")] + "~tm0000.1..AAAAAAAAAAAAAAAAAAAAAAAAAAA "
	}},
	{"the proof as that of an answer", func(honest string, _ target) string {
		return strings.Replace(honest, "~", "~~", 1)
	}},
}

// A writer to Redis can invent outcomes, and history says that nobody has proven them.
func TestAWriterToRedisProvesNoOutcome(t *testing.T) {
	t.Parallel()
	h, f, a := redTeam(t, len(byResults)+1)
	m := h.master()
	first := h.submit("fw0001", "echo ordered")
	h.wait(first)
	m.kill()
	honest := a.Get(target{first, "fw0001"}.key(), ":fw0001")
	task := h.submit("fw*,!fw0001", "echo ordered")
	for i, x := range byResults {
		g := target{task, hostOf(i)}
		a.Unqueue("default", g.job())
		a.Set(g.key(), g.field(), x.record(honest, g))
		a.Tell("default", "end "+g.job()+` {"outcome":"succeeded","exit":0}`)
	}
	proofs := map[string]api.Proof{}
	h.awaitPast(first, 1)
	h.awaitPast(task, len(byResults))
	var page api.PastJobs
	h.query(&page, "history")
	for _, j := range page.Jobs {
		proofs[string(j.ID)] = j.Proof
	}
	if proofs[target{first, "fw0001"}.job()] != api.ByNode {
		t.Errorf("an honest end: %q", proofs[target{first, "fw0001"}.job()])
	}
	for i, x := range byResults {
		if got := proofs[target{task, hostOf(i)}.job()]; got != api.NotProven {
			t.Errorf("%s: %q", x.name, got)
		}
		if out, _ := h.muster("job", target{task, hostOf(i)}.job()); !strings.Contains(out, "not proven") {
			t.Errorf("%s: muster job says: %s", x.name, out)
		}
		if did := commandsOn(f, hostOf(i)); len(did) > 0 {
			t.Errorf("%s: the host was told: %q", x.name, did)
		}
	}
	h.saysNotProven(task)

	// The end that a node proves takes the place of the other one.
	for i := range byResults {
		g := target{task, hostOf(i)}
		a.Requeue("default", string(task), g.job(), g.field())
	}
	h.master()
	h.wait(task)
	h.awaitProven(task, len(byResults))
}

// saysNotProven checks that all views of a task say that its ends are not proven.
func (h *house) saysNotProven(task jobs.TaskID) {
	h.t.Helper()
	for _, args := range [][]string{{"report", string(task)}, {"task", string(task)}, {"jobs", string(task)},
		{"history", string(task)}} {
		if out, _ := h.muster(args...); !strings.Contains(out, "not proven") {
			h.t.Errorf("muster %s does not say it: %s", args[0], out)
		}
	}
	if out, _ := h.muster("history", "events", string(task)); !strings.Contains(out, "NOT PROVEN") {
		h.t.Errorf("muster history events: %s", out)
	}
	if n := h.events()["not-proven"]; n != 1 {
		h.t.Errorf("people were told %d times of one task", n)
	}
}

// awaitProven waits until history has so many proven ends of a task.
func (h *house) awaitProven(task jobs.TaskID, n int) {
	h.t.Helper()
	late, tick := h.late(), time.Tick(commandEvery)
	for proven := 0; proven < n; {
		select {
		case <-late:
			h.t.Fatalf("%d of %d ends are proven", proven, n)
		case <-tick:
		}
		var page api.PastJobs
		h.query(&page, "history", string(task))
		proven = 0
		for _, j := range page.Jobs {
			if j.Proof == api.ByNode {
				proven++
			}
		}
	}
}
