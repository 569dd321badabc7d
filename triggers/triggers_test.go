package triggers

import (
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"muster/events"
	"muster/fleet"
	"muster/scripts"
)

var begin = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

func parse(t testing.TB, text string) *Set {
	t.Helper()
	s, err := Parse(fleet.Source{Name: "triggers.yaml", Data: []byte(text)})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// diagnose is a trigger on the alerts of Alertmanager.
const diagnose = `
triggers:
  - name: diagnose
    source: [alert*]
    kind: firing
    when:
      - {field: commonLabels.severity, one_of: [critical, page]}
      - {field: "alerts.*.labels.job", glob: "node*"}
      - {field: commonLabels.maintenance, exists: false}
    limit: 2/1h
    runbook: look
    args: {cmd: {field: commonLabels.alertname}}
    on: role=fw
    host: {field: "alerts.*.labels.instance", before: ":"}
    at_most: 2
`

// alert returns the body of an alert on some hosts.
func alert(severity, name string, instances ...string) []byte {
	type labels map[string]string
	var list []any
	for _, i := range instances {
		list = append(list, map[string]any{"labels": labels{"job": "node-exporter", "instance": i}})
	}
	b, err := json.Marshal(map[string]any{"alerts": list,
		"commonLabels": labels{"severity": severity, "alertname": name}})
	if err != nil {
		panic(err)
	}
	return b
}

func event(body []byte) events.Event {
	return events.Event{ID: "0000000000000000000000abcd", Source: "alertmanager", Kind: "firing",
		At: begin, Body: body}
}

func TestEveryMistakeIsReportedWithItsLine(t *testing.T) {
	t.Parallel()
	_, err := Parse(fleet.Source{Name: "t.yaml", Data: []byte(`triggers:
  - {name: one, source: git, runbook: exec, on: "role in (", at_most: 0, debounse: 3}
  - {name: one, runbook: exec, on: all, at_most: 3, limit: 10, window: perhaps}
  - source: git
    when: [{field: a..b, equals: x}, {field: a, equals: x, glob: y}, {equals: z}]
    debounce: {longest: 1s}
    args: {a: {file: rel}, b: {file: /x, field: y}, c: {event: customr}, d: [1]}
    on: task:0wcy7y2fb2/failed
    waves: [soon]
    host: fw1
  - {name: shell, source: g, on: all, at_most: 1, runbook: exec, args: {cmd: {field: a}}}
  - {name: a b, source: [], on: all, at_most: 999999, runbook: exec, expire: 0s, enabled: 7}
`)})
	if err == nil {
		t.Fatal("it was taken")
	}
	text := err.Error()
	for _, want := range []string{
		"t.yaml:2: on: ", `t.yaml:2: at_most: "0": want a number from 1`,
		`t.yaml:2: unknown key "debounse" of a trigger: did you mean "debounce"?`,
		"t.yaml:3: trigger one is there already, at line 2", "t.yaml:3: source is missing",
		`t.yaml:3: limit: "10": want how often`, `t.yaml:3: window: unknown word "perhaps"`,
		"t.yaml:4: a trigger needs a name", "t.yaml:4: at_most is missing",
		"t.yaml:4: runbook is missing",
		"t.yaml:5: path ", "t.yaml:5: a condition has 2 comparisons", "t.yaml:5: want one of field",
		"t.yaml:6: debounce needs quiet",
		`t.yaml:7: file: "rel": want the absolute path`, "t.yaml:7: argument b has a file and a field",
		`t.yaml:7: event: unknown word "customr": did you mean "customer"?`,
		"t.yaml:7: argument d is a list: want a text",
		"t.yaml:8: on: ", "t.yaml:9: waves: ", "t.yaml:10: host is a single value: want a mapping with field",
		"t.yaml:11: argument cmd of runbook exec is a command, and an event carries none",
		`t.yaml:12: name "a b": use letters`, "t.yaml:12: source is empty",
		`t.yaml:12: at_most: "999999"`, `t.yaml:12: expire: "0s"`, `t.yaml:12: enabled: "7"`,
	} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in:\n%s", want, text)
		}
	}
}

