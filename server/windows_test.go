package server_test

import (
	"bytes"
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"testing"

	"muster/api"
	"muster/jobs"
	"muster/windows"
)

// store keeps a text without asking the server, so that it may be one that nobody can read.
func (w *world) store(text string) {
	w.t.Helper()
	table, err := w.queue.Timetable(w.t.Context())
	if err != nil {
		w.t.Fatal(err)
	}
	table.Files = []windows.File{{Name: "w.yaml", Content: text}}
	_, err = w.queue.SetTimetable(w.t.Context(), table, jobs.Alert{Event: "windows-applied",
		Object: "windows", Detail: map[string]any{}})
	if err != nil {
		w.t.Fatal(err)
	}
}

func TestAFreezeThatIsOverIsSaid(t *testing.T) {
	t.Parallel()
	w := start(t, setup{inventory: fixed(acme(1))})
	text := "freezes:\n- {name: gone, customer: acme, zone: UTC, from: 2020-01-01, until: 2020-01-02, reason: x}\n" +
		"- {name: ahead, customer: acme, zone: UTC, from: 2090-01-01, reason: x}\n" +
		"- {name: on, customer: acme, zone: UTC, from: 2020-01-01, reason: x}\n" +
		"- {name: events, customer: acme, zone: UTC, ics: a.ics, reason: x}\n"
	ics := "BEGIN:VCALENDAR\nBEGIN:VEVENT\nDTSTART:20200101T000000Z\nDURATION:PT1H\nEND:VEVENT\nEND:VCALENDAR\n"
	var out api.WindowsChanged
	body := api.WindowsRequest{Files: []windows.File{{Name: "w.yaml", Content: text}},
		Attached: []windows.File{{Name: "a.ics", Content: ics}}}
	if r := w.call(http.MethodPut, "/v1/windows", body, &out); r.StatusCode != http.StatusOK {
		t.Fatal(r.Status)
	}
	if want := []string{"freeze gone is over: it freezes nothing any more",
		"freeze events is over: it freezes nothing any more"}; !slices.Equal(out.Notes, want) {
		t.Errorf("notes %q, want %q", out.Notes, want)
	}
	var list api.WindowList
	w.call(http.MethodGet, "/v1/windows", nil, &list)
	for _, f := range list.Freezes {
		if f.Over != (f.Name == "gone" || f.Name == "events") || f.Active != (f.Name == "on") {
			t.Errorf("it is listed as %+v", f)
		}
	}
	if len(list.Freezes) != 4 {
		t.Errorf("%d freezes are listed", len(list.Freezes))
	}
}

// The answer to an apply names the entries of a calendar that open no window.
func TestWhatIsInDoubtIsSaidAtApply(t *testing.T) {
	t.Parallel()
	w := start(t, setup{inventory: fixed(acme(1))})
	ics := "BEGIN:VCALENDAR\nBEGIN:VEVENT\nUID:1\nDTSTART:20900101T000000Z\nDURATION:PT1H\nEND:VEVENT\n" +
		"BEGIN:VEVENT\nUID:2\nDTSTART:20900102T000000Z\nDURATION:PT1H\nSTATUS:TENTATIVE\nEND:VEVENT\nEND:VCALENDAR\n"
	body := api.WindowsRequest{Attached: []windows.File{{Name: "a.ics", Content: ics}},
		Files: []windows.File{{Name: "w.yaml", Content: "windows:\n- {name: cal, customer: acme, zone: UTC, ics: a.ics}\n"}}}
	var out api.WindowsChanged
	w.call(http.MethodPut, "/v1/windows", body, &out)
	want := "window cal: a.ics: line 7: STATUS:TENTATIVE"
	if len(out.Notes) != 1 || !strings.HasPrefix(out.Notes[0], want) {
		t.Errorf("notes %q, want %q", out.Notes, want)
	}
}

func TestATimetableThatCannotBeReadIsReplacedAsAWhole(t *testing.T) {
	t.Parallel()
	w := start(t, setup{})
	apply := func(text string) (out api.WindowsChanged, status int, words string) {
		t.Helper()
		body := api.WindowsRequest{Files: []windows.File{{Name: "w.yaml", Content: text}},
			Pruning: windows.Pruning{All: true}}
		res, answer := w.raw(http.MethodPut, "/v1/windows", body, nil)
		if err := json.Unmarshal(answer, &out); err != nil && res.StatusCode == http.StatusOK {
			t.Fatal(err)
		}
		return out, res.StatusCode, string(answer)
	}
	good, _ := nights()
	w.store("windows: [{colour: red}]\n")
	if r, text := w.raw(http.MethodGet, "/v1/windows", nil, nil); r.StatusCode != 500 ||
		!bytes.Contains(text, []byte("apply the files anew")) {
		t.Errorf("of what cannot be read: %s %s", r.Status, text)
	}
	body := api.WindowsRequest{Files: []windows.File{{Name: "w.yaml", Content: good}}}
	if r, text := w.raw(http.MethodPut, "/v1/windows", body, nil); r.StatusCode != 500 ||
		!bytes.Contains(text, []byte("--prune-all")) {
		t.Errorf("a part of what cannot be read is replaced: %s %s", r.Status, text)
	}
	out, status, said := apply(good)
	if status != 200 || !slices.Equal(out.Added, []string{"window nights"}) ||
		len(out.Notes) != 1 || !strings.Contains(out.Notes[0], "cannot be read") {
		t.Errorf("what cannot be read is not replaced: %d %+v %s", status, out, said)
	}
	if out, status, said = apply(good); status != 200 || !out.Already || len(out.Notes) != 0 {
		t.Errorf("after it was replaced: %d %+v %s", status, out, said)
	}
}
