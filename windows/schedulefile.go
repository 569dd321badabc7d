package windows

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"

	"muster/internal/wording"
)

// Entry is a schedule as a file defines it: when it is due, and the task that it then asks for.
type Entry struct {
	Name    string    `json:"name"`
	Cron    string    `json:"cron"` // as it was written: with H, or in words
	Zone    string    `json:"zone"`
	Gap     string    `json:"gap"`  // first or skip
	Fold    string    `json:"fold"` // first or second
	Jitter  string    `json:"jitter,omitempty"`
	Except  []string  `json:"except,omitempty"` // days without a tick, see [ParseDays]
	Missed  Missed    `json:"missed"`
	Overlap Overlap   `json:"overlap"`
	Window  WindowUse `json:"window"`
	Enabled bool      `json:"enabled"`
	Owner   string    `json:"owner,omitempty"` // the customer to whom it belongs; empty: none
	Request
}

// Request describes the task that a schedule submits at each of its ticks.
type Request struct {
	Runbook    string            `json:"runbook"`
	Args       map[string]string `json:"args,omitempty"`
	On         string            `json:"on"`
	Priority   string            `json:"priority,omitempty"`
	Expire     string            `json:"expire,omitempty"`
	Expect     string            `json:"expect,omitempty"` // expected duration
	Disruptive bool              `json:"disruptive,omitempty"`
	Supersedes string            `json:"supersedes,omitempty"`
	Only       string            `json:"only,omitempty"` // check or diff: a dry run on the hosts
	// nil: all hosts at once, however many fail
	Rollout *RolloutRequest `json:"rollout,omitempty"`
}

// Overlap says how to treat a tick while the task of an earlier tick is unfinished.
type Overlap string

// The ways to treat overlaps.
const (
	OverlapForbid Overlap = "forbid" // the tick is skipped
	OverlapQueue  Overlap = "queue"  // its task is submitted beside the other
)

// WindowUse says whether the tasks of a schedule wait for a window.
type WindowUse string

// The uses of windows.
const (
	WindowNone     WindowUse = "none"
	WindowRequired WindowUse = "required"
)

// Schedule returns the times of an entry. It cannot fail for an entry that was parsed.
func (e Entry) Schedule() (Schedule, error) {
	times, err := ParseScheduleTimes(e.Name, e.Cron)
	zone, zoneErr := LoadZone(e.Zone)
	s := Schedule{Name: e.Name, Times: times, Zone: zone, Missed: e.Missed}
	var jitterErr error
	if e.Jitter != "" {
		s.Jitter, jitterErr = time.ParseDuration(e.Jitter)
	}
	if e.Gap == "skip" {
		s.Policy.Gap = GapSkip
	}
	if e.Fold == "second" {
		s.Policy.Fold = FoldSecond
	}
	errs := []error{err, zoneErr, jitterErr}
	for _, text := range e.Except {
		d, err := ParseDays(text)
		s.Except, errs = append(s.Except, d), append(errs, err)
	}
	return s, errors.Join(errs...)
}

// SameTimes reports whether two entries are due at the same times.
func (e Entry) SameTimes(o Entry) bool {
	return e.Cron == o.Cron && e.Zone == o.Zone && e.Gap == o.Gap && e.Fold == o.Fold &&
		e.Enabled == o.Enabled && slices.Equal(e.Except, o.Except)
}