func TestAnEventThatFitsFires(t *testing.T) {
	t.Parallel()
	s := parse(t, diagnose)
	d := s.Decide(event(alert("critical", "DiskFull; rm -rf /", "fw2:9100", "fw1:9100", "fw2:9100")),
		Memory{Now: begin})[0]
	if d.Result != Fires || len(d.Why) > 0 {
		t.Fatalf("%s: %v", d.Result, d.Why)
	}
	if got := d.Bound.Args["cmd"]; got != "DiskFull; rm -rf /" {
		t.Errorf("cmd is %q: it must be the value as it is, as data", got)
	}
	if !slices.Equal(d.Bound.Hosts, []string{"fw1", "fw2"}) {
		t.Errorf("hosts are %q", d.Bound.Hosts)
	}
	if !slices.Equal(d.Bound.Stems, []string{"diagnose"}) {
		t.Errorf("stems are %q", d.Bound.Stems)
	}
}

func TestEachConditionThatDoesNotHoldIsNamed(t *testing.T) {
	t.Parallel()
	const all = `
triggers:
  - name: push
    enabled: false
    source: rules
    kind: [push, "push.*"]
    customers: acme
    when:
      - {field: ref, equals: refs/heads/main}
      - {field: gone, exists: true}
      - {field: here, exists: false}
      - {field: commits, equals: "1"}
      - {field: commits.*.id, one_of: [a, b]}
      - {field: repository.name, glob: "rules-*"}
      - {event: customer, equals: beta}
    runbook: exec
    on: all
    at_most: 1
`
	e := events.Event{ID: "x", Source: "other", Kind: "ping", Customer: "beta", Body: []byte(
		`{"ref": "refs/heads/x", "here": null, "commits": [{"id": "c"}], "repository": {"name": "r"}}`)}
	d := parse(t, all).Decide(e, Memory{Now: begin})[0]
	want := []string{"the trigger is not enabled",
		`source: the event has "other", and the trigger wants rules`,
		`kind: the event has "ping", and the trigger wants push, push.*`,
		`customer: the event has "beta", and the trigger wants acme`,
		`ref: the event has "refs/heads/x", and the trigger wants equals "refs/heads/main"`,
		"gone: the event does not have it", "here: the event has it",
		"commits: commits of the event is a list: want a text, a number, true or false",
		`commits.*.id: the event has "c", and the trigger wants one_of "a", "b"`,
		`repository.name: the event has "r", and the trigger wants glob "rules-*"`}
	if d.Result != Passes || !slices.Equal(d.Why, want) {
		t.Errorf("%s, because of\n%s\nwant\n%s", d.Result, strings.Join(d.Why, "\n"),
			strings.Join(want, "\n"))
	}
}

func TestAnEventThatCannotBeBoundIsRefused(t *testing.T) {
	t.Parallel()
	const text = `
triggers:
  - name: one
    source: "*"
    runbook: look
    args: {cmd: {field: a.*}, big: {field: b}}
    on: all
    labels: {site: {field: site}}
    at_most: 1
`
	for _, c := range []struct{ body, want string }{
		{`{"a": ["x", "y"], "b": "", "site": "s"}`, "argument cmd: the event has 2 values at a.*: want one"},
		{`{"a": [], "b": "", "site": "s"}`, "argument cmd: the event has an empty list at a.*"},
		{`{"a": [{}], "b": "", "site": "s"}`, "argument cmd: a.* of the event is an object"},
		{`{"a": ["x"], "site": "s"}`, "argument big: the event has no b"},
		{`{"a": ["x"], "b": "", "site": ""}`, "label site: the event has an empty text at site"},
		{`{"a": ["x"], "b": "` + strings.Repeat("x", boundMax) + `", "site": "s"}`,
			"the values of the event have 65538 bytes: at most 65536"},
		{`no`, "the body of the event is not JSON"},
		{`{} {}`, "not JSON alone"},
	} {
		d := parse(t, text).Decide(event([]byte(c.body)), Memory{Now: begin})[0]
		if d.Result != Refused || !strings.Contains(d.Words(), c.want) {
			t.Errorf("%.60s: %s: %s; want refused: %s", c.body, d.Result, d.Words(), c.want)
		}
	}
}

