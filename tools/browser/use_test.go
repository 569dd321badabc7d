package browser

import (
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
)

var wide = look{width: 1200, height: 900}

// lastTask returns the newest task.
func (h *house) lastTask(t testing.TB) string {
	var list struct{ Tasks []struct{ Task string } }
	h.get(t, "/v1/tasks?limit=50", &list)
	if len(list.Tasks) == 0 {
		t.Fatal("there is no task")
	}
	return list.Tasks[0].Task
}

// quiet fails the test if the browser complained.
func (x *tab) quiet() {
	x.t.Helper()
	if list := x.complaints(); len(list) > 0 {
		x.t.Errorf("the browser complains:\n  %s", strings.Join(list, "\n  "))
	}
}

func TestABrowserLogsInAndComesBack(t *testing.T) {
	x := open(t, browserOf(t), wide)
	x.run(chromedp.Navigate(demo.url+"/tasks?mine=true"), chromedp.WaitReady("main"))
	if at := x.js("location.pathname + location.search"); at != "/login?next=%2Ftasks%3Fmine%3Dtrue" {
		t.Fatalf("without a session the browser is at %s", at)
	}
	x.login()
	x.visit("/tasks?mine=true")
	if text := x.text(); !strings.Contains(text, "Log out") || !strings.Contains(text, "os:") {
		t.Fatalf("not logged in:\n%s", text)
	}
	x.quiet()
}

// TestARunFromFormToEnd runs a command on all hosts with the keyboard alone, sees it end on the open
// page, and does those again that failed.
func TestARunFromFormToEnd(t *testing.T) {
	x := open(t, browserOf(t), wide)
	x.login()
	x.visit("/run/exec")
	x.run(chromedp.Focus("#arg\\.cmd"), chromedp.KeyEvent("exit 3"),
		chromedp.Focus("#on"), chromedp.KeyEvent("fw[0101-0180]"))
	x.until(`/\d+ hosts:/.test(document.getElementById("on-count").textContent)`)
	x.run(chromedp.KeyEvent("\r"))
	x.run(chromedp.WaitReady("#plan"))
	n := x.js(`document.querySelector("input[name=n]").value`)
	x.quiet()
	hosts, err := strconv.Atoi(n)
	if err != nil || hosts < 50 {
		t.Fatalf("the plan has %q hosts:\n%s", n, x.text())
	}
	// Without the number nothing runs.
	before := demo.lastTask(t)
	x.run(chromedp.Click("button[name=go]", chromedp.NodeVisible), chromedp.WaitReady(".box.bad"))
	if demo.lastTask(t) != before || !strings.Contains(x.text(), "nothing was done: type "+n) {
		t.Fatalf("it ran without the number, or does not say why not:\n%s", x.text())
	}
	x.complaints() // of the status
	x.run(chromedp.Focus("#typed"), chromedp.KeyEvent(n),
		chromedp.Click("button[name=go]", chromedp.NodeVisible), chromedp.WaitReady("#state"))
	task := demo.lastTask(t)
	if task == before {
		t.Fatalf("nothing runs:\n%s", x.text())
	}
	x.until(`document.getElementById("state").textContent.includes("is ended")`)
	x.until(`document.querySelector("canvas").dataset.drawn === "` + n + `"`)
	x.until(`document.getElementById("order-retry") !== null`)
	x.run(chromedp.Click("#order-retry", chromedp.NodeVisible), chromedp.WaitReady("#typed"))
	again := x.js(`document.querySelector("input[name=n]").value`)
	x.run(chromedp.Focus("#typed"), chromedp.KeyEvent(again), chromedp.Click("button[type=submit].main", chromedp.NodeVisible),
		chromedp.WaitReady("#state"))
	if next := demo.lastTask(t); next == task || !strings.Contains(x.js("location.pathname"), next) {
		t.Fatalf("no retry: at %s", x.js("location.pathname"))
	}
	x.until(`document.getElementById("state").textContent.includes("is ended")`)
	x.quiet()
}

func TestPagesWorkWithoutAScript(t *testing.T) {
	l := wide
	l.noScript = true
	b := browserOf(t)
	open(t, b, wide).login()
	demo.muster(t, "exec", "--detach", "fw[0001-0004]", "--", "sleep 30")
	task := demo.lastTask(t)
	x := open(t, b, l)
	x.visit("/tasks/" + task)
	x.js(`document.getElementById("order-cancel").click()`)
	x.run(chromedp.WaitReady("#reason"))
	x.js(`document.getElementById("reason").value = "without a script"; document.querySelector("button.stop").click()`)
	x.run(chromedp.WaitReady("#state"))
	var now struct{ Cancelled string }
	demo.get(t, "/v1/tasks/"+task, &now)
	if !strings.HasSuffix(now.Cancelled, "without a script") {
		t.Fatalf("cancelled: %q", now.Cancelled)
	}
	x.quiet()
}