// ParseSchedules reads schedules from files, as in
//
//	schedules:
//	  - name: zsk-weekly
//	    cron: "H 3 * * SUN"       # or six fields, @daily, @every 90s, or first Sunday 02:00
//	    except: [2026-12-24]      # days without a tick
//	    zone: Europe/Zurich
//	    jitter: 30m               # each host later than the tick by its own part of this
//	    gap: first                # or skip: a tick in an hour that is left out
//	    fold: first               # or second: a tick in an hour that comes twice
//	    runbook: exec
//	    args: {cmd: uptime}
//	    on: customer=acme         # looked up at each tick
//	    owner: acme               # the customer to whom it belongs, see [Pruning]
//	    missed: once              # or skip, all
//	    overlap: forbid           # or queue
//	    window: none              # or required, whatever the runbook says
//	    priority: normal          # or high, low
//	    expire: 8h                # not started so long after the tick
//	    expect: 5m                # it takes so long where no earlier success tells it
//	    disruptive: false
//	    supersedes: KEY
//	    only: check               # or diff: a dry run on the hosts
//	    enabled: true
//	    waves: [1, 10%, 100%]     # or canary: 3
//	    soak: 5m
//	    gate: false
//	    health: exec
//	    health_args: {cmd: uptime}
//	    max_failed: 5%
//	    breaker: 3/10m
//	    unreachable_ok: false
//
// The error tells all that is wrong, with file and line. check, which may be nil, says
// what is wrong with a rollout.
func ParseSchedules(files []File, check RolloutCheck) ([]Entry, error) {
	r := newReader(nil, nil)
	r.check = check
	var all []Entry
	for _, f := range files {
		top := r.top(f, "schedules")
		for _, n := range r.list(top["schedules"]) {
			if e, ok := r.schedule(n); ok {
				all = append(all, e)
			}
		}
	}
	return all, errors.Join(r.errs...)
}

// expectMax bounds the expected duration of a task, as a submit does.
const expectMax = 168 * time.Hour

// jitterMax bounds the delay of a task after its tick.
const jitterMax = 24 * time.Hour

var scheduleKeys = append([]string{"name", "cron", "except", "zone", "jitter", "gap", "fold",
	"runbook", "args", "on", "missed", "overlap", "window", "priority", "expire", "expect",
	"disruptive", "supersedes", "only", "enabled", "owner"}, rolloutKeys...)

func (r *reader) schedule(n *yaml.Node) (Entry, bool) {
	f := r.fields(n, "a schedule", scheduleKeys)
	if f == nil {
		return Entry{}, false
	}
	e := Entry{
		Name: r.name(n, f["name"], "schedule"),
		Cron: r.needed(n, f, "cron"),
		Zone: r.zone(n, f["zone"]).String(),
		Gap:  r.choice(f["gap"], "first", "skip"),
		Fold: r.choice(f["fold"], "first", "second"),
		Missed: Missed(r.choice(f["missed"], string(MissedOnce), string(MissedSkip),
			string(MissedAll))),
		Overlap: Overlap(r.choice(f["overlap"], string(OverlapForbid), string(OverlapQueue))),
		Window:  WindowUse(r.choice(f["window"], string(WindowNone), string(WindowRequired))),
		Enabled: r.flag(f["enabled"], true),
		Owner:   r.text(f["owner"]),
		Request: Request{
			Runbook: r.needed(n, f, "runbook"), On: r.needed(n, f, "on"), Args: r.pairs("args", f["args"]),
			Priority:   r.choice(f["priority"], "normal", "high", "low"),
			Disruptive: r.flag(f["disruptive"], false), Supersedes: r.text(f["supersedes"]),
			Rollout: r.rollout(f),
		},
	}
	for _, d := range r.except(f["except"]) {
		e.Except = append(e.Except, d.String())
	}
	if f["only"] != nil {
		e.Only = r.choice(f["only"], "check", "diff")
	}
	if d := r.duration(f["jitter"]); d > 0 {
		if e.Jitter = d.String(); d > jitterMax {
			r.mistake(f["jitter"], "jitter %s: at most %s", d, jitterMax)
		}
		if e.Rollout.InWaves() {
			r.mistake(f["jitter"], "jitter: with canary or waves hosts begin in their order: "+
				"leave it out")
		}
	}
	if err := checkName(e.Owner); e.Owner != "" && err != nil {
		r.mistake(f["owner"], "owner: %v", err)
	}
	if d := r.duration(f["expire"]); d > 0 {
		e.Expire = d.String()
	}
	if d := r.duration(f["expect"]); d > 0 {
		if e.Expect = d.String(); d > expectMax {
			r.mistake(f["expect"], "expect %s: at most 168h, as of a submit", d)
		}
	}
	if e.Cron != "" {
		if _, err := ParseScheduleTimes(e.Name, e.Cron); err != nil {
			r.mistake(f["cron"], "cron: %s", wording.ErrorLine(err))
		}
	}
	return e, true
}

