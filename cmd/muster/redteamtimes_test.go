package main

import (
	"encoding/json"
	"maps"
	"strings"
	"testing"
	"time"

	"muster/internal/fakefleet"
	"muster/internal/serverkey"
	"muster/internal/sshsig"
	"muster/jobs"
	"muster/jobs/queue/keys"
	"muster/trust"
)

// This file attacks what is agreed about times: windows, approvals, freezes. The work was ordered, but
// it may not begin yet. The hosts' own log judges: no command runs outside of a window.

// timetableKey is the hash with the timetable.
var timetableKey = keys.Hub("windows", "")

// put replaces the whole timetable by another one.
func (a *attacker) put(fields map[string]string) {
	a.t.Helper()
	for name, text := range fields {
		a.Set(timetableKey, name, text)
	}
	for name := range a.All(timetableKey) {
		if _, stays := fields[name]; !stays {
			a.Remove(timetableKey, name)
		}
	}
}

// state signs a changed statement with a key.
func (a *attacker) state(sign func(message []byte) (string, error), old, with string) {
	a.t.Helper()
	a.Replace(timetableKey, "statement", old, with)
	text, err := sign([]byte(a.Get(timetableKey, "statement")))
	if err != nil {
		a.t.Fatal(err)
	}
	a.Set(timetableKey, "signature", text)
}

// own signs with the attacker's key.
func (a *attacker) own(message []byte) (string, error) {
	text, err := sshsig.SignEd25519(a.key, trust.NamespaceTimes, message)
	return string(text), err
}

// excerptOf names the field with what is agreed for a host.
func excerptOf(host string) string { return "excerpt:host " + host }

// grown returns a version after one, with all that names it, for an attacker who writes a whole
// timetable.
func grown(fields map[string]string) map[string]string {
	next := maps.Clone(fields)
	next["version"], next["excerpts"], next["stamp"] = "99", "99", "evilevil"
	return next
}

// A calm night has a host that is open all the time, and others that are not; they have a window
// that is closed, a window without an approval, or a freeze.
const calmNight = `windows:
- {name: open, host: fw0001, zone: UTC, start: "0 0 * * *", length: 24h, approval: none}
- {name: closed, host: fw0002, zone: UTC, dates: [2099-01-01 00:00], length: 1h, approval: none}
- {name: asked, host: fw0003, zone: UTC, start: "0 0 * * *", length: 24h, approval: required}
`

