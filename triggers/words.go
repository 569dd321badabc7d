package triggers

import (
	"fmt"
	"strings"
	"time"

	"muster/internal/wording"
)

// String returns a condition in words.
func (c Condition) String() string {
	return fmt.Sprintf("%s %s %s", c.Field, c.Op, wording.ClipList(quoted(c.Values)))
}

// String returns an argument with the place of its value.
func (a Argument) String() string {
	switch {
	case a.Field != nil:
		return a.Name + " = the event's " + a.Field.String()
	case a.File != "":
		return a.Name + " = the file " + a.File
	}
	return a.Name + "=" + wording.Clip(wording.OneLine(*a.Text, 200))
}

// Words says how an event leaves hosts out; empty: it leaves out none.
func (a Aim) Words() string {
	var list []string
	if a.Host != nil {
		list = append(list, "host is the event's "+a.Host.String())
	}
	for _, l := range a.Labels {
		list = append(list, fmt.Sprintf("label %s is the event's %s", l.Label, l.Field))
	}
	return strings.Join(list, "; ")
}

// String returns a limit as it is written; empty: there is none.
func (l Limit) String() string {
	if l.Most == 0 {
		return ""
	}
	return fmt.Sprintf("%d/%s", l.Most, short(l.Per))
}

// String says how events are collected; empty: they are not.
func (d *Debounce) String() string {
	if d == nil {
		return ""
	}
	text := fmt.Sprintf("quiet for %s, at the latest after %s", short(d.Quiet), short(d.Longest))
	if d.By != nil {
		text += ", by " + d.By.String()
	}
	return text
}

// short returns a time without what is zero.
func short(d time.Duration) string {
	text := d.String()
	if strings.HasSuffix(text, "m0s") {
		text = strings.TrimSuffix(text, "0s")
	}
	if strings.HasSuffix(text, "h0m") {
		text = strings.TrimSuffix(text, "0m")
	}
	return text
}

// Recent returns how many firings count for the limit now, for the customer who has the most.
func (t Trigger) Recent(p Past, now time.Time) int {
	from := now.Add(-t.Limit.Per)
	n := len(since(p.Fired, from))
	for _, list := range p.Of {
		n = max(n, len(since(list, from)))
	}
	return n
}
