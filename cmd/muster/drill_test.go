package main

import (
	"context"
	"flag"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"muster/internal/fakefleet"
	"muster/jobs"
)

// operators is the page of docs that the drills play.
const operators = "../../docs/RUNBOOK_OPERATOR.md"

var wholeDrill = flag.Bool("drill", false, "play all pages of docs/RUNBOOK_OPERATOR.md")

// longDrill skips a drill for which the short tests have no time.
func longDrill(t *testing.T) {
	t.Helper()
	if testing.Short() && !*wholeDrill {
		t.Skip("-short: make drill plays this page")
	}
	t.Parallel()
}

// A step is a command of a page, and what its comment says of its end: `# exit 1`, or
// `# until exit 0` for a command that is to be repeated.
type step struct {
	text  string
	exit  int
	until bool
}

// A drill plays the commands of a page in their order, block by block. The test makes the fault
// before them, and what happens between them.
type drill struct {
	*house
	page   string
	blocks [][]step
	words  *strings.Replacer
	played int
	units  map[string]*unit // by the names that pages have for them
}

// drillOf reads a page. words are pairs: what stands in the page, and what it is in this house.
func drillOf(h *house, page string, words ...string) *drill {
	h.t.Helper()
	d := &drill{house: h, page: page, blocks: pagesOf(h.t)[page]}
	if len(d.blocks) == 0 {
		h.t.Fatalf("%s has no page %q with commands", operators, page)
	}
	d.words = strings.NewReplacer(append(words, "/etc/muster", h.dir)...)
	h.t.Cleanup(func() {
		if d.played != len(d.blocks) && !h.t.Failed() {
			h.t.Errorf("%s: %d of %d blocks were played", page, d.played, len(d.blocks))
		}
	})
	return d
}