func TestATriggerNeverFiresItself(t *testing.T) {
	t.Parallel()
	s := parse(t, diagnose)
	e := event(alert("page", "x", "fw1"))
	for _, c := range []struct {
		stems []string
		doubt string
		want  string // empty: it fires
	}{
		{nil, "", ""}, {[]string{"other"}, "", ""}, {[]string{"a", "b"}, "", ""},
		{[]string{"diagnose"}, "", "stems from a task of this trigger (diagnose)"},
		{[]string{"diagnose", "other"}, "", "stems from a task of this trigger (diagnose → other)"},
		{[]string{"a", "b", "c"}, "", "a chain of 3 triggers (a → b → c), which is the most"},
		{nil, "Redis has forgotten it", "it is not known which triggers led to the event"},
	} {
		d := s.Decide(e, Memory{Now: begin, Stems: c.stems, Doubt: c.doubt})[0]
		if c.want == "" && d.Result != Fires || c.want != "" &&
			(d.Result != Refused || !strings.Contains(d.Words(), c.want)) {
			t.Errorf("stems %q: %s %q; want %q", c.stems, d.Result, d.Words(), c.want)
		}
	}
}

func TestALimitHoldsUntilItsTimeIsOver(t *testing.T) {
	t.Parallel()
	s := parse(t, diagnose)
	tr, _ := s.Find("diagnose")
	past := Past{}
	for i, c := range []struct {
		at   time.Duration
		want Result
	}{{0, Fires}, {time.Minute, Fires}, {2 * time.Minute, Limited}, {59 * time.Minute, Limited},
		{60 * time.Minute, Fires}, {60*time.Minute + 1, Limited}, {61 * time.Minute, Fires}} {
		now := begin.Add(c.at)
		d := s.Decide(event(alert("page", "x", "fw1")),
			Memory{Now: now, Past: map[string]Past{"diagnose": past}})[0]
		if d.Result != c.want {
			t.Fatalf("%d: after %s: %s %q; want %s", i, c.at, d.Result, d.Words(), c.want)
		}
		if d.Result == Fires {
			past = past.Fire(tr, fmt.Sprint(i), "", now)
		}
	}
	if len(past.Fired) > 2 {
		t.Errorf("%d times are remembered of a limit of 2", len(past.Fired))
	}
}

// A customer with many events does not use up the limit of another one, nor of the house.
func TestALimitCountsForEachCustomer(t *testing.T) {
	t.Parallel()
	s := parse(t, diagnose)
	tr, _ := s.Find("diagnose")
	past := Past{}
	for i, c := range []struct {
		customer string
		want     Result
	}{{"acme", Fires}, {"acme", Fires}, {"acme", Limited}, {"bolt", Fires}, {"", Fires}, {"bolt", Fires},
		{"bolt", Limited}, {"", Fires}, {"", Limited}, {"acme", Limited}} {
		e := event(alert("page", "x", "fw1"))
		e.Customer = c.customer
		d := tr.Decide(e, Memory{Now: begin, Past: map[string]Past{"diagnose": past}})
		if d.Result != c.want {
			t.Fatalf("%d of %q: %s %q; want %s", i, c.customer, d.Result, d.Words(), c.want)
		}
		if d.Result == Fires {
			past = past.Fire(tr, fmt.Sprint(i), c.customer, begin)
		}
	}
	if n := tr.Recent(past, begin); n != 2 {
		t.Errorf("%d firings count, want 2", n)
	}
	past = past.Fire(tr, "later", "bolt", begin.Add(2*time.Hour))
	if len(past.Fired)+len(past.Of["acme"]) > 0 || len(past.Of["bolt"]) != 1 {
		t.Errorf("what counts no more is kept: %+v", past)
	}
}

