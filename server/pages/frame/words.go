package frame

import (
	"bytes"
	"context"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/a-h/templ"

	"muster/fleet"
	"muster/fleet/remote"
	"muster/internal/wording"
	"muster/jobs"
)

// An instant is a time of the API.
type instant = jobs.Time

// The forms of a time: for programs, and for people without a script.
const (
	isoForm  = "2006-01-02T15:04:05.000Z"
	TextForm = "2006-01-02 15:04:05 UTC"
)

// shapes gives each outcome a sign, so that its colour is never alone.
var shapes = map[string]string{"succeeded": "✓", "failed": "✕", "unreachable": "∅", "timeout": "◷",
	"rolled_back": "↺", "unknown": "?", "cancelled": "–", "expired": "⌛", "superseded": "»",
	"skipped": "›", "running": "▶", "waiting": "·"}

// shapeOf returns the sign of an outcome.
func shapeOf(name string) string {
	if s := shapes[name]; s != "" {
		return s
	}
	return "·"
}

// PlainName returns a name of the API for people.
func PlainName(name string) string { return strings.ReplaceAll(name, "_", " ") }

// A Slice is a part of a bar of 1,000 units.
type Slice struct {
	Kind        string
	From, Width float64
}

// SlicesOf returns the parts of a bar for counts in order. A count that is not 0 is seen.
func SlicesOf(counts []Counted) []Slice {
	total := 0
	for _, c := range counts {
		total += c.N
	}
	var out []Slice
	at := 0.0
	for _, c := range counts {
		if c.N == 0 || total == 0 {
			continue
		}
		wide := max(2, 1000*float64(c.N)/float64(total))
		out = append(out, Slice{c.Kind, at, wide})
		at += wide
	}
	return out
}

// A Counted kind is one with the number of its things.
type Counted struct {
	Kind string
	N    int
}

// WordsOf returns counts in words, for whoever does not see the picture.
func WordsOf(counts []Counted) string {
	var out []string
	for _, c := range counts {
		if c.N > 0 {
			out = append(out, strconv.Itoa(c.N)+" "+PlainName(c.Kind))
		}
	}
	if len(out) == 0 {
		return "none"
	}
	return strings.Join(out, ", ")
}

// CountsOf returns the counts of a task's jobs in the order in which people read them.
func CountsOf(t jobs.TaskInfo) []Counted {
	var out []Counted
	for _, o := range jobs.Outcomes() {
		out = append(out, Counted{string(o), t.Outcomes[o]})
	}
	waiting := max(0, t.Total-t.Running-t.Outcomes.Sum())
	return append(out, Counted{"running", t.Running}, Counted{"waiting", waiting})
}

// num returns a number of a picture.
func num(x float64) string { return strconv.FormatFloat(x, 'f', 1, 64) }

// Share returns a part of a whole in percent.
func Share(n, of int) string {
	if of == 0 {
		return ""
	}
	return strconv.FormatFloat(100*float64(n)/float64(of), 'f', 1, 64) + " %"
}

// A Denied order is one that the person may not give, with the words of the policy.
type Denied struct{ name, why string }

// Refused returns an order that the person may not give, with the words of the policy.
func Refused(name string, why error) Denied { return Denied{name, why.Error()} }

// lineBreaks makes visible what a page would show as a blank.
var lineBreaks = strings.NewReplacer("\n", `\n`, "\t", " ")

// Plain turns a text that somebody has written into one line that looks as it is read. A page would
// show the end of a line as a blank, so that a second command looks like a comment of the first,
// and marks of direction would turn words around.
func Plain(text string) string { return lineBreaks.Replace(remote.Harmless(text)) }

// A Fact is a name with a value or a time.
type Fact struct {
	Name, Value, Link string
	at                *instant
}

// Timed returns a fact that is a time.
func Timed(name string, t instant) Fact {
	if t.IsZero() {
		return Fact{Name: name}
	}
	return Fact{Name: name, at: &t}
}

// liveOf returns the attribute of a page that changes by itself.
func liveOf(h head) templ.Attributes {
	if h.live == "" {
		return templ.Attributes{}
	}
	return templ.Attributes{"data-live": h.live}
}

// hashed returns the attribute of a part that changes by itself: the hash of its content.
func hashed(ctx context.Context, p Part) templ.Attributes {
	if !p.Live {
		return templ.Attributes{}
	}
	var b bytes.Buffer
	if p.Body.Render(ctx, &b) != nil {
		return templ.Attributes{}
	}
	return templ.Attributes{"data-hash": hashOf(b.Bytes())}
}

// Took returns a number of seconds for people.
func Took(seconds float64) string {
	d := time.Duration(seconds * float64(time.Second))
	switch {
	case d <= 0:
		return ""
	case d < 10*time.Second:
		return d.Round(100 * time.Millisecond).String()
	}
	return d.Round(time.Second).String()
}

// did has the orders that a page may name after they were carried out.
var did = []string{"pause", "resume", "cancel", "retry", "next", "stop", "run", "halt", "lift",
	"open", "refuse", "clear", "thaw", "drain", "undrain", "release", "approve", "remove",
	"propose", "withdraw", "freeze", "unfreeze", "apply", "continue", "replay", "test", "review",
	"end", "sign"}

// wordOf returns a word of the address of a page, if it is one of the orders.
func wordOf(word string) string {
	if slices.Contains(did, word) {
		return word
	}
	return ""
}

// With returns the address of a page with another value of a parameter; empty: without it.
func With(path string, q url.Values, name, value string) string {
	out := url.Values{}
	for k, v := range q {
		if k != "did" && k != "cursor" {
			out[k] = v
		}
	}
	out.Del(name)
	if value != "" {
		out.Set(name, value)
	}
	if len(out) == 0 {
		return path
	}
	return path + "?" + out.Encode()
}

// Folded returns a list of names, shortened: the whole is in the page of its own.
func Folded(names []string) string { return wording.ClipList(fleet.Fold(names)) }

// QueryEscape returns a value for an address.
func QueryEscape(value string) string { return url.QueryEscape(value) }

// ClipText shortens a text in a table.
func ClipText(text string) string { return wording.ClipTo(text, 160) }

// Operator returns the operator of a task, and says if nobody has proved the name.
func Operator(t jobs.TaskInfo) string {
	if t.Operator != "" && !t.Proven {
		return t.Operator + " (unproven)"
	}
	return t.Operator
}

// WhyOf returns the reason why a job does not run, or its error.
func WhyOf(j jobs.JobInfo) string {
	text := j.Why
	if j.Error != "" {
		text = firstLine(j.Error)
	}
	if j.HostLeft {
		text = strings.TrimPrefix(text+"; its host has left the inventory", "; ")
	}
	if text == "" {
		text = j.Note
	}
	return wording.ClipTo(text, 300)
}

// LinkOf returns the address of a task; empty: there is none.
func LinkOf(id string) string {
	if id == "" {
		return ""
	}
	return "/tasks/" + id
}

// Yes returns a word for a fact that holds.
func Yes(b bool) string {
	if b {
		return "yes"
	}
	return ""
}

// ClipList shortens a folded list of hosts.
func ClipList(folded string) string { return wording.ClipList(folded) }

// Sorted returns the keys of a map in order.
func Sorted[K ~string, V any](m map[K]V) []K {
	out := make([]K, 0, len(m))
	for k := range m {
		out = append(out, k)
	}
	slices.Sort(out)
	return out
}

// Count returns a number with its noun.
func Count(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return strconv.Itoa(n) + " " + many
}

// firstLine returns the first line of a text.
func firstLine(text string) string {
	line, _, _ := strings.Cut(text, "\n")
	return line
}
