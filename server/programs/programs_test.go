package programs_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"

	"muster/fleet"
	"muster/ingress"
	"muster/jobs/queue"
	"muster/jobs/queue/inbox"
	"muster/server/programs"
	"muster/testkit/redistest"
)

// plain signs nothing.
type plain struct{}

func (plain) Vouch(_, text string) (string, error)   { return text, nil }
func (plain) Vouched(_, kept string) (string, error) { return kept, nil }

// logBook is a log that a test reads.
type logBook struct {
	mu   sync.Mutex
	text strings.Builder
}

func (b *logBook) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.Write(p)
}

func (b *logBook) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.String()
}

// world is an inbox on a real Redis, and a server that runs programs for it.
type world struct {
	t       *testing.T
	box     *inbox.Inbox
	folder  string
	sources atomic.Pointer[ingress.Sources]
	log     logBook
	stop    func()
}

// newWorld runs a script of a shell as the program of the source prog.
func newWorld(t *testing.T, script, more string) *world {
	t.Helper()
	c, err := queue.Open(t.Context(), redistest.StartServer(t).Config())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	w := &world{t: t, box: inbox.New(c, plain{}), folder: t.TempDir()}
	w.use(script, more)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	n := programs.Needs{Sources: w.sources.Load, Inbox: w.box, Now: time.Now,
		Log: hclog.New(&hclog.LoggerOptions{Output: &w.log})}
	n.Pause.Min, n.Pause.Max = 10*time.Millisecond, 40*time.Millisecond
	go func() {
		defer close(ended)
		if err := programs.New(n).Run(ctx); err != nil {
			t.Error(err)
		}
	}()
	w.stop = sync.OnceFunc(func() {
		cancel()
		<-ended
	})
	t.Cleanup(w.stop)
	return w
}

// use puts a script in force. It finds its folder in $1.
func (w *world) use(script, more string) {
	w.t.Helper()
	file := filepath.Join(w.folder, "script")
	if err := os.WriteFile(file, []byte(script), 0o600); err != nil {
		w.t.Fatal(err)
	}
	s, err := ingress.Parse(fleet.Source{Name: "events.yaml", Data: fmt.Appendf(nil, "sources:\n"+
		"  - {name: prog, preset: program, command: [/bin/sh, %s, %s], every: 1s%s}\n", file, w.folder, more)})
	if err != nil {
		w.t.Fatal(err)
	}
	w.sources.Store(s)
}

// bodies returns the bodies of the events that were taken, in their order.
func (w *world) bodies() (out []string) {
	w.t.Helper()
	list, _, err := w.box.List(w.t.Context(), inbox.Filter{Most: 500, Sees: func(string) bool { return true }})
	if err != nil {
		w.t.Fatal(err)
	}
	for _, k := range slices.Backward(list) {
		whole, err := w.box.Event(w.t.Context(), k.ID)
		if err != nil {
			w.t.Fatal(err)
		}
		out = append(out, k.Kind+" "+k.Customer+" "+string(whole.Body))
	}
	return out
}

func (w *world) await(what string, f func() bool) {
	w.t.Helper()
	ticks := time.NewTicker(5 * time.Millisecond)
	defer ticks.Stop()
	for end := time.After(time.Minute); !f(); {
		select {
		case <-ticks.C:
		case <-end:
			w.t.Fatalf("%s: not within a minute; events %q; log: %s", what, w.bodies(), w.log.String())
		}
	}
}

// read returns a file of the script.
func (w *world) read(name string) string {
	text, _ := os.ReadFile(filepath.Join(w.folder, name)) // it may come later
	return strings.TrimSpace(string(text))
}

