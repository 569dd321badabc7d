package notify

import (
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"muster/fleet"
	"muster/jobs"
)

var begin = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

func parse(t testing.TB, text string) *Rules {
	t.Helper()
	r, err := Parse(fleet.Source{Name: "notify.yaml", Data: []byte(text)})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

const receivers = `
receivers:
  noc: {program: {argv: [/bin/page]}}
`

func TestEveryMistakeIsReportedWithItsLine(t *testing.T) {
	t.Parallel()
	_, err := Parse(fleet.Source{Name: "n.yaml", Data: []byte(`receivers:
  a: {webhook: {url: "http://hooks.example.org/T0SECRET/x"}}
  b: {mail: {server: mx, tls: none, from: "Ann <a@b.c>", to: [], user: x}}
  c: {program: {argv: [page], timeout: 1h}, expire: 1s}
  d: {}
  e: {slack: {url: "https://u:SECRETPW@h/p", url_file: rel}}
rules:
  - {name: one, what: [outcom], outcomes: [faild], to: [noc, a]}
  - {name: one, what: [node-gone], customers: [x], cleared: perhaps, to: a}
  - {what: task-ended, wait: soon, color: red, runbooks: ["[a"]}
`)})
	if err == nil {
		t.Fatal("it was taken")
	}
	text := err.Error()
	for _, want := range []string{
		`n.yaml:2: url: "hooks.example.org" is another machine: want https`,
		"n.yaml:2: webhook needs key_file",
		`n.yaml:3: server: "mx": want host:port`,
		`n.yaml:3: from: "Ann <a@b.c>": want an address`,
		"n.yaml:3: to is empty", "n.yaml:3: tls: none is for a server on this machine",
		"n.yaml:3: mail has one of user and password_file",
		`n.yaml:4: argv: "page": want an absolute path`, `n.yaml:4: timeout: "1h": want a time from 1s`,
		`n.yaml:4: expire: "1s": want a time from 1m`,
		"n.yaml:5: receiver d has 0 ways: want one of webhook, slack, alertmanager, mail, program",
		`n.yaml:6: url: the URL of "h" has a user in it`, `n.yaml:6: url_file: "rel": want the absolute path`,
		"n.yaml:6: slack needs either url, or url_file",
		`n.yaml:8: what: unknown word "outcom": did you mean "outcome"?`,
		`n.yaml:8: outcomes: unknown word "faild": did you mean "failed"?`,
		`n.yaml:8: there is no receiver "noc": known: a, b, c, d, e`,
		"n.yaml:9: rule one is there already, at line 8",
		"n.yaml:9: customers: node-gone has no known customer", `n.yaml:9: cleared: "perhaps": want true or false`,
		"n.yaml:10: a rule needs a name", `n.yaml:10: wait: "soon": want a time`,
		`n.yaml:10: unknown key "color"`, `n.yaml:10: runbooks: "[a" is no pattern`, "n.yaml:10: to is missing",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("%q is missing in\n%s", want, text)
		}
	}
	if strings.Contains(text, "SECRET") {
		t.Errorf("a secret is in\n%s", text)
	}
	if _, err := Parse(fleet.Source{Name: "x", Data: []byte("who: []\n")}); err == nil ||
		!strings.Contains(err.Error(), "no file of notifications") {
		t.Errorf("a file of another kind: %v", err)
	}
}

// shelf is a Book in memory.
type shelf struct {
	states map[string]string
	groups map[[2]string]*Open
}

func newShelf() *shelf { return &shelf{map[string]string{}, map[[2]string]*Open{}} }

func (s *shelf) State(name string) (string, error) { return s.states[name], nil }
func (s *shelf) SetState(name, state string) error { s.states[name] = state; return nil }
func (s *shelf) Group(rule, name string) (*Open, error) {
	return s.groups[[2]string{rule, name}], nil
}
func (s *shelf) OfTask(id jobs.TaskID) (out []*Open, err error) {
	for _, g := range s.groups {
		if g.Task == id {
			out = append(out, g)
		}
	}
	return out, nil
}

// round takes signals at an instant, and returns the messages that are due then.
func (s *shelf) round(t testing.TB, r *Rules, now time.Time, list ...Signal) (out []Message) {
	t.Helper()
	d := Desk{Rules: r, Book: s, Now: now}
	for _, one := range list {
		if err := d.Take(one); err != nil {
			t.Fatal(err)
		}
	}
	for _, g := range d.Touched() {
		s.groups[[2]string{g.Rule, g.Name}] = g
	}
	for key, g := range s.groups {
		if !g.Due.After(now) {
			out = append(out, g.Message("noc", "https://muster.example/", now))
			delete(s.groups, key)
		}
	}
	slices.SortFunc(out, func(a, b Message) int { return strings.Compare(a.Title, b.Title) })
	return out
}

const one, two = jobs.TaskID("0wcy7y2fb2"), jobs.TaskID("0wcy7y2fb3")

