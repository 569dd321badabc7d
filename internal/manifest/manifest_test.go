package manifest_test

import (
	"os"
	"slices"
	"strings"
	"testing"

	"muster/internal/manifest"
	"muster/windows"
)

const acme = `# What acme has agreed.
kind: schedule
name: zsk-weekly
cron: H 3 * * SUN
zone: Europe/Zurich
runbook: exec
args:
  cmd: |
    uptime
    true
on: customer=acme
owner: acme
---
# A window.
kind: window   # it needs an approval

# by the customer
name: acme-sunday
customer: acme
zone: Europe/Zurich
start: every Sunday 02:00
end: "04:00"
approval: required
---
kind: freeze
name: year-end
customer: acme
zone: Europe/Zurich
from: 2026-12-20
until: 2027-01-04 06:00
reason: peak
---
kind: window
name: acme-ics
customer: acme
zone: UTC
ics: maint.ics
approval: none
---
# nothing
`

const calendar = "BEGIN:VCALENDAR\r\nVERSION:2.0\r\nPRODID:x\r\nBEGIN:VEVENT\r\nUID:1\r\n" +
	"DTSTAMP:20260101T000000Z\r\n" +
	"DTSTART:20300101T000000Z\r\nDTEND:20300101T010000Z\r\nSUMMARY:m\r\nEND:VEVENT\r\nEND:VCALENDAR\r\n"

func input(content string) manifest.Input {
	return manifest.Input{Files: []windows.File{{Name: "conf/acme.yaml", Content: content}},
		Attached: []windows.File{{Name: "conf/maint.ics", Content: calendar}}}
}

func read(t *testing.T, content string) manifest.Set {
	t.Helper()
	set, err := manifest.Read(input(content))
	if err != nil {
		t.Fatal(err)
	}
	return set
}

func TestEachDocumentIsAnEntryWithItsPlace(t *testing.T) {
	t.Parallel()
	var got []string
	for _, e := range read(t, acme).Entries {
		got = append(got, e.ID()+" "+e.Customer+" "+e.Place)
	}
	want := []string{"schedule/zsk-weekly acme conf/acme.yaml:2", "window/acme-sunday acme conf/acme.yaml:15",
		"window/acme-ics acme conf/acme.yaml:33", "freeze/year-end acme conf/acme.yaml:25"}
	if !slices.Equal(got, want) {
		t.Errorf("got  %q\nwant %q", got, want)
	}
	e := read(t, acme).Entries[0].Value.(windows.Entry)
	if e.Args["cmd"] != "uptime\ntrue\n" || e.Cron != "H 3 * * SUN" {
		t.Errorf("the schedule is %+v", e)
	}
}

func TestAllMistakesAreReportedAtOnceWithTheirLines(t *testing.T) {
	t.Parallel()
	const text = `kind: schedule
name: a
cron: never
zone: UTC
runbook: exec
on: all
colour: red
---
name: without
---
kind: windw
name: b
---
kind: access
name: c
---
{kind: window, name: flow}
---
kind: freeze
name: f
zone: Mars
from: 2026-12-20
--- kind: freeze
---
kind: window
---
kind: schedule
	name: tab
`
	_, err := manifest.Read(input(text))
	if err == nil {
		t.Fatal("no mistake is found")
	}
	var places []string
	for line := range strings.SplitSeq(err.Error(), "\n") {
		parts := strings.SplitN(line, ":", 3)
		places = append(places, parts[0]+":"+parts[1])
	}
	var want []string
	for _, n := range []string{"3", "7", "9", "11", "14", "17", "21", "23", "25", "28"} {
		want = append(want, "conf/acme.yaml:"+n)
	}
	if !slices.Equal(places, want) {
		t.Errorf("the mistakes are at %q, want %q:\n%v", places, want, err)
	}
	for _, words := range []string{"unknown key \"colour\"", "did you mean window?", "server.access of muster.yaml names",
		"begins with the line \"kind: runbook\"", "zone \"Mars\""} {
		if !strings.Contains(err.Error(), words) {
			t.Errorf("%q is not in\n%v", words, err)
		}
	}
}

