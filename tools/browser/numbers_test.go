package browser

import (
	"bytes"
	"context"
	"flag"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/heapprofiler"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
)

var (
	numbers  = flag.Bool("numbers", false, "measure the pages: TestNumbers prints a table")
	heapTime = flag.Duration("heap", time.Minute, "how long TestNumbers watches the heap of an open page")
)

// slow is the factor by which the processor of the browser is throttled.
const slow = 4

const numbersConfig = `redis: {url: "unix://DIR/redis.sock"}
server:
  key: DIR/server.key
  listen: ["unix:DIR/api.sock", "ADDR"]
  access: DIR/access.yaml
node: {name: n1, dir: DIR/node}
master: {children: 4, slots: 50}
history: {url: "sqlite://DIR/history.db"}
audit: {dir: DIR/audit}
inventory: [DIR/hosts.yaml]
runbooks: [DIR/rest.yaml]
`

// restBook has jobs that end without a host.
const restBook = `name: rest
description: Rests, and asks no host.
repeatable: true
timeout: 5m
steps:
  - {name: rest, wait: {for: 1s}}
`

// A table of numbers, each beside the bound that it should keep.
type table struct {
	t    *testing.T
	rows []string
}

// add adds a number. One that depends on the machine is printed as bad; one that does not fails the
// test, too.
func (b *table) add(what, unit string, is, bound float64, anywhere bool) {
	verdict := "good"
	if is > bound {
		verdict = "BAD"
		if anywhere {
			b.t.Errorf("%s: %.1f %s, want at most %.1f", what, is, unit, bound)
		}
	}
	b.t.Logf("%s: %.1f %s", what, is, unit) // a later failure leaves these
	b.rows = append(b.rows, fmt.Sprintf("| %s | %.1f %s | ≤ %.1f | %s |", what, is, unit, bound, verdict))
}

// numbersHouse starts a house with many hosts that nobody reaches, and returns the process of its
// server.
func numbersHouse(t *testing.T, hosts int) (h *house, server int) {
	t.Helper()
	var list strings.Builder
	list.WriteString("hosts:\n")
	for i := range hosts {
		fmt.Fprintf(&list, "  - {name: h%05d, customer: customer%02d, address: 10.%d.%d.%d, %s}\n", i, i%30,
			1+i/62500, i/250%250, i%250+1, hostKey)
	}
	p := newPlain(t, map[string]string{"muster": numbersConfig, "hosts": list.String(), "rest": restBook,
		"access": plainAccess})
	server = p.serve(t, "master")
	return p.house, server
}

// steps are the waves of a run of which 1 % of the hosts begin each second, or less often.
func steps() string {
	var all []string
	for i := 1; i <= 100; i++ {
		all = append(all, strconv.Itoa(i)+"%")
	}
	return strings.Join(all, ",")
}

// TestNumbers measures the pages with many hosts in a browser, and prints a table. It is a
// measurement that one asks for: the machine should have nothing else to do. Pages are measured on a
// slow processor. While jobs end the browser is as fast as the machine, because it shares that with
// all that works on them.
func TestNumbers(t *testing.T) {
	switch {
	case testing.Short():
		t.Skip("-short: a measurement of minutes")
	case !*numbers:
		t.Skip("a measurement: -numbers asks for it")
	}
	hosts := *bigHosts
	h, server := numbersHouse(t, hosts)
	lookAt(t, h)
	b := newBrowser(t)
	x := openFor(t, b, wide, 25*time.Minute+*heapTime)
	x.login()
	out := &table{t: t}
	rest := func(more ...string) string {
		h.muster(t, append([]string{"run", "rest", "--on", "all", "--detach"}, more...)...)
		return h.lastTask(t)
	}
	// Pages are measured when nothing runs: the browser is to have what is left of a processor.
	task := rest()
	h.awaitEnd(t, task)
	x.throttle(slow)
	measurePages(x, out, task)
	x.throttle(1)
	task = rest("--waves", steps(), "--soak", "1s")
	measureLive(x, out, task)
	other := rest("--waves", steps(), "--soak", "1s")
	measureHeap(x, out, other)
	t.Run("tabs", func(t *testing.T) { measureTabs(t, b, out, "/tasks/"+other) })
	x.visit("/fleet") // a page without a stream
	for _, open := range []string{task, other} {
		h.muster(t, "cancel", open, "--reason", "to measure")
		h.awaitEnd(t, open)
	}
	measureMany(t, out, other, server)
	var past struct{ Jobs []struct{ ID string } }
	begun := time.Now()
	h.get(t, "/v1/history?limit=100", &past)
	out.add(fmt.Sprintf("100 jobs of a history of fewer than %d", 2*hosts), "ms", ms(time.Since(begun)), 300, false)
	fmt.Printf("%d hosts, pages on a processor %d times slower\n\n"+
		"| number | is | bound | |\n|---|---|---|---|\n%s\n", hosts, slow, strings.Join(out.rows, "\n"))
}

func ms(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }

// throttle makes the processor of the tab so many times slower.
func (x *tab) throttle(rate float64) {
	x.t.Helper()
	x.run(do(emulation.SetCPUThrottlingRate, emulation.SetCPUThrottlingRateParams{Rate: rate}))
}

