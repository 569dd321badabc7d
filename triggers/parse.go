package triggers

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"

	"muster/fleet"
	"muster/internal/strictyaml"
	"muster/internal/wording"
)

// The bounds of a file.
const (
	triggersMax   = 500
	conditionsMax = 100
	atMostMax     = 20_000 // hosts
	quietMin      = time.Second
	quietMax      = time.Hour
	longestMax    = 24 * time.Hour
	limitMax      = 1000
	perMax        = 7 * 24 * time.Hour
	periodMin     = time.Second
	periodMax     = 720 * time.Hour
)

// Parse reads the file of triggers:
//
//	triggers:
//	  - name: alert-diagnosis
//	    source: alertmanager            # names or globs of sources
//	    kind: firing                    # likewise; absent: all
//	    customers: [acme]               # likewise; absent: all, also events of no customer
//	    when:
//	      - {field: commonLabels.severity, one_of: [critical, page]}
//	      - {field: alerts.*.labels.job, glob: "node*"}
//	      - {field: commonLabels.maintenance, exists: false}
//	    debounce: {quiet: 30s, longest: 5m, by: commonLabels.instance}
//	    limit: 10/1h
//	    runbook: diagnose
//	    args:
//	      depth: full                                     # as it stands
//	      alert: {field: commonLabels.alertname}          # of the event
//	      rules: {file: /srv/rules/acme.nft}              # the content of a file, when it fires
//	    on: role=fw                                       # a selector; no value gets into it
//	    host: {field: alerts.*.labels.instance, before: ":"}  # of those, hosts with these names
//	    labels: {site: {field: commonLabels.site}}        # and with these labels
//	    at_most: 3                                        # hosts; more are refused
//	    hold: true                                        # the task waits for signatures of people
//	    window: required                                  # and all else that a schedule can say
//
// A file with a mistake is refused whole. The error is of type fleet.Mistakes and has all of them.
func Parse(src fleet.Source) (*Set, error) {
	r := reader{strictyaml.New(src.Name)}
	s := &Set{}
	if root := r.in.Document(src.Data, "a mapping with triggers"); root != nil {
		s.list = r.top(root)
	}
	if err := r.in.Err(); err != nil {
		return nil, err
	}
	return s, nil
}

func (r reader) top(root *yaml.Node) (list []Trigger) {
	if fleet.Foreign(root, []string{"triggers"}) {
		r.in.Wrong(root.Line, "this is no file of triggers: it has no known key: want triggers")
		return nil
	}
	f := r.in.Fields(root, "the file", []string{"triggers"})
	if f["triggers"] == nil {
		return nil
	}
	items := r.in.Filled(f["triggers"], "triggers", leave)
	if len(items) > triggersMax {
		r.in.Wrong(root.Line, "%d triggers: at most %d", len(items), triggersMax)
		return nil
	}
	names := map[string]int{}
	for _, n := range items {
		t := r.trigger(n)
		if line, twice := names[t.Name]; twice && t.Name != "" {
			r.in.Wrong(n.Line, "trigger %s is there already, at line %d: choose another name", t.Name,
				line)
		}
		names[t.Name] = n.Line
		list = append(list, t)
	}
	return list
}

var triggerKeys = append([]string{"name", "enabled", "source", "kind", "customers", "when",
	"debounce", "limit", "runbook", "args", "on", "host", "labels", "at_most", "window", "expire",
	"expect", "priority", "supersedes", "only", "disruptive", "hold"}, rolloutKeys...)

func (r reader) trigger(n *yaml.Node) Trigger {
	f := r.in.Fields(n, "a trigger", triggerKeys)
	t := Trigger{File: r.in.File, Line: n.Line}
	if f == nil {
		return t
	}
	t.Name, t.Enabled = r.name(n, f["name"]), r.flag(f["enabled"], "enabled", true)
	if f["source"] == nil {
		r.in.Wrong(n.Line, "source is missing: want the names of sources of events, or patterns")
	}
	t.Match = Match{Sources: r.texts(f["source"], "source"), Kinds: r.texts(f["kind"], "kind"),
		Customers: r.texts(f["customers"], "customers")}
	if f["when"] != nil {
		for _, one := range r.in.Filled(f["when"], "when", leave) {
			t.Match.When = append(t.Match.When, r.condition(one))
		}
	}
	if len(t.Match.When) > conditionsMax {
		r.in.Wrong(f["when"].Line, "%d conditions: at most %d", len(t.Match.When), conditionsMax)
	}
	if d := f["debounce"]; d != nil {
		t.Debounce = r.debounce(d)
	}
	if l := f["limit"]; l != nil {
		t.Limit = r.limit(l)
	}
	t.Work = r.work(n, f)
	return t
}

