package settings

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"

	"muster/fleet"
	"muster/internal/wording"
)

// parseFile reads YAML into nested maps and holds every key and value against
// the defaults, because a decoder would stop at the first mistake and know no
// line.
func parseFile(name string, data []byte, defaults map[string]any) (map[string]any, []error) {
	out := map[string]any{}
	dec := yaml.NewDecoder(bytes.NewReader(data))
	var doc yaml.Node
	if err := dec.Decode(&doc); errors.Is(err, io.EOF) {
		return out, nil
	} else if err != nil {
		return out, []error{notYAML(name, err)}
	}
	p := parser{name: name, defaults: defaults, seen: map[string]int{}}
	var second yaml.Node
	switch err := dec.Decode(&second); {
	case err == nil:
		p.say(max(1, second.Line), "a second YAML document begins here: want one a file")
	case !errors.Is(err, io.EOF):
		p.errs = append(p.errs, notYAML(name, err))
	}
	if fleet.Foreign(doc.Content[0], p.sections()) {
		p.say(doc.Content[0].Line, "this is no configuration of muster: it has no known key: want "+
			"some of %s: etc/muster.yaml shows all", strings.Join(p.sections(), ", "))
		return out, p.errs
	}
	p.walk(doc.Content[0], "", out)
	return out, p.errs
}

// notYAML is an error of the YAML library with its place, if the library says that.
func notYAML(name string, err error) error {
	text, line := strings.TrimPrefix(err.Error(), "yaml: "), 0
	if _, scan := fmt.Sscanf(text, "line %d: ", &line); scan != nil {
		return fmt.Errorf("%s: not YAML: %s", name, text)
	}
	_, text, _ = strings.Cut(text, ": ")
	return fmt.Errorf("%s:%d: not YAML, here or just below: %s", name, max(1, line), text)
}

type parser struct {
	name     string
	defaults map[string]any
	seen     map[string]int // key to the line where it stands first
	errs     []error
}

func (p *parser) say(line int, format string, args ...any) {
	p.errs = append(p.errs, fmt.Errorf("%s:%d: %s", p.name, line, fmt.Sprintf(format, args...)))
}

// walk reads one mapping whose keys begin with prefix.
func (p *parser) walk(n *yaml.Node, prefix string, out map[string]any) {
	if n.Kind != yaml.MappingNode {
		if n.Tag != "!!null" {
			p.say(n.Line, "%s: want key: value pairs", strings.TrimSuffix("top level "+prefix, "."))
		}
		return
	}
	for i := 0; i+1 < len(n.Content); i += 2 {
		k, v := n.Content[i], n.Content[i+1]
		key := prefix + k.Value
		if line, twice := p.seen[key]; twice {
			p.say(k.Line, "%s stands twice, first in line %d", key, line)
			continue
		}
		p.seen[key] = k.Line
		def, known := p.defaults[key]
		switch {
		case known:
			if value, ok := p.value(v, key, def); ok {
				out[k.Value] = value
			}
		case p.isSection(key):
			section := map[string]any{}
			p.walk(v, key+".", section)
			out[k.Value] = section
		default:
			p.say(k.Line, "unknown key %s%s", prefix+fleet.Word(k.Value),
				suggest(key, slices.Collect(maps.Keys(p.defaults))))
		}
	}
}

// sections are the keys that a file may begin with.
func (p *parser) sections() []string {
	var heads []string
	for key := range p.defaults {
		head, _, _ := strings.Cut(key, ".")
		heads = append(heads, head)
	}
	slices.Sort(heads)
	return slices.Compact(heads)
}

func (p *parser) isSection(key string) bool {
	for k := range p.defaults {
		if strings.HasPrefix(k, key+".") {
			return true
		}
	}
	return false
}

func (p *parser) value(n *yaml.Node, key string, def any) (any, bool) {
	if _, list := def.([]string); list && n.Kind == yaml.SequenceNode {
		out := []string{}
		for _, item := range n.Content {
			if item.Kind != yaml.ScalarNode {
				p.say(item.Line, "%s: want a list of words", key)
				return nil, false
			}
			out = append(out, item.Value)
		}
		return out, true
	}
	if n.Kind != yaml.ScalarNode {
		_, want := convert("\x00", def)
		p.say(n.Line, "%s: want %s", key, want)
		return nil, false
	}
	value, want := convert(n.Value, def)
	if want != "" {
		p.say(n.Line, "%s = %q: want %s", key, n.Value, want)
		return nil, false
	}
	return value, true
}

// convert reads text as a value of the kind of def, or returns the wanted form.
func convert(text string, def any) (value any, want string) {
	switch def.(type) {
	case int:
		if n, err := strconv.Atoi(text); err == nil {
			return n, ""
		}
		return nil, "a whole number"
	case bool:
		if b, err := strconv.ParseBool(text); err == nil {
			return b, ""
		}
		return nil, "true or false"
	case time.Duration:
		if d, err := time.ParseDuration(text); err == nil {
			return d, ""
		}
		days, isDays := strings.CutSuffix(text, "d")
		if n, err := strconv.Atoi(days); isDays && err == nil && n >= 0 && n <= daysMax {
			return time.Duration(n) * 24 * time.Hour, ""
		}
		return nil, "a time such as 10s, 5m, 1h30m or 400d"
	case []string:
		if text == "\x00" {
			return nil, "a list of words"
		}
		return strings.FieldsFunc(text, func(r rune) bool { return r == ',' || r == ' ' }), ""
	}
	if text == "\x00" {
		return nil, "one word or text"
	}
	return text, ""
}

// daysMax is the most days that a time can be given in.
const daysMax = 100_000

// suggest names the nearest of the known words, if one is near.
func suggest(word string, known []string) string {
	best := wording.Nearest(word, known)
	if best == "" {
		return ": etc/muster.yaml shows all keys"
	}
	return ": did you mean " + best + "?"
}
