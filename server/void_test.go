package server_test

import (
	"net/http"
	"slices"
	"testing"
	"time"

	"muster/api"
	"muster/jobs"
	"muster/windows"
)

// A window was made shorter and then what it had been: its old approval was in force again,
// though the answer had said that it is void from then on.
func TestAnApprovalThatIsVoidNeverComesBack(t *testing.T) {
	t.Parallel()
	w := start(t, setup{inventory: fixed(acme(1))})
	apply := func(length string) (out api.WindowsChanged) {
		t.Helper()
		text := "windows:\n- {name: nights, customer: acme, zone: UTC, start: '0 2 * * *', length: " + length + "}\n"
		body := api.WindowsRequest{Files: []windows.File{{Name: "w.yaml", Content: text}}}
		if r := w.call(http.MethodPut, "/v1/windows", body, &out); r.StatusCode != http.StatusOK {
			t.Fatal(r.Status)
		}
		return out
	}
	approve := func() (a api.Approved) {
		t.Helper()
		now := time.Now()
		w.call(http.MethodPost, "/v1/windows/nights/approve", api.ApproveRequest{
			From: jobs.Time{Time: now}, Until: jobs.Time{Time: now.Add(90 * 24 * time.Hour)}}, &a)
		if a.ID == "" || a.Occurrences == 0 {
			t.Fatalf("it is approved as %+v", a)
		}
		return a
	}
	approved := func() (api.WindowList, bool) {
		t.Helper()
		var list api.WindowList
		var next api.OccurrenceList
		w.call(http.MethodGet, "/v1/windows", nil, &list)
		w.call(http.MethodGet, "/v1/windows/nights/next?count=2", nil, &next)
		if len(next.Occurrences) != 2 {
			t.Fatalf("%d occurrences", len(next.Occurrences))
		}
		return list, next.Occurrences[1].Approved
	}
	apply("59m")
	a := approve()
	if _, ok := approved(); !ok {
		t.Fatal("what was approved is not")
	}
	if out := apply("58m"); !slices.Equal(out.Void, []string{a.ID}) {
		t.Errorf("the change voids %v", out.Void)
	}
	if out := apply("59m"); len(out.Void) != 0 {
		t.Errorf("what is void is told of again: %v", out.Void)
	}
	list, ok := approved()
	if ok || !slices.Equal(list.Void, []string{a.ID}) || list.Approvals[0].VoidWhy != "window nights was changed" ||
		list.Approvals[0].Voided.IsZero() {
		t.Errorf("approved %t, void %v, approvals %+v", ok, list.Void, list.Approvals)
	}
	b := approve()
	if list, ok = approved(); !ok || !slices.Equal(list.Void, []string{a.ID}) {
		t.Errorf("after it was approved anew as %s: approved %t, void %v", b.ID, ok, list.Void)
	}
}