// number evaluates an expression that is a number.
func (x *tab) number(expression string) float64 {
	x.t.Helper()
	n, err := strconv.ParseFloat(x.js(expression), 64)
	if err != nil {
		x.t.Fatal(err)
	}
	return n
}

// measurePages measures the first content and the weight of pages.
func measurePages(x *tab, out *table, task string) {
	var first, kB, nodes float64
	var slowest, largest, deepest string
	for _, path := range []string{"/", "/tasks", "/tasks/" + task, "/fleet", "/queue", "/run/rest?on=all", "/history",
		"/windows"} {
		x.visit(path)
		x.until(`performance.getEntriesByName("first-contentful-paint").length > 0`)
		if n := x.number(`performance.getEntriesByName("first-contentful-paint")[0].startTime`); n > first {
			first, slowest = n, path
		}
		n, bytes := x.weight()
		if w := float64(bytes) / 1024; w > kB {
			kB, largest = w, path
		}
		if float64(n) > nodes {
			nodes, deepest = float64(n), path
		}
	}
	plain := func(path string) string { return strings.Replace(path, task, "{task}", 1) }
	out.add("first content, the slowest page: "+plain(slowest), "ms", first, 1500, false)
	out.add("the largest page: "+plain(largest), "kB", kB, 150, true)
	out.add("the page with most nodes: "+plain(deepest), "nodes", nodes, 3000, true)
}

// measureLive measures the page of a task while its jobs end.
func measureLive(x *tab, out *table, task string) {
	x.visit("/tasks/" + task)
	before, begun := x.done(task), time.Now()
	longest := x.number(`new Promise((done) => { let most = 0;
		new PerformanceObserver((l) => { for (const e of l.getEntries()) most = Math.max(most, e.duration); })
			.observe({type: "longtask"});
		setTimeout(() => done(most), 20000); })`)
	rate := (x.done(task) - before) / time.Since(begun).Seconds()
	if rate < 1 {
		x.t.Errorf("%.1f jobs a second end: nothing changes on the page", rate)
	}
	out.add(fmt.Sprintf("the longest task of the browser while %.0f jobs a second end", rate), "ms", longest, 100, false)
	kept := x.number(`performance.getEntriesByType("resource").filter((e) => e.name.endsWith("/map"))
		.reduce((n, e) => n + e.transferSize, 0)`) / 1024
	out.add("the data of the map in that time", "kB/s", kept/time.Since(begun).Seconds(), 30, false)
	out.add("the stream of the page in that time", "kB/s", streamOf(x.t, demo, "/tasks/"+task, 15*time.Second), 30, false)

	var all []float64
	for i := range 6 {
		order, sign := "pause", "true"
		if i%2 == 1 {
			order, sign = "resume", "false"
		}
		x.js(`window.seen = new Promise((done) => { const look = () => {
			if (document.getElementById("state").textContent.includes("Paused:") === ` + sign + `)
				requestAnimationFrame(() => setTimeout(() => done(Date.now())));
			else setTimeout(look, 10); }; look(); }); true`)
		given := time.Now() // the command itself is a part of the time
		demo.muster(x.t, order, task, "--reason", "to measure")
		all = append(all, x.number("window.seen")-float64(given.UnixMilli()))
	}
	slices.Sort(all)
	out.add("from an event to its pixel, the median of 6", "ms", all[3], 1000, false)
	out.add("from an event to its pixel, the slowest of 6", "ms", all[5], 1000, false)
}

// streamOf returns the kB a second that the stream of a page brings.
func streamOf(t testing.TB, h *house, page string, during time.Duration) float64 {
	t.Helper()
	ctx, stop := context.WithTimeout(t.Context(), during)
	defer stop()
	return float64(listen(ctx, h, page, io.Discard)) / 1024 / during.Seconds()
}

// A first tells by a channel that a part of the whole page of a task has come by its stream.
type first struct {
	once sync.Once
	here chan<- struct{}
	end  []byte // of the last piece
}

// Write takes a piece of the stream.
func (f *first) Write(p []byte) (int, error) {
	sign := []byte(`{"id":"folded"`)
	if f.end = append(f.end, p...); bytes.Contains(f.end, sign) {
		f.once.Do(func() { f.here <- struct{}{} })
	}
	f.end = f.end[max(0, len(f.end)-len(sign)):]
	return len(p), nil
}

// awaitRest waits until a process has little to do: it still writes the history of a task.
func awaitRest(t testing.TB, pid int) {
	t.Helper()
	for end := time.Now().Add(5 * time.Minute); time.Now().Before(end); {
		before := cpu(t, pid)
		time.Sleep(5 * time.Second)
		if cpu(t, pid)-before < 250*time.Millisecond {
			return
		}
	}
	t.Fatal("the server does not come to rest")
}

