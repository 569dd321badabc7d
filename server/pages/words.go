package pages

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
	"muster/internal/wording"
	"muster/jobs"
)

// An instant is a time of the API.
type instant = jobs.Time

// The forms of a time: for programs, and for people without a script.
const (
	isoForm  = "2006-01-02T15:04:05.000Z"
	textForm = "2006-01-02 15:04:05 UTC"
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

// plainName returns a name of the API for people.
func plainName(name string) string { return strings.ReplaceAll(name, "_", " ") }

// A slice is a part of a bar of 1,000 units.
type slice struct {
	kind        string
	from, width float64
}

// slicesOf returns the parts of a bar for counts in order. A count that is not 0 is seen.
func slicesOf(counts []counted) []slice {
	total := 0
	for _, c := range counts {
		total += c.n
	}
	var out []slice
	at := 0.0
	for _, c := range counts {
		if c.n == 0 || total == 0 {
			continue
		}
		wide := max(2, 1000*float64(c.n)/float64(total))
		out = append(out, slice{c.kind, at, wide})
		at += wide
	}
	return out
}

// A counted kind is one with the number of its things.
type counted struct {
	kind string
	n    int
}

// wordsOf returns counts in words, for whoever does not see the picture.
func wordsOf(counts []counted) string {
	var out []string
	for _, c := range counts {
		if c.n > 0 {
			out = append(out, strconv.Itoa(c.n)+" "+plainName(c.kind))
		}
	}
	if len(out) == 0 {
		return "none"
	}
	return strings.Join(out, ", ")
}

// countsOf returns the counts of a task's jobs in the order in which people read them.
func countsOf(t jobs.TaskInfo) []counted {
	var out []counted
	for _, o := range jobs.Outcomes() {
		out = append(out, counted{string(o), t.Outcomes[o]})
	}
	waiting := max(0, t.Total-t.Running-t.Outcomes.Sum())
	return append(out, counted{"running", t.Running}, counted{"waiting", waiting})
}

// num returns a number of a picture.
func num(x float64) string { return strconv.FormatFloat(x, 'f', 1, 64) }

// share returns a part of a whole in percent.
func share(n, of int) string {
	if of == 0 {
		return ""
	}
	return strconv.FormatFloat(100*float64(n)/float64(of), 'f', 1, 64) + " %"
}

// A denied order is one that the person may not give, with the words of the policy.
type denied struct{ name, why string }

// A fact is a name with a value or a time.
type fact struct {
	name, value, link string
	at                *instant
}

// timed returns a fact that is a time.
func timed(name string, t instant) fact {
	if t.IsZero() {
		return fact{name: name}
	}
	return fact{name: name, at: &t}
}

// liveOf returns the attribute of a page that changes by itself.
func liveOf(h head) templ.Attributes {
	if h.live == "" {
		return templ.Attributes{}
	}
	return templ.Attributes{"data-live": h.live}
}

// hashed returns the attribute of a part that changes by itself: the hash of its content.
func hashed(ctx context.Context, p part) templ.Attributes {
	if !p.live {
		return templ.Attributes{}
	}
	var b bytes.Buffer
	if p.body.Render(ctx, &b) != nil {
		return templ.Attributes{}
	}
	return templ.Attributes{"data-hash": hashOf(b.Bytes())}
}

// took returns a number of seconds for people.
func took(seconds float64) string {
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
	"open", "refuse", "clear", "thaw", "drain", "undrain", "release", "approve", "remove"}

// wordOf returns a word of the address of a page, if it is one of the orders.
func wordOf(word string) string {
	if slices.Contains(did, word) {
		return word
	}
	return ""
}

// with returns the address of a page with another value of a parameter; empty: without it.
func with(path string, q url.Values, name, value string) string {
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

// folded returns a list of names, shortened: the whole is in the page of its own.
func folded(names []string) string { return wording.ClipList(fleet.Fold(names)) }