func ended(task jobs.TaskID, o jobs.Outcome, customer string, hosts ...string) Signal {
	s := Signal{Key: fmt.Sprint(task, o, hosts), At: jobs.Time{Time: begin}, What: Outcome, Outcome: o,
		Of: Of{Task: task, Runbook: "firewall", Customer: customer}}
	for _, h := range hosts {
		s.Hosts.Add(h)
	}
	return s
}

func over(task jobs.TaskID, list ...Signal) Signal {
	s := Signal{Key: "over " + string(task), At: jobs.Time{Time: begin}, What: TaskEnded,
		Of: Of{Task: task, Runbook: "firewall", On: "all"}}
	for _, o := range list {
		s.Counts = append(s.Counts, Count{o.Customer, o.Outcome, o.Hosts})
	}
	return s
}

func TestAllTenOutcomesAreTold(t *testing.T) {
	t.Parallel()
	if len(jobs.Outcomes()) != 10 {
		t.Fatalf("there are %d outcomes now: the words for people want a look", len(jobs.Outcomes()))
	}
	for _, o := range jobs.Outcomes() {
		r := parse(t, receivers+fmt.Sprintf("rules: [{name: r, what: outcome, outcomes: %s, to: noc}]", o))
		s := newShelf()
		for _, other := range jobs.Outcomes() {
			if other != o && len(s.round(t, r, begin.Add(time.Hour), ended(two, other, "acme", "fw9"))) > 0 {
				t.Errorf("%s is told by a rule for %s", other, o)
			}
		}
		if got := s.round(t, r, begin, ended(one, o, "acme", "fw1")); len(got) != 0 {
			t.Errorf("%s: told before its wait is over: %+v", o, got)
		}
		got := s.round(t, r, begin.Add(16*time.Minute))
		want := fmt.Sprintf("task %s (firewall): %s on 1 host (fw1) of acme", one, o)
		if len(got) != 1 || got[0].Text != want || got[0].Title != "muster: "+want || got[0].Type != "muster.outcome" {
			t.Errorf("%s: %+v", o, got)
		}
	}
}

func TestALargeTaskMakesOneMessage(t *testing.T) {
	t.Parallel()
	r := parse(t, receivers+"rules: [{name: r, what: [outcome, task-ended], outcomes: [failed, unknown], group: task, "+
		"wait: 15m, to: noc}]")
	s := newShelf()
	all := ended(one, jobs.Failed, "acme")
	for i := range 40 {
		part := ended(one, jobs.Failed, "acme")
		for k := range 500 {
			part.Hosts.Add(fmt.Sprintf("fw%05d", i*500+k))
		}
		all.Hosts.Join(part.Hosts)
		if got := s.round(t, r, begin.Add(time.Duration(i)*time.Second), part); len(got) > 0 {
			t.Fatalf("told while the task runs: %+v", got)
		}
	}
	got := s.round(t, r, begin.Add(time.Minute), over(one, all))
	if len(got) != 1 || len(got[0].Items) != 2 || got[0].Items[0].Hosts.Count != 20_000 ||
		len(got[0].Items[0].Hosts.Names) != 10 || got[0].Link != "https://muster.example/tasks/"+string(one) {
		t.Fatalf("%+v", got)
	}
	if want := "failed on 20000 hosts (fw00000, fw00001,"; !strings.Contains(got[0].Text, want) {
		t.Errorf("%q is not in %q", want, got[0].Text)
	}
	if len(got[0].JSON()) > 4000 {
		t.Errorf("it has %d bytes", len(got[0].JSON()))
	}
}

func TestARuleOfACustomerTellsThatPartOnly(t *testing.T) {
	t.Parallel()
	r := parse(t, receivers+"rules: [{name: r, what: [outcome, task-ended], customers: [ac*], wait: 0, to: noc}]")
	s := newShelf()
	own, foreign := ended(one, jobs.Failed, "acme", "fw-a"), ended(one, jobs.Failed, "bolt", "fw-b")
	for _, m := range s.round(t, r, begin, own, foreign, over(one, own, foreign), over(two, foreign)) {
		if text := string(m.JSON()); strings.Contains(text, "fw-b") || strings.Contains(text, "bolt") ||
			!strings.Contains(text, "fw-a") {
			t.Errorf("%s", text)
		}
	}
}

func TestOnlyAChangeIsTold(t *testing.T) {
	t.Parallel()
	r := parse(t, receivers+"rules: [{name: r, what: [group-frozen, node-gone], cleared: true, wait: 0, to: noc}]")
	s := newShelf()
	group := Signal{What: GroupFrozen, Zone: "eu", Object: "gw1", At: jobs.Time{Time: begin}}
	free := group
	free.Over = true
	for i, c := range []struct {
		s    Signal
		want string
	}{{free, ""}, {group, "group eu/gw1 is frozen"}, {group, ""}, {free, "group eu/gw1 is not frozen any more"}, {free,
		""},
		{group, "group eu/gw1 is frozen"}} {
		c.s.Key = fmt.Sprint(i)
		text := ""
		for _, m := range s.round(t, r, begin.Add(time.Duration(i)*time.Minute), c.s) {
			text += m.Text
		}
		if text != c.want {
			t.Errorf("%d: told %q, want %q", i, text, c.want)
		}
	}
}

