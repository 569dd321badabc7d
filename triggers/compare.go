package triggers

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"muster/internal/wording"
)

// Customer returns the customer to whom a trigger belongs: it says so if it takes only the events
// of one customer. Empty: it belongs to nobody.
func (t Trigger) Customer() string {
	if len(t.Match.Customers) != 1 || strings.ContainsAny(t.Match.Customers[0], "*?[\\") {
		return ""
	}
	return t.Match.Customers[0]
}

// Differences names the values in which a trigger differs from another one, as key: old → new.
func (t Trigger) Differences(was Trigger) []string {
	var out []string
	old := was.values()
	for i, v := range t.values() {
		if v.text != old[i].text {
			out = append(out, fmt.Sprintf("%s: %s → %s", v.key, orNone(old[i].text), orNone(v.text)))
		}
	}
	return out
}

// A value is a key of a trigger with what it says, in one form.
type value struct{ key, text string }

func orNone(text string) string {
	if text == "" {
		return "(none)"
	}
	return wording.OneLine(text, 400)
}

// values returns all that a trigger says, in a fixed order.
func (t Trigger) values() []value {
	m, w := t.Match, t.Work
	when := make([]string, len(m.When))
	for i, c := range m.When {
		when[i] = jsonOf([]any{c.Field.shape(), c.Op, c.Values})
	}
	args := make([]string, len(w.Args))
	for i, a := range w.Args {
		args[i] = a.Name + ": " + a.shape()
	}
	slices.Sort(args) // their order says nothing
	labels := make([]string, len(w.Aim.Labels))
	for i, l := range w.Aim.Labels {
		labels[i] = l.Label + ": " + jsonOf(l.Field.shape())
	}
	slices.Sort(labels)
	return []value{{"name", t.Name}, {"enabled", jsonOf(t.Enabled)},
		{"source", strings.Join(m.Sources, ", ")}, {"kind", strings.Join(m.Kinds, ", ")},
		{"customers", strings.Join(m.Customers, ", ")}, {"when", strings.Join(when, ", ")},
		{"debounce", t.Debounce.shape()}, {"limit", t.Limit.String()}, {"runbook", w.Runbook},
		{"args", strings.Join(args, ", ")}, {"on", w.Aim.On}, {"host", w.Aim.Host.shapeOf()},
		{"labels", strings.Join(labels, ", ")}, {"at_most", fmt.Sprint(w.Aim.AtMost)},
		{"hold", flagOf(w.Hold)}, {"window", flagOf(w.Window)}, {"expire", timeOf(w.Expire)},
		{"expect", timeOf(w.Expect)}, {"priority", strings.TrimPrefix(w.Priority, "normal")},
		{"supersedes", w.Supersedes},
		{"only", w.Only}, {"disruptive", flagOf(w.Disruptive)}, {"rollout", rolloutOf(w)}}
}

func jsonOf(v any) string {
	text, err := json.Marshal(v)
	if err != nil { // nothing in a trigger is without a form
		return err.Error()
	}
	return string(text)
}

func flagOf(is bool) string {
	if is {
		return "true"
	}
	return ""
}

func timeOf(text string) string {
	if d, err := time.ParseDuration(text); err == nil {
		return d.String()
	}
	return text
}

func rolloutOf(w Work) string {
	if w.Rollout == nil {
		return ""
	}
	return jsonOf(w.Rollout)
}

// shape returns what a field says.
func (f Field) shape() any { return [3]string{f.Path, f.About, f.Before} }

func (f *Field) shapeOf() string {
	if f == nil {
		return ""
	}
	return jsonOf(f.shape())
}

func (d *Debounce) shape() string {
	if d == nil {
		return ""
	}
	return jsonOf([]any{d.Quiet.String(), d.Longest.String(), d.By.shapeOf()})
}

func (a Argument) shape() string {
	switch {
	case a.Field != nil:
		return "field " + jsonOf(a.Field.shape())
	case a.File != "":
		return "file " + a.File
	case a.Text != nil:
		return jsonOf(*a.Text)
	}
	return ""
}
