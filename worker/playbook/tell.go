package playbook

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"

	"muster/fleet/remote"
	"muster/internal/wording"
)

const (
	// lineMax bounds one event, in bytes. The plugin bounds each text of it.
	lineMax = 128 << 10

	// toldMax bounds the words of the host that one event adds to the output, in bytes.
	toldMax = 16 << 10

	// quoteMax bounds the words of the host in a reason, in bytes.
	quoteMax = 150
)

// A Teller reads the events of a play and tells people about them. It takes what it does not
// understand as said by nobody.
type Teller struct {
	host string
	out  io.Writer

	task string // the one that began last
	part []byte // of the line that has not ended
	long bool   // the line is too long, and is left out
	sum  Sum
}

// A Sum is what the events of a play say about its host.
type Sum struct {
	Tasks   int    // tasks that ended on the host, or were skipped there
	Reached int    // those that the host itself answered
	Running string // the kind of the task that began last, such as ansible.builtin.copy
	Failed  string // which task failed last, and what it says; empty: none has failed
	Away    string // why the host could not be reached; empty: it could
	Stats   *Stats // nil: the play did not end
	Odd     int    // lines that are no events
}

// Stats counts the tasks of a host.
type Stats struct {
	OK          int `json:"ok"`
	Changed     int `json:"changed"`
	Failures    int `json:"failures"`
	Unreachable int `json:"unreachable"`
	Skipped     int `json:"skipped"`
	Rescued     int `json:"rescued"`
	Ignored     int `json:"ignored"`
}

// NewTeller returns a Teller for the host of that name, which writes to out.
func NewTeller(host string, out io.Writer) *Teller { return &Teller{host: host, out: out} }

// event is one line of the plugin.
type event struct {
	Event  string `json:"event"`
	Name   string `json:"name"`
	Action string `json:"action"`
	Host   string `json:"host"`
	Status string `json:"status"`
	Item   string `json:"item"`
	Part   bool   `json:"part"` // of a task that goes on
	said
}

// said holds words of the host.
type said struct {
	Msg          string `json:"msg"`
	Stdout       string `json:"stdout"`
	Stderr       string `json:"stderr"`
	ModuleStdout string `json:"module_stdout"`
	ModuleStderr string `json:"module_stderr"`
	Exception    string `json:"exception"`
	Diff         string `json:"diff"`
}

// Write takes events. It never fails.
func (t *Teller) Write(p []byte) (int, error) {
	n := len(p)
	for {
		line, rest, ended := bytes.Cut(p, []byte("\n"))
		if !t.long {
			if t.part = append(t.part, line...); len(t.part) > lineMax {
				t.long, t.part = true, nil
			}
		}
		if !ended {
			return n, nil
		}
		t.line(t.part)
		t.part, t.long, p = t.part[:0], false, rest
	}
}

// Sum returns what the events have said so far.
func (t *Teller) Sum() Sum { return t.sum }

// line takes one event.
func (t *Teller) line(line []byte) {
	var e event
	if err := json.Unmarshal(line, &e); err != nil || e.Event == "" {
		t.sum.Odd++
		return
	}
	switch e.Event {
	case "play":
		t.tell(fmt.Sprintf("play %s\n", short(e.Name)))
	case "task":
		t.sum.Running, t.task = e.Action, short(e.Name)
		t.tell("task " + t.task + "\n")
	case "result":
		t.result(e)
	case "stats":
		if e.Host == t.host {
			var s Stats
			_ = json.Unmarshal(line, &s) // it is an event, and what has another form counts as 0
			t.sum.Stats = &s
			t.tell(fmt.Sprintf("%s: %d ok, %d changed, %d failed, %d unreachable, %d skipped\n",
				short(e.Host), s.OK, s.Changed, s.Failures, s.Unreachable, s.Skipped))
			if s.Failures > 0 && t.sum.Failed != "" {
				t.tell("failed: " + t.sum.Failed + "\n")
			}
		}
	default:
		t.sum.Odd++
	}
}

// statuses are the words of results.
var statuses = []string{"ok", "changed", "failed", "ignored", "skipped", "unreachable", "again"}

func (t *Teller) result(e event) {
	if !slices.Contains(statuses, e.Status) {
		t.sum.Odd++
		return
	}
	if e.Host == t.host {
		t.count(e)
	}
	text := "  " + e.Status
	if e.Host != t.host {
		text += " on " + short(e.Host)
	}
	if e.Item != "" {
		text += ": item " + short(e.Item)
	}
	t.tell(text + "\n" + e.said.indented())
}

// count counts the result of a task on the host.
func (t *Teller) count(e event) {
	words := remote.Quote([]byte(lastLine(e.reason())), quoteMax)
	switch {
	case e.Status == "unreachable":
		t.sum.Away = words
		return
	case e.Status == "failed":
		t.sum.Failed = strings.TrimSpace("task " + t.task + " " + words)
	}
	if !e.Part {
		t.sum.Tasks++
	}
	if e.Status != "skipped" {
		t.sum.Reached++
	}
}

// reason returns the words of a result that say most.
func (s said) reason() string {
	for _, text := range []string{s.Msg, s.Stderr, s.ModuleStderr, s.Exception, s.Stdout,
		s.ModuleStdout} {
		if strings.TrimSpace(text) != "" {
			return text
		}
	}
	return ""
}

// indented returns the words of a host, each line so far to the right that it looks like none of
// muster's.
func (s said) indented() string {
	var b strings.Builder
	for _, text := range []string{s.Msg, s.Stdout, s.Stderr, s.ModuleStdout, s.ModuleStderr,
		s.Exception, s.Diff} {
		text = strings.NewReplacer("\r\n", "\n", "\r", "\n").Replace(text)
		for line := range strings.Lines(text) {
			if b.Len()+len(line) > toldMax {
				b.WriteString("    …\n")
				return b.String()
			}
			b.WriteString("    " + strings.TrimSuffix(line, "\n") + "\n")
		}
	}
	return b.String()
}

func (t *Teller) tell(text string) {
	_, _ = io.WriteString(t.out, text) // who listens does not matter to the play
}

// short returns a text of a playbook as a part of a line.
func short(text string) string { return wording.Clip(strings.Join(strings.Fields(text), " ")) }

// lastLine returns the last line of a text that is not empty.
func lastLine(text string) string {
	lines := strings.Split(strings.TrimSpace(text), "\n")
	return strings.TrimSpace(lines[len(lines)-1])
}