func TestATaskThatEndsAsTheLastOneLikeItIsNotTold(t *testing.T) {
	t.Parallel()
	r := parse(t, receivers+"rules: [{name: r, what: task-ended, on_change: true, to: noc}]")
	s := newShelf()
	good, bad := ended("", jobs.Succeeded, "acme", "fw1"), ended("", jobs.Failed, "acme", "fw1")
	for i, c := range []struct {
		how  Signal
		told int
	}{{good, 0}, {bad, 1}, {bad, 0}, {bad, 0}, {good, 1}, {good, 0}, {bad, 1}} {
		task := jobs.TaskID(fmt.Sprintf("0wcy7y2f%02d", i))
		if got := s.round(t, r, begin.Add(time.Duration(i)*time.Hour), over(task, c.how)); len(got) != c.told {
			t.Errorf("%d: %d messages, want %d", i, len(got), c.told)
		}
	}
}

func TestGroupsOfCustomersAndRules(t *testing.T) {
	t.Parallel()
	own, foreign := ended(one, jobs.Failed, "acme", "fw-a"), ended(two, jobs.Failed, "bolt", "fw-b")
	for group, want := range map[string]int{"task": 2, "runbook": 1, "customer": 2, "rule": 1} {
		r := parse(t, receivers+"rules: [{name: r, what: outcome, group: "+group+", wait: 1m, to: noc}]")
		s := newShelf()
		s.round(t, r, begin, own)
		s.round(t, r, begin.Add(time.Second), foreign)
		if got := s.round(t, r, begin.Add(time.Minute+time.Second)); len(got) != want {
			t.Errorf("%s: %d messages, want %d: %+v", group, len(got), want, got)
		}
	}
}

func TestAMessageIsBoundedAndHarmless(t *testing.T) {
	t.Parallel()
	r := parse(t, receivers+"rules: [{name: r, what: [schedule-failed], group: rule, wait: 1s, to: noc}]")
	s := newShelf()
	var list []Signal
	for i := range 5000 {
		list = append(list, Signal{Key: fmt.Sprint(i), What: ScheduleFailed, Object: fmt.Sprint("s", i),
			At: jobs.Time{Time: begin}, Note: "a\r\nBcc: x@y.z <!channel> & \x00" + strings.Repeat("x", 5000)})
	}
	s.round(t, r, begin, list...)
	got := s.round(t, r, begin.Add(time.Second))
	if len(got) != 1 || len(got[0].Items) != 50 || got[0].More != 4950 || len(got[0].Text) > 8200 ||
		len(got[0].JSON()) > 64<<10 {
		t.Fatalf("%d messages: %d bytes, %d of text", len(got), len(got[0].JSON()), len(got[0].Text))
	}
	m := got[0]
	if strings.ContainsAny(m.Title, "\r\n") || strings.Contains(string(m.Slack()), "<!channel>") {
		t.Errorf("title %q, slack %s", m.Title, m.Slack())
	}
	var alerts []map[string]any
	if err := json.Unmarshal(m.Alerts(), &alerts); err != nil || len(alerts) != 50 {
		t.Errorf("%d alerts, %v", len(alerts), err)
	}
}

func TestPausesGrowAndEnd(t *testing.T) {
	t.Parallel()
	last := time.Duration(0)
	for tries := 1; tries < 100; tries++ {
		p := Pause(tries, "msg_x")
		if p < pauseFirst*3/4 || p > pauseMost || tries < 8 && p < last {
			t.Errorf("after %d tries: %s after %s", tries, p, last)
		}
		last = p
	}
	if Pause(20, "a") == Pause(20, "b") {
		t.Error("two messages are tried again at the same time")
	}
}

func FuzzParse(f *testing.F) {
	f.Add([]byte(receivers + "rules: [{name: r, what: outcome, to: noc}]"))
	f.Add([]byte("receivers: {a: {webhook: {url: x}}}\nrules: [{}, 1, [], {name: &a b}]"))
	f.Fuzz(func(t *testing.T, data []byte) {
		r, err := Parse(fleet.Source{Name: "f", Data: data})
		if (r == nil) == (err == nil) {
			t.Fatalf("%v, %v", r, err)
		}
	})
}

func TestTheExampleHasNoMistake(t *testing.T) {
	t.Parallel()
	data, err := os.ReadFile("../etc/examples/notify.yaml")
	if err != nil {
		t.Fatal(err)
	}
	if r := parse(t, string(data)); len(r.Rules()) != 6 || len(r.Receivers()) != 5 {
		t.Errorf("%d rules, %d receivers", len(r.Rules()), len(r.Receivers()))
	}
}