func (r reader) condition(n *yaml.Node) Condition {
	ops := []string{string(Equals), string(Glob), string(OneOf), string(Exists)}
	c := Condition{Line: n.Line}
	f := r.in.Fields(n, "a condition", append([]string{"field", "event", "before"}, ops...))
	if f == nil {
		return c
	}
	c.Field = r.fieldOf(n, f)
	found := 0
	for _, op := range ops {
		v := f[op]
		if v == nil {
			continue
		}
		found++
		c.Op = Op(op)
		switch c.Op {
		case OneOf:
			c.Values = r.texts(v, op)
		case Exists:
			c.Values = []string{strconv.FormatBool(r.in.Flag(v, op))}
		default:
			text, _ := r.in.Text(v, op)
			c.Values = []string{text}
		}
	}
	if found != 1 {
		r.in.Wrong(n.Line, "a condition has %s: want one of %s", wording.Count(found, "comparison"),
			strings.Join(ops, ", "))
	}
	return c
}

func (r reader) debounce(n *yaml.Node) *Debounce {
	f := r.in.Fields(n, "debounce", []string{"quiet", "longest", "by"})
	if f == nil {
		return nil
	}
	d := &Debounce{}
	if f["quiet"] == nil {
		r.in.Wrong(n.Line, "debounce needs quiet: the trigger fires when no event has come for so long")
	} else {
		d.Quiet = r.in.Duration(f["quiet"], "quiet", quietMin, quietMax)
	}
	d.Longest = min(10*d.Quiet, longestMax)
	if f["longest"] != nil {
		d.Longest = r.in.Duration(f["longest"], "longest", d.Quiet, longestMax)
	}
	if by := f["by"]; by != nil {
		if text, ok := r.in.Text(by, "by"); ok {
			field := r.path(by, text)
			d.By = &field
		}
	}
	return d
}

// limit reads a bound on how often something happens, such as 10/1h.
func (r reader) limit(n *yaml.Node) Limit {
	text, ok := r.in.Text(n, "limit")
	if !ok {
		return Limit{}
	}
	many, per, _ := strings.Cut(text, "/")
	most, err := strconv.Atoi(many)
	d, perErr := time.ParseDuration(per)
	wrong := errors.Join(err, perErr) != nil || most < 1 || most > limitMax
	if wrong || d < periodMin || d > perMax {
		r.in.Wrong(n.Line, "limit: %s: want how often in which time, such as 10/1h: 1 to %d, "+
			"and %s to %s", wording.Quote(text), limitMax, periodMin, perMax)
	}
	return Limit{most, d}
}

// A value is bound in one of these ways.
var valueKeys = []string{"field", "event", "before"}

// valueOf reads {field: PATH}, {event: WHAT}, each perhaps with before.
func (r reader) valueOf(n *yaml.Node, what string) Field {
	f := r.in.Fields(n, what, valueKeys)
	if f == nil {
		return Field{}
	}
	return r.fieldOf(n, f)
}

func (r reader) fieldOf(n *yaml.Node, f map[string]*yaml.Node) Field {
	var out Field
	if (f["field"] == nil) == (f["event"] == nil) {
		r.in.Wrong(n.Line, "want one of field, a path in the body of the event, and event, which is one "+
			"of %s", strings.Join(abouts(), ", "))
	} else if f["field"] != nil {
		if text, ok := r.in.Text(f["field"], "field"); ok {
			out = r.path(f["field"], text)
		}
	} else {
		out.About = r.in.Word(f["event"], "event", abouts())
	}
	if b := f["before"]; b != nil {
		if out.Before, _ = r.in.Text(b, "before"); out.Before == "" {
			r.in.Wrong(b.Line, `before is empty: want the text that ends the value, such as ":"`)
		}
	}
	return out
}

func (r reader) path(n *yaml.Node, text string) Field {
	f, err := newField(text)
	if err != nil {
		r.in.Wrong(n.Line, "%v", err)
	}
	return f
}

func (r reader) args(n *yaml.Node) (list []Argument) {
	for _, p := range r.in.Pairs(n, "args") {
		a := Argument{Name: p.Key.Value, Line: p.Key.Line}
		if p.Value.Kind != yaml.MappingNode {
			if text, ok := r.in.Long(p.Value, "argument "+fleet.Word(a.Name)); ok {
				a.Text = &text
			}
			list = append(list, a)
			continue
		}
		f := r.in.Fields(p.Value, "argument "+fleet.Word(a.Name), append([]string{"file"}, valueKeys...))
		switch {
		case f == nil:
		case f["file"] != nil && len(f) > 1:
			r.in.Wrong(p.Value.Line, "argument %s has a file and a field: want one of them",
				fleet.Word(a.Name))
		case f["file"] != nil:
			a.File = r.in.Path(f["file"], "file")
		default:
			field := r.fieldOf(p.Value, f)
			a.Field = &field
		}
		list = append(list, a)
	}
	return list
}

