package ingress

import (
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"

	"muster/events"
	"muster/fleet"
	"muster/internal/jsonpath"
	"muster/internal/wording"
	"muster/scripts"
)

// sourcesMax bounds the sources of a file.
const sourcesMax = 500

// Parse reads the file of sources:
//
//	sources:
//	  - name: rules
//	    preset: github
//	    secret_file: /etc/muster/events/rules
//	    customer: acme
//
// A file with a mistake is refused whole. The error is of type fleet.Mistakes and has all of them.
func Parse(src fleet.Source) (*Sources, error) {
	r := &reader{file: src.Name, names: map[string]int{}}
	root, wrong := scripts.ReadYAML(r.file, "a mapping with sources", src.Data)
	for _, m := range wrong {
		r.wrong(m.Line, "%s", m.Text)
	}
	if len(wrong) == 0 {
		r.root(root)
	}
	if len(r.mistakes) > 0 {
		r.mistakes.Sort([]string{src.Name})
		return nil, r.mistakes
	}
	return &Sources{r.list}, nil
}

// reader collects sources and mistakes.
type reader struct {
	file     string
	list     []Source
	names    map[string]int // of sources, to their lines
	mistakes fleet.Mistakes
}

func (r *reader) wrong(line int, format string, args ...any) {
	r.mistakes = append(r.mistakes, fleet.Mistake{File: r.file, Line: line,
		Text: fmt.Sprintf(format, args...)})
}

func (r *reader) root(n *yaml.Node) {
	for _, p := range r.fields(n, "the file", []string{"sources"}) {
		if !r.is(p.value, yaml.SequenceNode, "sources", "a list") {
			continue
		}
		if len(p.value.Content) > sourcesMax {
			r.wrong(p.value.Line, "%d sources: want at most %d", len(p.value.Content), sourcesMax)
			continue
		}
		for _, one := range p.value.Content {
			r.source(one)
		}
	}
}

// field is a key of a mapping with its value.
type field struct {
	key   string
	value *yaml.Node
}

// fields returns the fields of a mapping with known keys.
func (r *reader) fields(n *yaml.Node, what string, known []string) (list []field) {
	if !r.is(n, yaml.MappingNode, what, "a mapping with "+strings.Join(known, ", ")) {
		return nil
	}
	seen := map[string]int{}
	for i := 0; i+1 < len(n.Content); i += 2 {
		key, value := n.Content[i], n.Content[i+1]
		line, twice := seen[key.Value]
		switch {
		case twice:
			r.wrong(key.Line, "key %q is there already, at line %d: keep one of them",
				fleet.Word(key.Value), line)
		case !slices.Contains(known, key.Value):
			r.wrong(key.Line, "unknown key %q: want some of %s", fleet.Word(key.Value),
				strings.Join(known, ", "))
		default:
			list = append(list, field{key.Value, value})
		}
		seen[key.Value] = key.Line
	}
	return list
}

func (r *reader) is(n *yaml.Node, kind yaml.Kind, what, want string) bool {
	switch {
	case n.Kind == yaml.AliasNode, n.Anchor != "", n.Style&yaml.TaggedStyle != 0:
		r.wrong(n.Line, "%s has an alias, an anchor or a tag: write the value out", what)
	case n.Kind == yaml.ScalarNode && n.ShortTag() == "!!null":
		r.wrong(n.Line, "%s has no value: want %s", what, want)
	case n.Kind != kind:
		r.wrong(n.Line, "%s is of another kind: want %s", what, want)
	default:
		return true
	}
	return false
}

// keysOf are the keys of a source.
var keysOf = strings.Fields("name preset secret_file customer customer_at class per_minute " +
	"waiting remember user header prefix hash encoding id time tolerance kind kind_at " +
	programKeys)

