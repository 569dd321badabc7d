package main

import (
	"bufio"
	"context"
	"encoding/json"
	"html"
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"muster/api"
	"muster/testkit/oidctest"
	"muster/testkit/porttest"
)

// person is somebody with a machine of their own: a folder of configuration, a server, a browser.
type person struct {
	t    *testing.T
	bin  string
	env  []string
	conf string
	http *http.Client
}

// knownTo is a house whose server asks a provider, and a person who has no token.
func knownTo(t *testing.T, at *oidctest.Provider) (*house, *person) {
	t.Helper()
	h := newCellar(t, "hosts: {}\n")
	base := "http://" + porttest.Addr(t)
	h.write("secret", oidctest.Secret+"\n")
	h.write("access.yaml", "who:\n  - {principal: os:root, roles: [admin]}\n  - {group: group:ops, roles: [operator]}\n")
	h.configure(map[string]any{"server": map[string]any{"access": h.file("access.yaml"), "url": base,
		"listen": []string{listenOn(h.url), strings.TrimPrefix(base, "http://")},
		"oidc": map[string]any{"issuer": at.URL, "client_id": oidctest.ClientID, "client_secret_file": h.file("secret"),
			"groups": []string{"Net Ops=group:ops"}, "device": true}}})
	h.server = h.start("server", "--config", h.file("muster.yaml"))
	h.server.await("server listens")
	p := &person{t: t, bin: h.bin, conf: t.TempDir(), http: &http.Client{}}
	p.env = append(os.Environ(), "MUSTER_URL="+base, "XDG_CONFIG_HOME="+p.conf, "MUSTER_TOKEN=")
	p.http.Jar, _ = cookiejar.New(nil)
	t.Cleanup(p.http.CloseIdleConnections)
	return h, p
}

// muster runs a command of the person.
func (p *person) muster(args ...string) (out string, code int) {
	p.t.Helper()
	cmd := exec.CommandContext(p.t.Context(), p.bin, args...)
	cmd.Env = p.env
	text, err := cmd.CombinedOutput()
	if cmd.ProcessState == nil {
		p.t.Fatal(err)
	}
	return string(text), cmd.ProcessState.ExitCode()
}

// begin starts a login, and calls see with each line that it says until see returns true. The
// function that it returns waits for the end.
func (p *person) begin(see func(line string) bool, args ...string) (end func() (string, int)) {
	p.t.Helper()
	ctx, cancel := context.WithTimeout(p.t.Context(), time.Minute)
	p.t.Cleanup(cancel)
	cmd := exec.CommandContext(ctx, p.bin, args...)
	cmd.Env = p.env
	words, err := cmd.StderrPipe()
	if err != nil {
		p.t.Fatal(err)
	}
	var out strings.Builder
	cmd.Stdout = &out
	if err := cmd.Start(); err != nil {
		p.t.Fatal(err)
	}
	lines, seen := bufio.NewScanner(words), false
	for !seen && lines.Scan() {
		seen = see(lines.Text())
	}
	if !seen {
		p.t.Fatalf("it ends without what was to be seen: %v", cmd.Wait())
	}
	return func() (string, int) {
		rest, _ := io.ReadAll(words)
		_ = cmd.Wait()
		return out.String() + string(rest), cmd.ProcessState.ExitCode()
	}
}

