package server_test

import (
	"bytes"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"muster/api"
	"muster/fleet"
	"muster/ingress"
	"muster/internal/repofile"
	"muster/jobs"
	"muster/jobs/queue"
	"muster/jobs/queue/inbox"
	"muster/notify"
	"muster/server"
	"muster/server/arrivals"
	"muster/server/gitops"
	"muster/testkit/gittest"
	"muster/testkit/redistest"
	"muster/testkit/sqltest"
)

// tutorial returns the files of docs/TUTORIAL_GITOPS.md by their names.
func tutorial(t *testing.T) map[string]string {
	t.Helper()
	page, err := os.ReadFile("../docs/TUTORIAL_GITOPS.md")
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]string{}
	for _, m := range regexp.MustCompile("(?s)```yaml\n# (\\S+)\n(.*?)```").FindAllStringSubmatch(string(page), -1) {
		out[m[1]] = m[2]
	}
	return out
}

// A follow is a server that follows a repository as the tutorial says.
type follow struct {
	*world
	repo *gittest.Repo
	told chan string // titles of messages
	docs map[string]string
	key  string // signs commits that count
}

func following(t *testing.T) *follow {
	t.Helper()
	f := &follow{repo: gittest.New(t), told: make(chan string, 100), docs: tutorial(t), key: gittest.Key(t, "alice")}
	desk := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		var m struct {
			Title string `json:"title"`
		}
		body, _ := io.ReadAll(r.Body)
		if json.Unmarshal(body, &m) == nil {
			f.told <- m.Title
		}
	}))
	t.Cleanup(desk.Close)
	secret := filepath.Join(t.TempDir(), "key")
	if err := os.WriteFile(secret, []byte("a key of sixteen bytes or more"), 0o600); err != nil {
		t.Fatal(err)
	}
	rules, err := notify.Parse(fleet.Source{Name: "notify.yaml", Data: []byte(strings.NewReplacer(
		"https://desk.example.org", desk.URL, "/etc/muster/notify/desk.key", secret).Replace(f.docs["notify.yaml"]))})
	if err != nil {
		t.Fatal(err)
	}
	sources, err := ingress.Parse(fleet.Source{Name: "events.yaml", Data: []byte(f.docs["events.yaml"])})
	if err != nil {
		t.Fatal(err)
	}
	set, err := repofile.Parse(fleet.Source{Name: "repositories.yaml", Data: []byte(f.set())})
	if err != nil {
		t.Fatal(err)
	}
	_, cfg := redistest.StartMini(t)
	c, err := queue.Open(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	folder := t.TempDir()
	f.world = start(t, setup{redis: &cfg, runbooks: []string{firmware}, inventory: fixed(twoCustomers()),
		history: openHistory(t, sqltest.SQLite(t)), more: func(d *server.Deps) {
			d.Notify = func() (*notify.Rules, error) { return rules, nil }
			d.Repositories = gitops.Config{Folder: folder, Read: func() (*repofile.Set, error) { return set, nil }}
			d.Events = arrivals.Needs{Inbox: inbox.New(c, plainRecords{}),
				Sources: func() (*ingress.Sources, error) { return sources, nil },
				Secrets: func(s ingress.Source) ([]ingress.Secret, error) {
					return ingress.ParseSecrets([]byte("the secret of the forge"), s.Form.Proof)
				}}
		}})
	return f
}

// set returns the file of repositories, with this repository and without ssh.
func (f *follow) set() string {
	var lines []string
	for line := range strings.Lines(f.docs["repositories.yaml"]) {
		if !strings.Contains(line, "key:") && !strings.Contains(line, "known_hosts:") {
			lines = append(lines, line)
		}
	}
	return strings.NewReplacer("ssh://git@git.example.org/acme/rules.git", f.repo.URL(),
		"/etc/muster/git/allowed_signers", gittest.Signers(f.repo.T(), f.key)).Replace(strings.Join(lines, ""))
}

// webhook sends what a forge sends after a push.
func (f *follow) webhook() {
	f.t.Helper()
	body := []byte(`{"ref": "refs/heads/main", "after": "` + f.repo.Git("rev-parse", "main") + `", "at": "` +
		time.Now().Format(time.RFC3339Nano) + `"}`)
	mac := hmac.New(sha256.New, []byte("the secret of the forge"))
	mac.Write(body)
	r, err := http.NewRequestWithContext(f.t.Context(), "POST", f.url+"/v1/ingress/forge", bytes.NewReader(body))
	if err != nil {
		f.t.Fatal(err)
	}
	r.Header = http.Header{"Content-Type": {"application/json"}, "X-Github-Event": {"push"},
		"X-Hub-Signature-256": {"sha256=" + hex.EncodeToString(mac.Sum(nil))}}
	res, err := f.client.Do(r)
	if err != nil {
		f.t.Fatal(err)
	}
	defer res.Body.Close()
	if res.StatusCode != http.StatusAccepted {
		f.t.Fatalf("the webhook: %s", res.Status)
	}
}

