package browser

import (
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
)

var phone = look{width: 390, height: 780}

// loginAs logs the browser of a tab in as a person who has a token.
func (x *tab) loginAs(person string) {
	x.t.Helper()
	token := strings.TrimSpace(demo.muster(x.t, "token", "create", "phone", "--owner", person))
	c := exec.CommandContext(x.t.Context(), demo.binary, "login", "--browser")
	c.Env = append(os.Environ(), "MUSTER_URL=http://"+demo.port, "MUSTER_TOKEN="+token)
	out, err := c.Output()
	if err != nil {
		x.t.Fatalf("no link for %s: %v", person, err)
	}
	link := strings.Replace(strings.TrimSpace(string(out)), "http://"+demo.port, demo.url, 1)
	x.run(chromedp.Navigate(link), chromedp.WaitReady("form"),
		chromedp.Click("form button", chromedp.NodeVisible), chromedp.WaitReady("main[data-live]"))
	if who := x.text(); !strings.Contains(who, person) {
		x.t.Fatalf("not %s:\n%s", person, who)
	}
	x.complaints()
}

// narrow fails the test if the page is wider than its window.
func (x *tab) narrow(what string) {
	x.t.Helper()
	if wide := x.js("document.documentElement.scrollWidth - document.documentElement.clientWidth"); wide != "0" {
		x.t.Errorf("%s is %s px wider than the window", what, wide)
	}
}

// set gives fields of the form their values as a person would who types them.
func (x *tab) set(fields map[string]string) {
	x.t.Helper()
	for name, value := range fields {
		x.js(fmt.Sprintf(`(() => { const f = document.querySelector('main [name=%q]'); f.value = %q;
			f.dispatchEvent(new Event("input", {bubbles: true})); })()`, name, value))
	}
}

// TestAPersonProposesAnotherApprovesAndTheTaskStarts is the show of a customer with phones: dora
// proposes an opening of acme, erik approves it, and the task that needs one starts in it.
func TestAPersonProposesAnotherApprovesAndTheTaskStarts(t *testing.T) {
	const run = "/run/upkeep?on=fw[0001-0003]"
	dora := open(t, browserOf(t), phone)
	dora.loginAs("user:dora")
	dora.visit(run)
	dora.narrow("the form")
	dora.js(`document.querySelector("main form button[type=submit]").click()`)
	dora.run(chromedp.WaitReady(".box.bad"))
	if text := dora.text(); !strings.Contains(text, "no approved window") {
		t.Fatalf("it runs without a window, or does not say why not:\n%s", text)
	}
	dora.narrow("the refusal")
	dora.complaints() // of the status
	dora.visit("/windows?customer=acme")
	dora.narrow("the calendar")
	dora.run(chromedp.Click(`main a[href^="/windows/order/propose"]`, chromedp.NodeVisible), chromedp.WaitReady("#reason"))
	start := time.Now().UTC().Truncate(time.Minute)
	dora.set(map[string]string{"name": "acme-now", "customer": "acme", "tz": "UTC",
		"start": start.Format("2006-01-02T15:04"), "length": "1h", "reason": "the line is quiet"})
	dora.narrow("the proposal")
	dora.shoot("show-propose", 390, false)
	dora.run(chromedp.Click("button[type=submit].main", chromedp.NodeVisible), chromedp.WaitReady(".box.good"))

	erik := open(t, browserOf(t), phone)
	erik.loginAs("user:erik")
	erik.visit("/windows?customer=acme")
	erik.run(chromedp.Click(`main a[href^="/windows/acme-now/order/approve"]`, chromedp.NodeVisible),
		chromedp.WaitReady("#reason"))
	if text := erik.text(); !strings.Contains(text, "acme-now") {
		t.Fatalf("erik is not told what he approves:\n%s", text)
	}
	erik.narrow("the approval")
	erik.shoot("show-approve", 390, false)
	erik.set(map[string]string{"reason": "go"})
	erik.run(chromedp.Click("button[type=submit].main", chromedp.NodeVisible), chromedp.WaitReady(".box.good"))

	dora.visit(run)
	dora.js(`document.querySelector("main form button[type=submit]").click()`)
	dora.run(chromedp.WaitReady("#plan"))
	dora.narrow("the plan")
	dora.run(chromedp.Click("button[name=go]", chromedp.NodeVisible), chromedp.WaitReady("#state"))
	dora.until(`document.getElementById("state").textContent.includes("is ended")`)
	dora.narrow("the task")
	dora.shoot("show-started", 390, false)
	var now struct {
		Operator string
		Started  time.Time
		Outcomes map[string]int
	}
	demo.get(t, "/v1/tasks/"+demo.lastTask(t), &now)
	if now.Operator != "user:dora" || now.Outcomes["succeeded"] == 0 || now.Started.Before(start) {
		t.Errorf("the task: %+v\n%s", now, dora.text())
	}
	dora.quiet()
	erik.quiet()
}