// visit opens a page as a browser does, or sends a form, and returns its text.
func (p *person) visit(method, at string, form url.Values) (int, string) {
	p.t.Helper()
	req, err := http.NewRequestWithContext(p.t.Context(), method, at, strings.NewReader(form.Encode()))
	if err != nil {
		p.t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	req.Header.Set("Sec-Fetch-Mode", "navigate")
	req.Header.Set("Sec-Fetch-Dest", "document")
	req.Header.Set("Sec-Fetch-Site", "same-origin")
	res, err := p.http.Do(req)
	if err != nil {
		p.t.Fatal(err)
	}
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	if err != nil {
		p.t.Fatal(err)
	}
	return res.StatusCode, string(text)
}

var (
	hidden  = regexp.MustCompile(`name="([^"]*)" value="([^"]*)"`)
	onwards = regexp.MustCompile(`http-equiv="refresh" content="0;url=([^"]*)"`)
)

// confirm does in the browser what a link of `muster login` asks for.
func (p *person) confirm(link, word string) string {
	p.t.Helper()
	_, page := p.visit("GET", link, nil)
	if !strings.Contains(page, word) {
		p.t.Fatalf("the page does not show the word %s: %s", word, page)
	}
	form := url.Values{}
	for _, m := range hidden.FindAllStringSubmatch(page, -1) {
		form.Set(m[1], m[2])
	}
	u, _ := url.Parse(link)
	_, page = p.visit("POST", u.Scheme+"://"+u.Host+"/login/oidc", form)
	m := onwards.FindStringSubmatch(page)
	if m == nil {
		p.t.Fatalf("the page leads nowhere: %s", page)
	}
	_, page = p.visit("GET", html.UnescapeString(m[1]), nil)
	return page
}

// A person logs in by the browser on their machine, orders by that, and logs out. Nothing of the
// login is readable by others.
func TestAPersonLogsTheCommandLineIn(t *testing.T) {
	t.Parallel()
	at := oidctest.New(t, "anna")
	at.Is(map[string]any{"groups": []string{"Net Ops"}})
	h, p := knownTo(t, at)
	if out, code := p.muster("whoami"); code == 0 || !strings.Contains(out, "token is needed") {
		t.Fatalf("before: %d %s", code, out)
	}
	var link, word string
	end := p.begin(func(line string) bool {
		if _, after, found := strings.Cut(line, "the word "); found {
			word = strings.Trim(after, ": ")
		}
		link = strings.TrimPrefix(line, "muster: ")
		return strings.HasPrefix(link, "http")
	}, "login")
	if page := p.confirm(link, word); !strings.Contains(page, "Go back to the command line") {
		t.Errorf("the browser shows %s", page)
	}
	out, code := end()
	principal := "oidc:" + at.URL + "#anna"
	if code != 0 || !strings.Contains(out, "you are "+principal) || strings.Contains(out, "mss_") {
		t.Fatalf("the login: %d %s", code, out)
	}
	var who api.Whoami
	out, code = p.muster("whoami", "-o", "json")
	if err := json.Unmarshal([]byte(out), &who); code != 0 || err != nil || who.Principal != principal ||
		who.Proof != "session" || strings.Join(who.Groups, " ") != "group:ops" || who.Admin {
		t.Errorf("whoami: %d %s", code, out)
	}
	list, err := filepath.Glob(filepath.Join(p.conf, "muster/logins/*"))
	if err != nil || len(list) != 1 {
		t.Fatal(list, err)
	}
	info, err := os.Stat(list[0])
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the file of the login: %s %v", info.Mode(), err)
	}
	text, err := os.ReadFile(list[0])
	token := regexp.MustCompile(`mss_[a-z0-9]+_[\w-]+`).Find(text)
	if err != nil || token == nil {
		t.Fatal(err)
	}
	if out, code := p.muster("session", "ls"); code != 0 || !strings.Contains(out, "program") ||
		!strings.Contains(out, "oidc") {
		t.Errorf("its sessions: %d %s", code, out)
	}
	if out, code := p.muster("logout"); code != 0 || !strings.Contains(out, "logged out") {
		t.Errorf("logout: %d %s", code, out)
	}
	if out, code := p.muster("logout"); code != 1 || !strings.Contains(out, "no login") {
		t.Errorf("logout again: %d %s", code, out)
	}
	p.env = append(p.env, "MUSTER_TOKEN="+string(token))
	if out, code := p.muster("whoami"); code == 0 || !strings.Contains(out, "not known") {
		t.Errorf("with the token of the ended session: %d %s", code, out)
	}
	if strings.Contains(h.server.log.String(), string(token)) {
		t.Error("the log of the server has the token")
	}
	var entries api.AuditPage
	if code := h.query(&entries, "audit", "ls", "--verb", "login"); code != 0 || len(entries.Entries) == 0 {
		t.Errorf("the audit log: %d %+v", code, entries)
	}
}

// On a machine without a browser a person types a code elsewhere.
func TestAPersonLogsInByACode(t *testing.T) {
	t.Parallel()
	at := oidctest.New(t, "anna")
	at.Is(map[string]any{"groups": []string{"Net Ops"}})
	_, p := knownTo(t, at)
	var code string
	end := p.begin(func(line string) bool {
		m := regexp.MustCompile(`type the code (\S+) there`).FindStringSubmatch(line)
		if m != nil {
			code = m[1]
		}
		return m != nil
	}, "login", "--device")
	if !at.Confirm(code, true) {
		t.Fatalf("the provider does not know the code %q", code)
	}
	begun := time.Now()
	if out, exit := end(); exit != 0 || !strings.Contains(out, "#anna at http://127.0.0.1") {
		t.Errorf("after %s: %d %s", time.Since(begun), exit, out)
	}
	if out, exit := p.muster("whoami"); exit != 0 || !strings.Contains(out, "#anna, by session") {
		t.Errorf("whoami: %d %s", exit, out)
	}
	at.Is(map[string]any{"groups": []string{"Sales"}})
	end = p.begin(func(line string) bool {
		m := regexp.MustCompile(`type the code (\S+) there`).FindStringSubmatch(line)
		if m != nil {
			code = m[1]
		}
		return m != nil
	}, "login", "--device")
	at.Confirm(code, true)
	if out, exit := end(); exit == 0 || !strings.Contains(out, "Sales (came, and is not mapped") {
		t.Errorf("without a grant: %d %s", exit, out)
	}
}

func TestALoginNeedsAServerElsewhere(t *testing.T) {
	t.Parallel()
	for url, want := range map[string]string{"unix:///nowhere": "over a unix socket",
		"http://192.0.2.1:1": "unencrypted"} {
		code, _, words := muster(t, url, "login")
		if code != 2 || !strings.Contains(words, want) {
			t.Errorf("%s: %d %s", url, code, words)
		}
	}
	if code, _, words := muster(t, "unix:///nowhere", "login", "--browser", "--device"); code != 2 {
		t.Errorf("both: %d %s", code, words)
	}
}