// now returns what is known of the repository.
func (f *follow) now() api.Repository {
	f.t.Helper()
	var l api.Repositories
	f.call("GET", "/v1/repositories", nil, &l)
	if len(l.Repositories) != 1 || l.Complaint != "" {
		f.t.Fatalf("%+v", l)
	}
	return l.Repositories[0]
}

// pushed sends the webhook and waits until a server has looked at the newest commit.
func (f *follow) pushed() api.Repository {
	f.t.Helper()
	head, was := f.repo.Git("rev-parse", "main"), f.now()
	f.webhook()
	var r api.Repository
	waitFor(f.t, "a look at "+head, func() bool {
		r = f.now()
		return r.State.Seen == head && r.State.Heard > was.State.Heard
	})
	return r
}

// refused asserts that a push is refused with some words and changes nothing.
func (f *follow) refused(words string) {
	f.t.Helper()
	was := f.now()
	is := f.pushed().State
	if !is.Refused || !strings.Contains(is.Error, words) || is.Commit != was.State.Commit ||
		is.Version != was.State.Version {
		f.t.Errorf("want a refusal with %q, and version %d: %+v", words, was.State.Version, is)
	}
}

// message waits for a message.
func (f *follow) message(words string) {
	f.t.Helper()
	for end := time.After(time.Minute); ; {
		select {
		case got := <-f.told:
			if strings.Contains(got, words) {
				return
			}
		case <-end:
			f.t.Fatalf("no message with %q came", words)
		}
	}
}

// The tutorial, as it stands: a signed push, the webhook, the apply, the approval, the activation in
// the window, the message, and what is refused.
func TestTheTutorialOfRepositories(t *testing.T) {
	t.Parallel()
	f := following(t)
	f.repo.Sign(f.key)
	f.repo.Write("conf/acme.yaml", f.docs["conf/acme.yaml"])
	first := f.repo.Commit("acme: a window and a nightly look")
	r := f.pushed()
	if r.State.Commit != first || r.State.Version != 1 || r.State.Signer != "alice" ||
		r.State.Error != "" || r.State.Adrift != 0 {
		t.Fatalf("%+v", r)
	}
	var did api.Applied
	f.call("GET", "/v1/applies/1", nil, &did)
	if did.Commit != first || did.Origin != "git:rules" || did.Counts["added"] != 2 || !did.Proven {
		t.Errorf("%+v", did)
	}
	f.ownedElsewhere(t)

	// Approval and activation.
	flash := api.Submit{Runbook: "flash", On: "customer=acme", As: "alice"}
	var p problem
	if res := f.call("POST", "/v1/tasks", flash, &p); res.StatusCode != 422 ||
		!strings.Contains(p.words(), "no approved window for 2 of 2 hosts") {
		t.Fatalf("%s %s", res.Status, p.words())
	}
	if res := f.call("POST", "/v1/windows/acme-trial/approve", api.ApproveRequest{Customer: "acme",
		From:  jobs.Time{Time: time.Now().AddDate(0, 0, -2)},
		Until: jobs.Time{Time: time.Now().AddDate(0, 0, 2)}}, nil); res.StatusCode >= 300 {
		t.Fatalf("approve: %s", res.Status)
	}
	task := f.submit(flash).Task
	f.work("default", succeed)
	f.message(string(task))

	// An unsigned commit.
	f.repo.Sign("")
	f.repo.Write("conf/acme.yaml", strings.Replace(f.docs["conf/acme.yaml"], "uptime", "reboot", 1))
	f.repo.Commit("unsigned")
	f.refused("is not signed")
	f.message("repository rules: its newest commit is not in force")
	var h api.Health
	f.call("GET", "/v1/health", nil, &h)
	if !strings.Contains(h.Status, "repository rules: commit "+f.repo.Git("rev-parse", "main")[:12]+" is not in force") {
		t.Errorf("health says %q", h.Status)
	}
	_, text := f.raw("GET", "/metrics", nil, nil)
	if !strings.Contains(string(text), `muster_repository_behind{repository="rules"} 1`) ||
		!strings.Contains(string(text), `muster_repository_adrift_entries{repository="rules"} 0`) {
		t.Error("metrics do not say that the repository is behind")
	}

	// A branch that was rewritten, until somebody accepts it.
	f.repo.Git("reset", "--quiet", "--hard", first)
	f.repo.Sign(f.key)
	f.repo.Git("commit", "--amend", "-S", "--quiet", "-m", "the first one, anew")
	f.refused("history goes back")
	again := f.repo.Git("rev-parse", "main")
	poll := api.RepositoryPoll{Accept: again}
	if res := f.call("POST", "/v1/repositories/rules/poll", poll, nil); res.StatusCode != 422 {
		t.Errorf("without a reason: %s", res.Status)
	}
	poll.Reason = "on purpose"
	f.call("POST", "/v1/repositories/rules/poll", poll, nil)
	waitFor(t, "the accepted commit", func() bool { return f.now().State.Commit == again })
	f.message("repository rules: its newest commit is in force")
}

