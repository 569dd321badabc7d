package server_test

import (
	"bytes"
	"crypto/hmac"
	"crypto/sha512"
	"encoding/hex"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"muster/api"
	"muster/fleet"
	"muster/ingress"
	"muster/jobs"
	"muster/jobs/queue"
	"muster/jobs/queue/inbox"
	"muster/jobs/queue/versions"
	"muster/server"
	"muster/server/arrivals"
	"muster/testkit/redistest"
	"muster/triggers"
)

const exampleEvents = "../etc/examples/events/"

// bundled is the number of hosts that a bundle is for.
const bundled = 40

// example returns a file of the example, with other words in the place of some.
func example(t *testing.T, name string, other ...string) string {
	t.Helper()
	data, err := os.ReadFile(exampleEvents + name)
	if err != nil {
		t.Fatal(err)
	}
	return strings.NewReplacer(other...).Replace(string(data))
}

// exampled is a server with the files of the example, whose bundles lie in a folder.
func exampled(t *testing.T) (w *world, in *inbox.Inbox, bundles string) {
	t.Helper()
	bundles = t.TempDir()
	script, err := filepath.Abs(exampleEvents + "list-bundles")
	if err != nil {
		t.Fatal(err)
	}
	set, err := triggers.Parse(fleet.Source{Name: "triggers.yaml",
		Data: []byte(example(t, "triggers.yaml", "/srv/bundles", bundles, "quiet: 10s", "quiet: 1s"))})
	if err != nil {
		t.Fatal(err)
	}
	sources, err := ingress.Parse(fleet.Source{Name: "events.yaml", Data: []byte(example(t, "events.yaml",
		"/etc/muster/list-bundles", script, "/srv/bundles", bundles, "every: 1m", "every: 1s"))})
	if err != nil {
		t.Fatal(err)
	}
	cfg := redistest.StartServer(t).Config()
	conn, err := queue.Open(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	in = inbox.New(conn, unsigned{})
	_, grants, _ := strings.Cut(example(t, "access.yaml"), "who:\n")
	policy := policyOf(t, rolesPolicy()+grants)
	rules := trusting(t, "rules: [{people: 1, mode: require}]")
	var list []fleet.Host
	for i := range bundled + 1 { // the last one is no firewall
		h := fleet.Host{Name: fmt.Sprintf("fw%03d", i+1), Zone: "default", Customer: "acme", User: "root",
			Port: 22, Address: fmt.Sprint("10.0.0.", i+1), Fence: fleet.FenceNone}
		if i < bundled {
			h.Labels = map[string]string{"role": "fw"}
		}
		list = append(list, h)
	}
	w = start(t, setup{redis: &cfg, inventory: fixed(list),
		runbooks: []string{example(t, "runbooks/diagnose.yaml"), example(t, "runbooks/compliance.yaml")},
		more: func(d *server.Deps) {
			d.Policy, d.Trust = policy, rules
			d.Triggers = func() (*triggers.Set, error) { return set, nil }
			d.Events = arrivals.Needs{Inbox: in, Versions: versions.New(conn),
				Sources: func() (*ingress.Sources, error) { return sources, nil },
				Secrets: func(ingress.Source) ([]ingress.Secret, error) {
					return []ingress.Secret{ingress.Secret(secret)}, nil
				}}
		}})
	return w, in, bundles
}

// recorded returns the body that a sender has sent.
func recorded(t *testing.T, name string) []byte {
	t.Helper()
	data, err := os.ReadFile("../ingress/testdata/" + name)
	if err != nil {
		t.Fatal(err)
	}
	_, body, _ := bytes.Cut(bytes.ReplaceAll(data, []byte("\r\n"), []byte("\n")), []byte("\n\n"))
	return bytes.TrimSuffix(body, []byte("\n"))
}

// deliver sends an event to the door.
func (w *world) deliver(source, header, proof string, body []byte) {
	w.t.Helper()
	res, text := w.raw(http.MethodPost, "/v1/ingress/"+source, string(body), http.Header{header: {proof}})
	if res.StatusCode != http.StatusAccepted {
		w.t.Fatalf("%s: %s", res.Status, text)
	}
}

// taskOf waits for the task that a trigger has submitted.
func (w *world) taskOf(trigger string) api.Firing {
	w.t.Helper()
	var found api.Firing
	waitFor(w.t.(*testing.T), "a firing of "+trigger, func() bool {
		var l api.FiringList
		w.call("GET", "/v1/firings?trigger="+trigger, nil, &l)
		for _, f := range l.Firings {
			if f.Result == "refused" {
				w.t.Fatalf("%+v", f)
			}
			if f.Task != "" {
				found = f
			}
		}
		return found.Task != ""
	})
	return found
}

// answers ends all jobs with an output.
func (w *world) answers(output string) {
	w.t.Helper()
	w.work("default", func(string) jobs.Result {
		return jobs.Result{Outcome: jobs.Succeeded, ExitCode: new(int), Said: jobs.Said{Output: []byte(output)}}
	})
}

// The example with recorded bodies: an alert is diagnosed on the host that it names, a change in
// NetBox brings facts and then the rules of the house, and a bundle waits for people.
func TestTheExampleOfEvents(t *testing.T) {
	t.Parallel()
	w, in, bundles := exampled(t)
	waitFor(t, "the first look", func() bool {
		p, err := in.Places(t.Context())
		return err == nil && p.At["begun"] != ""
	})

	w.deliver("alerts", "Authorization", "Bearer "+secret, recorded(t, "alertmanager.http"))
	alert := w.taskOf("diagnose")
	w.answers("alert: InterfaceErrors\nload average: 0.1\n")
	var sum api.Summary
	w.call("GET", "/v1/tasks/"+string(alert.Task)+"/summary", nil, &sum)
	if len(sum.Groups) != 1 || sum.Groups[0].Hosts != "fw001" ||
		!strings.Contains(string(sum.Groups[0].Output), "InterfaceErrors") ||
		!strings.Contains(sum.Task.Reason, alert.Event) {
		t.Errorf("%+v", sum)
	}

	body := recorded(t, "netbox.http")
	mac := hmac.New(sha512.New, []byte(secret))
	mac.Write(body)
	w.deliver("netbox", "X-Hook-Signature", hex.EncodeToString(mac.Sum(nil)), body)
	if f := w.taskOf("netbox-facts"); f.Hosts != 1 {
		t.Errorf("%+v", f)
	}
	w.answers("fact ID=debian\nfact kernel=6.12\nfact end\n")
	checked := w.taskOf("compliance")
	if want := []string{"netbox-facts", "compliance"}; fmt.Sprint(checked.Stems) != fmt.Sprint(want) ||
		checked.Hosts != 1 || checked.Customer != "acme" {
		t.Errorf("%+v, want stems %q", checked, want)
	}
	w.answers("")
	w.proposes(bundles)
}

// proposes puts a bundle into the folder, whose rollout waits for people and for a window.
func (w *world) proposes(bundles string) {
	w.t.Helper()
	w.apply(shutNow())
	err := os.WriteFile(filepath.Join(bundles, "box-2.0.raucb"), []byte("a bundle"), 0o600)
	if err == nil {
		err = os.Symlink("box-2.0.raucb", filepath.Join(bundles, "current.raucb"))
	}
	if err != nil {
		w.t.Fatal(err)
	}
	f := w.taskOf("firmware")
	var d api.HeldDetail
	w.call("GET", "/v1/approvals/"+string(f.Task), nil, &d)
	if d.Task != f.Task || f.Hosts != bundled || !strings.Contains(string(d.Order), "firmware") {
		w.t.Errorf("%+v: %+v", f, d)
	}
	var task jobs.TaskInfo
	w.call("GET", "/v1/tasks/"+string(f.Task), nil, &task)
	if task.State != jobs.TaskSubmitting {
		w.t.Errorf("the task does not wait for people: %+v", task)
	}
}
