package remote

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"muster/fleet"
	"muster/internal/fakefleet/machine"
)

// A twin answers the same requests twice: record.sh in a real shell, and a pretended host that
// speaks the protocol itself. Both must say the same.
type twin struct {
	t       *testing.T
	dir     string
	machine *machine.Machine
}

func newTwin(t *testing.T) *twin {
	t.Helper()
	dir, err := os.MkdirTemp("/var/tmp", "muster-test-") // a disk: in memory only there are no records
	if err != nil {
		t.Fatal(err)
	}
	m := machine.New(machine.Config{Model: machine.Models()[0], Name: "fw1", User: "root",
		DiskBytes: 1 << 20})
	t.Cleanup(func() {
		m.Close()
		os.RemoveAll(dir)
	})
	return &twin{t: t, dir: dir, machine: m}
}

const twinNonce = "ABCDEFGHIJKLMNOP"

// A dialogue asks both sides the same.
type dialogue struct {
	t      *testing.T
	sides  [2]*heard
	wait   sync.WaitGroup
	cancel context.CancelFunc
}

// heard keeps the words of one side.
type heard struct {
	mu   sync.Mutex
	text bytes.Buffer
	more chan struct{}
}

func (h *heard) put(b []byte) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.text.Write(b)
	select {
	case h.more <- struct{}{}:
	default:
	}
}

func (h *heard) String() string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.text.String()
}

func (h *heard) Write(b []byte) (int, error) { h.put(b); return len(b), nil }

type twinSink struct{ *heard }

func (s twinSink) Write(_ <-chan struct{}, b []byte) error { s.put(b); return nil }

type twinSource struct{ r io.Reader }

func (s twinSource) Read(_ <-chan struct{}, b []byte) (int, error) { return s.r.Read(b) }

// begin sends a request to both.
func (w *twin) begin(verb string, line string, cmd Command) *dialogue {
	ctx, cancel := context.WithCancel(w.t.Context())
	d := &dialogue{t: w.t, cancel: cancel}
	for i := range d.sides {
		d.sides[i] = &heard{more: make(chan struct{}, 1)}
	}
	ask := func() io.Reader {
		one := cmd
		if cmd.Stdin != nil {
			one.Stdin = strings.NewReader("input\n")
		}
		if verb == "mark" {
			return strings.NewReader(cmd.Shell)
		}
		return request{verb, fleet.FenceRequired, filepath.Join(w.dir, "records"), one}.reader(twinNonce)
	}
	d.wait.Go(func() {
		sh := exec.CommandContext(ctx, "sh", "-c", line)
		sh.Env = append(os.Environ(), "HOME="+w.dir)
		sh.Stdin, sh.Stdout = ask(), d.sides[0]
		_ = sh.Run() // one that waits for what a step left behind kills itself
	})
	d.wait.Go(func() {
		w.machine.Run(ctx, machine.Command{Line: line, In: twinSource{ask()},
			Out: twinSink{d.sides[1]}, Err: twinSink{d.sides[1]}})
	})
	return d
}

// await waits until both have said a word.
func (d *dialogue) await(word string) {
	d.t.Helper()
	for i, side := range d.sides {
		for !strings.Contains(side.String(), twinNonce+" "+word) {
			select {
			case <-side.more:
			case <-time.After(20 * time.Second):
				d.t.Fatalf("side %d did not say %q: %q", i, word, side)
			}
		}
	}
}

var (
	twinAt      = regexp.MustCompile(twinNonce + ` at \d+\n`)
	twinSeconds = regexp.MustCompile(`no (busy|work) \d+`)
	twinMark    = regexp.MustCompile(`(mark|^N) \d+ \d+`)
)

// end waits for both and holds what they said against each other.
func (d *dialogue) end(of string) string {
	d.t.Helper()
	d.wait.Wait()
	d.cancel()
	var said [2]string
	for i, side := range d.sides {
		text := twinAt.ReplaceAllString(side.String(), "")
		text = twinSeconds.ReplaceAllString(text, "no $1 N")
		text = twinMark.ReplaceAllString(text, "$1 P P")
		said[i] = strings.ReplaceAll(text, twinNonce, "::")
	}
	if diff := cmp.Diff(said[0], said[1]); diff != "" {
		d.t.Fatalf("%s: the shell says (-), a pretended host says (+)\n%s", of, diff)
	}
	return said[0]
}