func TestEventsThatFollowEachOtherFireOnceWithTheLast(t *testing.T) {
	t.Parallel()
	s := parse(t, `
triggers:
  - {name: push, source: git, debounce: {quiet: 30s, longest: 70s, by: repo}, runbook: look, on: all,
     at_most: 9, args: {cmd: {field: sha}}}
`)
	tr, past := s.All()[0], Past{}
	push := func(id, repo string, after time.Duration) (replaced string) {
		d := s.Decide(events.Event{ID: id, Source: "git", Body: fmt.Appendf(nil,
			`{"repo": %q, "sha": %q}`, repo, "sha-"+id)},
			Memory{Now: begin.Add(after), Past: map[string]Past{"push": past}})[0]
		if d.Result != Collects {
			t.Fatalf("%s: %s %q", id, d.Result, d.Words())
		}
		past, replaced = past.Hold(d, begin.Add(after))
		return replaced
	}
	for _, c := range []struct {
		id, repo string
		at       time.Duration
		replaces string
		due      time.Duration
	}{{"a", "x", 0, "", 30 * time.Second}, {"b", "x", 20 * time.Second, "a", 50 * time.Second},
		{"c", "y", 25 * time.Second, "", 50 * time.Second},
		{"d", "x", 45 * time.Second, "b", 70 * time.Second}} {
		if got := push(c.id, c.repo, c.at); got != c.replaces {
			t.Errorf("%s replaces %q, want %q", c.id, got, c.replaces)
		}
	}
	if _, _, ripe := past.Ripe(begin.Add(54 * time.Second)); ripe {
		t.Error("something is due before 55 s")
	}
	var order []string
	for {
		_, h, ripe := past.Ripe(begin.Add(70 * time.Second))
		if !ripe {
			break
		}
		if d := tr.Release(h, past, begin.Add(70*time.Second)); d.Result != Fires ||
			d.Bound.Args["cmd"] != "sha-"+h.Bound.Event {
			t.Errorf("%+v", d)
		}
		order = append(order, h.Bound.Event)
		past = past.Fire(tr, h.Bound.Event, h.Bound.Customer, begin)
	}
	if !slices.Equal(order, []string{"c", "d"}) { // c at 55 s, d at 70 s: longest, not 75 s
		t.Errorf("fired %q", order)
	}
}

func hosts(names ...string) (list []fleet.Host) {
	for i, n := range names {
		list = append(list, fleet.Host{Name: n, Customer: []string{"acme", "beta"}[i%2],
			Labels: map[string]string{"site": []string{"north", "south"}[i/2%2]}})
	}
	return list
}

func TestAnEventOnlyNarrowsTheHosts(t *testing.T) {
	t.Parallel()
	picked := hosts("fw1", "fw2", "fw3", "fw4")
	host, site := &Field{Path: "h"}, []LabelField{{"site", Field{Path: "s"}}}
	for _, c := range []struct {
		aim   Aim
		bound Bound
		want  string // the hosts, or a part of the refusal
	}{
		{Aim{AtMost: 4}, Bound{}, "fw1 fw2 fw3 fw4"},
		{Aim{AtMost: 3}, Bound{}, "at_most: the task would have 4 hosts, and the trigger may have 3"},
		{Aim{AtMost: 1, Host: host}, Bound{Hosts: []string{"fw3"}}, "fw3"},
		{Aim{AtMost: 9, Host: host}, Bound{Hosts: []string{"all"}}, `names "all"`},
		{Aim{AtMost: 9, Host: host}, Bound{Hosts: []string{"fw*"}}, `names "fw*"`},
		{Aim{AtMost: 9, Host: host}, Bound{Hosts: []string{"fw[1-4]"}}, `names "fw[1-4]"`},
		{Aim{AtMost: 9, Host: host}, Bound{Hosts: []string{"fw1", "db1"}}, `names "db1"`},
		{Aim{AtMost: 9, Labels: site}, Bound{Labels: map[string]string{"site": "south"}}, "fw3 fw4"},
		{Aim{AtMost: 9, Labels: site}, Bound{Labels: map[string]string{"site": "x),all"}},
			`label site: none of the hosts that are meant has "x),all"`},
		{Aim{AtMost: 9}, Bound{Customer: "acme"}, "2 of 4 hosts are not: fw[2,4]"},
		{Aim{AtMost: 9, Host: host}, Bound{Customer: "acme", Hosts: []string{"fw1", "fw3"}}, "fw1 fw3"},
	} {
		got, err := Trigger{Work: Work{Aim: c.aim}}.Narrow(c.bound, picked)
		if err == nil && strings.Join(got, " ") != c.want ||
			err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%+v of %+v: %q, %v; want %q", c.aim, c.bound, got, err, c.want)
		}
	}
}

