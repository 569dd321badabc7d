package triggers

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"

	"muster/fleet"
	"muster/internal/wording"
	"muster/jobs"
	"muster/scripts"
	"muster/windows"
)

// reader reads a file of triggers and collects its mistakes.
type reader struct {
	file     string
	mistakes fleet.Mistakes
}

func (r *reader) mistake(line int, format string, args ...any) {
	r.mistakes = append(r.mistakes, fleet.Mistake{File: r.file, Line: line,
		Text: fmt.Sprintf(format, args...)})
}

func (r *reader) document(data []byte) *yaml.Node {
	root, wrong := scripts.ReadYAML(r.file, "a mapping with triggers", data)
	for _, m := range wrong {
		r.mistake(m.Line, "%s", m.Text)
	}
	if len(wrong) > 0 {
		return nil
	}
	return root
}

// is reports whether a value is of a kind, written out; else it is a mistake.
func (r *reader) is(n *yaml.Node, kind yaml.Kind, what, want string) bool {
	switch {
	case n.Kind == yaml.AliasNode || n.Anchor != "" || n.Style&yaml.TaggedStyle != 0:
		r.mistake(n.Line, "%s has an alias, an anchor or a tag: write the value out", what)
	case n.Kind == yaml.ScalarNode && n.ShortTag() == "!!null":
		r.mistake(n.Line, "%s has no value: want %s", what, want)
	case n.Kind != kind:
		r.mistake(n.Line, "%s is of another kind: want %s", what, want)
	default:
		return true
	}
	return false
}

// pair is a key of a mapping with its value.
type pair struct{ key, value *yaml.Node }

func (r *reader) pairs(n *yaml.Node, what string) (list []pair) {
	if !r.is(n, yaml.MappingNode, what, "a mapping") {
		return nil
	}
	first := map[string]int{}
	for i := 0; i+1 < len(n.Content); i += 2 {
		key, value := n.Content[i], n.Content[i+1]
		if !r.is(key, yaml.ScalarNode, "a key of "+what, "a word") {
			continue
		}
		if line, twice := first[key.Value]; twice {
			r.mistake(key.Line, "key %q is there already, at line %d: keep one of them",
				fleet.Word(key.Value), line)
			continue
		}
		first[key.Value] = key.Line
		list = append(list, pair{key, value})
	}
	return list
}

// fields returns the values of a mapping with known keys; nil if it is none.
func (r *reader) fields(n *yaml.Node, what string, known []string) map[string]*yaml.Node {
	want := "a mapping with " + wording.ClipList(strings.Join(known, ", "))
	if !r.is(n, yaml.MappingNode, what, want) {
		return nil
	}
	out := map[string]*yaml.Node{}
	for _, p := range r.pairs(n, what) {
		if slices.Contains(known, p.key.Value) {
			out[p.key.Value] = p.value
			continue
		}
		r.mistake(p.key.Line, "unknown key %q of %s%s", fleet.Word(p.key.Value), what,
			instead(p.key.Value, known))
	}
	return out
}

func instead(word string, known []string) string {
	if near := wording.Nearest(word, known); near != "" {
		return fmt.Sprintf(": did you mean %s?", near)
	}
	return ": want one of " + wording.ClipList(strings.Join(known, ", "))
}

func (r *reader) items(n *yaml.Node, what string) []*yaml.Node {
	if !r.is(n, yaml.SequenceNode, what, "a list") {
		return nil
	}
	if len(n.Content) == 0 {
		r.mistake(n.Line, "%s is empty: leave it out, or name one", what)
	}
	return n.Content
}

// texts returns the items of a list of texts; a single text is a list of one.
func (r *reader) texts(n *yaml.Node, what string) (list []string) {
	if n == nil {
		return nil
	}
	items := []*yaml.Node{n}
	if n.Kind != yaml.ScalarNode {
		items = r.items(n, what)
	}
	for _, item := range items {
		if text, ok := r.text(item, what); ok {
			list = append(list, text)
		}
	}
	return list
}

// text returns one line of text.
func (r *reader) text(n *yaml.Node, what string) (string, bool) {
	text, ok := r.long(n, what)
	if ok && strings.ContainsFunc(text, func(c rune) bool { return c < ' ' || c == 0x7f }) {
		r.mistake(n.Line, "%s has a control character: remove it", what)
		return "", false
	}
	return text, ok
}

func (r *reader) long(n *yaml.Node, what string) (string, bool) {
	if !r.is(n, yaml.ScalarNode, what, "a text") {
		return "", false
	}
	return n.Value, true
}

func (r *reader) name(at, n *yaml.Node) string {
	if n == nil {
		r.mistake(at.Line, "a trigger needs a name")
		return ""
	}
	text, ok := r.text(n, "name")
	if ok && fleet.CheckName(text) != nil || len(text) > 100 {
		r.mistake(n.Line, "name %s: want at most 100 letters, digits, '.', '-' and '_'",
			wording.Quote(text))
	}
	return text
}

func (r *reader) flag(n *yaml.Node, what string, absent bool) bool {
	if n == nil || !r.is(n, yaml.ScalarNode, what, "true or false") {
		return absent
	}
	if n.ShortTag() != "!!bool" {
		r.mistake(n.Line, "%s: %s: want true or false", what, wording.Quote(n.Value))
	}
	return n.Value == "true"
}

func (r *reader) choice(n *yaml.Node, what string, known ...string) string {
	text, ok := r.text(n, what)
	if ok && !slices.Contains(known, text) {
		r.mistake(n.Line, "%s: %s is not known%s", what, wording.Quote(text), instead(text, known))
	}
	return text
}

func (r *reader) duration(n *yaml.Node, what string, least, most time.Duration) time.Duration {
	text, ok := r.text(n, what)
	if !ok {
		return 0
	}
	d, err := time.ParseDuration(text)
	if err != nil || d < least || d > most {
		r.mistake(n.Line, "%s: %s: want a time from %s to %s, such as 30s or 15m", what,
			wording.Quote(text), least, most)
	}
	return d
}

// rollout reads the rule of a rollout; nil if there is none.
func (r *reader) rollout(f map[string]*yaml.Node) *windows.RolloutRequest {
	if !anyOf(f, rolloutKeys) {
		return nil
	}
	out := windows.RolloutRequest{UnreachableOK: r.flag(f["unreachable_ok"], "unreachable_ok", false),
		Gate: r.flag(f["gate"], "gate", false)}
	for key, into := range map[string]*string{"max_failed": &out.MaxFailed, "breaker": &out.Breaker,
		"canary": &out.Canary, "soak": &out.Soak, "health": &out.Health} {
		if f[key] != nil {
			*into, _ = r.text(f[key], key)
		}
	}
	for _, text := range r.texts(f["waves"], "waves") {
		for wave := range strings.SplitSeq(text, ",") { // a list, or the text of --waves
			out.Waves = append(out.Waves, strings.TrimSpace(wave))
		}
	}
	if f["health_args"] != nil {
		out.HealthArgs = map[string]string{}
		for _, p := range r.pairs(f["health_args"], "health_args") {
			out.HealthArgs[p.key.Value], _ = r.long(p.value, "health_args")
		}
	}
	wrong := jobs.CheckRollout(out)
	for _, field := range slices.Sorted(maps.Keys(wrong)) {
		if f[field] != nil {
			r.mistake(f[field].Line, "%s: %s", field, wording.ErrorLine(wrong[field]))
		}
	}
	return &out
}