func (w *twin) step(verb, text string, r Record) *dialogue {
	return w.begin(verb, recordLine, Command{Shell: text, Bound: 30 * time.Second, Record: &r})
}

func (w *twin) want(verb, text string, r Record, want string) {
	w.t.Helper()
	of := fmt.Sprintf("%s %q %+v", verb, text, r)
	if got := w.step(verb, text, r).end(of); got != want {
		w.t.Errorf("%s: both say %q, want %q", of, got, want)
	}
}

func TestAPretendedHostSaysWhatRecordSaysOfAStep(t *testing.T) {
	t.Parallel()
	w := newTwin(t)
	a, b := Record{Job: "a", Token: 5, Since: 5}, Record{Job: "b", Step: 1, Token: 7, Since: 7}
	again := func(r Record) Record { r.Again = true; return r }
	older := func(r Record) Record { r.Token--; return r }
	newer := func(r Record) Record { r.Token++; return r }

	w.want("ask", ":", a, ":: no lacking folder\n")
	w.want("run", "echo hi; exit 3", a, ":: hello fenced\n:: began\nhi\n:: end exit 3 0\n")
	w.want("run", "echo hi", again(a), ":: hello fenced\n:: attached 000000000000000005\nhi\n:: end exit 3 0\n")
	w.want("run", "echo hi", older(a), ":: hello fenced\n:: no stale\n")
	w.want("peek", ":", b, ":: hello fenced\n:: no never\n")
	w.want("ask", ":", b, ":: hello fenced\n:: no never\n")
	w.want("run", "true", older(b), ":: hello fenced\n:: no stale\n")
	w.want("stop", ":", b, ":: hello fenced\n:: stopped none\n")
	w.want("run", "true", again(Record{Job: "c", Token: 9, Since: 3}), ":: hello fenced\n:: no untold\n")
	w.want("run", "true", Record{Job: "c", Token: 9, Since: 3, Again: true, Twice: true},
		":: hello fenced\n:: began\n:: end exit 0 0\n")
	w.want("stop", ":", Record{Job: "c", Token: 9}, ":: hello fenced\n:: stopped ended\n")

	// Records that are older than a step of the job tell of the steps behind it.
	d := Record{Job: "d", Step: 1, Token: 11, Since: 3}
	w.want("run", "true", d, ":: hello fenced\n:: began\n:: end exit 0 0\n")
	for number, tells := range map[int]bool{0: false, 1001: false, 2: true, 1002: true} {
		want := ":: hello fenced\n:: no untold\n"
		if tells {
			want = ":: hello fenced\n:: no never\n"
		}
		w.want("peek", ":", again(Record{Job: "d", Step: number, Token: 12, Since: 3}), want)
	}
	w.want("peek", ":", again(Record{Job: "e", Step: 2, Token: 12, Since: 3}), ":: hello fenced\n:: no untold\n")

	long := Record{Job: "l", Token: 20, Since: 20}
	run := w.step("run", "echo begun; sleep 60", long)
	run.await("began")
	w.want("peek", ":", newer(long), ":: hello fenced\n:: no work N\n")
	w.want("look", ":", newer(long), ":: hello fenced\n:: no work N\n")
	w.want("run", "true", Record{Job: "m", Token: 21, Since: 21}, ":: hello fenced\n:: no busy N l\n")
	w.want("run", "true", older(Record{Job: "m", Token: 20, Since: 19}), ":: hello fenced\n:: no busy N l\n")
	beside := w.step("run", "echo twice", again(newer(long)))
	beside.await("attached")
	w.want("stop", ":", newer(long), ":: hello fenced\n:: stopped gone\n")
	if got := run.end("the step"); got != ":: hello fenced\n:: began\nbegun\n:: end stopped 143 0\n" {
		t.Errorf("the step that was stopped says %q", got)
	}
	if got := beside.end("beside"); !strings.HasSuffix(got, "begun\n:: end stopped 143 0\n") {
		t.Errorf("whoever waited beside says %q", got)
	}
	w.want("run", "echo anew", Record{Job: "l", Token: 30, Since: 20, Again: true, Twice: true},
		":: hello fenced\n:: attached 000000000000000020\nbegun\n:: end stopped 143 0\n")
}