// TestARunInWavesFailsAndIsDoneAgain runs a command in waves in the browser, in which some hosts
// fail, opens the waves, and does those again that failed.
func TestARunInWavesFailsAndIsDoneAgain(t *testing.T) {
	x := open(t, browserOf(t), wide)
	x.login()
	x.visit("/run/exec?on=fw[0201-0215]")
	x.set(map[string]string{"arg.cmd": `case $(hostname) in *7) exit 3;; esac`, "waves": "3,100%", "max_failed": "10"})
	x.js(`document.querySelector("main form button[type=submit]").click()`)
	x.run(chromedp.WaitReady("#plan"))
	x.shoot("show-plan", 1200, false)
	x.quiet()
	if x.js(`document.getElementById("typed") !== null`) == "true" {
		x.set(map[string]string{"typed": x.js(`document.querySelector("input[name=n]").value`)})
	}
	x.run(chromedp.Click("button[name=go]", chromedp.NodeVisible), chromedp.WaitReady("#state"))
	x.until(`document.getElementById("waves").innerText.includes("wave 2 of 2")`)
	x.until(`document.getElementById("state").textContent.includes("is ended")`)
	x.until(`document.getElementById("order-retry") !== null`)
	x.shoot("show-waves", 1200, false)
	task := demo.lastTask(t)
	var first struct{ Total, Outcomes any }
	demo.get(t, "/v1/tasks/"+task, &first)
	x.run(chromedp.Click("#order-retry", chromedp.NodeVisible), chromedp.WaitReady("#reason"))
	again := x.js(`document.querySelector("input[name=n]").value`)
	x.run(chromedp.Click("button[type=submit].main", chromedp.NodeVisible), chromedp.WaitReady("#state"))
	x.until(`document.getElementById("state").textContent.includes("is ended")`)
	var next struct{ Total int }
	demo.get(t, "/v1/tasks/"+demo.lastTask(t), &next)
	if demo.lastTask(t) == task || again == "0" || fmt.Sprint(next.Total) != again {
		t.Errorf("the retry has %d hosts, the page said %s; the run had %v", next.Total, again, first.Outcomes)
	}
	x.quiet()
}

// TestTheStoryIsSeenWhileItHappens is the show for a newcomer: the link of a fresh demo works before
// its story ends, and the pages of the queue and of the tasks show it.
func TestTheStoryIsSeenWhileItHappens(t *testing.T) {
	b := browserOf(t)
	x, y := open(t, b, wide), open(t, b, wide)
	h, err := startHouse("300", true)
	if err != nil {
		t.Fatal(err)
	}
	defer h.stop()
	old := demo
	demo = h
	defer func() { demo = old }()
	x.run(chromedp.Navigate(h.early), chromedp.WaitReady("form"),
		chromedp.Click("form button", chromedp.NodeVisible), chromedp.WaitReady("main[data-live]"))
	x.visit("/queue")
	x.until(`/alice/.test(document.getElementById("zones").innerText)`)
	x.shoot("show-queue", 1200, false)
	y.visit("/tasks/" + h.taskOf(t, "bob"))
	y.until(`document.getElementById("state").textContent.includes("is ended")`)
	// The page of the queue stays open until carol's task stands in it.
	x.until(`/carol/.test(document.getElementById("zones").innerText)`)
	y.visit("/tasks/" + h.taskOf(t, "carol"))
	y.until(`document.getElementById("state").textContent.includes("is running")`)
	y.until(`/wave [2-9] of \d/.test(document.getElementById("waves").innerText)`)
	y.until(`document.getElementById("state").textContent.includes("is ended")`)
	y.shoot("show-carol", 1200, false)
	x.quiet()
	y.quiet()
}
