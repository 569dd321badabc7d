package server_test

import (
	"bufio"
	"bytes"
	"encoding/json"
	"html"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"testing"

	"muster/api"
	"muster/jobs"
)

// page gets a page and returns it as text.
func (w *world) page(path string, header http.Header) (*http.Response, string) {
	w.t.Helper()
	if header == nil {
		header = http.Header{}
	}
	header.Set("Accept", "text/html")
	res, text := w.raw("GET", path, nil, header)
	return res, html.UnescapeString(string(text))
}

// post sends a form as a browser does, and does not follow the answer.
func (w *world) post(path string, form url.Values, header http.Header) (*http.Response, string) {
	w.t.Helper()
	w.client.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	head := http.Header{"Content-Type": {"application/x-www-form-urlencoded"}}
	for k, v := range header {
		head[k] = v
	}
	res, text := w.raw("POST", path, form.Encode(), head)
	return res, html.UnescapeString(string(text))
}

var hiddenField = regexp.MustCompile(`<input type="hidden" name="([a-z_.]+)" value="([^"]*)"`)

// hidden returns the hidden fields of a form.
func hidden(page string) url.Values {
	out := url.Values{}
	for _, m := range hiddenField.FindAllStringSubmatch(page, -1) {
		out.Set(m[1], m[2])
	}
	return out
}

func TestAPageShowsATaskAndCancelsIt(t *testing.T) {
	t.Parallel()
	w := start(t, setup{})
	task := string(w.submit(run("all")).Task)
	res, text := w.page("/tasks/"+task, nil)
	if res.StatusCode != 200 || !strings.Contains(text, "exec on all") ||
		!strings.Contains(text, "/tasks/"+task+"/order/cancel") {
		t.Fatalf("%s\n%s", res.Status, text)
	}
	csp := res.Header.Get("Content-Security-Policy")
	for _, want := range []string{"default-src 'none'", "script-src 'self'", "require-trusted-types-for 'script'"} {
		if !strings.Contains(csp, want) || strings.Contains(csp, "unsafe") {
			t.Errorf("policy %q: want %q, and nothing unsafe", csp, want)
		}
	}
	_, ask := w.page("/tasks/"+task+"/order/cancel", nil)
	form := hidden(ask)
	if form.Get("n") != "4" {
		t.Fatalf("the order hits %q jobs, want 4:\n%s", form.Get("n"), ask)
	}

	wrong := url.Values{"n": {"4"}, "set": {"another"}}
	if res, text := w.post("/tasks/"+task+"/order/cancel", wrong, nil); res.StatusCode != 409 ||
		!strings.Contains(text, "nothing was done") {
		t.Fatalf("an order for another set: %s\n%s", res.Status, text)
	}
	form.Set("reason", "enough")
	res, _ = w.post("/tasks/"+task+"/order/cancel", form, nil)
	if res.StatusCode != 303 || res.Header.Get("Location") != "/tasks/"+task+"?did=cancel" {
		t.Fatalf("%s to %q", res.Status, res.Header.Get("Location"))
	}
	var now jobs.TaskInfo
	w.call("GET", "/v1/tasks/"+task, nil, &now)
	if now.State != jobs.TaskEnded || !strings.HasSuffix(now.Cancelled, ": enough") {
		t.Fatalf("the task is %s, cancelled %q", now.State, now.Cancelled)
	}
	if _, text := w.page("/tasks/"+task, nil); !strings.Contains(text, now.Cancelled) {
		t.Errorf("the page does not say %q:\n%s", now.Cancelled, text)
	}
}