// listen copies the stream of a page until its context ends, and returns the bytes that came.
func listen(ctx context.Context, h *house, page string, to io.Writer) (n int64) {
	client := http.Client{Transport: &http.Transport{DisableKeepAlives: true,
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, "unix", h.socket)
		}}}
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://localhost/live?at="+page, nil)
	if err != nil {
		return 0
	}
	res, err := client.Do(r)
	if err != nil {
		return 0
	}
	defer res.Body.Close()
	n, _ = io.Copy(to, res.Body) // it ends with its context
	return n
}

// heap returns the bytes in use of the page, after its garbage was collected.
func (x *tab) heap() float64 {
	x.t.Helper()
	used := 0.0
	x.run(do(heapprofiler.CollectGarbage, cdp.Empty{}),
		chromedp.Func(func(ctx context.Context, t *chromedp.Target) error {
			u, err := cdp.Call(ctx, t, runtime.GetHeapUsage, cdp.Empty{})
			used = u.UsedSize
			return err
		}))
	return used
}

// done returns the number of jobs of a task that have ended.
func (x *tab) done(task string) (n float64) {
	var now struct{ Outcomes map[string]int }
	demo.get(x.t, "/v1/tasks/"+task, &now)
	for _, one := range now.Outcomes {
		n += float64(one)
	}
	return n
}

// measureHeap watches the heap of the page of a task that stays open while its jobs end.
func measureHeap(x *tab, out *table, task string) {
	x.visit("/tasks/" + task)
	x.until(`document.querySelector("canvas").dataset.drawn`)
	x.js(`new Promise((done) => setTimeout(done, 10000))`) // its first looks
	first := x.heap()
	least, most := first, first
	before := x.done(task)
	for begun := time.Now(); time.Since(begun) < *heapTime; {
		x.js(`new Promise((done) => setTimeout(done, 5000))`)
		now := x.heap()
		least, most = min(least, now), max(most, now)
	}
	if x.done(task) == before {
		x.t.Error("no job has ended: nothing changed on the page")
	}
	out.add(fmt.Sprintf("how far the heap of an open page went from its %.2f MB in %s", first/1e6, *heapTime), "%",
		100*max(most-first, first-least)/first, 10, false)
}

// measureTabs opens seven tabs, and an eighth.
func measureTabs(t *testing.T, b context.Context, out *table, path string) {
	var last time.Duration
	for range 8 {
		begun := time.Now()
		x := openFor(t, b, wide, 5*time.Minute)
		x.visit(path)
		last = time.Since(begun)
	}
	// One that gets no connection never comes, so the bound holds on any machine.
	out.add("the eighth tab is there after", "ms", ms(last), 15_000, true)
}

// measureMany opens 200 pages beside the browser, and measures their cost for the server at most: it
// had come to rest, nothing is taken off for what it does without them, and its memory counts at its
// peak, from the opening on.
func measureMany(t *testing.T, out *table, task string, server int) {
	const pages, during = 200, 20 * time.Second
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	awaitRest(t, server)
	var wait sync.WaitGroup
	here, began := make(chan struct{}, pages), time.Now()
	memory, peak := resident(t, server), 0.0
	for range pages {
		wait.Go(func() { listen(ctx, demo, "/tasks/"+task, &first{here: here}) })
	}
	look, late := time.NewTicker(100*time.Millisecond), time.After(5*time.Minute)
	defer look.Stop()
	for n := 0; n < pages; {
		select {
		case <-here:
			n++
		case <-look.C:
			peak = max(peak, resident(t, server))
		case <-late:
			t.Fatalf("%d of %d pages had their first look", n, pages)
		}
	}
	looks := time.Since(began)
	busy := cpu(t, server)
	for over := time.After(during); over != nil; {
		select {
		case <-look.C:
			peak = max(peak, resident(t, server))
		case <-over:
			over = nil
		}
	}
	busy = cpu(t, server) - busy
	stop()
	wait.Wait()
	out.add("200 pages, opened at once, are whole after", "ms", ms(looks), 10_000, false)
	out.add("then they cost the server at most", "% of a core", 100*busy.Seconds()/during.Seconds(), 10, false)
	out.add("and in memory, at its peak", "MB", peak-memory, 50, false)
}

// awaitEnd waits until all jobs of a task have ended.
func (h *house) awaitEnd(t testing.TB, task string) {
	t.Helper()
	for end := time.Now().Add(10 * time.Minute); time.Now().Before(end); {
		var now struct{ State string }
		if h.get(t, "/v1/tasks/"+task+"?wait=5s", &now); now.State == "ended" {
			return
		}
	}
	t.Fatalf("task %s does not end", task)
}

// cpu returns the time of processors that a process has used.
func cpu(t testing.TB, pid int) time.Duration {
	t.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		t.Fatal(err)
	}
	f := strings.Fields(string(text[strings.LastIndexByte(string(text), ')'):]))
	user, _ := strconv.Atoi(f[12])
	system, _ := strconv.Atoi(f[13])
	return time.Duration(user+system) * 10 * time.Millisecond // USER_HZ is 100 on all Linux
}

// resident returns the MB of memory that a process has.
func resident(t testing.TB, pid int) float64 {
	t.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(text), "VmRSS:")
	kB, _ := strconv.Atoi(strings.Fields(rest)[0])
	return float64(kB) / 1024
}
