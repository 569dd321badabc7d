package server_test

import (
	"net/http"
	"strings"
	"testing"

	"muster/api"
	"muster/events"
	"muster/fleet"
	"muster/notify"
	"muster/server"
	"muster/testkit/redistest"
	"muster/testkit/sqltest"
	"muster/triggers"
	"muster/windows"
)

// appliedTrigger is a trigger of acme that is applied.
const appliedTrigger = `kind: trigger
name: NAME   # of acme
customers: [acme]
source: [alert*]
runbook: label
args: {word: {field: "alerts.0.labels.name"}}
on: "{customer=acme}&{site=x}"
host: {field: "alerts.*.labels.instance", before: ":"}
at_most: 2
`

func triggerNamed(name string) string { return strings.ReplaceAll(appliedTrigger, "NAME", name) }

// two starts two servers on one real Redis, of which the second has a file of triggers.
func two(t *testing.T) (a, b *world) {
	t.Helper()
	cfg := redistest.StartServer(t).Config()
	policy := policyOf(t, rolesPolicy()+`  - {principal: "trigger:look", roles: [operator]}
  - {principal: "trigger:weak", roles: [operator]}
`)
	file, err := triggers.Parse(fleet.Source{Name: "/etc/muster/triggers.yaml", Data: []byte("triggers:\n- {name: weak, " +
		"source: weak, runbook: exec, args: {cmd: \"true\"}, on: fw-a1, at_most: 1}\n")})
	if err != nil {
		t.Fatal(err)
	}
	rules, err := notify.Parse(fleet.Source{Name: "/etc/muster/notify.yaml", Data: []byte("receivers:\n" +
		"  noc: {program: {argv: [/bin/true]}}\nrules:\n- {name: frozen, what: group-frozen, to: noc}\n")})
	if err != nil {
		t.Fatal(err)
	}
	for i, w := range []**world{&a, &b} {
		*w = start(t, setup{redis: &cfg, inventory: fixed(twoCustomers()), history: openHistory(t, sqltest.SQLite(t)),
			more: func(d *server.Deps) {
				d.Policy, d.Notify = policy, func() (*notify.Rules, error) { return rules, nil }
				if i == 1 {
					d.Triggers = func() (*triggers.Set, error) { return file, nil }
				}
			}})
	}
	return a, b
}

// names returns the names of the triggers that a server has, and its complaint.
func (w *world) names() string {
	w.t.Helper()
	var l api.TriggerList
	w.call("GET", "/v1/triggers", nil, &l)
	var out []string
	for _, one := range l.Triggers {
		out = append(out, one.Name)
	}
	return strings.Join(out, ",") + " " + l.Complaint
}

// Triggers that one server applies are in force on the other before its next answer.
func TestAppliedTriggersAreFollowedByAllServers(t *testing.T) {
	t.Parallel()
	a, b := two(t)
	event := alerting("e1", "acme", "disk", "fw-a1")
	fired := func(w *world, id string) []events.Firing {
		t.Helper()
		event.ID = id
		out, err := w.server.Firer().Fire(t.Context(), event)
		if err != nil {
			t.Fatal(err)
		}
		return out.Firings
	}
	if got := fired(b, "e1"); len(got) != 0 {
		t.Fatalf("before: %+v", got)
	}
	did, status, words := a.applyTo(ofText(triggerNamed("look")), nil)
	if status != http.StatusOK || didWhat(did) != "added trigger/look" || did.Entries[0].Customer != "acme" {
		t.Fatalf("%d %s", status, words)
	}
	if got := fired(b, "e2"); len(got) != 1 || got[0].Task == "" {
		t.Errorf("the other server has not followed: %+v", got)
	}
	// Another way to write the same is no change; another value is one.
	same := strings.NewReplacer("   # of acme", "", "customers: [acme]", "customers: acme",
		"source: [alert*]", "source: alert*\npriority: normal\nenabled: true").Replace(triggerNamed("look"))
	if did, _, words := b.applyTo(ofText(same), nil); !did.Already {
		t.Errorf("the same in other words: %s", words)
	}
	did, _, words = b.applyTo(ofText(strings.Replace(triggerNamed("look"), "at_most: 2", "at_most: 1", 1)), nil)
	if didWhat(did) != "changed trigger/look" || strings.Join(did.Entries[0].Differences, "") != "at_most: 2 → 1" {
		t.Errorf("changed: %s", words)
	}
	if got := a.exported(nil); len(got.Files) != 1 || !strings.Contains(got.Files[0].Content, "name: look   # of acme") {
		t.Errorf("exported: %+v", got.Files)
	} else if did, _, words := a.applyTo(got, nil); !did.Already {
		t.Errorf("what is exported differs: %s", words)
	}
	if got, want := a.names()+b.names(), "look weak,look "; got != want {
		t.Errorf("the servers have %q, want %q", got, want)
	}
	from := ofText("")
	from.Origin, from.Prune, from.Empty = "git:rules", true, true
	from.Files[0].Content = triggerNamed("look")
	a.applyTo(from, nil)
	from.Files[0].Content = ""
	if did, _, words := b.applyTo(from, nil); didWhat(did) != "removed trigger/look moved" {
		t.Errorf("pruned: %s", words)
	}
	if got := fired(a, "e3"); len(got) != 0 {
		t.Errorf("a trigger that is gone fires: %+v", got)
	}
}

