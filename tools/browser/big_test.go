package browser

import (
	"flag"
	"fmt"
	"net/url"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
)

var bigHosts = flag.Int("hosts", 20000, "pretended hosts of the big house; a short run has few")

// bigHouse starts a house in which nothing has happened, with many pretended hosts, for one test. It
// returns the hosts of a run, and their number.
func bigHouse(t *testing.T) (on string, hosts int) {
	t.Helper()
	of := *bigHosts
	on, hosts = "all", of
	if testing.Short() { // without the hosts that are tried again for seconds
		of, on, hosts = 60, "fw[0031-0060]", 30
	}
	h, err := startHouse(strconv.Itoa(of), true, "--story=false")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(h.stop)
	lookAt(t, h)
	return on, hosts
}

// perJob is the time that a job may take in a big run, with much room: a busy machine ends a hundred
// a second.
const perJob = 60 * time.Millisecond

// TestABigRunFromFormToEnd is the show of a run on all hosts, in the browser alone: from the form
// over the plan and three waves, in which some hosts fail, to a second run of those that failed.
func TestABigRunFromFormToEnd(t *testing.T) {
	on, hosts := bigHouse(t)
	bound := time.Minute + time.Duration(hosts)*perJob
	x := openFor(t, newBrowser(t), wide, 2*time.Minute+2*bound)
	x.login()
	step := stopwatch(t)

	x.visit("/fleet?on=" + url.QueryEscape(on))
	x.until(fmt.Sprintf(`document.querySelector("canvas").dataset.drawn === "%d"`, hosts))
	step("the map of the fleet is drawn")
	x.run(chromedp.Navigate(demo.url+"/run?on="+url.QueryEscape(on)), chromedp.WaitReady("#books"),
		chromedp.Click(`main a[href^="/run/exec?"]`, chromedp.NodeVisible), chromedp.WaitReady("#on"))
	x.until(fmt.Sprintf(`document.getElementById("on-count").textContent.startsWith("%d hosts")`, hosts))
	x.set(map[string]string{"arg.cmd": `case $(hostname) in *7) exit 3;; esac`, "waves": "2,10%,100%",
		"max_failed": "50%"})
	step("the form knows its hosts")
	x.js(`document.querySelector("main form button[type=submit]").click()`)
	x.run(chromedp.WaitReady("#plan"))
	step("the plan is there")
	x.light("the plan")
	if n := x.js(`document.querySelector("input[name=n]").value`); n != strconv.Itoa(hosts) {
		t.Fatalf("the plan has %s hosts, want %d", n, hosts)
	}
	x.shoot("big-plan", wide.width, false)
	x.typed(hosts)
	x.run(chromedp.Click("button[name=go]", chromedp.NodeVisible), chromedp.WaitReady("#state"))
	step("it runs, and its page is there")

	task := demo.lastTask(t)
	x.untilIn(bound, `/wave [23] of 3/.test(document.getElementById("waves").innerText)`)
	step("the second wave is open")
	x.shoot("big-waves", wide.width, false)
	x.untilIn(bound, `document.getElementById("state").textContent.includes("is ended")`)
	step("it has ended")
	x.until(fmt.Sprintf(`document.querySelector("canvas").dataset.drawn === "%d"`, hosts))
	x.until(`document.getElementById("order-retry") !== null`)
	x.light("the task")
	x.shoot("big-ended", wide.width, false)
	first := demo.ended(t, task, hosts)
	if first["succeeded"] == 0 || first["failed"] < hosts/10 {
		t.Errorf("what came of it: %v, want that each host failed whose name ends with 7", first)
	}

	// A host on which it is not known what happened is not tried again in silence.
	again := hosts - first["succeeded"] - first["unknown"]
	x.run(chromedp.Click("#order-retry", chromedp.NodeVisible), chromedp.WaitReady("#reason"))
	if n := x.js(`document.querySelector("input[name=n]").value`); n != strconv.Itoa(again) {
		t.Errorf("those that failed are %s on the page, %d hosts are known not to have succeeded: %v", n, again, first)
	}
	x.typed(again)
	x.run(chromedp.Click("button[type=submit].main", chromedp.NodeVisible), chromedp.WaitReady("#state"))
	x.untilIn(bound, `document.getElementById("state").textContent.includes("is ended")`)
	step("those that failed have run again")
	next := demo.lastTask(t)
	if next == task || x.js("location.pathname") != "/tasks/"+next {
		t.Fatalf("the second run is %s, the first %s; the browser is at %s", next, task, x.js("location.pathname"))
	}
	demo.ended(t, next, again)
	x.quiet()
}

// typed types the number of hosts where the page asks for it: from 50 hosts on.
func (x *tab) typed(hosts int) {
	x.t.Helper()
	if hosts >= 50 {
		x.set(map[string]string{"typed": strconv.Itoa(hosts)})
	}
}

// ended returns what came of a task, and fails the test if it has not as many jobs as told, all
// ended.
func (h *house) ended(t *testing.T, task string, jobs int) map[string]int {
	t.Helper()
	var now struct {
		Total    int
		Outcomes map[string]int
	}
	h.get(t, "/v1/tasks/"+task, &now)
	sum := 0
	for _, n := range now.Outcomes {
		sum += n
	}
	if now.Total != jobs || sum != jobs {
		t.Errorf("task %s has %d jobs, of which %d ended, want %d: %v", task, now.Total, sum, jobs, now.Outcomes)
	}
	return now.Outcomes
}

// light fails the test if a page weighs more than any may.
func (x *tab) light(what string) {
	x.t.Helper()
	nodes, bytes := x.weight()
	x.t.Logf("%s: %d nodes, %d kB", what, nodes, bytes>>10)
	if nodes > 3000 || bytes > 150<<10 {
		x.t.Errorf("%s has %d nodes and %d kB", what, nodes, bytes>>10)
	}
}

// weight returns the number of nodes of a page, and the bytes of its text.
func (x *tab) weight() (nodes, bytes int) {
	x.t.Helper()
	_, err := fmt.Sscan(x.js(`document.getElementsByTagName("*").length + " " +
		new Blob([document.documentElement.outerHTML]).size`), &nodes, &bytes)
	if err != nil {
		x.t.Fatal(err)
	}
	return nodes, bytes
}

// stopwatch returns a function that logs what has happened, and how long it took.
func stopwatch(t *testing.T) func(what string) {
	last := time.Now()
	return func(what string) {
		t.Logf("%6.1f s  %s", time.Since(last).Seconds(), strings.TrimSpace(what))
		last = time.Now()
	}
}
