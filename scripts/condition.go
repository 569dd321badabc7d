package scripts

import (
	"errors"
	"fmt"
	"math/big"
	"regexp"
	"slices"
	"strings"
)

// Condition compares two values. Its syntax is like "{{saved.state}} == active".
type Condition struct {
	Left  Operand `json:"left"`
	Op    string  `json:"op"`
	Right Operand `json:"right"`
}

// Operand is one side of a condition: a placeholder or a text.
type Operand struct {
	Ref  string `json:"ref,omitempty"`
	Text string `json:"text,omitempty"`
}

// operators lists the operators of conditions; longer ones come before their prefixes.
func operators() []string { return []string{"==", "!=", "<=", ">=", "=~", "!~", "<", ">"} }

// wantCondition explains the syntax of conditions.
const wantCondition = `want VALUE OP VALUE, such as "{{saved.state}} == active", ` +
	"where OP is one of == != < <= > >= =~ !~"

// readCondition parses a condition. It does not check that its placeholders exist.
func readCondition(text string) (Condition, error) {
	words, err := words(text)
	if err != nil {
		return Condition{}, err
	}
	if len(words) != 3 || words[1].quoted || !slices.Contains(operators(), words[1].text) {
		return Condition{}, fmt.Errorf("%s: %s", brief(text), wantCondition)
	}
	c := Condition{Op: words[1].text}
	for i, to := range map[int]*Operand{0: &c.Left, 2: &c.Right} {
		if *to, err = operand(words[i]); err != nil {
			return Condition{}, err
		}
	}
	return c, c.checkPattern()
}

// checkPattern refuses an invalid pattern, and one that would come from a placeholder.
func (c Condition) checkPattern() error {
	if c.Op != "=~" && c.Op != "!~" {
		return nil
	}
	if c.Right.Ref != "" {
		return fmt.Errorf("{{%s}} behind %s: a pattern stands in the runbook, values are data",
			c.Right.Ref, c.Op)
	}
	_, err := regexp.Compile(c.Right.Text)
	return err
}

// word is a part of a condition.
type word struct {
	text   string
	quoted bool
}

// words splits a text at blanks. A word in quotes may contain blanks; it ends at the same
// quote, and there are no escapes in it. Quotes inside a word are part of it, and protect its
// blanks: slots."a b".state.
func words(text string) ([]word, error) {
	var list []word
	for rest := strings.TrimLeft(text, " "); rest != ""; rest = strings.TrimLeft(rest, " ") {
		if q := rest[0]; q == '"' || q == '\'' {
			end := strings.IndexByte(rest[1:], q)
			if end < 0 {
				return nil, fmt.Errorf("%s: a quote has no end", brief(text))
			}
			after := rest[end+2:]
			if after != "" && after[0] != ' ' {
				return nil, fmt.Errorf("%s: want a blank behind the quotes", brief(text))
			}
			list, rest = append(list, word{rest[1 : end+1], true}), after
			continue
		}
		end, quoted := 0, false
		for end < len(rest) && (quoted || rest[end] != ' ') {
			quoted = quoted != (rest[end] == '"')
			end++
		}
		if quoted {
			return nil, fmt.Errorf("%s: a quote has no end", brief(text))
		}
		list, rest = append(list, word{rest[:end], false}), rest[end:]
	}
	return list, nil
}

// operand parses a value. Quoted text is never a placeholder.
func operand(w word) (Operand, error) {
	ref, found := strings.CutPrefix(w.text, "{{")
	if w.quoted || !found {
		return Operand{Text: w.text}, nil
	}
	ref, found = strings.CutSuffix(ref, "}}")
	if !found || !refMust.MatchString(ref) {
		return Operand{}, fmt.Errorf("%s: want one placeholder alone, {{name}} without blanks, "+
			"or a text", brief(w.text))
	}
	return Operand{Ref: ref}, nil
}

// String returns the condition in the syntax of runbooks.
func (c Condition) String() string { return c.Left.String() + " " + c.Op + " " + c.Right.String() }

// String returns the value in the syntax of runbooks.
func (o Operand) String() string {
	switch {
	case o.Ref != "":
		return "{{" + o.Ref + "}}"
	case o.Text != "" && !strings.ContainsAny(o.Text, " \t\n\"'{"):
		return o.Text
	case strings.Contains(o.Text, "'"):
		return `"` + o.Text + `"`
	}
	return "'" + o.Text + "'"
}

// refs returns the placeholders of a condition.
func (c Condition) refs() []string {
	var list []string
	for _, o := range []Operand{c.Left, c.Right} {
		if o.Ref != "" {
			list = append(list, o.Ref)
		}
	}
	return list
}

// fill replaces placeholders by values. A value that a skipped step should have saved is empty.
func (c Condition) fill(s scope) (Condition, error) {
	for _, o := range []*Operand{&c.Left, &c.Right} {
		if o.Ref == "" {
			continue
		}
		text, err := s.value(o.Ref)
		if err != nil && !errors.Is(err, errNotSaved) {
			return c, fmt.Errorf("{{%s}}: %w", o.Ref, err)
		}
		*o = Operand{Text: text}
	}
	return c, nil
}

// holds reports whether a condition holds whose placeholders are filled in.
func (c Condition) holds() (bool, error) { return compare(c.Left.Text, c.Op, c.Right.Text) }

// compare compares two texts. Whole numbers are equal as numbers, and everything else is equal
// as text, because version 1.10 is not 1.1. Less and greater require numbers.
func compare(left, op, right string) (bool, error) {
	switch op {
	case "==", "!=":
		return same(left, right) == (op == "=="), nil
	case "=~", "!~":
		re, err := regexp.Compile(right)
		if err != nil {
			return false, err
		}
		return re.MatchString(left) == (op == "=~"), nil
	}
	a, aOK := number(left)
	b, bOK := number(right)
	if !aOK || !bOK {
		return false, fmt.Errorf("%s %s %s: want numbers on both sides", brief(left), op, brief(right))
	}
	switch d := a.Cmp(b); op {
	case "<":
		return d < 0, nil
	case "<=":
		return d <= 0, nil
	case ">":
		return d > 0, nil
	case ">=":
		return d >= 0, nil
	}
	return false, fmt.Errorf("operator %s is not known here: a newer muster made the task", brief(op))
}

var (
	whole   = regexp.MustCompile(`^-?[0-9]{1,64}$`)
	decimal = regexp.MustCompile(`^-?[0-9]{1,64}(\.[0-9]{1,64})?$`)
)

func same(a, b string) bool {
	if whole.MatchString(a) && whole.MatchString(b) {
		x, _ := number(a)
		y, _ := number(b)
		return x.Cmp(y) == 0
	}
	return a == b
}

func number(text string) (*big.Rat, bool) {
	if !decimal.MatchString(text) {
		return nil, false
	}
	return new(big.Rat).SetString(text)
}
