package scripts

import (
	"fmt"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"
)

// readArguments reads the arguments: a mapping by name, or a list of mappings that each
// have a name.
func readArguments(p *parser, v value, r *Runbook) {
	var pairs []value
	if v.isList() {
		pairs = p.items(v)
	} else {
		pairs = p.pairs(v)
	}
	if len(pairs) > argumentsMax {
		p.add(at(v.Node), "%d arguments: a runbook has at most %d", len(pairs), argumentsMax)
		return
	}

	first := map[string]int{} // line of the first argument with each name
	for _, pair := range pairs {
		a := p.readArgument(pair, v.isList())
		if line, twice := first[a.Name]; twice {
			p.add(at(pair.keyNode), "a second argument %q, first on line %d", a.Name, line)
			continue
		}
		if a.Name != "" {
			first[a.Name] = pair.keyNode.Line
			p.arguments = append(p.arguments, a)
		}
	}
	r.Arguments = p.arguments
}

// readArgument reads one argument. In a list, its name is a key like the others.
func (p *parser) readArgument(v value, inList bool) Argument {
	var a Argument
	keys := argumentKeys()
	if !inList {
		keys = slices.DeleteFunc(keys, func(k key[Argument]) bool { return k.name == "name" })
		a.Name = p.word(value{Node: v.keyNode, key: "argument"})
	}
	seen := readMapping(p, v, keys, &a)
	if !v.isMapping() {
		return a
	}
	if _, ok := seen["name"]; inList && !ok {
		p.add(at(v.Node), "the argument has no name")
	}
	typ, ok := seen["type"]
	if !ok {
		p.add(at(v.keyNode), "the argument has no type: give it one of %s",
			strings.Join(typeNames(), ", "))
	}
	if rule, ok := a.rule(); ok {
		p.checkKeys(rule, typ, seen)
	}
	p.checkBounds(a, seen)
	p.settleDefault(&a, seen)
	return a
}

// argumentKeys begins with name, which only arguments in a list have, and type, because
// the type decides how min and max are read.
func argumentKeys() []key[Argument] {
	return []key[Argument]{
		{"name", func(p *parser, v value, a *Argument) { a.Name = p.word(v) }},
		{"type", func(p *parser, v value, a *Argument) { a.Type = p.argumentType(v) }},
		{"description", func(p *parser, v value, a *Argument) {
			a.Description, _ = p.text(v, proseMax)
		}},
		{"required", func(p *parser, v value, a *Argument) { a.Required = p.flag(v) }},
		{"default", func(p *parser, v value, a *Argument) { a.Default, _ = p.text(v, textMax) }},
		{"pattern", func(p *parser, v value, a *Argument) { a.Pattern = p.pattern(v) }},
		{"max_length", func(p *parser, v value, a *Argument) {
			n, _ := p.number(v, 1, textMax)
			a.MaxLength = int(n)
		}},
		{"min", func(p *parser, v value, a *Argument) { a.Min = p.bound(v, a.Type) }},
		{"max", func(p *parser, v value, a *Argument) { a.Max = p.bound(v, a.Type) }},
		{"values", func(p *parser, v value, a *Argument) { a.Values = p.values(v) }},
	}
}

func (p *parser) argumentType(v value) Type {
	name, ok := p.text(v, nameMax)
	if !ok {
		return ""
	}
	if !slices.Contains(typeNames(), name) {
		p.add(at(v.Node), "unknown type %s: %s", brief(name), Instead(name, typeNames()))
		return ""
	}
	return Type(name)
}

func (p *parser) pattern(v value) string {
	text, ok := p.text(v, wordMax)
	if !ok {
		return ""
	}
	if _, err := regexp.Compile(anchored(text)); err != nil {
		p.add(at(v.Node), "pattern %s: %s", brief(text), err)
		return ""
	}
	return text
}

// anchored makes a pattern match whole values only.
func anchored(pattern string) string { return `\A(?:` + pattern + `)\z` }

// bound reads a min or max, in the unit of the type.
func (p *parser) bound(v value, t Type) *int64 {
	var n int64
	var ok bool
	if t == TypeDuration {
		var d time.Duration
		d, ok = p.duration(v, 0, math.MaxInt64)
		n = int64(d / time.Second)
	} else {
		n, ok = p.number(v, math.MinInt64, math.MaxInt64)
	}
	if !ok {
		return nil
	}
	return &n
}

func (p *parser) values(v value) []string {
	items := p.items(v)
	switch {
	case v.isList() && len(items) == 0:
		p.add(at(v.Node), "values is empty: an enum has at least one")
	case len(items) > valuesMax:
		p.add(at(v.Node), "%d values: an enum has at most %d", len(items), valuesMax)
		return nil
	}
	var list []string
	for _, item := range items {
		s, ok := p.text(item, wordMax)
		switch {
		case !ok:
			continue
		case slices.Contains(list, s):
			p.add(at(item.Node), "value %s is there twice", brief(s))
		}
		list = append(list, s)
	}
	return list
}

// checkKeys reports keys that have no meaning for the type, and a required one that is missing.
func (p *parser) checkKeys(rule typeRule, typ value, seen map[string]value) {
	always := []string{"name", "type", "description", "required"}
	for _, name := range keyNames(argumentKeys()) {
		one, ok := seen[name]
		if !ok || slices.Contains(always, name) || slices.Contains(rule.keys, name) {
			continue
		}
		p.add(at(one.keyNode), "%s means nothing for type %s", name, rule.name)
	}
	if _, ok := seen["values"]; rule.name == TypeEnum && !ok {
		p.add(at(typ.Node), "an enum needs values: the list of allowed texts")
	}
}