func (r *reader) source(n *yaml.Node) {
	s := Source{Class: Trigger, Bounds: usual(), Line: n.Line}
	all := r.fields(n, "a source", keysOf)
	if all == nil {
		return
	}
	for _, p := range all {
		if p.key == "preset" {
			s.Preset = r.word(p.value, "preset", Presets())
			s.Form = presets[s.Preset]
			s.Program = programOf(s.Preset)
		}
	}
	for _, p := range all {
		if !r.program(&s, p) && !r.who(&s, p) && !r.bounds(&s.Bounds, p) {
			r.form(&s.Form, p)
		}
	}
	has := map[string]bool{}
	for _, p := range all {
		has[p.key] = true
	}
	r.whole(s, has)
	r.list = append(r.list, s)
}

// who reads the fields that say what a source is.
func (r *reader) who(s *Source, p field) bool {
	switch p.key {
	case "name":
		s.Name = r.name(p)
		if line, twice := r.names[s.Name]; twice && s.Name != "" {
			r.wrong(p.value.Line, "source %s is there already, at line %d: choose another name", s.Name,
				line)
		}
		if s.Name == SentName {
			r.wrong(p.value.Line, "name %s is that of events which people send by hand: choose another",
				SentName)
		}
		if s.Name == events.Own {
			r.wrong(p.value.Line, "name %s is that of muster's own events: choose another", events.Own)
		}
		r.names[s.Name] = p.value.Line
	case "preset": // it was read before all others
	case "secret_file":
		if s.SecretFile = r.text(p); s.SecretFile != "" && !filepath.IsAbs(s.SecretFile) {
			r.wrong(p.value.Line, "secret_file: want the absolute path of a file")
		}
	case "customer":
		s.Customer = r.name(p)
	case "customer_at":
		s.CustomerAt = r.path(p)
	case "class":
		s.Class = Class(r.word(p.value, "class", []string{string(Management), string(Result),
			string(Trigger)}))
	default:
		return false
	}
	return true
}

// bounds reads the fields that bound a source.
func (r *reader) bounds(b *Bounds, p field) bool {
	switch p.key {
	case "per_minute":
		b.PerMinute = r.number(p, perMinuteMax)
	case "waiting":
		b.Waiting = r.number(p, waitingMax)
	case "remember":
		b.Remember = r.duration(p, rememberMin, rememberMax)
	default:
		return false
	}
	return true
}

// form reads the fields that say how a sender writes.
func (r *reader) form(f *Form, p field) {
	switch p.key {
	case "user":
		f.User = r.text(p)
	case "header":
		f.Header = r.header(p)
		if f.Proof == Token && f.Header != bearer {
			f.Prefix = ""
		}
	case "prefix":
		f.Prefix = r.text(p)
	case "hash":
		f.Hash = r.word(p.value, "hash", []string{"sha256", "sha512"})
	case "encoding":
		f.Encoding = r.word(p.value, "encoding", []string{"hex", "base64"})
	case "id":
		f.ID = r.header(p)
	case "time":
		if f.Time = r.header(p); f.Tolerance == 0 {
			f.Tolerance = tolerance
		}
	case "tolerance":
		f.Tolerance = r.duration(p, time.Second, time.Hour)
	case "kind":
		f.Kind, f.KindAt = r.header(p), nil
	case "kind_at":
		f.Kind, f.KindAt = "", []string{r.path(p)}
	}
}