// An entry in a file of a server is changed there.
func TestATriggerInAFileIsNotApplied(t *testing.T) {
	t.Parallel()
	a, b := two(t)
	weak := "kind: trigger\nname: weak\nsource: weak\nrunbook: exec\nargs: {cmd: \"true\"}\non: fw-a1\nat_most: 1\n"
	for _, c := range []struct {
		text, origin, want string
		status             int
	}{
		{weak, "", "", 200}, // as it is in force
		{weak, "git:rules", "conf/a.yaml:1: trigger weak stands in /etc/muster/triggers.yaml:2, which servers", 422},
		{strings.Replace(weak, "fw-a1", "fw-a2", 1), "", "stands in /etc/muster/triggers.yaml:2", 422},
	} {
		body := ofText(c.text)
		body.Origin = c.origin
		if _, status, words := b.applyTo(body, nil); status != c.status || !strings.Contains(words, c.want) {
			t.Errorf("%d %s, want %q", status, words, c.want)
		}
	}
	// A server without the file takes it; the one with the file says which one counts.
	if did, _, words := a.applyTo(ofText(strings.Replace(weak, "fw-a1", "fw-a2", 1)), nil); did.Counts["added"] != 1 {
		t.Fatal(words)
	}
	if got := b.names(); !strings.Contains(got, "trigger weak was applied, and stands in /etc/muster/triggers.yaml:2") {
		t.Error(got)
	}
}

func TestMistakesInAppliedTriggersAreAllTold(t *testing.T) {
	t.Parallel()
	a, _ := two(t)
	text := triggerNamed("look") + "---\n" + strings.NewReplacer("runbook: label", "runbook: nowhere").Replace(
		triggerNamed("lost")) + "---\n" + strings.Replace(triggerNamed("many"), "at_most: 2", "at_most: many", 1) + "---\n" +
		strings.Replace(triggerNamed("file"), "word: {field: \"alerts.0.labels.name\"}", "word: {file: /etc/shadow}", 1)
	_, status, words := a.applyTo(ofText(text), nil)
	for _, want := range []string{"conf/a.yaml:12: trigger lost: no runbook", "conf/a.yaml:29: at_most",
		"conf/a.yaml:36: argument word is a file of the server"} {
		if status != http.StatusUnprocessableEntity || !strings.Contains(words, want) {
			t.Errorf("%d, without %q: %s", status, want, words)
		}
	}
	twice := ofText(triggerNamed("look") + "---\n" + triggerNamed("other"))
	twice.Files = append(twice.Files, windows.File{Name: "conf/b.yaml", Content: triggerNamed("look") + "---\n" +
		strings.Replace(triggerNamed("lost"), "runbook: label", "runbook: nowhere", 1)})
	_, status, words = a.applyTo(twice, nil)
	for _, want := range []string{"conf/b.yaml:1: trigger look is there already, at conf/a.yaml:1",
		"conf/b.yaml:12: trigger lost: no runbook"} {
		if status != http.StatusUnprocessableEntity || !strings.Contains(words, want) {
			t.Errorf("%d, without %q: %s", status, want, words)
		}
	}
	if got := a.names(); got != " " {
		t.Errorf("something is in force: %s", got)
	}
}

