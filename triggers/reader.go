package triggers

import (
	"maps"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"muster/internal/strictyaml"
	"muster/internal/wording"
	"muster/jobs"
	"muster/windows"
)

// reader reads a file of triggers.
type reader struct{ in *strictyaml.Reader }

// nameMax bounds the name of a trigger.
const nameMax = 100 // bytes

// leave says what people can do about an empty list.
const leave = "one at least; leave it out otherwise"

// texts returns the texts of a list; none: it is not there.
func (r reader) texts(n *yaml.Node, what string) []string {
	if n == nil {
		return nil
	}
	return strictyaml.Values(r.in.Texts(n, what, leave))
}

func (r reader) name(at, n *yaml.Node) string {
	if n == nil {
		r.in.Wrong(at.Line, "a trigger needs a name")
		return ""
	}
	name := r.in.Name(n, "name")
	if len(name) > nameMax {
		r.in.Wrong(n.Line, "name of %d bytes: want at most %d", len(name), nameMax)
	}
	return name
}

// flag returns true or false; absent if it is not there.
func (r reader) flag(n *yaml.Node, what string, absent bool) bool {
	if n == nil {
		return absent
	}
	return r.in.Flag(n, what)
}

// rollout reads the rule of a rollout; nil if there is none.
func (r reader) rollout(f map[string]*yaml.Node) *windows.RolloutRequest {
	if !anyOf(f, rolloutKeys) {
		return nil
	}
	out := windows.RolloutRequest{UnreachableOK: r.flag(f["unreachable_ok"], "unreachable_ok", false),
		Gate: r.flag(f["gate"], "gate", false)}
	for key, into := range map[string]*string{"max_failed": &out.MaxFailed, "breaker": &out.Breaker,
		"canary": &out.Canary, "soak": &out.Soak, "health": &out.Health} {
		if f[key] != nil {
			*into, _ = r.in.Text(f[key], key)
		}
	}
	for _, text := range r.texts(f["waves"], "waves") {
		for wave := range strings.SplitSeq(text, ",") { // a list, or the text of --waves
			out.Waves = append(out.Waves, strings.TrimSpace(wave))
		}
	}
	if f["health_args"] != nil {
		out.HealthArgs = map[string]string{}
		for _, p := range r.in.Pairs(f["health_args"], "health_args") {
			out.HealthArgs[p.Key.Value], _ = r.in.Long(p.Value, "health_args")
		}
	}
	wrong := jobs.CheckRollout(out)
	for _, field := range slices.Sorted(maps.Keys(wrong)) {
		if f[field] != nil {
			r.in.Wrong(f[field].Line, "%s: %s", field, wording.ErrorLine(wrong[field]))
		}
	}
	return &out
}