// onTimes are attacks on the timetable, for work on a host that may not begin there.
var onTimes = []struct {
	name, host string
	do         func(*attacker, nights)
}{
	{"a window is opened", "fw0002", func(a *attacker, _ nights) {
		a.Set(timetableKey, excerptOf("fw0002"), strings.ReplaceAll(a.Get(timetableKey, excerptOf("fw0001")),
			"fw0001", "fw0002"))
	}},
	{"a window is opened in the text and in the excerpt", "fw0002", func(a *attacker, _ nights) {
		a.Replace(timetableKey, "table", "dates: [2099-01-01 00:00], length: 1h",
			`start: \"0 0 * * *\", length: 24h`)
		a.Set(timetableKey, excerptOf("fw0002"), strings.ReplaceAll(a.Get(timetableKey, excerptOf("fw0001")),
			"fw0001", "fw0002"))
	}},
	{"only the text counts, and it is changed", "fw0002", func(a *attacker, _ nights) {
		a.Replace(timetableKey, "table", "dates: [2099-01-01 00:00], length: 1h",
			`start: \"0 0 * * *\", length: 24h`)
		a.Remove(timetableKey, "excerpts")
	}},
	{"an approval is forged", "fw0003", func(a *attacker, _ nights) { a.approve() }},
	{"no approval is asked for", "fw0003", func(a *attacker, _ nights) {
		a.Set(timetableKey, excerptOf("fw0003"), strings.ReplaceAll(a.Get(timetableKey, excerptOf("fw0001")),
			"fw0001", "fw0003"))
	}},
	{"a freeze is taken away", "fw0004", func(a *attacker, _ nights) {
		a.Remove(timetableKey, excerptOf("fw0004"))
	}},
	{"a freeze ends earlier", "fw0004", func(a *attacker, _ nights) {
		a.Set(timetableKey, excerptOf("fw0004"), "{}")
	}},
	{"the excerpt of another host", "fw0004", func(a *attacker, _ nights) {
		a.Set(timetableKey, excerptOf("fw0004"), a.Get(timetableKey, excerptOf("fw0001")))
	}},
	{"the list of excerpts is changed, too", "fw0004", func(a *attacker, _ nights) {
		a.Remove(timetableKey, excerptOf("fw0004"))
		for name, text := range a.All(timetableKey) {
			if strings.HasPrefix(name, "share:") {
				a.Set(timetableKey, name, strings.ReplaceAll(text, " host fw0004\n", " host fw9999\n"))
			}
		}
	}},
	{"the timetable before the freeze", "fw0004", func(a *attacker, n nights) { a.put(n.before) }},
	{"it comes with a later version", "fw0004", func(a *attacker, n nights) { a.put(grown(n.before)) }},
	{"the excerpts before the freeze", "fw0004", func(a *attacker, n nights) {
		now := a.All(timetableKey)
		old := maps.Clone(n.before)
		for _, name := range []string{"statement", "signature", "version", "stamp", "excerpts"} {
			old[name] = now[name]
		}
		a.put(old)
	}},
	{"a timetable without a statement", "fw0004", func(a *attacker, n nights) {
		old := grown(n.before)
		for name := range old {
			if name == "statement" || name == "signature" || strings.HasPrefix(name, "share:") {
				delete(old, name)
			}
		}
		a.put(old)
	}},
	{"no timetable at all", "fw0004", func(a *attacker, _ nights) { a.put(nil) }},
	{"the statement that there is none", "fw0004", func(a *attacker, n nights) { a.put(n.never) }},
	{"a statement by another key", "fw0004", func(a *attacker, n nights) {
		a.put(n.before)
		text, err := a.own([]byte(n.before["statement"]))
		if err != nil {
			a.t.Fatal(err)
		}
		a.Set(timetableKey, "signature", text)
	}},
	{"a later time in the statement", "fw0004", func(a *attacker, n nights) {
		a.put(n.before)
		a.state(a.own, `"since":"20`, `"since":"21`)
	}},
	{"the signature of an order", "fw0004", func(a *attacker, n nights) {
		a.put(grown(n.before))
		task := target{n.task, ""}.key()
		a.Set(timetableKey, "statement", a.Get(task, "order"))
		var list []string
		if err := json.Unmarshal([]byte(a.Get(task, "signatures")), &list); err != nil {
			a.t.Fatal(err)
		}
		a.Set(timetableKey, "signature", list[0])
	}},
	{"a statement of another installation", "fw0004", func(a *attacker, n nights) {
		a.put(n.before)
		// A node does not even start where servers of others said just now that they work.
		a.Replace(timetableKey, "statement", `"at":"20`, `"at":"19`)
		a.state(func(message []byte) (string, error) {
			k, err := serverkey.Parse([]byte(serverkey.File("otherhouse", [serverkey.Size]byte{1})))
			if err != nil {
				return "", err
			}
			return trust.SignAs(k, trust.NamespaceTimes, message)
		}, `"installation":"testhouse"`, `"installation":"otherhouse"`)
	}},
}

// nights are timetables of before, and a task.
type nights struct {
	never, before map[string]string
	task          jobs.TaskID
}

// approve writes an approval of the window of fw0003.
func (a *attacker) approve() {
	a.t.Helper()
	var x struct{ Windows []map[string]any }
	if err := json.Unmarshal([]byte(a.Get(timetableKey, excerptOf("fw0003"))), &x); err != nil {
		a.t.Fatal(err)
	}
	x.Windows[0]["approvals"] = []map[string]any{{"id": "evil", "window": "asked", "by": "user:carol",
		"hash": x.Windows[0]["hash"], "at": time.Now().UTC(), "from": "2020-01-01T00:00:00Z",
		"until": "2099-01-01T00:00:00Z"}}
	text, err := json.Marshal(map[string]any{"windows": x.Windows})
	if err != nil {
		a.t.Fatal(err)
	}
	a.Set(timetableKey, excerptOf("fw0003"), string(text))
}

// calm is a house with the timetable above, and the timetables that were in force before.
func calm(t *testing.T) (*house, *fakefleet.Fleet, *attacker, nights) {
	t.Helper()
	h, f, a := redTeam(t, 4)
	// A history would notice a lower version as a loss, within two seconds or not: see server/agreed.
	h.server.kill()
	h.configure(map[string]any{"history": map[string]any{"url": "none"}})
	h.server = h.start("server", "--config", h.file("muster.yaml"))
	h.server.await("server listens")
	n := nights{never: a.All(timetableKey)}
	h.write("w.yaml", calmNight)
	h.must("windows", "apply", h.file("w.yaml"))
	n.before = a.All(timetableKey)
	h.must("windows", "freeze", "outage", "--host", "fw0004", "--until", "+6h", "--reason", "INC-7")
	return h, f, a, n
}

// must runs a command that succeeds.
func (h *house) must(args ...string) string {
	h.t.Helper()
	out, code := h.muster(args...)
	if code != 0 {
		h.t.Fatalf("muster %s: exit %d: %s", strings.Join(args, " "), code, out)
	}
	return out
}

