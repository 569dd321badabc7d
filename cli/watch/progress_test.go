package watch

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/jedib0t/go-pretty/v6/text"
	"pgregory.net/rapid"

	"muster/cli"
	"muster/jobs"
	"muster/testkit/apitest"
)

func aProgress() Progress {
	return Progress{rate: 35.2, Task: jobs.TaskInfo{Task: apitest.ATask, Total: 300, Running: 12, State: jobs.TaskRunning,
		Outcomes: jobs.Counts{jobs.Succeeded: 208, jobs.Failed: 3, jobs.Unreachable: 2, jobs.Timeout: 0}}}
}

func TestProgressLines(t *testing.T) {
	t.Parallel()
	with := func(f func(*Progress)) Progress {
		p := aProgress()
		f(&p)
		return p
	}
	for _, c := range []struct {
		name       string
		p          Progress
		width      int
		bar, plain string
	}{
		{"running", aProgress(), 120,
			"[#####################---------] 213/300  71% 208 succeeded  3 failed  2 unreachable  12 running  35/s  2.5s left",
			"task 0wcy7y2fb2: 213 of 300 done, 208 succeeded, 3 failed, 2 unreachable, 12 running, 35/s, 2.5s left"},
		{"less room", aProgress(), 98,
			"[#########-----] 213/300  71% 208 succeeded  3 failed  2 unreachable  12 running  35/s  2.5s left", ""},
		{"no room for a bar", aProgress(), 85,
			"213/300  71% 208 succeeded  3 failed  2 unreachable  12 running  35/s  2.5s left", ""},
		{"too little room", aProgress(), 40, "213/300  71% 208 succeeded  3 failed  …", ""},
		{"queued", Progress{Task: jobs.TaskInfo{Task: apitest.ATask, Total: 300, State: jobs.TaskQueued}}, 80,
			"[------------------------------] 0/300   0% queued", "task 0wcy7y2fb2: 0 of 300 done, queued"},
		{"paused", with(func(p *Progress) { p.Task.Running, p.Task.State, p.rate = 0, jobs.TaskPaused, 0 }), 120,
			"[#####################---------] 213/300  71% 208 succeeded  3 failed  2 unreachable  paused", ""},
		{"trouble", with(func(p *Progress) { p.trouble = "no answer" }), 103,
			"[#################--------] 213/300  71% 208 succeeded  3 failed  2 unreachable  12 running  no answer",
			""},
		{"slow", with(func(p *Progress) { p.rate = 0.0123 }), 105,
			"[############-----] 213/300  71% 208 succeeded  3 failed  2 unreachable  12 running  0.7/min  1h58m left", ""},
		{"only slow ones are left", with(func(p *Progress) { p.quiet = 3 * time.Second }), 85,
			"[########----] 213/300  71% 208 succeeded  3 failed  2 unreachable  12 running  35/s", ""},
		{"nonsense of a server", Progress{Task: jobs.TaskInfo{Task: "\x1b[2J", Total: -1, State: "\x07",
			Outcomes: jobs.Counts{jobs.Failed: 7}}}, 80,
			`[##############################] 7/-1 100% 7 failed  \x07`, `task \x1b[2J: 7 of -1 done, 7 failed, \x07`},
	} {
		t.Run(c.name, func(t *testing.T) {
			if diff := cmp.Diff(c.bar, barLine(c.p, c.width, false)); diff != "" {
				t.Errorf("bar (-want +got):\n%s", diff)
			}
			if got := plainLine(c.p); c.plain != "" && got != c.plain {
				t.Errorf("plain line is\n%s\nwant\n%s", got, c.plain)
			}
		})
	}
}

func TestBarNeverWrapsNorBreaks(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		small := rapid.IntRange(-5, 5_000_000)
		p := Progress{rate: rapid.Float64().Draw(t, "rate"),
			trouble: rapid.SampledFrom([]string{"", "没有回答"}).Draw(t, "trouble"),
			Task: jobs.TaskInfo{Total: small.Draw(t, "total"), Running: small.Draw(t, "running"), State: jobs.TaskRunning,
				Outcomes: jobs.Counts{jobs.Succeeded: small.Draw(t, "good"), jobs.Unknown: small.Draw(t, "unknown")}}}
		width := rapid.IntRange(2, 300).Draw(t, "width")
		colours := cli.Palette(rapid.Bool().Draw(t, "colours"))
		line := barLine(p, width, colours)
		if n := text.StringWidthWithoutEscSequences(line); n >= width || strings.Contains(line, "\n") {
			t.Fatalf("%d columns of a terminal of %d: %q", n, width, line)
		}
		if strings.Count(line, "\x1b[") > 0 && !colours {
			t.Fatalf("colours without being asked for: %q", line)
		}
	})
}