func TestHostileOutputStaysText(t *testing.T) {
	x := open(t, browserOf(t), wide)
	x.login()
	demo.muster(t, "exec", "fw0001", "--", `echo '<script>console.error("ran")</script><img src=/x onerror=console.error("ran")>`+
		`<a href="javascript:1">a</a>'`)
	task := demo.lastTask(t)
	for _, path := range []string{"/tasks/" + task, "/jobs/" + task + ":fw0001"} {
		x.visit(path)
		x.until(`document.body.innerText.includes('onerror=console.error("ran")')`)
		if n := x.js(`document.querySelectorAll("main script, main img, main a[href^=javascript]").length`); n != "0" {
			t.Errorf("%s: %s elements of the host's making", path, n)
		}
	}
	x.quiet()
}

func TestAnOpenPageSurvivesItsServer(t *testing.T) {
	x := open(t, browserOf(t), wide)
	x.login()
	demo.muster(t, "exec", "--detach", "fw[0001-0002]", "--", "sleep 45")
	task := demo.lastTask(t)
	x.visit("/tasks/" + task)
	demo.shutDoor(true)
	x.until(`document.getElementById("live-state").textContent.startsWith("Stale since")`)
	demo.shutDoor(false)
	x.until(`document.getElementById("live-state").hidden`)
	x.until(`document.getElementById("state").textContent.includes("is ended")`)
	x.complaints() // the browser tells of each request that failed
}

func TestAnOpenPageLearnsThatItsSessionHasEnded(t *testing.T) {
	x := open(t, browserOf(t), wide)
	x.login()
	x.visit("/tasks")
	list := sessionID.FindAllStringSubmatch(demo.muster(t, "session", "ls", "-o", "json"), -1)
	if len(list) == 0 {
		t.Fatal("there is no session")
	}
	for _, one := range list {
		demo.muster(t, "session", "rm", one[1])
	}
	x.until(`document.getElementById("live-state").textContent.includes("session has ended")`)
}

var sessionID = regexp.MustCompile(`"id": ?"([^"]+)"`)

// TestEightTabs opens more tabs than a browser has connections.
func TestEightTabs(t *testing.T) {
	b := browserOf(t)
	open(t, b, wide).login()
	for range 8 {
		begun := time.Now()
		x := open(t, b, wide)
		x.visit("/tasks")
		if took := time.Since(begun); took > 15*time.Second {
			t.Errorf("a tab took %s", took)
		}
	}
}

// TestTheKeyFindsTheSearch goes to a host with the keyboard alone.
func TestTheKeyFindsTheSearch(t *testing.T) {
	x := open(t, browserOf(t), wide)
	x.login()
	x.visit("/")
	x.run(chromedp.KeyEvent("/"))
	if at := x.js("document.activeElement.id"); at != "search" {
		t.Fatalf("the key leads to %q", at)
	}
	x.run(chromedp.KeyEvent("fw0001\r"), chromedp.WaitReady("#found a"), chromedp.Focus("#found a"),
		chromedp.KeyEvent("\r"), chromedp.WaitReady("#inventory"))
	if at := x.js("location.pathname"); at != "/hosts/fw0001" {
		t.Fatalf("at %s", at)
	}
	x.quiet()
}

// TestPagesAreLight bounds the weight of pages.
func TestPagesAreLight(t *testing.T) {
	x := open(t, browserOf(t), wide)
	x.login()
	for _, p := range pages(t) {
		x.visit(p[1])
		nodes, _ := strconv.Atoi(x.js(`document.getElementsByTagName("*").length`))
		bytes, _ := strconv.Atoi(x.js(`new Blob([document.documentElement.outerHTML]).size`))
		t.Logf("%-10s %5d nodes %6d bytes", p[0], nodes, bytes)
		if nodes > 3000 || bytes > 150<<10 {
			t.Errorf("%s: %d nodes, %d bytes", p[0], nodes, bytes)
		}
	}
}

// TestAListWaitsForAClick lets a list change under the reader, which shows it on demand only.
func TestAListWaitsForAClick(t *testing.T) {
	x := open(t, browserOf(t), wide)
	x.login()
	x.visit("/tasks")
	demo.muster(t, "exec", "fw0002", "--", "true")
	task := demo.lastTask(t)
	x.until(`document.getElementById("tasks-fresh") !== null`)
	if x.js(`document.getElementById("tasks").textContent.includes("`+task+`")`) != "false" {
		t.Error("the list jumped")
	}
	x.run(chromedp.Click("#tasks-fresh button", chromedp.NodeVisible))
	x.until(`document.getElementById("tasks").textContent.includes("` + task + `")`)
	x.quiet()
}

// TestAnOrderIsFoundWithTheKeyboard goes to the order about a host with the keyboard alone.
func TestAnOrderIsFoundWithTheKeyboard(t *testing.T) {
	x := open(t, browserOf(t), wide)
	x.login()
	x.visit("/")
	x.run(chromedp.KeyEvent("/"), chromedp.KeyEvent("drain fw0003\r"), chromedp.WaitReady("#found a"),
		chromedp.Focus("#found a"), chromedp.KeyEvent("\r"), chromedp.WaitReady("#reason"))
	if at := x.js("location.pathname"); at != "/hosts/fw0003/order/drain" {
		t.Fatalf("at %s", at)
	}
	x.quiet()
}
