package browser

import (
	"encoding/json"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
)

// evil is a text that would run in a browser and colour a terminal.
const evil = `<img src=/x onerror=console.error("ran")><script>console.error("ran")</script>` + "\x1b[31m"

// The files of the second house. Its triggers and rules have something to do at once.
const (
	hostKey = `host_key: "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIBEXwyoh5iqF2LwXfVlSFCTn9eezaetBSn2TWzW6b1ND"`

	secondEvents = `sources:
  - {name: push, preset: token, secret_file: DIR/secret}
  - {name: acme, preset: token, secret_file: DIR/secret, customer: acme}
`
	secondTriggers = `triggers:
  - {name: look, source: acme, kind: look, runbook: exec, args: {cmd: id}, on: customer=acme, at_most: 5, limit: 10/1h}
  - {name: refused, source: push, runbook: exec, args: {cmd: id}, on: all, at_most: 1}
  - {name: idle, source: push, kind: never, runbook: exec, args: {cmd: id}, on: all, at_most: 9, enabled: false}
`
	secondNotify = `receivers:
  desk: {webhook: {url: "URL", key_file: DIR/secret}}
  gone: {webhook: {url: "http://127.0.0.1:9/T0SECRET", key_file: DIR/secret}}
rules:
  - {name: ends, what: task-ended, to: desk}
  - {name: frozen, what: [group-frozen, node-gone], to: [desk, gone]}
`
	secondAccess = `who:
  - {principal: "os:USER", roles: [admin]}
  - {principal: user:dora, roles: [operator], hosts: customer=acme}
  - {principal: "trigger:look", roles: [operator]}
  - {principal: "trigger:refused", roles: [operator]}
`
	secondHosts = `hosts:
  - {name: fw1, customer: acme, address: 127.0.0.1, HOSTKEY}
  - {name: fw2, customer: bolt, address: 127.0.0.2, HOSTKEY}
`
	secondConfig = `redis: {url: "unix://DIR/redis.sock"}
server:
  key: DIR/server.key
  listen: ["unix:DIR/api.sock", "ADDR"]
  access: DIR/access.yaml
  events: DIR/events.yaml
  triggers: DIR/triggers.yaml
  notify: DIR/notify.yaml
node: {dir: DIR}
history: {url: "sqlite://DIR/history.db"}
audit: {dir: DIR/audit}
inventory: [DIR/hosts.yaml]
`
)

// secondHouse is a server that takes events, has triggers and tells people. It has no node, so that
// its tasks stay as they are.
func secondHouse(t *testing.T) *house {
	t.Helper()
	desk := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	t.Cleanup(desk.Close)
	fill := strings.NewReplacer("URL", desk.URL, "HOSTKEY", hostKey)
	files := map[string]string{"events": secondEvents, "triggers": secondTriggers, "notify": secondNotify,
		"access": secondAccess, "hosts": secondHosts, "muster": secondConfig}
	for name, text := range files {
		files[name] = fill.Replace(text)
	}
	p := newPlain(t, files)
	if err := os.WriteFile(filepath.Join(p.dir, "secret"), []byte("a key of sixteen bytes or more\n"), 0o400); err != nil {
		t.Fatal(err)
	}
	p.serve(t)
	return p.house
}

// role starts a program for the time of a test, and returns the id of its process.
func role(t *testing.T, dir, name string, args ...string) (pid int) {
	t.Helper()
	log, err := os.CreateTemp(dir, filepath.Base(name)+".*.log")
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	c := exec.Command(name, args...)
	c.Stdout, c.Stderr = log, log
	c.Env = plainEnv()
	c.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := c.Start(); err != nil {
		t.Fatalf("%v (tools/install.sh redis)", err)
	}
	t.Cleanup(func() {
		c.Process.Signal(syscall.SIGTERM)
		c.Wait()
		if text, err := os.ReadFile(log.Name()); err == nil && t.Failed() {
			t.Logf("%s said:\n%.8000s", filepath.Base(name), text)
		}
	})
	return c.Process.Pid
}

// plainEnv returns the environment without what it says to muster.
func plainEnv() []string {
	return slices.DeleteFunc(os.Environ(), func(pair string) bool { return strings.HasPrefix(pair, "MUSTER_") })
}

// awaitSocket waits until a program listens at a socket.
func awaitSocket(t *testing.T, path string) {
	t.Helper()
	for end := time.Now().Add(time.Minute); ; {
		if c, err := net.Dial("unix", path); err == nil {
			c.Close()
			return
		} else if time.Now().After(end) {
			t.Fatalf("nobody listens: %v", err)
		}
		time.Sleep(20 * time.Millisecond)
	}
}

// send sends an event by hand, and returns its id.
func (h *house) send(t *testing.T, source, kind string, body any) string {
	t.Helper()
	text, err := json.Marshal(body)
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "body.json")
	if err := os.WriteFile(file, text, 0o600); err != nil {
		t.Fatal(err)
	}
	var taken struct{ Event string }
	out := h.muster(t, "event", "send", source, file, "--kind", kind, "-o", "json")
	if err := json.Unmarshal([]byte(out), &taken); err != nil || taken.Event == "" {
		t.Fatalf("%v: %s", err, out)
	}
	return taken.Event
}