// A person who may run work on the hosts of one customer may apply the triggers of that customer,
// which can pick no other hosts.
func TestTheTriggersOfACustomerAreAppliedByItsPeople(t *testing.T) {
	t.Parallel()
	w := guarded(t)
	tokens := map[string]http.Header{}
	for _, who := range []string{"viewer", "operator", "operator-acme", "admin", "viewer-acme", "author",
		"author-acme"} {
		tokens[who] = bearing(w.token(who))
	}
	wide := strings.Replace(triggerNamed("wide"), "{customer=acme}&{site=x}", "all", 1)
	bolt := strings.NewReplacer("acme", "bolt").Replace(triggerNamed("bolt"))
	for _, c := range []struct {
		who, text, want string
		status          int
	}{
		{"viewer", triggerNamed("look"), "conf/a.yaml:1: trigger look: ", 403},
		{"operator-acme", triggerNamed("look"), "", 200},
		{"operator-acme", triggerNamed("look") + "---\n" + wide + "---\n" + bolt,
			"conf/a.yaml:11: trigger wide: on: all may pick hosts of others than customer acme", 403},
		{"operator-acme", bolt, "conf/a.yaml:1: trigger bolt: ", 403},
		{"operator", bolt, "", 200},
		{"operator-acme", strings.Replace(bolt, "customers: [bolt]", "customers: [acme]", 1), "trigger bolt", 403},
		{"operator", appliedRunbook, "runbook greet", 403}, {"author-acme", appliedRunbook, "runbook greet", 403},
		{"author", appliedRunbook, "", 200}, {"author", triggerNamed("x"), "trigger x", 403},
	} {
		if _, status, words := w.applyTo(ofText(c.text), tokens[c.who]); status != c.status ||
			!strings.Contains(words, c.want) {
			t.Errorf("%s: %d, want %d %q: %s\n%s", c.who, status, c.status, c.want, words, c.text)
		}
	}
	if b := w.exported(tokens["viewer-acme"]); len(b.Files) != 2 {
		t.Errorf("a viewer of acme sees %+v", b.Files)
	}
}

const appliedNotify = "kind: notify\nname: failures\nwhat: [outcome]\ncustomers: acme\nto: noc\n"

// told returns the rules that tell a receiver, and the complaint.
func (w *world) told() string {
	w.t.Helper()
	var l api.NotifyReceivers
	w.call("GET", "/v1/notify/receivers", nil, &l)
	if len(l.Receivers) != 1 {
		w.t.Fatalf("%+v", l)
	}
	return strings.Join(l.Receivers[0].Rules, ",") + " " + l.Complaint
}

// Rules of notifications are followed by all servers; receivers stand in files.
func TestAppliedRulesOfNotificationsAreFollowedByAllServers(t *testing.T) {
	t.Parallel()
	a, b := two(t)
	if did, _, words := a.applyTo(ofText(appliedNotify), nil); didWhat(did) != "added notify/failures" {
		t.Fatal(words)
	}
	if got := b.told(); got != "frozen,failures " {
		t.Errorf("the other server tells by %q", got)
	}
	for text, want := range map[string]string{
		strings.Replace(appliedNotify, "to: noc", "to: nobody", 1):           "conf/a.yaml:2: rule failures: there is no",
		"kind: notify\nname: frozen\nwhat: node-gone\nto: noc\n":             "stands in /etc/muster/notify.yaml:4",
		"kind: notify\nname: x\nwhat: node-gone\ncustomers: acme\nto: noc\n": "conf/a.yaml:4: customers: node-gone has no",
		"kind: receiver\nname: x\n":                                          "have programs and secrets of the server",
	} {
		if _, status, words := a.applyTo(ofText(text), nil); status != http.StatusUnprocessableEntity ||
			!strings.Contains(words, want) {
			t.Errorf("%d, want %q: %s", status, want, words)
		}
	}
	if did, _, words := b.applyTo(b.exported(nil), nil); !did.Already {
		t.Errorf("what is exported differs: %s", words)
	}
}

const appliedRunbook = `kind: runbook
name: greet
arguments:
  word: {type: string, required: true}
steps:
  - {name: say, run: "echo {{word}}"}
`

