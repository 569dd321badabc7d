package server_test

import (
	"net/url"
	"strings"
	"testing"
	"time"

	"muster/api"
)

// One person of a customer proposes an opening on a page, and another one approves it on hers.
func TestAnOpeningIsProposedAndApprovedOnPages(t *testing.T) {
	t.Parallel()
	w := guarded(t)
	operator, approver := w.token("operator-acme"), w.token("approver-acme")
	_, text := w.page("/windows/order/propose?customer=acme", bearing(operator))
	form := hidden(text)
	p := proposal("night")
	for name, value := range map[string]string{"name": p.Name, "customer": p.Customer, "tz": "Europe/Berlin",
		"start": "2020-01-01T02:00", "length": "1h"} {
		form.Set(name, value)
	}
	if res, text := w.post("/windows/order/propose", form, bearing(operator)); res.StatusCode != 422 ||
		!strings.Contains(text, "is over") {
		t.Fatalf("an opening that is over: %s\n%s", res.Status, text)
	}
	form.Set("tz", p.Zone)
	form.Set("start", strings.Replace(p.Start, " ", "T", 1))
	res, text := w.post("/windows/order/propose", form, bearing(operator))
	if res.StatusCode != 303 || !strings.HasSuffix(res.Header.Get("Location"), "&did=propose") {
		t.Fatalf("propose: %s to %s\n%s", res.Status, res.Header.Get("Location"), text)
	}
	var c api.Calendar
	w.call("GET", "/v1/calendar", nil, &c)
	day := c.Openings[0].Start.UTC().Format(time.DateOnly)
	_, text = w.page("/windows?customer=acme&from="+day, bearing(approver))
	link := "/windows/night/order/approve?" + url.Values{"customer": {"acme"},
		"start": {c.Openings[0].Start.UTC().Format(time.RFC3339)}}.Encode()
	if !strings.Contains(text, link) || !strings.Contains(text, "nobody has approved it yet") {
		t.Fatalf("the page of the approver has no link %s\n%s", link, text)
	}
	if res, text := w.page(link, bearing(operator)); res.StatusCode != 403 {
		t.Errorf("who may not approve: %s\n%s", res.Status, text)
	}
	_, text = w.page(link, bearing(approver))
	form = hidden(text)
	form.Set("n", "2")
	if res, text := w.post("/windows/night/order/approve", form, bearing(approver)); res.StatusCode != 409 {
		t.Errorf("another number: %s\n%s", res.Status, text)
	}
	form.Set("n", "1")
	if res, text := w.post("/windows/night/order/approve", form, bearing(approver)); res.StatusCode != 303 {
		t.Fatalf("approve: %s\n%s", res.Status, text)
	}
	w.call("GET", "/v1/calendar", nil, &c)
	if !c.Openings[0].Approved {
		t.Fatal("it is not approved")
	}
	id := c.Openings[0].Approval
	res, text = w.page("/windows/calendar.ics?customer=acme&from="+day, bearing(approver))
	if !strings.Contains(text, "SUMMARY:night") || !strings.HasPrefix(res.Header.Get("Content-Type"), "text/calendar") {
		t.Errorf("the file: %v\n%s", res.Header, text)
	}
	_, text = w.page("/windows/approvals/"+id+"/order/withdraw", bearing(approver))
	res, text = w.post("/windows/approvals/"+id+"/order/withdraw", hidden(text), bearing(approver))
	if res.StatusCode != 303 {
		t.Fatalf("withdraw: %s\n%s", res.Status, text)
	}
	w.call("GET", "/v1/calendar", nil, &c)
	if c.Openings[0].Approved {
		t.Error("it is approved after the approval was withdrawn")
	}
}

// A freeze is ordered and lifted on pages, and a file with a mistake names its line.
func TestFreezesAndFilesOnPages(t *testing.T) {
	t.Parallel()
	w := start(t, setup{inventory: fixed(acme(2))})
	_, text := w.page("/windows/order/freeze?level=customer&of=acme", nil)
	form := hidden(text)
	if form.Get("n") != "2" || form.Get("of") != "acme" {
		t.Fatalf("the form has %v\n%s", form, text)
	}
	form.Set("name", "outage")
	form.Set("reason", "INC-7")
	if res, text := w.post("/windows/order/freeze", form, nil); res.StatusCode != 303 {
		t.Fatalf("freeze: %s\n%s", res.Status, text)
	}
	if _, text := w.page("/windows", nil); !strings.Contains(text, "freeze outage: INC-7") {
		t.Errorf("the calendar has no freeze:\n%s", text)
	}
	_, text = w.page("/windows/freezes/outage/order/unfreeze", nil)
	form = hidden(text)
	form.Set("reason", "it is closed")
	if res, text := w.post("/windows/freezes/outage/order/unfreeze", form, nil); res.StatusCode != 303 {
		t.Fatalf("unfreeze: %s\n%s", res.Status, text)
	}
	var l api.WindowList
	if w.call("GET", "/v1/windows", nil, &l); len(l.Freezes) != 0 {
		t.Errorf("freezes: %+v", l.Freezes)
	}
	file := func(text, set, do string) (int, string) {
		const edge = "edge"
		var b strings.Builder
		for name, value := range map[string]string{"text": text, "file_name": "acme.ics", "kind": "window", "name": "nightly",
			"customer": "acme", "zone": "UTC", "go": do, "set": set} {
			b.WriteString("--" + edge + "\r\nContent-Disposition: form-data; name=\"" + name + "\"\r\n\r\n" + value + "\r\n")
		}
		res, said := w.raw("POST", "/windows/import", b.String()+"--"+edge+"--\r\n",
			map[string][]string{"Content-Type": {"multipart/form-data; boundary=" + edge}})
		return res.StatusCode, string(said)
	}
	const good = "BEGIN:VCALENDAR\nBEGIN:VEVENT\nUID:a\nDTSTART:20900101T000000Z\nDURATION:PT1H\n" +
		"END:VEVENT\nEND:VCALENDAR\n"
	if got, said := file(strings.Replace(good, "PT1H", "PT1X", 1), "", "check"); got != 422 ||
		!strings.Contains(said, "acme.ics: line 5") {
		t.Errorf("a mistake in line 5: %d\n%s", got, said)
	}
	_, said := file(good, "", "check")
	if !strings.Contains(said, "new: window nightly") {
		t.Fatalf("the check:\n%s", said)
	}
	if got, said := file(good, "another", "apply"); got != 409 {
		t.Errorf("another set: %d\n%s", got, said)
	}
	if w.call("GET", "/v1/windows", nil, &l); len(l.Windows) != 0 {
		t.Errorf("a check and a refusal have changed something: %+v", l.Windows)
	}
	w.client.CheckRedirect = nil
	if got, said := file(good, hidden(said).Get("set"), "apply"); got != 200 {
		t.Fatalf("apply: %d\n%s", got, said)
	}
	if w.call("GET", "/v1/windows", nil, &l); len(l.Windows) != 1 || l.Windows[0].Approval != "required" {
		t.Errorf("windows: %+v", l.Windows)
	}
}