// Each line is an event, also from a program that prints all again after it has failed; and what is
// no event spoils none of those behind it.
func TestEachLineOfAProgramIsOneEvent(t *testing.T) {
	t.Parallel()
	w := newWorld(t, `
echo '{"type": "a", "who": "acme"}'
echo 'no JSON $(reboot) ; {{x}}'
echo
head -c 70000 /dev/zero | tr '\0' x; echo
printf '{"type": "b", "who": "\377\376"}\n'
echo '{"type": "a b", "who": "acme"}'
echo '{"type": "c", "who": "acme"}'
echo "some words" >&2
echo run >>"$1/runs"
printf '{"type": "half'
exit 3
`, ", kind_at: type, customer_at: who")
	w.await("two runs", func() bool { return strings.Count(w.read("runs"), "run") >= 3 })
	w.stop()
	want := []string{`a acme {"type": "a", "who": "acme"}`, `c acme {"type": "c", "who": "acme"}`}
	if got := w.bodies(); !slices.Equal(got, want) {
		t.Errorf("events %q, want %q", got, want)
	}
	for _, words := range []string{"exit code 3", "some words", "more than 65536 bytes", "is not JSON",
		"no name of a customer"} {
		if text := w.log.String(); !strings.Contains(text, words) {
			t.Errorf("the log lacks %q: %s", words, text)
		}
	}
}

// A text is data in JSON, whatever it has; and with repeated: keep each line counts.
func TestALineOfTextIsData(t *testing.T) {
	t.Parallel()
	w := newWorld(t, `printf 'say "hi" \033[31m\n'; printf 'a\377b\n'; echo same; printf same; exec sleep 0.01`,
		", lines: text, repeated: keep")
	w.await("a run", func() bool { return len(w.bodies()) >= 4 })
	w.stop()
	want := []string{`  {"line":"say \"hi\" \u001b[31m"}`, "  {\"line\":\"a\uFFFDb\"}", `  {"line":"same"}`,
		`  {"line":"same"}`}
	if got := w.bodies(); !slices.Equal(got[:4], want) {
		t.Errorf("events %q, want %q", got, want)
	}
}

// alive reports whether a process is there that can run.
func alive(pid string) bool {
	data, err := os.ReadFile("/proc/" + pid + "/stat")
	return err == nil && !strings.Contains(string(data), ") Z")
}

// When the server goes, or the source, the program ends with all that it has started.
func TestAProgramEndsWithTheServer(t *testing.T) {
	t.Parallel()
	w := newWorld(t, `trap '' TERM; setsid sleep 1000 & echo $! >"$1/far"; sleep 1000 & echo $! >"$1/near"
echo $$ >"$1/pid"; wait`, "")
	pids := func() []string { return []string{w.read("pid"), w.read("near"), w.read("far")} }
	w.await("a run", func() bool { return w.read("pid") != "" })
	first := pids()
	w.use(`trap '' TERM; sleep 1000 & echo $! >"$1/near"; echo $$ >"$1/pid"; wait`, ", per_minute: 7")
	w.await("the changed program", func() bool {
		return !slices.ContainsFunc(first, alive) && w.read("pid") != first[0] && alive(w.read("pid"))
	})
	second := pids()[:2]
	w.stop()
	for _, pid := range second {
		if alive(pid) {
			t.Errorf("process %s is left", pid)
		}
	}
}

// A program beyond its rate waits, and loses nothing; the others go on.
func TestAProgramThatIsTooFastWaits(t *testing.T) {
	t.Parallel()
	w := newWorld(t, `i=0; while [ $i -lt 20 ]; do i=$((i+1)); echo "{\"n\": $i}"; done
echo done >"$1/done"; exec sleep 1000`, ", per_minute: 5, waiting: 5")
	w.await("the first events", func() bool { return len(w.bodies()) == 5 })
	w.await("the wait", func() bool { return strings.Contains(w.log.String(), "waits") })
	if got := w.bodies(); got[0] != `  {"n": 1}` || got[4] != `  {"n": 5}` {
		t.Errorf("%q", got)
	}
}

// Endless lines neither fill memory nor the log.
func TestEndlessLinesAreBounded(t *testing.T) {
	t.Parallel()
	w := newWorld(t, `yes nonsense & cat /dev/zero >&2 & echo $! >"$1/pid"; wait`, "")
	w.await("the bound of the log", func() bool {
		return strings.Contains(w.log.String(), "more in this minute")
	})
	w.stop()
	if n := strings.Count(w.log.String(), "\n"); n > 60 || len(w.bodies()) > 0 {
		t.Errorf("%d lines in the log, %d events", n, len(w.bodies()))
	}
}