func TestAFileThatIsGivenTwiceIsRefused(t *testing.T) {
	t.Parallel()
	in := input(acme)
	in.Files = append(in.Files, in.Files[0])
	if _, err := manifest.Read(in); err == nil || !strings.Contains(err.Error(), "twice") {
		t.Errorf("got %v", err)
	}
}

// steps returns a plan in words.
func steps(t *testing.T, m manifest.Manner, want, there []manifest.Entry, origins map[string]string) string {
	t.Helper()
	list, err := m.Plan(want, there, origins)
	if err != nil {
		return "refused: " + err.Error()
	}
	var out []string
	for _, s := range list {
		line := string(s.Change) + " " + s.Entry().ID()
		if len(s.Differences) > 0 {
			line += " (" + strings.Join(s.Differences, ", ") + ")"
		}
		if s.Moved {
			line += " from now on of " + s.Origin
		}
		out = append(out, line)
	}
	return strings.Join(out, "\n")
}

func TestOnlyChangedValuesAreChanges(t *testing.T) {
	t.Parallel()
	there := read(t, acme).Entries
	same := strings.NewReplacer("every Sunday 02:00", "every Sunday 02:00 # still",
		"# A window.", "", "missed: once", "").Replace(acme)
	if got := steps(t, manifest.Manner{}, read(t, same).Entries, there, nil); strings.Count(got, "unchanged") != 4 {
		t.Errorf("other comments are changes:\n%s", got)
	}
	other := strings.NewReplacer("end: \"04:00\"", "length: 3h", "approval: required", "approval: none", "peak", "sale",
		"H 3 * * SUN", "'@daily'").Replace(acme)
	want := `changed schedule/zsk-weekly (cron: H 3 * * SUN → @daily)
unchanged window/acme-ics
changed window/acme-sunday (length: (none) → 3h0m0s, end: 04:00:00 → (none), approval: required → none)
changed freeze/year-end (reason: peak → sale)`
	if got := steps(t, manifest.Manner{}, read(t, other).Entries, there, nil); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

func TestAnOriginDecidesWhoChangesAndWhatIsPruned(t *testing.T) {
	t.Parallel()
	there := read(t, acme).Entries
	one := read(t, strings.Split(acme, "---")[0]).Entries
	origins := map[string]string{"schedule/zsk-weekly": "git:rules", "window/acme-sunday": "git:rules",
		"window/acme-ics": "git:other"}
	for _, c := range []struct {
		how  manifest.Manner
		want string
	}{
		{manifest.Manner{}, "refused: conf/acme.yaml:2: schedule zsk-weekly comes from git:rules: change it there, or " +
			"take it over with `muster apply FILE --take-from git:rules`"},
		{manifest.Manner{Origin: "git:rules"}, "unchanged schedule/zsk-weekly\nkept window/acme-sunday"},
		{manifest.Manner{Origin: "git:rules", Prune: true},
			"unchanged schedule/zsk-weekly\nremoved window/acme-sunday from now on of "},
		{manifest.Manner{Origin: "git:new", From: "git:rules", Prune: true},
			"unchanged schedule/zsk-weekly from now on of git:new"},
		{manifest.Manner{From: "git:rules"}, "unchanged schedule/zsk-weekly from now on of "},
	} {
		if got := steps(t, c.how, one, there, origins); got != c.want {
			t.Errorf("%+v: got\n%s\nwant\n%s", c.how, got, c.want)
		}
	}
}

func TestANameOfAnotherCustomerIsRefused(t *testing.T) {
	t.Parallel()
	there := read(t, acme).Entries
	taken := read(t, strings.ReplaceAll(acme, "customer: acme", "customer: bolt")).Entries
	got := steps(t, manifest.Manner{}, taken, there, nil)
	if !strings.HasPrefix(got, "refused") || strings.Count(got, "belongs to customer acme") != 3 {
		t.Errorf("got %s", got)
	}
}

// Entries that are exported and applied again are no change, whatever they say.
func TestWhatIsWrittenIsReadAsTheSame(t *testing.T) {
	t.Parallel()
	full := windows.Entry{Name: "full", Cron: "first Sunday 02:00", Zone: "Europe/Zurich", Gap: "skip", Fold: "second",
		Jitter: "30m0s", Except: []string{"2026-12-24", "2026-12-24 to 2027-01-03"}, Missed: windows.MissedAll,
		Overlap: windows.OverlapQueue, Window: windows.WindowRequired, Enabled: false,
		Owner: "acme",
		Request: windows.Request{Runbook: "exec", On: "role in (fw,vpn)", Priority: "high", Expire: "8h0m0s",
			Expect: "5m0s", Disruptive: true, Supersedes: "true", Only: "diff",
			Args: map[string]string{"cmd": "a: b\n # no comment\n", "n": "0012", "t": "yes", "empty": "",
				"--- ": "---\nkind: x"}}}
	waves := full
	waves.Name, waves.Jitter, waves.Enabled = "waves", "", true
	waves.Rollout = &windows.RolloutRequest{MaxFailed: "5%", UnreachableOK: true, Breaker: "3/10m",
		Waves: []string{"1", "10%", "100%"}, Soak: "5m", Gate: true, Health: "exec",
		HealthArgs: map[string]string{"cmd": "'"}}
	plain := windows.Entry{Name: "plain", Cron: "@daily", Zone: "UTC", Gap: "first", Fold: "first",
		Missed:  windows.MissedOnce,
		Overlap: windows.OverlapForbid, Window: windows.WindowNone, Enabled: true,
		Request: windows.Request{Runbook: "exec", On: "all", Priority: "normal", Rollout: &windows.RolloutRequest{}}}
	var there []manifest.Entry
	var docs []string
	for _, e := range []windows.Entry{full, waves, plain} {
		there, docs = append(there, manifest.OfSchedule(e)), append(docs, manifest.WriteSchedule(e))
	}
	text := strings.Join(docs, "---\n")
	if got := steps(t, manifest.Manner{}, read(t, text).Entries, there, nil); strings.Count(got, "unchanged") != 3 {
		t.Errorf("got\n%s\nfrom\n%s", got, text)
	}
	set := read(t, text)
	for i, e := range []windows.Entry{full, waves, plain} {
		got := set.Entries[i].Value.(windows.Entry)
		if d := got.Differences(e); len(d) > 0 || (got.Rollout == nil) != (e.Rollout == nil) {
			t.Errorf("%s: %q", e.Name, d)
		}
	}
}

func TestATimetableIsWrittenAsTheSame(t *testing.T) {
	t.Parallel()
	set := read(t, acme)
	var files []windows.File
	for _, word := range []string{manifest.Window, manifest.Freeze} {
		files = append(files, set.Files(word, func(string) bool { return true })...)
	}
	files = append(files, windows.File{Name: "old.yaml", Content: "windows: [{name: flow, site: zrh, zone: UTC, " +
		"start: '0 2 * * *', length: 1h}]\n"})
	table, _, err := windows.Timetable{}.Apply(windows.Application{Files: files, Attached: input("").Attached})
	if err != nil {
		t.Fatal(err)
	}
	book, err := table.Book()
	if err != nil {
		t.Fatal(err)
	}
	texts, err := manifest.WriteTimetable(table)
	if err != nil || len(texts) != 4 {
		t.Fatalf("%v: %d texts", err, len(texts))
	}
	var in manifest.Input
	for _, one := range texts {
		in.Files = append(in.Files, windows.File{Name: one.Name + ".yaml", Content: one.Document})
		if one.Attached != nil {
			in.Attached = append(in.Attached, *one.Attached)
		}
	}
	again, err := manifest.Read(in)
	if err != nil {
		t.Fatalf("%v\n%s", err, in.Files)
	}
	got := steps(t, manifest.Manner{}, again.Entries, manifest.OfTimetable(table, book), nil)
	if strings.Count(got, "unchanged") != 4 || len(in.Attached) != 1 {
		t.Errorf("got\n%s\nfrom %s", got, in.Files)
	}
}

const kindsOfTexts = `kind: trigger   # who wrote it
name: look
source: [alert*]
runbook: diagnose
on: customer=acme
customers: acme
at_most: 3
---
# our own
kind: notify
name: failures
what: [outcome]
customers: [acme]
to: noc
---
kind: runbook
name: diagnose
steps:
  - {name: look, run: uptime}
`

func TestATextIsReadAgainAsTheSame(t *testing.T) {
	t.Parallel()
	set := read(t, kindsOfTexts)
	var texts []string
	for _, e := range set.Entries {
		texts = append(texts, e.Document)
	}
	again := read(t, strings.Join(texts, "---\n"))
	got := steps(t, manifest.Manner{}, again.Entries, set.Entries, nil)
	if strings.Count(got, "unchanged") != 3 || !strings.Contains(strings.Join(texts, ""), "# our own\nkind: notify") {
		t.Errorf("got\n%s\nfrom %q", got, texts)
	}
	for _, e := range set.Entries {
		line := map[string]string{"trigger": ":1", "notify": ":10", "runbook": ":16"}[e.Kind]
		if !strings.HasSuffix(e.Place, line) {
			t.Errorf("%s is at %s, want %s", e.ID(), e.Place, line)
		}
		if want := map[string]string{"trigger": "acme", "notify": "acme"}[e.Kind]; e.Customer != want {
			t.Errorf("%s is of customer %q, want %q", e.ID(), e.Customer, want)
		}
	}
	changed := read(t, strings.NewReplacer("at_most: 3", "at_most: 4", "to: noc", "to: [noc, desk]", "uptime",
		"id").Replace(kindsOfTexts))
	list, err := manifest.Manner{}.Plan(changed.Entries, set.Entries, nil)
	if err != nil {
		t.Fatal(err)
	}
	var all []string
	for _, s := range list {
		all = append(all, s.Differences...)
	}
	const want = `steps: [{"name":"look","run":"uptime"}] → [{"name":"look","run":"id"}], ` +
		"at_most: 3 → 4, to: noc → noc, desk"
	if got := strings.Join(all, ", "); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

func TestNamesOfOriginsAreChecked(t *testing.T) {
	t.Parallel()
	for _, good := range []string{"git:rules", "ops/acme", "git:git@host:/srv/x.git"} {
		if err := manifest.CheckOrigin(good); err != nil {
			t.Error(err)
		}
	}
	for _, bad := range []string{"", "-x", "a b", "a\nb", "ü", strings.Repeat("a", 201)} {
		if manifest.CheckOrigin(bad) == nil {
			t.Errorf("%q is taken", bad)
		}
	}
}

// Nonsense is refused with its place, and never splits into other entries than YAML would see.
func FuzzRead(f *testing.F) {
	f.Add(acme)
	f.Add("kind: window\n---\n---")
	f.Add(kindsOfTexts)
	f.Add("kind: schedule\nname: |\n  kind: window\n ---\n")
	f.Fuzz(func(t *testing.T, text string) {
		set, err := manifest.Read(input(text))
		if err != nil {
			return
		}
		for _, e := range set.Entries {
			if e.Name == "" || e.Place == "" {
				t.Errorf("an entry without a name or a place: %+v", e)
			}
		}
		if list, err := (manifest.Manner{}).Plan(set.Entries, set.Entries, nil); err != nil {
			t.Error(err)
		} else if slices.ContainsFunc(list, manifest.Step.Does) {
			t.Error("an entry differs from itself")
		}
	})
}

func TestTheExampleInTheDocIsRead(t *testing.T) {
	t.Parallel()
	doc, err := os.ReadFile("../../docs/APPLY.md")
	if err != nil {
		t.Fatal(err)
	}
	_, text, _ := strings.Cut(string(doc), "```yaml\n")
	text, _, _ = strings.Cut(text, "```")
	if set := read(t, text); len(set.Entries) != 3 {
		t.Errorf("it has %d entries", len(set.Entries))
	}
	for _, word := range manifest.Kinds() {
		if !strings.Contains(string(doc), "`"+word+"`") {
			t.Errorf("the doc does not name the kind %s", word)
		}
	}
}