// ownedElsewhere asserts that nothing but the repository changes its entries.
func (f *follow) ownedElsewhere(t *testing.T) {
	t.Helper()
	res, text := f.raw("POST", "/v1/schedules/acme-nightly/remove", map[string]string{"reason": "x"}, nil)
	if res.StatusCode < 400 || !strings.Contains(string(text), "comes from git:rules: change it there") {
		t.Errorf("remove: %s %s", res.Status, text)
	}
	b := ofText(f.docs["conf/acme.yaml"])
	if _, status, words := f.applyTo(b, nil); status != 422 || !strings.Contains(words, "comes from git:rules") {
		t.Errorf("apply: %d %s", status, words)
	}
	b.Origin = "git:rules"
	if _, status, words := f.applyTo(b, nil); status != 422 ||
		!strings.Contains(words, "a server follows git:rules by itself: push the change to the branch main of") {
		t.Errorf("apply with the origin: %d %s", status, words)
	}
	b.Origin, b.TakeFrom = "", "git:rules"
	if _, status, words := f.applyTo(b, nil); status != 422 || !strings.Contains(words, "a server follows git:rules") {
		t.Errorf("taken over: %d %s", status, words)
	}
	if got := f.status("GET", "/v1/repositories", f.token("viewer")); got != http.StatusForbidden &&
		got != http.StatusUnauthorized {
		t.Errorf("somebody without rights: %d", got)
	}
}

// Bad commits change nothing; each is refused in words.
func TestBadCommitsLeaveTheEarlierVersionInForce(t *testing.T) {
	t.Parallel()
	f := following(t)
	f.repo.Sign(f.key)
	good := f.docs["conf/acme.yaml"]
	f.repo.Write("conf/acme.yaml", good)
	f.repo.Commit("good")
	if r := f.pushed(); r.State.Version != 1 {
		t.Fatalf("%+v", r)
	}
	for _, c := range []struct{ text, words string }{
		{strings.ReplaceAll(good, "acme", "bolt"), "this one is of customer bolt"},
		{strings.Replace(good, "on: customer=acme", "on: all", 1), "may pick hosts of others than customer acme"},
		{strings.Replace(good, "length: 24h", "length: 24 hours", 1), "conf/acme.yaml:6"},
		{"kind: window\nname: x\n" + strings.Repeat("# much\n", 200_000), "want at most 1048576"},
		{"", "has no entry"},
	} {
		f.repo.Write("conf/acme.yaml", cmpOr(c.text, "# nothing\n"))
		f.repo.Commit("bad")
		f.refused(c.words)
	}
	// An entry that the repository has no more goes, and nothing else.
	if did, status, words := f.applyTo(ofText(strings.ReplaceAll(good, "acme", "bolt")), nil); status != 200 {
		t.Fatalf("%d %s %+v", status, words, did)
	}
	one, _, _ := strings.Cut(good, "---")
	f.repo.Write("conf/acme.yaml", one)
	f.repo.Commit("without the schedule")
	r := f.pushed()
	var list api.EntryTexts
	f.call("GET", "/v1/entries", nil, &list)
	var names []string
	for _, e := range list.Entries {
		names = append(names, e.Kind+"/"+e.Name+e.Origin)
	}
	if got := fmt.Sprint(names); r.State.Error != "" ||
		got != "[schedule/bolt-nightly window/acme-trialgit:rules window/bolt-trial]" {
		t.Errorf("%s is in force: %+v", got, r)
	}
}

func cmpOr(a, b string) string {
	if a == "" {
		return b
	}
	return a
}
