package browser

import (
	"context"
	_ "embed"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
)

//go:embed testdata/axe.min.js
var axe string

// A look says how a page is looked at.
type look struct {
	width, height int
	dark          bool
	noScript      bool
}

// tab is a tab of a browser. It collects what the browser complains of.
type tab struct {
	t   testing.TB
	ctx context.Context

	mu   sync.Mutex
	told []string
}

// browserOf starts a browser, for one test that looks at the demo after its story.
func browserOf(t testing.TB) context.Context {
	t.Helper()
	if testing.Short() {
		t.Skip("-short: the story of the demo")
	}
	return newBrowser(t)
}

// newBrowser starts a browser, for one test.
func newBrowser(t testing.TB) context.Context {
	t.Helper()
	opts := append(slices.Clone(chromedp.DefaultExecAllocatorOptions[:]), chromedp.ExecPath("chromium-headless-shell"),
		chromedp.NoSandbox, chromedp.Flag("lang", "en-GB"), chromedp.Env("TZ=Europe/Zurich"))
	ctx, stop := chromedp.NewExecAllocator(context.Background(), opts...)
	t.Cleanup(stop)
	ctx, stop = chromedp.NewContext(ctx)
	t.Cleanup(stop)
	if err := chromedp.Do(ctx); err != nil {
		t.Fatalf("no browser (tools/install.sh chromium): %v", err)
	}
	return ctx
}

// login logs the browser of a tab in.
func (x *tab) login() {
	x.t.Helper()
	x.run(chromedp.Navigate(demo.link(x.t)), chromedp.WaitReady("form"),
		chromedp.Click("form button", chromedp.NodeVisible), chromedp.WaitReady("main[data-live]"))
	x.complaints()
}

// open opens a tab for two minutes.
func open(t testing.TB, b context.Context, l look) *tab {
	t.Helper()
	return openFor(t, b, l, 2*time.Minute)
}

// openFor opens a tab for a time.
func openFor(t testing.TB, b context.Context, l look, bound time.Duration) *tab {
	t.Helper()
	ctx, stop := chromedp.NewContext(b)
	t.Cleanup(stop)
	ctx, stop = context.WithTimeout(ctx, bound)
	t.Cleanup(stop)
	x := &tab{t: t, ctx: ctx}
	err := chromedp.Listen(ctx, func(ev any) {
		switch e := ev.(type) {
		case *runtime.EventConsoleAPICalled:
			if e.Type == "error" || e.Type == "warning" {
				x.tell("console: %s", args(e.Args))
			}
		case *runtime.EventExceptionThrown:
			x.tell("exception: %s", e.ExceptionDetails.Text)
		case *log.EventEntryAdded:
			if e.Entry.Level == "error" || strings.Contains(e.Entry.Text, "Security Policy") {
				x.tell("%s: %s %s", e.Entry.Source, e.Entry.Text, e.Entry.URL)
			}
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	scheme := "light"
	if l.dark {
		scheme = "dark"
	}
	x.run(do(log.Enable, cdp.Empty{}),
		do(emulation.SetScriptExecutionDisabled, emulation.SetScriptExecutionDisabledParams{Value: l.noScript}),
		do(emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{Features: []*emulation.MediaFeature{
			{Name: "prefers-color-scheme", Value: scheme}}}),
		do(emulation.SetDeviceMetricsOverride, emulation.SetDeviceMetricsOverrideParams{Width: int64(l.width),
			Height: int64(l.height), DeviceScaleFactor: 1, Mobile: l.width < 500}))
	return x
}

// do returns the action that makes a call of the protocol.
func do[P any](c cdp.Command[P, cdp.Empty], params P) chromedp.Action[chromedp.Void] {
	return chromedp.Func(func(ctx context.Context, t *chromedp.Target) error {
		_, err := cdp.Call(ctx, t, c, params)
		return err
	})
}

func args(list []*runtime.RemoteObject) string {
	var out []string
	for _, a := range list {
		out = append(out, fmt.Sprint(a.Value)+a.Description)
	}
	return strings.Join(out, " ")
}

func (x *tab) tell(format string, a ...any) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.told = append(x.told, fmt.Sprintf(format, a...))
}

// complaints returns what the browser complained of since the last call.
func (x *tab) complaints() []string {
	x.mu.Lock()
	defer x.mu.Unlock()
	out := x.told
	x.told = nil
	return out
}

func (x *tab) run(actions ...chromedp.Action[chromedp.Void]) {
	x.t.Helper()
	ctx, stop := context.WithTimeout(x.ctx, 20*time.Second)
	defer stop()
	if err := chromedp.Do(ctx, actions...); err != nil {
		x.t.Fatalf("%v at %s\n%s", err, x.js("location.href"), x.text())
	}
}

// visit goes to a page of the house.
func (x *tab) visit(path string) {
	x.t.Helper()
	x.run(chromedp.Navigate(demo.url+path), chromedp.WaitReady("main"))
}

// js evaluates an expression, and waits for it if it is a promise.
func (x *tab) js(expression string) string {
	x.t.Helper()
	out, err := chromedp.Run(x.ctx, chromedp.Evaluate[any](expression, chromedp.EvalAwaitPromise))
	if err != nil {
		x.t.Fatalf("%.200s: %v", expression, err)
	}
	return fmt.Sprint(out)
}

// until waits until an expression is true on this page.
func (x *tab) until(expression string) {
	x.t.Helper()
	x.untilIn(45*time.Second, expression)
}

// untilIn waits for a time at most until an expression is true on this page.
func (x *tab) untilIn(bound time.Duration, expression string) {
	x.t.Helper()
	ok := x.js(fmt.Sprintf(`new Promise((done) => { const end = Date.now() + %d; const look = () => {
		if (%s) done(true); else if (Date.now() > end) done(false); else setTimeout(look, 50); };
		look(); })`, bound.Milliseconds(), expression))
	if ok != "true" {
		x.t.Fatalf("%s did not become true\n%s", expression, x.text())
	}
}

// text returns the text of the page.
func (x *tab) text() string { return x.js("document.body.innerText") }

// violations returns those of axe.
func (x *tab) violations() []string {
	x.t.Helper()
	var out struct {
		Violations []struct {
			ID, Help string
			Nodes    []struct {
				HTML           string
				FailureSummary string
			}
		}
	}
	x.js(axe + ";0")
	text := x.js(`axe.run({runOnly: {type: "tag", values: ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa",
		"wcag22aa", "best-practice"]}}).then(r => JSON.stringify({violations: r.violations}))`)
	if err := json.Unmarshal([]byte(text), &out); err != nil {
		x.t.Fatal(err)
	}
	var list []string
	for _, v := range out.Violations {
		for _, n := range v.Nodes[:min(2, len(v.Nodes))] {
			html := n.HTML[:min(160, len(n.HTML))]
			list = append(list, fmt.Sprintf("axe %s: %s (%d places): %s: %s", v.ID, v.Help, len(v.Nodes), html,
				strings.Join(strings.Fields(n.FailureSummary), " ")))
		}
	}
	return list
}