func TestMeter(t *testing.T) {
	t.Parallel()
	start := time.Date(2026, 11, 21, 10, 0, 0, 0, time.UTC)
	at := func(s float64) time.Time { return start.Add(cli.Seconds(s)) }
	for _, c := range []struct {
		name  string
		marks []float64 // seconds and jobs done, in turn
		now   float64
		want  string
	}{
		{"nothing", nil, 1, "0.00"},
		{"one mark", []float64{0, 5}, 1, "0.00"},
		{"too early to tell", []float64{0, 0, 0.1, 5}, 0.15, "0.00"},
		{"steady", []float64{0, 0, 1, 10, 2, 20, 3, 30}, 3, "10.00"},
		{"counts from what was done before", []float64{0, 100, 2, 120}, 2, "10.00"},
		{"many marks a second", []float64{0, 0, 0.25, 1, 0.5, 2, 0.75, 3, 1, 4, 1.25, 5}, 1.25, "4.00"},
		{"stalls", []float64{0, 0, 1, 10}, 10, "1.00"},
		{"only the last seconds count", []float64{0, 0, 10, 1000, 20, 1010, 30, 1020, 40, 1030}, 40, "1.00"},
		{"nothing more ends", []float64{0, 10, 5, 10}, 5, "0.00"},
		{"goes backwards", []float64{0, 10, 5, 3}, 5, "0.00"},
	} {
		var m meter
		for i := 0; i < len(c.marks); i += 2 {
			m.add(at(c.marks[i]), int(c.marks[i+1]))
		}
		if got := fmt.Sprintf("%.2f", m.rate(at(c.now))); got != c.want {
			t.Errorf("%s: rate %s, want %s", c.name, got, c.want)
		}
	}
}

func TestMeterKnowsSinceWhenItIsQuiet(t *testing.T) {
	t.Parallel()
	var m meter
	start := time.Unix(0, 0)
	for i, done := range []int{0, 5, 5, 5, 5} {
		m.add(start.Add(time.Duration(i)*300*time.Millisecond), done)
	}
	if got := m.quiet(start.Add(1300 * time.Millisecond)); got != time.Second {
		t.Errorf("quiet for %s, want 1s", got)
	}
}

func TestMeterStaysSmall(t *testing.T) {
	t.Parallel()
	var m meter
	for i := range 100_000 {
		m.add(time.Unix(0, 0).Add(time.Duration(i)*10*time.Millisecond), i)
	}
	if len(m.marks) > 50 {
		t.Errorf("%d marks are kept", len(m.marks))
	}
	if got := m.rate(time.Unix(1000, 0)); got < 99 || got > 101 {
		t.Errorf("rate %f, want 100", got)
	}
}

func TestPlainLinesAreFew(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	d := &lineDisplay{w: &out}
	p := aProgress()
	for p.elapsed = 0; p.elapsed < 3*time.Minute; p.elapsed += drawTick {
		if p.elapsed <= time.Minute && p.elapsed%time.Second == 0 {
			p.Task.Outcomes[jobs.Succeeded]++
		}
		p.trouble = ""
		if p.elapsed > 150*time.Second {
			p.trouble = "no answer"
		}
		d.show(p)
	}
	d.close()
	lines := strings.Split(strings.TrimSpace(out.String()), "\n")
	// 12 lines in the first minute, one a minute afterwards, and one about the trouble.
	if len(lines) < 13 || len(lines) > 16 || !strings.HasSuffix(lines[len(lines)-1], "no answer") {
		t.Errorf("%d lines in three minutes:\n%s", len(lines), out.String())
	}
}

func TestBarIsDrawnOverAndTakenAway(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	d := &barDisplay{w: &out, width: func() int { return 0 }}
	d.show(aProgress())
	d.show(aProgress())
	d.close()
	if got := out.String(); strings.Count(got, EraseLine) != 3 || !strings.HasSuffix(got, EraseLine) ||
		strings.Contains(got, "\n") {
		t.Errorf("the bar was drawn as %q", got)
	}
}

func TestDisplayFitsTheScreen(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		s    cli.Screen
		want string
	}{
		{cli.Screen{ErrTerm: true}, "*watch.barDisplay"},
		{cli.Screen{ErrTerm: true, JSON: true}, "*watch.barDisplay"},
		{cli.Screen{}, "*watch.lineDisplay"},
		{cli.Screen{JSON: true}, "watch.silence"},
	} {
		if got := fmt.Sprintf("%T", newDisplay(&c.s)); got != c.want {
			t.Errorf("display for %+v: %s, want %s", c.s, got, c.want)
		}
	}
}
