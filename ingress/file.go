package ingress

import (
	"strings"
	"time"

	"go.yaml.in/yaml/v3"

	"muster/events"
	"muster/fleet"
	"muster/internal/jsonpath"
	"muster/internal/lazyregexp"
	"muster/internal/strictyaml"
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
	r := &reader{in: strictyaml.New(src.Name), names: map[string]int{}}
	if root := r.in.Document(src.Data, "a mapping with sources"); root != nil {
		r.root(root)
	}
	if err := r.in.Err(); err != nil {
		return nil, err
	}
	return &Sources{r.list}, nil
}

// reader collects sources.
type reader struct {
	in    *strictyaml.Reader
	list  []Source
	names map[string]int // of sources, to their lines
}

func (r *reader) root(n *yaml.Node) {
	all := r.in.Fields(n, "the file", []string{"sources"})["sources"]
	if all == nil {
		return
	}
	items := r.in.List(all, "sources")
	if len(items) > sourcesMax {
		r.in.Wrong(all.Line, "%d sources: want at most %d", len(items), sourcesMax)
		return
	}
	for _, one := range items {
		r.source(one)
	}
}

// field is a key of a source with its value.
type field struct {
	key   string
	value *yaml.Node
}

// keysOf are the keys of a source.
var keysOf = strings.Fields("name preset secret_file customer customer_at class per_minute " +
	"waiting remember user header prefix hash encoding id time tolerance kind kind_at " +
	programKeys)

func (r *reader) source(n *yaml.Node) {
	s := Source{Class: Trigger, Bounds: usual(), Line: n.Line}
	has := r.in.Fields(n, "a source", keysOf)
	if has == nil {
		return
	}
	if p := has["preset"]; p != nil {
		s.Preset = r.in.Word(p, "preset", Presets())
		s.Form = presets[s.Preset]
		s.Program = programOf(s.Preset)
	}
	// The order of keysOf counts: a later key may change what an earlier one means.
	for _, key := range keysOf {
		p := field{key, has[key]}
		if p.value != nil && !r.program(&s, p) && !r.who(&s, p) && !r.bounds(&s.Bounds, p) {
			r.form(&s.Form, p)
		}
	}
	r.whole(s, has)
	r.list = append(r.list, s)
}

// who reads the fields that say what a source is.
func (r *reader) who(s *Source, p field) bool {
	switch p.key {
	case "name":
		s.Name = r.in.Name(p.value, p.key)
		if line, twice := r.names[s.Name]; twice && s.Name != "" {
			r.in.Wrong(p.value.Line, "source %s is there already, at line %d: choose another name", s.Name,
				line)
		}
		if s.Name == SentName {
			r.in.Wrong(p.value.Line, "name %s is that of events which people send by hand: choose another",
				SentName)
		}
		if s.Name == events.Own {
			r.in.Wrong(p.value.Line, "name %s is that of muster's own events: choose another", events.Own)
		}
		r.names[s.Name] = p.value.Line
	case "preset": // it was read before all others
	case "secret_file":
		s.SecretFile = r.in.Path(p.value, p.key)
	case "customer":
		s.Customer = r.in.Name(p.value, p.key)
	case "customer_at":
		s.CustomerAt = r.path(p)
	case "class":
		s.Class = Class(r.in.Word(p.value, "class", []string{string(Management), string(Result),
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
		b.PerMinute = r.in.Number(p.value, p.key, 1, perMinuteMax)
	case "waiting":
		b.Waiting = r.in.Number(p.value, p.key, 1, waitingMax)
	case "remember":
		b.Remember = r.in.Duration(p.value, p.key, rememberMin, rememberMax)
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
		f.Hash = r.in.Word(p.value, "hash", []string{"sha256", "sha512"})
	case "encoding":
		f.Encoding = r.in.Word(p.value, "encoding", []string{"hex", "base64"})
	case "id":
		f.ID = r.header(p)
	case "time":
		if f.Time = r.header(p); f.Tolerance == 0 {
			f.Tolerance = tolerance
		}
	case "tolerance":
		f.Tolerance = r.in.Duration(p.value, p.key, time.Second, time.Hour)
	case "kind":
		f.Kind, f.KindAt, f.KindElse = r.header(p), nil, ""
	case "kind_at":
		f.Kind, f.KindAt, f.KindElse = "", []string{r.path(p)}, ""
	}
}

// whole refuses a source that lacks something, and keys that would have no effect.
func (r *reader) whole(s Source, has map[string]*yaml.Node) {
	if has["name"] == nil {
		r.in.Wrong(s.Line, "a source needs a name: triggers and the last part of the URL have it")
	}
	if has["preset"] == nil {
		r.in.Wrong(s.Line, "a source needs a preset: want one of %s", strings.Join(Presets(), ", "))
	}
	if s.Program != nil {
		r.wholeProgram(s, has)
	} else if has["secret_file"] == nil {
		r.in.Wrong(s.Line, "a source needs a secret_file: without one anybody could send events")
	}
	if has["kind"] != nil && has["kind_at"] != nil {
		r.in.Wrong(s.Line, "a source has kind and kind_at: want one of them")
	}
	if s.Customer != "" && s.CustomerAt != "" {
		r.in.Wrong(s.Line, "a source has customer and customer_at: want one of them")
	}
	if s.Preset == "" || s.Program != nil {
		return // nobody knows what it means, or it has no form
	}
	f, was := s.Form, presets[s.Preset]
	macs := f.Proof == HMAC || f.Proof == Signed
	switch {
	case f.Proof == Basic && (f.User == "" || strings.Contains(f.User, ":")):
		r.in.Wrong(s.Line, "preset %s needs a user, without a colon", s.Preset)
	case f.Proof != Basic && f.User != "":
		r.in.Wrong(s.Line, "user has no effect with preset %s: remove it", s.Preset)
	case !macs && (f.Hash != "" || f.Encoding != ""):
		r.in.Wrong(s.Line, "hash and encoding have no effect with preset %s: remove them", s.Preset)
	case f.Proof == Signed && (f.ID != was.ID || f.Time != was.Time || f.Hash != was.Hash):
		r.in.Wrong(s.Line, "id, time and hash of preset %s are fixed: remove them", s.Preset)
	case f.Proof != Signed && f.Time != "":
		r.in.Wrong(s.Line, "time: the proof of preset %s does not cover a time, so it would prove "+
			"nothing: remove it", s.Preset)
	case f.Proof == HMAC && f.ID != "":
		r.in.Wrong(s.Line, "id: the MAC of preset %s does not cover headers, so whoever repeats a "+
			"message could write another: remove it", s.Preset)
	case f.Tolerance != 0 && f.Time == "":
		r.in.Wrong(s.Line, "tolerance has no effect without a time of the sender: remove it")
	}
}

// textMax bounds a text of a source, in bytes.
const textMax = 400

func (r *reader) text(p field) string {
	text, ok := r.in.Text(p.value, p.key)
	if ok && (text == "" || len(text) > textMax) {
		r.in.Wrong(p.value.Line, "%s: want 1 to %d characters", p.key, textMax)
		return ""
	}
	return text
}

// header reads the name of a header.
func (r *reader) header(p field) string {
	return r.in.Like(p.value, p.key, headerWord(), "the name of a header: letters, digits and '-'")
}

var headerWord = lazyregexp.New(`^[A-Za-z0-9-]{1,400}$`)

func (r *reader) path(p field) string {
	text := r.text(p)
	if text == "" {
		return ""
	}
	if _, err := jsonpath.Split(text); err != nil {
		r.in.Wrong(p.value.Line, "%s: %s", p.key, err)
	}
	return text
}
