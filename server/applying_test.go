package server_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"muster/api"
	"muster/jobs"
	"muster/jobs/queue/applies"
	"muster/jobs/queue/hub"
	"muster/testkit/queuetest"
	"muster/testkit/redistest"
	"muster/windows"
)

// entriesOf is a file with a schedule, a window that needs an approval, and a freeze, of a customer.
func entriesOf(customer string) string {
	return strings.ReplaceAll(`kind: schedule
name: NAME-nightly
cron: "@daily"
zone: UTC
runbook: exec
args: {cmd: uptime}
on: all
owner: NAME
---
kind: window
name: NAME-sunday
customer: NAME
zone: UTC
start: every Sunday 02:00
length: 2h
approval: required
---
kind: freeze
name: NAME-peak
customer: NAME
zone: UTC
from: 2126-12-20
until: 2127-01-04
reason: peak
`, "NAME", customer)
}

// applyTo sends an apply.
func (w *world) applyTo(b api.ApplyRequest, header http.Header) (did api.Applied, status int, words string) {
	w.t.Helper()
	r, answer := w.raw(http.MethodPost, "/v1/apply", b, header)
	if err := json.Unmarshal(answer, &did); r.StatusCode == http.StatusOK && err != nil {
		w.t.Fatalf("%v: %s", err, answer)
	}
	return did, r.StatusCode, string(answer)
}

// ofText returns the apply of one file.
func ofText(text string) api.ApplyRequest {
	return api.ApplyRequest{Files: []windows.File{{Name: "conf/a.yaml", Content: text}}}
}

// didWhat returns what an apply did.
func didWhat(a api.Applied) string {
	var out []string
	for _, e := range a.Entries {
		line := e.Change + " " + e.Kind + "/" + e.Name
		if e.Moved {
			line += " moved"
		}
		out = append(out, line)
	}
	return strings.Join(out, ", ")
}

// exported returns an apply of what is in force.
func (w *world) exported(header http.Header) api.ApplyRequest {
	w.t.Helper()
	var list api.EntryTexts
	r, answer := w.raw(http.MethodGet, "/v1/entries", nil, header)
	if err := json.Unmarshal(answer, &list); err != nil || r.StatusCode != http.StatusOK {
		w.t.Fatalf("%s %v: %s", r.Status, err, answer)
	}
	var b api.ApplyRequest
	for i, e := range list.Entries {
		b.Files = append(b.Files, windows.File{Name: fmt.Sprintf("%d.yaml", i), Content: e.Document})
		if e.Attached != nil {
			b.Attached = append(b.Attached, *e.Attached)
		}
	}
	return b
}

func TestAnApplyPutsAllKindsInForceAndIsShown(t *testing.T) {
	t.Parallel()
	for _, kind := range []string{"mini", "real"} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			s := setup{inventory: fixed(acme(1))}
			if kind == "real" {
				cfg := redistest.StartServer(t).Config()
				s.redis = &cfg
			}
			w := start(t, s)
			b := ofText(entriesOf("acme"))
			b.Reason, b.Check = "CHG-7", true
			did, status, words := w.applyTo(b, nil)
			const all = "added schedule/acme-nightly, added window/acme-sunday, added freeze/acme-peak"
			if status != http.StatusOK || didWhat(did) != all || did.Version != 0 {
				t.Fatalf("check: %d %s", status, words)
			}
			if did, _, _ := w.applyTo(b, nil); didWhat(did) != all {
				t.Fatalf("the check changed something: %s", didWhat(did))
			}
			b.Check, b.ID = false, "0wcy7y2fb2"
			for range 2 { // whoever heard no answer asks again
				did, status, words = w.applyTo(b, nil)
				if status != http.StatusOK || didWhat(did) != all || did.Version != 1 {
					t.Fatalf("apply: %d %s", status, words)
				}
			}
			if again, _, _ := w.applyTo(ofText(entriesOf("acme")), nil); !again.Already || again.Version != 1 {
				t.Errorf("the same again: %+v", again)
			}
			if again, _, words := w.applyTo(w.exported(nil), nil); !again.Already || again.Counts["unchanged"] != 3 {
				t.Errorf("what is exported differs: %s", words)
			}
			var list api.AppliedList
			w.call(http.MethodGet, "/v1/applies", nil, &list)
			var one api.Applied
			w.call(http.MethodGet, "/v1/applies/0wcy7y2fb2", nil, &one)
			if len(list.Applies) != 1 || list.Applies[0].Version != 1 || one.Reason != "CHG-7" || didWhat(one) != all ||
				one.Doubt != "" {
				t.Errorf("the list is %+v, the apply %+v", list, one)
			}
			var windows api.WindowList
			w.call(http.MethodGet, "/v1/windows", nil, &windows)
			if len(windows.Windows) != 1 || windows.Windows[0].Next == nil || windows.Windows[0].Next.Approved ||
				len(windows.Freezes) != 1 {
				t.Errorf("an apply approves nothing: %+v", windows)
			}
		})
	}
}