// Whatever an event says, the task has hosts of the selector only, not more than at most, and of
// its customer only.
func TestNoEventWidensASelector(t *testing.T) {
	t.Parallel()
	s := parse(t, diagnose)
	tr := s.All()[0]
	picked := hosts("fw1", "fw2", "fw3", "fw4", "fw5")
	word := rapid.OneOf(rapid.SampledFrom([]string{"fw1", "fw2:9", "fw3", "all", "*", "fw[1-5]",
		"fw1,fw2", "task:x", "", "role=fw", "{a=b}", "!fw1", "fw1\x00"}), rapid.String())
	rapid.Check(t, func(t *rapid.T) {
		e := event(alert("page", word.Draw(t, "name"), rapid.SliceOfN(word, 0, 4).Draw(t, "hosts")...))
		e.Customer = rapid.SampledFrom([]string{"", "acme", "beta"}).Draw(t, "customer")
		d := s.Decide(e, Memory{Now: begin})[0]
		if d.Result != Fires {
			return
		}
		got, err := tr.Narrow(d.Bound, picked)
		if err != nil {
			return
		}
		if len(got) == 0 || len(got) > 2 {
			t.Fatalf("hosts %q of %s", got, e.Body)
		}
		for _, name := range got {
			if !strings.Contains(string(e.Body), `"`+name) {
				t.Fatalf("host %s is not named in %s", name, e.Body)
			}
			i := slices.IndexFunc(picked, func(h fleet.Host) bool { return h.Name == name })
			if i < 0 || e.Customer != "" && picked[i].Customer != e.Customer {
				t.Fatalf("host %s for customer %q", name, e.Customer)
			}
		}
	})
}

// In no time of the limit does a trigger fire more often than it may, and each event that was
// collected fires or was replaced, once.
func TestWalkOfADebouncedLimitedTrigger(t *testing.T) {
	t.Parallel()
	s := parse(t, `
triggers:
  - {name: w, source: g, debounce: {quiet: 5s, longest: 12s, by: k}, limit: 3/20s, runbook: exec,
     on: all, at_most: 9}
`)
	tr := s.All()[0]
	rapid.Check(t, func(t *rapid.T) {
		past, now := Past{}, begin
		var fired []time.Time
		came := map[string]time.Time{}
		n := 0
		for range rapid.IntRange(1, 60).Draw(t, "steps") {
			now = now.Add(time.Duration(rapid.IntRange(0, 7).Draw(t, "wait")) * time.Second)
			for {
				_, h, ripe := past.Ripe(now)
				if !ripe {
					break
				}
				if _, waits := came[h.Bound.Event]; !waits {
					t.Fatalf("event %s is due a second time", h.Bound.Event)
				}
				delete(came, h.Bound.Event)
				if tr.Release(h, past, now).Result == Fires {
					past, fired = past.Fire(tr, h.Bound.Event, h.Bound.Customer, now), append(fired, now)
				} else {
					past = past.Drop(h.Bound.Event)
				}
			}
			n++
			id := fmt.Sprint(n)
			d := s.Decide(events.Event{ID: id, Source: "g", Body: fmt.Appendf(nil, `{"k": %d}`,
				rapid.IntRange(0, 2).Draw(t, "key"))}, Memory{Now: now, Past: map[string]Past{"w": past}})[0]
			to, replaced := past.Hold(d, now)
			past = to
			delete(came, replaced)
			if came[id] = now; d.Due.After(now.Add(5 * time.Second)) {
				t.Fatalf("event %s is due %s after it came", id, d.Due.Sub(now))
			}
		}
		if len(past.Held) != len(came) {
			t.Fatalf("%d events are held, %d came and did not fire", len(past.Held), len(came))
		}
		for i := 3; i < len(fired); i++ {
			if fired[i].Sub(fired[i-3]) < 20*time.Second {
				t.Fatalf("it fired 4 times within %s", fired[i].Sub(fired[i-3]))
			}
		}
	})
}

