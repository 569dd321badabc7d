package windows

import (
	"bytes"
	"fmt"
	"strings"
	"unicode/utf8"
)

// A property is one content line of iCalendar (RFC 5545 §3.1): a name, parameters and a value.
type property struct {
	line   int // line of the file; the first one of a folded line
	name   string
	params map[string]string // the first value of each parameter
	value  string
}

// A component is the text between BEGIN and END.
type component struct {
	line       int
	name       string
	properties []property
	components []component
}

// all returns the properties of a name.
func (c component) all(name string) []property {
	var found []property
	for _, p := range c.properties {
		if p.name == name {
			found = append(found, p)
		}
	}
	return found
}

// one returns the first property of a name.
func (c component) one(name string) (property, bool) {
	for _, p := range c.properties {
		if p.name == name {
			return p, true
		}
	}
	return property{}, false
}

// Bounds of a file. A calendar of a customer has a few events.
const (
	calendarMax = 4 << 20 // bytes
	depthMax    = 8       // depth of nested components
)

// readCalendar reads the lines of a file into its VCALENDAR components.
func readCalendar(b []byte) ([]component, error) {
	if len(b) > calendarMax {
		return nil, fmt.Errorf("%d bytes: a calendar has at most %d", len(b), calendarMax)
	}
	lines := unfold(b)
	root := []component{{}}
	for _, l := range lines {
		p, err := readProperty(l)
		if err != nil {
			return nil, err
		}
		open := len(root) - 1
		switch p.name {
		case "BEGIN":
			if open == depthMax {
				return nil, mistakeAt(p.line, "more than %d components within one another", depthMax)
			}
			root = append(root, component{line: p.line, name: strings.ToUpper(p.value)})
		case "END":
			if open == 0 || root[open].name != strings.ToUpper(p.value) {
				return nil, mistakeAt(p.line, "END:%s without its BEGIN", word(p.value))
			}
			root[open-1].components = append(root[open-1].components, root[open])
			root = root[:open]
		default:
			root[open].properties = append(root[open].properties, p)
		}
	}
	if len(root) > 1 {
		return nil, mistakeAt(root[len(root)-1].line, "BEGIN:%s without its END", root[len(root)-1].name)
	}
	if len(root[0].components) == 0 || root[0].components[0].name != "VCALENDAR" {
		return nil, mistakeAt(1, "no iCalendar file: want BEGIN:VCALENDAR first")
	}
	return root[0].components, nil
}

// A textLine is one unfolded line.
type textLine struct {
	line int
	text string
}

func unfold(b []byte) []textLine {
	var lines []textLine
	for i, raw := range bytes.Split(bytes.TrimPrefix(b, []byte("\ufeff")), []byte("\n")) {
		raw = bytes.TrimSuffix(raw, []byte("\r"))
		folded := len(raw) > 0 && (raw[0] == ' ' || raw[0] == '\t')
		switch {
		case folded && len(lines) > 0:
			lines[len(lines)-1].text += string(raw[1:])
		case len(bytes.TrimSpace(raw)) > 0:
			lines = append(lines, textLine{i + 1, string(raw)})
		}
	}
	return lines
}

// readProperty splits a line. A quoted parameter may contain ':' and ';'.
func readProperty(l textLine) (property, error) {
	p := property{line: l.line, params: map[string]string{}}
	if !utf8.ValidString(l.text) {
		return p, mistakeAt(l.line, "not UTF-8")
	}
	quoted := false
	end := strings.IndexFunc(l.text, func(r rune) bool {
		if r == '"' {
			quoted = !quoted
		}
		return r == ':' && !quoted
	})
	if end < 0 {
		return p, mistakeAt(l.line, "%q: want NAME:value", word(l.text))
	}
	p.value = l.text[end+1:]
	name, rest, _ := strings.Cut(l.text[:end], ";")
	p.name = strings.ToUpper(strings.TrimSpace(name))
	for rest != "" {
		var param string
		param, rest = cutParam(rest)
		key, value, ok := strings.Cut(param, "=")
		if !ok {
			return p, mistakeAt(l.line, "%q: want NAME=value before the colon", word(param))
		}
		p.params[strings.ToUpper(key)] = strings.Trim(value, `"`)
	}
	return p, nil
}

// cutParam cuts s at the next semicolon outside quotes.
func cutParam(s string) (param, rest string) {
	quoted := false
	for i := range len(s) {
		switch {
		case s[i] == '"':
			quoted = !quoted
		case s[i] == ';' && !quoted:
			return s[:i], s[i+1:]
		}
	}
	return s, ""
}

func mistakeAt(line int, format string, args ...any) error {
	return fmt.Errorf("line %d: %s", line, fmt.Sprintf(format, args...))
}