func TestAPageRefusesWhatTheAPIRefuses(t *testing.T) {
	t.Parallel()
	w := start(t, setup{})
	carol := w.token("carol")
	var a api.TokenAnswer
	w.call("POST", "/v1/tokens", api.TokenRequest{Name: "see", Owner: "user:carol",
		Scope: &api.TokenScope{Verbs: []string{"see"}}}, &a)
	task := string(w.submit(run("all")).Task)
	_, text := w.page("/tasks/"+task, bearing(a.Token))
	if strings.Contains(text, `id="order-cancel"`) || !strings.Contains(text, "Cancel: ") {
		t.Errorf("who may only see is offered orders, or not told why there are none:\n%s", text)
	}
	_, ask := w.page("/tasks/"+task+"/order/cancel", bearing(carol))
	res, text := w.post("/tasks/"+task+"/order/cancel", hidden(ask), bearing(a.Token))
	if res.StatusCode != 403 {
		t.Errorf("%s\n%s", res.Status, text)
	}
	if res, _ := w.page("/tasks/"+task, http.Header{"Sec-Fetch-Site": {"cross-site"},
		"Sec-Fetch-Mode": {"cors"}}); res.StatusCode != 403 {
		t.Errorf("a page of another site reads: %s", res.Status)
	}
	foreign := http.Header{"Origin": {"https://evil.example"}, "Sec-Fetch-Site": {"cross-site"}}
	if res, _ := w.post("/tasks/"+task+"/order/cancel", hidden(ask), foreign); res.StatusCode != 403 {
		t.Errorf("a form of another site: %s", res.Status)
	}
	var now jobs.TaskInfo
	if w.call("GET", "/v1/tasks/"+task, nil, &now); now.Cancelled != "" {
		t.Errorf("cancelled by %q", now.Cancelled)
	}
}

func TestTextsOfHostsAreTextsOnPages(t *testing.T) {
	t.Parallel()
	w := start(t, setup{})
	const evil = `</pre><script>alert(1)</script><img src=x onerror="alert(2)">`
	body := run("all")
	body.Args["cmd"] = "echo '" + evil + "'"
	task := string(w.submit(body).Task)
	say := func(string) jobs.Result {
		r := succeed("")
		r.Said.Output = []byte(evil + "\n")
		return r
	}
	w.work("default", say)
	w.work("eu", say)
	for _, path := range []string{"/tasks/" + task, "/jobs/" + task + ":fw001"} {
		_, raw := w.raw("GET", path, nil, http.Header{"Accept": {"text/html"}})
		if bytes.Contains(raw, []byte("<script>alert")) || bytes.Contains(raw, []byte("<img")) {
			t.Errorf("%s has the text of a host as HTML", path)
		}
		if !strings.Contains(html.UnescapeString(string(raw)), evil) {
			t.Errorf("%s does not show the text of the host", path)
		}
	}
	res, raw := w.raw("GET", "/jobs/"+task+":fw001/raw", nil, nil)
	if string(raw) != evil+"\n" || res.Header.Get("Content-Type") != "application/octet-stream" ||
		!strings.HasPrefix(res.Header.Get("Content-Disposition"), "attachment") {
		t.Errorf("the raw log: %v %q", res.Header, raw)
	}
}

func TestAnOpenPageHearsThatATaskHasEnded(t *testing.T) {
	t.Parallel()
	w := start(t, setup{})
	task := string(w.submit(run("zone=default")).Task)
	req, err := http.NewRequestWithContext(t.Context(), "GET", w.url+"/live?at=/tasks/"+task, nil)
	if err != nil {
		t.Fatal(err)
	}
	res, err := w.client.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	lines := bufio.NewScanner(res.Body)
	lines.Buffer(nil, 1<<20)
	worked := false
	for lines.Scan() {
		data, ok := strings.CutPrefix(lines.Text(), "data: ")
		var p struct{ ID, HTML string }
		if !ok || json.Unmarshal([]byte(data), &p) != nil || p.ID != "state" {
			continue
		}
		if !worked {
			w.work("default", succeed)
			worked = true
			continue
		}
		if strings.Contains(p.HTML, "2 of 2 jobs have ended") {
			return
		}
	}
	t.Fatalf("the stream ended before the task: %v", lines.Err())
}