func TestArgumentsAreHeldAgainstTheRunbook(t *testing.T) {
	t.Parallel()
	catalog, err := scripts.NewCatalog([]scripts.Source{{File: "r.yaml", Data: []byte(`
name: look
arguments:
  depth: {type: enum, values: [short, full], default: short}
  lines: {type: int, min: 1, max: 9, required: true}
  rules: {type: file, required: true}
  key: {type: secret}
steps:
  - {name: a, run: "echo {{lines}}"}
`)}})
	if err != nil {
		t.Fatal(err)
	}
	s := parse(t, `triggers:
  - name: one
    source: g
    runbook: look
    args:
      depth: deep
      lines: "12"
      rules: text
      key: hunter2
      color: red
    on: all
    at_most: 1
  - {name: two, source: g, runbook: looc, on: all, at_most: 1}
  - {name: three, source: g, runbook: look, on: all, at_most: 1, args: {lines: {field: a}}}
  - {name: four, source: g, runbook: look, on: all, at_most: 1, args: {lines: {file: /x}, rules: {field: a}}}
`)
	wrong := s.Check(func(name string) (Schema, error) {
		r, err := catalog.Lookup(name)
		return SchemaOf(r), err
	})
	text := wrong.Error()
	for _, want := range []string{
		"triggers.yaml:6: trigger one: argument \"depth\"", "triggers.yaml:7: trigger one: argument \"lines\"",
		"triggers.yaml:8: trigger one: argument rules is of type file",
		"triggers.yaml:9: trigger one: argument key is a secret",
		`triggers.yaml:10: trigger one: runbook look has no argument "color"`,
		`triggers.yaml:13: trigger two: no runbook "looc"`,
		"triggers.yaml:14: trigger three: runbook look needs argument rules",
		"triggers.yaml:15: trigger four: argument lines is of type int",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in:\n%s", want, text)
		}
	}
	if strings.Contains(text, "hunter2") {
		t.Error("a mistake repeats a secret")
	}
}

func FuzzParse(f *testing.F) {
	f.Add([]byte(diagnose))
	f.Add([]byte("triggers:\n  - {name: a, source: b, on: all, args: {a: {file: /x}}, waves: 1}\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		s, err := Parse(fleet.Source{Name: "t.yaml", Data: data})
		if (s == nil) == (err == nil) {
			t.Fatal("want a set or an error")
		}
		for _, tr := range s.All() {
			if tr.Name == "" || tr.Work.Aim.AtMost < 1 || len(tr.Match.Sources) == 0 {
				t.Errorf("a trigger without bounds was taken: %+v", tr)
			}
		}
	})
}

func FuzzDecide(f *testing.F) {
	s := parse(f, diagnose)
	f.Add(alert("critical", "x", "fw1:9100"), "fw*", "fw1")
	f.Add([]byte(`{"alerts": [[], {"labels": null}]}`), "*?*", "")
	f.Fuzz(func(t *testing.T, body []byte, glob, text string) {
		d := s.Decide(event(body), Memory{Now: begin})[0]
		if d.Result == Fires != (len(d.Why) == 0) {
			t.Errorf("%s because of %q", d.Result, d.Why)
		}
		if d.Result == Fires && len(d.Bound.Hosts) == 0 {
			t.Error("it fires without the host that the event must name")
		}
		if !fits("*", text) || !strings.ContainsAny(text, "*?") && !fits(text, text) {
			t.Errorf("%q does not fit itself", text)
		}
		if fits(glob, text) && !strings.ContainsAny(glob, "*?") && glob != text &&
			strings.ToValidUTF8(glob, "") == glob && strings.ToValidUTF8(text, "") == text {
			t.Errorf("%q fits %q", text, glob)
		}
	})
}

// The example that the packages bring has no mistake, also for the runbooks that are built in.
func TestTheExampleHasNoMistakes(t *testing.T) {
	t.Parallel()
	data, err := os.ReadFile("../etc/examples/triggers.yaml")
	if err != nil {
		t.Fatal(err)
	}
	catalog, err := scripts.NewCatalog(nil)
	if err != nil {
		t.Fatal(err)
	}
	s := parse(t, string(data))
	wrong := s.Check(func(name string) (Schema, error) {
		r, err := catalog.Lookup(name)
		return SchemaOf(r), err
	})
	if len(wrong) > 0 || len(s.All()) != 2 || !s.All()[1].Work.Hold {
		t.Errorf("%v", wrong)
	}
}