// An approval is for a window as it was shown: an apply that changes the window voids it, and says
// so before.
func TestAnApplySaysWhichApprovalsItVoids(t *testing.T) {
	t.Parallel()
	w := start(t, setup{inventory: fixed(acme(1))})
	w.applyTo(ofText(entriesOf("acme")), nil)
	var approved api.Approved
	res := w.call(http.MethodPost, "/v1/windows/acme-sunday/approve", api.ApproveRequest{
		From: jobs.Time{Time: time.Now()}, Until: jobs.Time{Time: time.Now().AddDate(0, 1, 0)}}, &approved)
	if res.StatusCode != http.StatusOK {
		t.Fatalf("approve: %s %+v", res.Status, approved)
	}
	b := ofText(strings.Replace(entriesOf("acme"), "length: 2h", "length: 3h", 1))
	b.Check = true
	did, _, words := w.applyTo(b, nil)
	if len(did.Void) != 1 || did.Void[0] != approved.ID ||
		strings.Join(did.Entries[1].Differences, "") != "length: 2h0m0s → 3h0m0s" {
		t.Errorf("check: %s", words)
	}
}

func TestWhatComesFromAnOriginIsChangedThereOnly(t *testing.T) {
	t.Parallel()
	w := start(t, setup{inventory: fixed(acme(1))})
	from := func(origin, text string, prune bool) api.ApplyRequest {
		b := ofText(text)
		b.Origin, b.Prune = origin, prune
		return b
	}
	did, status, words := w.applyTo(from("git:rules", entriesOf("acme"), false), nil)
	if status != http.StatusOK || !strings.HasSuffix(didWhat(did), "freeze/acme-peak moved") {
		t.Fatalf("%d %s", status, words)
	}
	other := strings.NewReplacer("@daily", "@hourly", "length: 2h", "length: 3h").Replace(entriesOf("acme"))
	refused := func(b api.ApplyRequest) (int, string) {
		_, status, text := w.applyTo(b, nil)
		return status, text
	}
	for what, send := range map[string]func() (int, string){
		"apply without an origin": func() (int, string) { return refused(ofText(other)) },
		"apply of another origin": func() (int, string) { return refused(from("git:x", other, true)) },
		"schedules apply": func() (int, string) {
			r, text := w.raw(http.MethodPost, "/v1/schedules", api.ApplySchedules{Files: []windows.File{{Name: "s.yaml",
				Content: "schedules:\n- {name: acme-nightly, cron: '@hourly', zone: UTC, runbook: exec, args: {cmd: id}, " +
					"on: all, owner: acme}\n"}}}, nil)
			return r.StatusCode, string(text)
		},
		"schedules rm": func() (int, string) {
			r, text := w.raw(http.MethodPost, "/v1/schedules/acme-nightly/remove", api.OrderRequest{}, nil)
			return r.StatusCode, string(text)
		},
		"windows apply": func() (int, string) {
			r, text := w.raw(http.MethodPut, "/v1/windows", api.WindowsRequest{Files: []windows.File{{Name: "w.yaml",
				Content: "windows: []\n"}}, Pruning: windows.Pruning{Customers: []string{"acme"}}}, nil)
			return r.StatusCode, string(text)
		},
	} {
		status, text := send()
		if status != http.StatusConflict && status != http.StatusUnprocessableEntity ||
			!strings.Contains(text, "comes from git:rules: change it there") {
			t.Errorf("%s: %d %s", what, status, text)
		}
	}
	// Orders that stop work are no configuration.
	w.call(http.MethodPost, "/v1/schedules/acme-nightly/pause", api.OrderRequest{}, nil)
	if did, _, words := w.applyTo(from("git:rules", entriesOf("acme"), true), nil); !did.Already {
		t.Errorf("a pause is a difference: %s", words)
	}
	one, _, _ := strings.Cut(entriesOf("acme"), "---")
	did, _, _ = w.applyTo(from("git:rules", one, false), nil)
	if !strings.Contains(didWhat(did), "kept window/acme-sunday") {
		t.Errorf("without prune: %s", didWhat(did))
	}
	w.applyTo(ofText(entriesOf("bolt")), nil) // of no origin: nothing prunes it
	did, status, words = w.applyTo(from("git:rules", one, true), nil)
	if status != http.StatusOK || did.Counts["removed"] != 2 {
		t.Errorf("prune: %d %s", status, words)
	}
	if b := w.exported(nil); len(b.Files) != 4 {
		t.Errorf("there are %d entries", len(b.Files))
	}
	take := from("", one, false)
	take.TakeFrom = "git:rules"
	if did, _, words := w.applyTo(take, nil); didWhat(did) != "unchanged schedule/acme-nightly moved" {
		t.Errorf("taken over: %s", words)
	}
	w.call(http.MethodPost, "/v1/schedules/acme-nightly/remove", api.OrderRequest{}, nil)
}