// pagesOf returns the commands below each heading of the page for operators, block by block.
func pagesOf(t testing.TB) map[string][][]step {
	t.Helper()
	text, err := os.ReadFile(operators)
	if err != nil {
		t.Fatal(err)
	}
	pages, name, in, before := map[string][][]step{}, "", false, ""
	for line := range strings.Lines(string(text)) {
		line = strings.TrimSpace(line)
		switch heading := strings.TrimLeft(line, "#"); {
		case in && line == "```":
			in = false
		case in && strings.HasSuffix(line, `\`):
			before += strings.TrimSuffix(line, `\`)
		case in && line != "":
			list := pages[name]
			list[len(list)-1] = append(list[len(list)-1], stepOf(t, before+line))
			before = ""
		case line == "```sh":
			in = true
			pages[name] = append(pages[name], nil)
		case len(heading) < len(line) && !in:
			name = strings.TrimSpace(heading)
			pages[name] = pages[name][:len(pages[name]):len(pages[name])]
		}
	}
	return pages
}

var stepEnd = regexp.MustCompile(`^(.*?)(?:\s+# (?:(until) )?(?:exit (\d))?.*)?$`)

func stepOf(t testing.TB, line string) step {
	t.Helper()
	m := stepEnd.FindStringSubmatch(line)
	s := step{text: strings.TrimSpace(m[1]), until: m[2] != ""}
	if m[3] != "" {
		s.exit, _ = strconv.Atoi(m[3])
	}
	return s
}

// play plays the next block, and returns all that its commands printed.
func (d *drill) play() string {
	d.t.Helper()
	if d.played == len(d.blocks) {
		d.t.Fatalf("%s has %d blocks of commands, and the test wants one more", d.page, d.played)
	}
	all := ""
	for _, s := range d.blocks[d.played] {
		all += d.command(s)
	}
	d.played++
	return all
}

func (d *drill) command(s step) string {
	d.t.Helper()
	text := d.words.Replace(s.text)
	if d.systemctl(text) {
		return ""
	}
	for late, tick := d.late(), time.Tick(commandEvery); ; {
		said, code := d.shell(text)
		if code == s.exit {
			d.t.Logf("$ %s\n%s", text, said)
			return said
		}
		select {
		case <-late:
			d.t.Fatalf("%s: %s: it stays exit %d, want %d:\n%s", d.page, text, code, s.exit, said)
		case <-tick:
		}
		if !s.until {
			d.t.Fatalf("%s: %s: exit %d, want %d:\n%s", d.page, text, code, s.exit, said)
		}
	}
}

// shell runs a command of the page as its reader would.
func (d *drill) shell(text string) (said string, code int) {
	d.t.Helper()
	ctx, cancel := context.WithTimeout(d.t.Context(), 2*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, "sh", "-c", text)
	cmd.Env = append(os.Environ(), "MUSTER_URL="+d.url, "MUSTER_CONFIG="+d.file("muster.yaml"),
		"PATH="+filepath.Dir(d.bin)+":"+os.Getenv("PATH"))
	cmd.Dir = d.dir
	out, err := cmd.CombinedOutput()
	if ctx.Err() != nil || cmd.ProcessState == nil {
		d.t.Fatalf("%s: %s: %v: %s", d.page, text, err, out)
	}
	return string(out), cmd.ProcessState.ExitCode()
}

// wants fails unless a text has all these words.
func (d *drill) wants(said string, words ...string) {
	d.t.Helper()
	for _, w := range words {
		if w = d.words.Replace(w); !strings.Contains(said, w) {
			d.t.Errorf("%s: the commands do not say %q:\n%s", d.page, w, said)
		}
	}
}

// counted compares what the hosts saw of a command with what muster says of the jobs of a task: on
// each host it ran at most once; where a job succeeded or failed, once; where muster says that a job
// never began, not at all; and all other hosts are said not to be known. It returns the number of
// hosts on which it ran.
func (d *drill) counted(f *fakefleet.Fleet, id jobs.TaskID, command string, hosts []string) (ran int) {
	d.t.Helper()
	times := map[string]int{}
	for _, e := range f.Log() {
		if strings.Contains(e.Command, command) {
			times[e.Host]++
		}
	}
	said := map[string]jobs.JobInfo{}
	for _, j := range d.jobs(id) {
		said[j.Host] = j
	}
	for _, host := range hosts {
		j, known := said[host]
		least, most := 0, 1
		switch {
		case !known: // `muster jobs` ends with 1, and says that the others are not known
		case j.Outcome == jobs.Succeeded || j.Outcome == jobs.Failed:
			least = 1
		case j.Outcome == jobs.Cancelled && j.Attempt == 0:
			most = 0
		case j.State != jobs.Ended:
			d.t.Errorf("%s: the job of %s has not ended, it is %s", d.page, host, j.State)
		}
		if n := times[host]; n < least || n > most {
			d.t.Errorf("%s: %s ran %d times on %s, want %d to %d: %+v", d.page, command, n, host, least, most, j)
		}
	}
	for host := range times {
		if !slices.Contains(hosts, host) {
			d.t.Errorf("%s: %s ran on %s, and nobody ordered that", d.page, command, host)
		}
	}
	wantNoOverlap(d.t, f)
	return len(times)
}

// manned is a house with so many pretended hosts and a node, which does four jobs at a time.
func manned(t *testing.T, hosts int) (*house, *fakefleet.Fleet, *process) {
	t.Helper()
	f, inventory := pretend(t, fakefleet.Config{Hosts: hosts})
	h := newHouse(t, inventory)
	h.config(map[string]any{"children": 2, "slots": 2})
	m := h.master()
	t.Cleanup(func() { letGo(t, f) })
	return h, f, m
}

// marked is a command that leaves a word in the logs of the hosts, and waits until letGo.
func marked(word string) string { return ": " + word + "; " + held }

// hostNames returns the hosts of a pretended fleet.
func hostNames(f *fakefleet.Fleet) (names []string) {
	for _, h := range f.Hosts() {
		names = append(names, h.Name)
	}
	return names
}

// Every page has commands, and a drill plays them: a page without one could tell anything.
func TestEveryPageForOperatorsIsPlayed(t *testing.T) {
	t.Parallel()
	played := ""
	files, err := filepath.Glob("drill*_test.go")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range files {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		played += string(text)
	}
	pages := pagesOf(t)
	if len(pages) < 3 {
		t.Errorf("%s has %d pages", operators, len(pages))
	}
	for name, blocks := range pages {
		if len(blocks) > 0 && !strings.Contains(played, strconv.Quote(name)) {
			t.Errorf("%s: no drill plays the page %q", operators, name)
		}
	}
}

// The drills would believe any page if steps were not read right.
func TestStepsOfAPageAreRead(t *testing.T) {
	t.Parallel()
	for line, want := range map[string]step{
		"muster health":                           {"muster health", 0, false},
		"muster health   # exit 1: says what":     {"muster health", 1, false},
		"muster health # until exit 0: it thaws":  {"muster health", 0, true},
		"muster retry last --reason 'INC-1: n#1'": {"muster retry last --reason 'INC-1: n#1'", 0, false},
	} {
		if got := stepOf(t, line); got != want {
			t.Errorf("%q: %+v, want %+v", line, got, want)
		}
	}
}