func (p *parser) checkBounds(a Argument, seen map[string]value) {
	if a.Min != nil && a.Max != nil && *a.Min > *a.Max {
		p.add(at(seen["max"].Node), "max is less than min: no value would do")
	}
}

// settleDefault decides whether the argument is required, and checks the default by the
// argument's own rules.
func (p *parser) settleDefault(a *Argument, seen map[string]value) {
	def, has := seen["default"]
	required, said := seen["required"]
	switch {
	case said && a.Required && has:
		p.add(at(required.keyNode), "required: an argument with a default is not: drop one of them")
	case said && !a.Required && !has:
		p.add(at(required.keyNode), "an argument that is not required needs a default")
	}
	a.Required = !has
	if !has || a.Type == "" || a.Type == TypeFile || a.Type == TypeSecret {
		return
	}
	canonical, err := a.canonical(a.Default)
	if err != nil {
		p.add(at(def.Node), "default: %s", err)
	}
	a.Default = canonical
}

// typeRule describes a type of argument: the keys that only it has, and the function that
// checks a text and returns its one canonical form.
type typeRule struct {
	name      Type
	keys      []string
	canonical func(a Argument, text string) (string, error)
}

func typeRules() []typeRule {
	return []typeRule{
		{TypeString, []string{"default", "pattern", "max_length"}, Argument.stringValue},
		{TypeInt, []string{"default", "min", "max"}, Argument.intValue},
		{TypeBool, []string{"default"}, Argument.boolValue},
		{TypeDuration, []string{"default", "min", "max"}, Argument.durationValue},
		{TypeEnum, []string{"default", "values"}, Argument.enumValue},
		{TypeFile, nil, nil},
		{TypeSecret, []string{"pattern", "max_length"}, Argument.secretValue},
	}
}

func typeNames() []string {
	var names []string
	for _, r := range typeRules() {
		names = append(names, string(r.name))
	}
	return names
}

func (a Argument) rule() (typeRule, bool) {
	for _, r := range typeRules() {
		if r.name == a.Type {
			return r, true
		}
	}
	return typeRule{}, false
}

// canonical checks a value and returns the form in which it is stored and rendered.
func (a Argument) canonical(text string) (string, error) {
	shown := brief(text)
	if a.Type == TypeSecret {
		shown = "the secret"
	}
	switch {
	case len(text) > textMax:
		return "", fmt.Errorf("%d bytes: at most %d", len(text), textMax)
	case !utf8.ValidString(text):
		return "", fmt.Errorf("%s is not UTF-8: pass such bytes as a file", shown)
	case strings.ContainsRune(text, 0):
		return "", fmt.Errorf("%s has a NUL character: pass such bytes as a file", shown)
	}
	rule, ok := a.rule()
	if !ok || rule.canonical == nil {
		return "", fmt.Errorf("an argument of type %q takes no text", a.Type)
	}
	return rule.canonical(a, text)
}

func (a Argument) stringValue(text string) (string, error) {
	if n := utf8.RuneCountInString(text); a.MaxLength > 0 && n > a.MaxLength {
		return "", fmt.Errorf("%s has %d characters: at most %d", brief(text), n, a.MaxLength)
	}
	if a.Pattern == "" {
		return text, nil
	}
	must, err := regexp.Compile(anchored(a.Pattern))
	if err != nil {
		return "", fmt.Errorf("pattern %s: %w", brief(a.Pattern), err)
	}
	if !must.MatchString(text) {
		return "", fmt.Errorf("%s does not match the pattern %s", brief(text), a.Pattern)
	}
	return text, nil
}

func (a Argument) intValue(text string) (string, error) {
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		return "", fmt.Errorf("%s: want a whole number", brief(text))
	}
	return strconv.FormatInt(n, 10), a.checkRange(n, func(n int64) string {
		return strconv.FormatInt(n, 10)
	})
}

func (a Argument) boolValue(text string) (string, error) {
	if text != "true" && text != "false" {
		return "", fmt.Errorf("%s: want true or false", brief(text))
	}
	return text, nil
}

// durationValue returns seconds, because sleep, timeout and most other programs on hosts
// count in them.
func (a Argument) durationValue(text string) (string, error) {
	d, err := time.ParseDuration(text)
	if err != nil || d < 0 || d%time.Second != 0 {
		return "", fmt.Errorf("%s: want %s", brief(text), wantDuration)
	}
	n := int64(d / time.Second)
	return strconv.FormatInt(n, 10), a.checkRange(n, func(n int64) string {
		return (time.Duration(n) * time.Second).String()
	})
}

func (a Argument) checkRange(n int64, show func(int64) string) error {
	switch {
	case a.Min != nil && n < *a.Min:
		return fmt.Errorf("%s is too small: want at least %s", show(n), show(*a.Min))
	case a.Max != nil && n > *a.Max:
		return fmt.Errorf("%s is too large: want at most %s", show(n), show(*a.Max))
	}
	return nil
}

func (a Argument) enumValue(text string) (string, error) {
	if !slices.Contains(a.Values, text) {
		return "", fmt.Errorf("%s is none of %s", brief(text), strings.Join(a.Values, ", "))
	}
	return text, nil
}