func TestAnApplyWithMistakesChangesNothing(t *testing.T) {
	t.Parallel()
	w := start(t, setup{inventory: fixed(acme(1))})
	b := ofText(strings.Replace(entriesOf("acme"), "zone: UTC\nfrom", "zone: Mars\nfrom", 1) +
		"---\nkind: access\nname: x\n")
	b.Prune, b.TakeFrom, b.ID = true, "a b", "x"
	_, status, words := w.applyTo(b, nil)
	for _, want := range []string{"conf/a.yaml:21: zone", "conf/a.yaml:26: muster apply changes no access: whoever may",
		"origin \\\"a b\\\"",
		"only entries of an origin are pruned", "body.id"} {
		if status != http.StatusUnprocessableEntity || !strings.Contains(words, want) {
			t.Errorf("%d, without %q: %s", status, want, words)
		}
	}
	if _, status, words := w.applyTo(ofText("# nothing\n"), nil); status != http.StatusUnprocessableEntity ||
		!strings.Contains(words, "no entry is in there") {
		t.Errorf("nothing: %d %s", status, words)
	}
	var list api.ScheduleList
	if w.call(http.MethodGet, "/v1/schedules", nil, &list); len(list.Schedules) != 0 {
		t.Errorf("there are %+v", list)
	}
}

// between lets somebody else come between the look of an apply and its writing.
type between struct {
	*queuetest.Queue
	tries   atomic.Int64
	meddles func(try int64)
}

func (b *between) Apply(ctx context.Context, was applies.State, d applies.Deed) (int64, error) {
	b.meddles(b.tries.Add(1))
	return b.Queue.Apply(ctx, was, d)
}