func (r reader) aim(at *yaml.Node, f map[string]*yaml.Node) Aim {
	a := Aim{Line: at.Line}
	if f["on"] == nil {
		r.in.Wrong(at.Line, "on is missing: want a selector, which bounds the hosts of each event")
	} else if text, ok := r.in.Text(f["on"], "on"); ok {
		a.On, a.Line = text, f["on"].Line
		if sel, err := fleet.ParseSelector(text); err != nil {
			r.in.Wrong(a.Line, "on: %s", wording.ErrorLine(err))
		} else if len(sel.Earlier()) > 0 {
			r.in.Wrong(a.Line, "on: %s names a task: want hosts or labels", wording.Quote(text))
		}
	}
	if f["host"] != nil {
		field := r.valueOf(f["host"], "host")
		a.Host = &field
	}
	if f["labels"] != nil {
		for _, p := range r.in.Pairs(f["labels"], "labels") {
			field := r.valueOf(p.Value, "label "+fleet.Word(p.Key.Value))
			a.Labels = append(a.Labels, LabelField{p.Key.Value, field})
		}
	}
	if f["at_most"] == nil {
		r.in.Wrong(at.Line, "at_most is missing: want the number of hosts that one event may concern; "+
			"more are refused")
		return a
	}
	a.AtMost = r.in.Number(f["at_most"], "at_most", 1, atMostMax)
	return a
}

func (r reader) work(at *yaml.Node, f map[string]*yaml.Node) Work {
	w := Work{Aim: r.aim(at, f), Disruptive: r.flag(f["disruptive"], "disruptive", false),
		Hold: r.flag(f["hold"], "hold", false), Rollout: r.rollout(f)}
	if f["runbook"] == nil {
		r.in.Wrong(at.Line, "runbook is missing: want the name of one")
	} else {
		w.Runbook, _ = r.in.Text(f["runbook"], "runbook")
	}
	if f["args"] != nil {
		w.Args = r.args(f["args"])
	}
	for _, a := range w.Args {
		if a.Field != nil && slices.Contains([]string{"exec", "script"}, w.Runbook) {
			r.in.Wrong(a.Line, "argument %s of runbook %s is a command, and an event carries none: write "+
				"it out, or bind the field to an argument of a runbook of your own", fleet.Word(a.Name),
				w.Runbook)
		}
	}
	if f["window"] != nil {
		w.Window = r.in.Word(f["window"], "window", []string{"none", "required"}) == "required"
	}
	if f["priority"] != nil {
		w.Priority = r.in.Word(f["priority"], "priority", []string{"normal", "high", "low"})
	}
	if f["only"] != nil {
		w.Only = r.in.Word(f["only"], "only", []string{"check", "diff"})
	}
	if f["supersedes"] != nil {
		w.Supersedes, _ = r.in.Text(f["supersedes"], "supersedes")
	}
	for key, into := range map[string]*string{"expire": &w.Expire, "expect": &w.Expect} {
		if f[key] != nil {
			*into = r.in.Duration(f[key], key, periodMin, periodMax).String()
		}
	}
	return w
}

// Check returns a set's mistakes about runbooks and arguments, each with its place, as far as a
// catalog tells: a runbook or an argument that is not there, one that is missing, a value that no
// event can give.
func (s *Set) Check(find func(name string) (Schema, error)) fleet.Mistakes {
	var wrong fleet.Mistakes
	var files []string
	for _, t := range s.All() {
		wrong = append(wrong, t.Check(find)...)
		if !slices.Contains(files, t.File) {
			files = append(files, t.File)
		}
	}
	if len(wrong) > 0 {
		wrong.Sort(files)
	}
	return wrong
}

// Check returns the mistakes of one trigger, as Set.Check does.
func (t Trigger) Check(find func(name string) (Schema, error)) (wrong fleet.Mistakes) {
	note := func(line int, format string, args ...any) {
		wrong = append(wrong, fleet.Mistake{File: t.File, Line: line,
			Text: fmt.Sprintf("trigger %s: ", t.Name) + fmt.Sprintf(format, args...)})
	}
	schema, err := find(t.Work.Runbook)
	if err != nil {
		note(t.Line, "%s", wording.ErrorLine(err))
		return wrong
	}
	given := map[string]bool{}
	for _, a := range t.Work.Args {
		given[a.Name] = true
		if text := schema.wrong(a); text != "" {
			note(a.Line, "%s", text)
		}
	}
	for _, name := range schema.Missing(given) {
		note(t.Line, "runbook %s needs argument %s: give it in args", t.Work.Runbook, name)
	}
	return wrong
}

// rolloutKeys are those of a schedule.
var rolloutKeys = []string{"max_failed", "unreachable_ok", "breaker", "canary", "waves", "soak",
	"gate", "health", "health_args"}

func anyOf(f map[string]*yaml.Node, keys []string) bool {
	return slices.ContainsFunc(keys, func(key string) bool { return f[key] != nil })
}