// later orders work on a host, in a window.
func (h *house) later(host string) jobs.TaskID {
	h.t.Helper()
	var task jobs.TaskInfo
	args := []string{"run", "exec", "--on", host, "--arg", "cmd=echo ordered", "--expect", "1s", "--detach"}
	if host != "fw0004" {
		args = append(args, "--window")
	}
	if code := h.query(&task, args...); code != 0 {
		h.t.Fatalf("run on %s: exit %d", host, code)
	}
	return task.Task
}

// A writer to Redis opens no window, approves nothing and lifts no freeze: what was ordered begins
// only when it may.
func TestAWriterToRedisChangesNoTimes(t *testing.T) {
	t.Parallel()
	h, f, a, n := calm(t)
	n.task = h.later("fw0004")
	good := a.All(timetableKey)
	for i, x := range onTimes {
		g := target{n.task, "fw0004"}
		if x.host != "fw0004" {
			// Nobody knows when the window opens, so the person says when the job begins.
			a.put(a.opened(good, x.host))
			g = target{h.later(x.host), x.host}
			a.put(good)
		}
		x.do(a, n)
		a.Due("default", g.job())
		m := h.master()
		m.await("the timetable in Redis is not believed")
		m.await("the attempt is over")
		if j := h.awaitJob(jobs.ID(g.job()), jobs.Deferred); !strings.Contains(j.Why, "it is not believed: ") {
			t.Errorf("%s: %+v", x.name, j)
		}
		if did := commandsOn(f, x.host); len(did) > 0 {
			t.Errorf("%s: the host was told: %q", x.name, did)
		}
		if got := h.events()["times-doubted"]; got < i+1 {
			t.Errorf("%s: people were told of %d of %d attacks", x.name, got, i+1)
		}
		m.kill()
		a.put(good)
		if g.task != n.task {
			h.must("cancel", string(g.task), "--reason", "seen")
		}
	}
	h.master()
	if got := h.wait(h.later("fw0001")); got.Outcomes[jobs.Succeeded] != 1 {
		t.Errorf("work in an open window, with a timetable that nobody changed: %+v", got.Outcomes)
	}
	h.must("windows", "unfreeze", "outage", "--reason", "over")
	if got := h.wait(n.task); got.Outcomes[jobs.Succeeded] != 1 {
		t.Errorf("work after the freeze: %+v", got.Outcomes)
	}
	if did := commandsOn(f, "fw0002"); len(did) > 0 {
		t.Errorf("a host whose window is closed was told: %q", did)
	}
}

// opened returns a timetable in which a host is open, as a server reads it: so it takes a task.
func (a *attacker) opened(good map[string]string, host string) map[string]string {
	all := grown(good)
	all["table"] = strings.NewReplacer("dates: [2099-01-01 00:00], length: 1h", `start: \"0 0 * * *\", length: 24h`,
		"approval: required", "approval: none", `"version":`, `"version":9`).Replace(all["table"])
	return all
}

// A server signs nothing that a writer to Redis has written about times: it changes no timetable that
// it does not believe, says so, and a person can vouch for it.
func TestNoServerSignsTimesThatAWriterToRedisInvented(t *testing.T) {
	t.Parallel()
	h, _, a, n := calm(t)
	good := a.All(timetableKey)
	for name, do := range map[string]func(){
		"a changed text": func() {
			a.put(grown(good))
			a.Replace(timetableKey, "table", "2099", "2098")
		},
		"the one before the freeze":        func() { a.put(n.before) },
		"none at all":                      func() { a.put(nil) },
		"the statement that there is none": func() { a.put(n.never) },
	} {
		do()
		h.refuses("the timetable in Redis is not believed", "windows", "unfreeze", "outage", "--reason", "x")
		if out, code := h.muster("health"); code == 0 || !strings.Contains(out, "is not believed") {
			t.Errorf("%s: health: exit %d: %s", name, code, out)
		}
		a.put(good)
		h.must("windows", "freeze", "more", "--host", "fw0003", "--reason", "x")
		h.must("windows", "unfreeze", "more", "--reason", "x")
		good = a.All(timetableKey)
	}
	m := h.master()
	a.put(grown(good))
	a.Remove(timetableKey, "statement")
	h.refuses("--reason is missing", "windows", "adopt")
	if out := h.must("windows", "adopt", "--reason", "it is right"); !strings.Contains(out, "is signed; version") {
		t.Errorf("adopt: %s", out)
	}
	if out, code := h.muster("health"); code != 0 {
		t.Errorf("health after adopt: exit %d: %s", code, out)
	}
	if got := h.wait(h.later("fw0001")); got.Outcomes[jobs.Succeeded] != 1 {
		t.Errorf("work with the timetable that a person vouched for: %+v", got.Outcomes)
	}
	m.kill()
}