// whole refuses a source that lacks something, and keys that would have no effect.
func (r *reader) whole(s Source, has map[string]bool) {
	if !has["name"] {
		r.wrong(s.Line, "a source needs a name: triggers and the last part of the URL have it")
	}
	if !has["preset"] {
		r.wrong(s.Line, "a source needs a preset: want one of %s", strings.Join(Presets(), ", "))
	}
	if s.Program != nil {
		r.wholeProgram(s, has)
	} else if !has["secret_file"] {
		r.wrong(s.Line, "a source needs a secret_file: without one anybody could send events")
	}
	if s.Customer != "" && s.CustomerAt != "" {
		r.wrong(s.Line, "a source has customer and customer_at: want one of them")
	}
	if s.Preset == "" || s.Program != nil {
		return // nobody knows what it means, or it has no form
	}
	f, was := s.Form, presets[s.Preset]
	macs := f.Proof == HMAC || f.Proof == Signed
	switch {
	case f.Proof == Basic && (f.User == "" || strings.Contains(f.User, ":")):
		r.wrong(s.Line, "preset %s needs a user, without a colon", s.Preset)
	case f.Proof != Basic && f.User != "":
		r.wrong(s.Line, "user has no effect with preset %s: remove it", s.Preset)
	case !macs && (f.Hash != "" || f.Encoding != ""):
		r.wrong(s.Line, "hash and encoding have no effect with preset %s: remove them", s.Preset)
	case f.Proof == Signed && (f.ID != was.ID || f.Time != was.Time || f.Hash != was.Hash):
		r.wrong(s.Line, "id, time and hash of preset %s are fixed: remove them", s.Preset)
	case f.Proof != Signed && f.Time != "":
		r.wrong(s.Line, "time: the proof of preset %s does not cover a time, so it would prove "+
			"nothing: remove it", s.Preset)
	case f.Proof == HMAC && f.ID != "":
		r.wrong(s.Line, "id: the MAC of preset %s does not cover headers, so whoever repeats a message "+
			"could write another: remove it", s.Preset)
	case f.Tolerance != 0 && f.Time == "":
		r.wrong(s.Line, "tolerance has no effect without a time of the sender: remove it")
	}
}

func (r *reader) text(p field) string {
	if !r.is(p.value, yaml.ScalarNode, p.key, "a text") {
		return ""
	}
	if p.value.Value == "" || len(p.value.Value) > 400 ||
		strings.ContainsFunc(p.value.Value, func(c rune) bool { return c < ' ' || c == 0x7f }) {
		r.wrong(p.value.Line, "%s: want 1 to 400 characters without control characters", p.key)
		return ""
	}
	return p.value.Value
}

func (r *reader) name(p field) string {
	text := r.text(p)
	if text != "" && fleet.CheckName(text) != nil {
		r.wrong(p.value.Line, "%s %s: use letters, digits, '.', '-' and '_'", p.key,
			wording.Quote(text))
		return ""
	}
	return text
}

func (r *reader) word(n *yaml.Node, what string, known []string) string {
	text := r.text(field{what, n})
	if text != "" && !slices.Contains(known, text) {
		r.wrong(n.Line, "%s %s is not known: want one of %s", what, wording.Quote(text),
			strings.Join(known, ", "))
		return ""
	}
	return text
}

// header reads the name of a header.
func (r *reader) header(p field) string {
	text := r.text(p)
	if strings.Trim(text, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-") != "" {
		r.wrong(p.value.Line, "%s %s: want the name of a header: letters, digits and '-'", p.key,
			wording.Quote(text))
		return ""
	}
	return text
}

func (r *reader) path(p field) string {
	text := r.text(p)
	if text == "" {
		return ""
	}
	if _, err := jsonpath.Split(text); err != nil {
		r.wrong(p.value.Line, "%s: %s", p.key, err)
	}
	return text
}

func (r *reader) number(p field, most int) int {
	text := r.text(p)
	n, err := strconv.Atoi(text)
	if text != "" && (err != nil || n < 1 || n > most) {
		r.wrong(p.value.Line, "%s %s: want a number from 1 to %d", p.key, wording.Quote(text), most)
	}
	return n
}

func (r *reader) duration(p field, least, most time.Duration) time.Duration {
	text := r.text(p)
	d, err := time.ParseDuration(text)
	if text != "" && (err != nil || d < least || d > most) {
		r.wrong(p.value.Line, "%s %s: want a time from %s to %s, such as 30m", p.key,
			wording.Quote(text), least, most)
	}
	return d
}