// A runbook and the trigger that needs it come into force together, on all servers, and the one does
// not go without the other.
func TestAppliedRunbooksAreFollowedByAllServers(t *testing.T) {
	t.Parallel()
	a, b := two(t)
	trigger := strings.Replace(triggerNamed("look"), "runbook: label", "runbook: greet", 1)
	if _, status, words := a.applyTo(ofText(trigger), nil); status != http.StatusUnprocessableEntity ||
		!strings.Contains(words, "conf/a.yaml:2: trigger look: no runbook") {
		t.Errorf("without the runbook: %d %s", status, words)
	}
	body := ofText(trigger + "---\n" + appliedRunbook)
	body.Origin = "git:rules"
	if did, _, words := a.applyTo(body, nil); didWhat(did) != "added runbook/greet moved, added trigger/look moved" {
		t.Fatal(words)
	}
	do := run("fw-a1")
	do.Runbook, do.Args = "greet", map[string]string{"word": "hello"}
	if task := b.submit(do).Task; task == "" {
		t.Error("the other server has no such runbook")
	}
	var detail api.RunbookDetail
	b.call("GET", "/v1/runbooks/greet", nil, &detail)
	if want := strings.TrimPrefix(appliedRunbook, "kind: runbook\n"); detail.Source != want {
		t.Errorf("its text is %q, want %q", detail.Source, want)
	}
	if got := b.names(); got != "weak,look " {
		t.Errorf("the other server has the triggers %q", got)
	}
	body = ofText(trigger)
	body.Origin, body.Prune = "git:rules", true
	if _, status, words := b.applyTo(body, nil); status != http.StatusConflict ||
		!strings.Contains(words, "trigger look: no runbook") {
		t.Errorf("the runbook goes without its trigger: %d %s", status, words)
	}
	other := strings.Replace(appliedRunbook, "word: {type", "text: {type", 1)
	body = ofText(strings.Replace(other, "{{word}}", "{{text}}", 1))
	body.Origin = "git:rules"
	if _, status, words := b.applyTo(body, nil); status != http.StatusConflict ||
		!strings.Contains(words, "trigger look: runbook greet has no argument") {
		t.Errorf("the argument of a trigger goes: %d %s", status, words)
	}
	for text, want := range map[string]string{
		strings.Replace(appliedRunbook, "greet", "exec", 1):  "runbook exec is built in: choose another name",
		strings.Replace(appliedRunbook, "greet", "label", 1): "runbook label stands in label.yaml, which servers",
		strings.Replace(appliedRunbook, "say", "''", 1):      "conf/a.yaml:6: ",
	} {
		if _, status, words := a.applyTo(ofText(text), nil); status != http.StatusUnprocessableEntity ||
			!strings.Contains(words, want) {
			t.Errorf("%d, want %q: %s", status, want, words)
		}
	}
	exported := b.exported(nil)
	exported.Origin = "git:rules"
	if did, _, words := a.applyTo(exported, nil); !did.Already || did.Counts["unchanged"] != 2 {
		t.Errorf("what is exported differs: %s", words)
	}
	exported.Files = []windows.File{{Name: "empty.yaml"}}
	exported.Prune, exported.Empty = true, true
	if did, _, words := a.applyTo(exported, nil); did.Counts["removed"] != 2 {
		t.Errorf("pruned: %s", words)
	}
	if r, answer := b.raw("GET", "/v1/runbooks/greet", nil, nil); r.StatusCode != http.StatusNotFound {
		t.Errorf("the other server has it still: %s", answer)
	}
}

// A server that cannot look which entries are in force does not answer from those that it knew.
func TestWithoutRedisNoServerAnswersFromOlderEntries(t *testing.T) {
	t.Parallel()
	r := redistest.StartServer(t)
	cfg := r.Config()
	w := start(t, setup{redis: &cfg, inventory: fixed(twoCustomers())})
	w.applyTo(ofText(triggerNamed("look")+"---\n"+appliedRunbook), nil)
	if got := w.names(); got != "look " {
		t.Fatal(got)
	}
	r.Kill()
	for _, path := range []string{"/v1/triggers", "/v1/runbooks", "/v1/runbooks/greet"} {
		if res, answer := w.raw("GET", path, nil, nil); res.StatusCode != http.StatusServiceUnavailable {
			t.Errorf("%s: %s %s", path, res.Status, answer)
		}
	}
	if _, err := w.server.Firer().Fire(t.Context(), alerting("e9", "acme", "disk", "fw-a1")); err == nil {
		t.Error("an event is done by triggers that nobody knows to be in force")
	}
}
