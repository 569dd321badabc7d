package fleet

import (
	"maps"
	"reflect"
	"slices"

	"go.yaml.in/yaml/v3"
)

// override changes fields of hosts, which other files may define.
type override struct {
	on     Selector
	given  []string // names of the fields that it sets
	values entry    // their values; file and line are the override's
}

// readOverrides reads the section overrides of a file.
func (r *reader) readOverrides(n *yaml.Node) {
	if n == nil {
		return
	}
	known := append([]string{"on"}, commonFields()...)
	for _, f := range hostFields() {
		if f != "name" {
			known = append(known, f)
		}
	}
	for _, item := range r.list(n, "overrides") {
		r.who = "override: "
		if fields := r.fields(item, "this", known); fields != nil {
			r.readOverride(item.Line, fields)
		}
	}
	r.who = ""
}

func (r *reader) readOverride(line int, fields map[string]*yaml.Node) {
	before := len(r.mistakes)
	o := override{values: entry{file: r.file, line: line}}
	text := ""
	r.text(fields, "on", &text, func(s string) (err error) {
		o.on, err = ParseSelector(s)
		return err
	})
	if fields["on"] == nil {
		r.mistake(line, "on is missing: want a selector of the hosts that it changes")
	} else if r.who = "override on " + abbreviate(text) + ": "; len(fields) == 1 {
		r.mistake(line, "it changes nothing: want fields of hosts beside on")
	}
	e := &o.values
	r.text(fields, "address", &e.host.Address, checkAddress)
	r.text(fields, "group", &e.host.Group, optional(CheckName))
	r.common(fields, e)
	if fields["host_key"] != nil || fields["host_keys"] != nil {
		r.hostKeys(fields, e)
	}
	e.host.Labels = r.labelMap(fields["labels"])
	o.given = sortedKeys(fields)
	if len(r.mistakes) == before {
		r.changes = append(r.changes, o)
	}
}

// override applies the overrides in the order of files and lines. Their selectors see the
// hosts as they were before all overrides, so the order matters only where two overrides
// set the same field. An override that changes no host is a mistake.
func (r *reader) override() {
	if len(r.changes) == 0 || len(r.mistakes) > 0 {
		return
	}
	before := reader{entries: slices.Clone(r.entries)}
	v := before.build(nil)
	var errs Mistakes
	picked := make([][]Host, len(r.changes))
	for i, o := range r.changes {
		var err error
		if picked[i], err = v.Select(o.on); err != nil {
			errs = append(errs, Mistake{o.values.file, o.values.line, "override: " + err.Error()})
		}
	}
	index := make(map[string]int, len(r.entries))
	for i, e := range r.entries {
		index[e.host.Name] = i
	}
	for i, o := range r.changes {
		for _, h := range picked[i] {
			o.apply(&r.entries[index[h.Name]])
		}
	}
	r.mistakes = errs
}

// apply sets the fields of a host that the override gives.
func (o override) apply(e *entry) {
	from := o.values
	to, values := reflect.ValueOf(&e.host).Elem(), reflect.ValueOf(from.host)
	for _, f := range hostFieldList() {
		own := []string{"labels", "host_keys", "jump"} // these are merged below
		if !slices.Contains(own, f.name) && slices.Contains(o.given, fileKey(f.name)) {
			to.FieldByIndex(f.index).Set(values.FieldByIndex(f.index))
		}
	}
	if len(from.host.Labels) > 0 {
		labels := maps.Clone(e.host.Labels)
		if labels == nil {
			labels = map[string]string{}
		}
		maps.Copy(labels, from.host.Labels)
		e.host.Labels = labels
	}
	if len(from.host.HostKeys) > 0 || from.knownHosts != "" {
		e.host.HostKeys, e.knownHosts = from.host.HostKeys, from.knownHosts
	}
	if slices.Contains(o.given, "jump") {
		e.jump, e.jumpLine, e.jumpGiven = from.jump, from.line, false
	}
}