func TestAPretendedHostGivesAStepItsInput(t *testing.T) {
	t.Parallel()
	w := newTwin(t)
	r := Record{Job: "a", Token: 5, Since: 5}
	d := w.begin("run", recordLine, Command{Shell: "cat", Stdin: strings.NewReader(""), Bound: time.Minute,
		Record: &r})
	if got := d.end("input"); got != ":: hello fenced\n:: began\ninput\n:: end exit 0 0\n" {
		t.Errorf("both say %q", got)
	}
	d = w.begin("run", recordLine, Command{Shell: "sleep 9", Bound: time.Second,
		Record: &Record{Job: "b", Token: 6, Since: 6}})
	if got := d.end("a bound"); got != ":: hello fenced\n:: began\n:: end timeout 124 0\n" {
		t.Errorf("both say %q", got)
	}
}

// A random walk: whatever came before, both remember the same.
func TestAPretendedHostRemembersWhatRecordRemembers(t *testing.T) {
	t.Parallel()
	seed := rand.Uint64()
	r := rand.New(rand.NewPCG(seed, 1))
	t.Logf("seed %d", seed)
	w := newTwin(t)
	pick := func(of ...string) string { return of[r.IntN(len(of))] }
	token := int64(2e9)
	for range 40 {
		token += 3
		q := Record{Job: pick("a", "b", "c"), Step: r.IntN(2), Token: token - int64(r.IntN(6)),
			Again: r.IntN(2) == 0, Twice: r.IntN(2) == 0, Marked: r.IntN(3) == 0}
		q.Since = q.Token - int64(r.IntN(20))
		if r.IntN(6) == 0 { // more than a week later, by the clock of tokens
			token += 700e9
		}
		if r.IntN(4) == 0 {
			w.mark(q, r.IntN(3) == 0)
			continue
		}
		verb, text := pick("run", "run", "run", "ask", "look", "peek", "stop"), pick("true", "exit 3", "printf x; false")
		w.step(verb, text, q).end(fmt.Sprintf("seed %d: %s %q %+v", seed, verb, text, q))
	}
}

// mark holds one request for a marker.
func (w *twin) mark(q Record, off bool) string {
	w.t.Helper()
	m := Marker{Group: "g", Host: "fw1", Job: q.Job, Token: q.Token, Until: q.Token + 50, Off: off}
	if q.Twice {
		m.Over = Marked{key: (&Record{Job: "a"}).key(), Token: q.Since}
	}
	c := &Conn{cfg: Config{RecordDir: filepath.Join(w.dir, "records")}}
	c.keeper.fence = fleet.FenceRequired
	text := m.text(c, twinNonce)
	d := w.begin("mark", "timeout -k 5 15 sh -c '"+join+"N"+tell+markerLine+"'", Command{Shell: text})
	return d.end(fmt.Sprintf("marker %+v", m))
}

func TestAPretendedHostCarriesAMarkerAsRecordDoes(t *testing.T) {
	t.Parallel()
	w := newTwin(t)
	a, b := Record{Job: "a", Token: 5}, Record{Job: "b", Token: 6}
	for _, c := range []struct {
		q    Record
		off  bool
		want string
	}{
		{a, true, "no lacking folder"}, {a, false, "marked"}, {a, false, "marked"}, {b, false, "no held"},
		{b, true, "left"}, {Record{Job: "a", Token: 4}, false, "no stale"},
		{Record{Job: "b", Token: 7, Since: 5, Twice: true}, false, "marked"},
		{Record{Job: "b", Token: 8}, true, "left"},
	} {
		if got := w.mark(c.q, c.off); !strings.Contains(got, ":: "+c.want) {
			t.Errorf("%+v off=%t: both say %q, want %q", c.q, c.off, got, c.want)
		}
	}
	w.mark(Record{Job: "a", Token: 20}, false)
	w.want("run", "true", Record{Job: "b", Token: 10, Since: 10, Marked: true}, ":: hello fenced\n:: no marked a\n")
}