// top reads a file that may have known keys only.
func (r *reader) top(f File, known ...string) map[string]*yaml.Node {
	root := r.document(f, known[0])
	if root == nil {
		return nil
	}
	return r.whole(root, known...)
}

// needed reads a text that is required.
func (r *reader) needed(at *yaml.Node, f map[string]*yaml.Node, key string) string {
	if f[key] == nil {
		r.mistake(at, "a schedule without %s", key)
		return ""
	}
	return r.text(f[key])
}

func (r *reader) flag(n *yaml.Node, absent bool) bool {
	var is bool
	switch {
	case n == nil:
		return absent
	case n.Tag != "!!bool" || n.Decode(&is) != nil:
		r.wrong(n, "%q: want true or false", clip(n.Value))
	}
	return is
}

// pairs reads the arguments of a runbook: texts, as an operator would type them.
func (r *reader) pairs(what string, n *yaml.Node) map[string]string {
	if n == nil || n.Tag == "!!null" {
		return nil
	}
	if n.Kind != yaml.MappingNode {
		r.mistake(n, "%s: want a mapping of names to values, as {cmd: uptime}", what)
		return nil
	}
	pairs := make(map[string]string, len(n.Content)/2)
	for i := 0; i+1 < len(n.Content); i += 2 {
		key, value := n.Content[i], n.Content[i+1]
		_, twice := pairs[key.Value]
		switch {
		case key.Kind != yaml.ScalarNode:
			r.mistake(key, "%s: a key must be a word", what)
		case twice:
			r.mistake(key, "argument %s is there twice", clip(key.Value))
		case value.Kind != yaml.ScalarNode:
			r.mistake(value, "argument %s: want one value", clip(key.Value))
		default:
			pairs[key.Value] = value.Value
		}
	}
	return pairs
}

// Differences names the fields in which two entries differ, with both values.
func (e Entry) Differences(was Entry) []string {
	var out []string
	note := func(field, old, now string) {
		if old != now {
			out = append(out, fmt.Sprintf("%s: %s → %s", field, orNone(old), orNone(now)))
		}
	}
	note("cron", was.Cron, e.Cron)
	note("except", strings.Join(was.Except, ", "), strings.Join(e.Except, ", "))
	note("zone", was.Zone, e.Zone)
	note("gap", was.Gap, e.Gap)
	note("fold", was.Fold, e.Fold)
	note("jitter", was.Jitter, e.Jitter)
	note("missed", string(was.Missed), string(e.Missed))
	note("overlap", string(was.Overlap), string(e.Overlap))
	note("window", string(was.Window), string(e.Window))
	note("enabled", fmt.Sprint(was.Enabled), fmt.Sprint(e.Enabled))
	note("runbook", was.Runbook, e.Runbook)
	note("on", was.On, e.On)
	note("priority", was.Priority, e.Priority)
	note("expire", was.Expire, e.Expire)
	note("expect", was.Expect, e.Expect)
	note("disruptive", fmt.Sprint(was.Disruptive), fmt.Sprint(e.Disruptive))
	note("supersedes", was.Supersedes, e.Supersedes)
	note("only", was.Only, e.Only)
	note("owner", was.Owner, e.Owner)
	e.Rollout.differences(was.Rollout, note)
	for _, name := range sortedKeys(was.Args, e.Args) {
		note("args."+name, was.Args[name], e.Args[name])
	}
	return out
}

func orNone(s string) string {
	if s == "" {
		return "(none)"
	}
	return s
}

func sortedKeys(maps ...map[string]string) []string {
	var keys []string
	for _, m := range maps {
		for k := range m {
			keys = append(keys, k)
		}
	}
	slices.Sort(keys)
	return slices.Compact(keys)
}