// A change that comes between is seen: the apply is worked out anew, or refused.
func TestAnApplyThatIsOvertakenIsWorkedOutAnew(t *testing.T) {
	t.Parallel()
	entry := windows.Entry{Name: "other", Cron: "@daily", Zone: "UTC", Enabled: true,
		Request: windows.Request{Runbook: "exec", On: "all", Args: map[string]string{"cmd": "id"}}}
	b := &between{}
	w := start(t, setup{inventory: fixed(acme(1)),
		wrap: func(q *queuetest.Queue) everything { b.Queue = q; return b }})
	b.meddles = func(try int64) {
		ctx := context.Background()
		var err error
		switch try {
		case 1:
			err = b.ChangeSchedule(ctx, hub.Schedule{}, jobs.Schedule{Entry: entry, Version: 1})
		case 2:
			_, err = b.SetTimetable(ctx, windows.Timetable{}, jobs.Alert{Event: "windows-applied", Object: "x"})
		case 3:
			var s applies.State
			if s, err = b.State(ctx); err == nil {
				_, err = b.Queue.Apply(ctx, s, applies.Deed{ID: "0wcy7y2fb3", Result: []byte("{}"),
					Set: map[string]string{"schedule/other": "git:x"}, Event: jobs.Alert{Event: "applied", Object: "y"}})
			}
		}
		if err != nil {
			t.Error(err)
		}
	}
	did, status, words := w.applyTo(ofText(entriesOf("acme")), nil)
	if status != http.StatusOK || did.Version != 2 || b.tries.Load() != 4 {
		t.Fatalf("%d after %d tries: %s", status, b.tries.Load(), words)
	}
	b.meddles = func(int64) {
		if s, err := b.State(context.Background()); err == nil {
			_, _ = b.Queue.Apply(context.Background(), s, applies.Deed{ID: "0wcy7y2fb3", Result: []byte("{}")})
		}
	}
	if _, status, words := w.applyTo(ofText(entriesOf("bolt")), nil); status != http.StatusConflict {
		t.Errorf("always overtaken: %d %s", status, words)
	}
	if b := w.exported(nil); len(b.Files) != 4 {
		t.Errorf("half of it is in force: %d entries", len(b.Files))
	}
}

// A right that ends at the hosts of a customer is enough for what can concern no other hosts, and gives
// nobody more than it gave before.
func TestAnApplyNeedsARightForEachEntry(t *testing.T) {
	t.Parallel()
	w := guarded(t)
	tokens := map[string]http.Header{}
	for _, who := range []string{"viewer", "operator", "approver-acme", "admin-acme", "admin", "viewer-acme",
		"label-acme", "seer"} {
		tokens[who] = bearing(w.token(who))
	}
	w.applyTo(ofText(entriesOf("bolt")), tokens["admin"])
	window := func(customer string) string { return strings.SplitN(entriesOf(customer), "---\n", 3)[1] }
	house := strings.Replace(window("acme"), "customer: acme", "site: zrh", 1)
	within := strings.SplitN(strings.Replace(entriesOf("acme"), "on: all", "on: customer=acme", 1), "---\n", 2)[0]
	label := strings.NewReplacer("runbook: exec", "runbook: label", "cmd: uptime", "word: a").Replace(within)
	for _, c := range []struct {
		who, text string
		want      int
	}{
		{"viewer", window("acme"), 403}, {"operator", house, 403}, {"approver-acme", window("acme"), 403},
		{"admin-acme", window("bolt"), 403}, {"admin-acme", house, 403},
		{"admin-acme", strings.Replace(window("bolt"), "customer: bolt", "customer: acme", 1), 403},
		{"admin-acme", entriesOf("acme"), 403}, // its schedule is on all, and its freeze stops work
		{"admin-acme", strings.Replace(window("acme"), "required", "none", 1), 403},
		{"admin-acme", window("acme"), 200}, {"operator", window("acme"), 200},
		{"admin-acme", within, 200}, {"label-acme", within, 403},
		{"admin-acme", strings.Replace(within, "owner: acme", "owner: bolt", 1), 403},
		{"admin-acme", strings.Replace(within, "customer=acme", "'fw-a1,{customer=acme}'", 1), 403},
		{"label-acme", label, 403}, // the one in force runs another runbook
		{"label-acme", strings.Replace(label, "acme-nightly", "acme-label", 1), 200},
		{"label-acme", strings.Replace(label, "acme-nightly", "acme-x", 1) + "waves: [50%, 100%]\nhealth: exec\n" +
			"health_args: {cmd: id}\n", 403},
		{"admin", entriesOf("acme"), 200},
	} {
		if _, status, words := w.applyTo(ofText(c.text), tokens[c.who]); status != c.want {
			t.Errorf("%s: %d, want %d: %s\n%s", c.who, status, c.want, words, c.text)
		}
	}
	if b := w.exported(tokens["viewer-acme"]); len(b.Files) != 3 {
		t.Errorf("a viewer of acme sees %+v", b.Files)
	}
}