// TestPagesOfSignalsAreSound looks at the pages of events, triggers, notices and lanes when there is
// something on them that is hostile, gives their orders with the keyboard alone, and looks at them as
// a person who has the rights for one customer.
func TestPagesOfSignalsAreSound(t *testing.T) {
	b := browserOf(t)
	h := secondHouse(t)
	lookAt(t, h)
	event := h.send(t, "acme", "look", map[string]string{"text": evil, evil: "x"})
	foreign := h.send(t, "push", "ping", map[string]string{"text": evil})
	for range 2 {
		h.muster(t, "exec", "--detach", "--lane", "rules/acme", "--lane-mode", "gate", "fw1", "--", "echo '"+evil+"'")
	}
	h.muster(t, "run", "dnssec", "--detach", "--on", "fw1", "--arg", "zone=example.com", "--arg", "key=zsk")
	x := open(t, b, look{width: 1600, height: 900, dark: true})
	x.login()
	x.visit("/events/" + event)
	x.until(`/started task/.test(document.getElementById("came-to").innerText)`)
	if text := x.text(); !strings.Contains(text, `console.error(\"ran\")`) || strings.Contains(text, "\x1b") {
		t.Errorf("the body of the event:\n%s", text)
	}
	x.quiet()

	// With the keyboard: the event is sent again, and a receiver is tried.
	x.press(`a[href$="/order/replay"]`, "main form")
	x.press("button[type=submit].main", "#came-to")
	if at := x.js("location.pathname"); at == "/events/"+event || !strings.HasPrefix(at, "/events/") {
		t.Fatalf("at %s after it was sent again:\n%s", at, x.text())
	}
	x.visit("/receivers")
	x.press(`a[href="/receivers/desk/order/test"]`, "main form")
	x.press("button[type=submit].main", "#message")
	x.until(`/delivered/.test(document.getElementById("message").innerText)`)
	message := x.js("location.pathname")
	x.quiet()

	list := [][2]string{{"events", "/events"}, {"event", "/events/" + event}, {"event-house", "/events/" + foreign},
		{"event-test", "/events/" + event + "/test"}, {"replay", "/events/" + event + "/order/replay"},
		{"triggers", "/triggers"}, {"trigger", "/triggers/look"}, {"firings", "/firings"}, {"notices", "/notices"},
		{"notice", message}, {"receivers", "/receivers"}, {"try", "/receivers/gone/order/test"}, {"lanes", "/lanes"},
		{"queue", "/queue"}, {"sessions", "/sessions"}, {"dnssec", "/dnssec"}}
	for _, l := range []look{{width: 320, height: 900}, {width: 1600, height: 900, dark: true}} {
		y := open(t, b, l)
		for _, p := range list {
			y.visit(p[1])
			wrong := append(y.violations(), y.complaints()...)
			if wide := y.js("document.documentElement.scrollWidth - document.documentElement.clientWidth"); wide != "0" {
				wrong = append(wrong, "it is "+wide+" px wider than the window")
			}
			if text := y.text(); strings.Contains(text, "T0SECRET") {
				wrong = append(wrong, "it shows the secret path of a receiver")
			}
			if len(wrong) > 0 {
				t.Errorf("%s at %d:\n  %s", p[0], l.width, strings.Join(wrong, "\n  "))
			}
			y.shoot("signals-"+p[0], l.width, l.dark)
		}
	}

	dora := open(t, browserOf(t), phone)
	dora.loginAs("user:dora")
	dora.visit("/events")
	if text := dora.js("document.documentElement.outerHTML"); strings.Contains(text, foreign) || !strings.Contains(text, event) {
		t.Errorf("the events that dora of acme sees:\n%s", dora.text())
	}
	dora.visit("/queue")
	if dora.js(`document.querySelector("svg.depth") === null`) != "true" {
		t.Errorf("dora sees the queue of a zone with hosts of others:\n%s", dora.text())
	}
	dora.narrow("the queue")
	dora.quiet()
}

// TestALaneContinuesWithTheKeyboard lets a lane continue behind a task that failed.
func TestALaneContinuesWithTheKeyboard(t *testing.T) {
	x := open(t, browserOf(t), wide)
	x.login()
	const lane = "rules/browser"
	demo.muster(t, "exec", "--detach", "--lane", lane, "--lane-mode", "gate", "fw0002", "--", "exit 3")
	failed := demo.lastTask(t)
	demo.muster(t, "exec", "--detach", "--lane", lane, "--lane-mode", "gate", "fw0002", "--", "uptime")
	next := demo.lastTask(t)
	x.visit("/lanes?key=" + lane)
	button := `a[href="/tasks/` + failed + `/order/continue"]`
	x.until("document.querySelector('" + button + "') !== null")
	x.axe()
	x.press(button, "#reason")
	x.set(map[string]string{"reason": evil[:20]})
	x.press("button[type=submit].main", "#lanes")
	x.visit("/tasks/" + next)
	x.until(`document.getElementById("state").textContent.includes("is ended")`)
	x.quiet()
}

// press follows a link or gives an order with the keyboard, and waits for what comes.
func (x *tab) press(what, comes string) {
	x.t.Helper()
	x.run(chromedp.WaitReady(what), chromedp.Focus(what), chromedp.KeyEvent("\r"), chromedp.WaitReady(comes))
}
