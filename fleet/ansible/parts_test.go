package ansible

import (
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"
)

func TestSplitWords(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		``:                    "",
		`a  b`:                "a|b",
		`a='b c' d="e \"f\""`: `a=b c|d=e "f"`,
		`a#b c`:               "a",
		`a \#b '#c' # d`:      "a|#b|#c",
		`"a\b" 'a\b' a\b`:     `a\b|a\b|ab`,
		`a="" ""`:             "a=|",
		`x"y"z`:               "xyz",
		"\ta=1\r":             "a=1",
	} {
		words, err := splitWords(text)
		if got := strings.Join(words, "|"); err != nil || got != want {
			t.Errorf("%s: %q, %v; want %q", text, got, err, want)
		}
	}
	for _, text := range []string{`a 'b`, `a "b`, `a\`, `"a\`} {
		if words, err := splitWords(text); err == nil {
			t.Errorf("%s: %q", text, words)
		}
	}
}

// shape formats a value: numbers, quoted words, lists and mappings.
func shape(n *yaml.Node) string {
	var parts []string
	for _, c := range n.Content {
		parts = append(parts, shape(c))
	}
	switch {
	case n.Kind == yaml.SequenceNode:
		return "[" + strings.Join(parts, " ") + "]"
	case n.Kind == yaml.MappingNode:
		return "{" + strings.Join(parts, " ") + "}"
	case n.Tag == "!!str":
		return "'" + n.Value + "'"
	case n.Tag == "!!null":
		return "null"
	}
	return n.Value
}

func TestPythonValue(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"": "''", "a b": "'a b'", "007": "'007'", "0": "0", "00": "0", "12": "12", "-5": "-5", "+5": "5",
		"0x1F": "31", "0o17": "15", "0b101": "5", "1_000": "1000", "1__0": "'1__0'", "10.0.0.1": "'10.0.0.1'",
		"1.50": "1.5", "1.": "1.0", ".5": "0.5", "1e3": "1000.0", "1e16": "1e+16", "0.00001": "1e-05",
		"True": "true", "False": "false", "None": "null", "true": "'true'", "Trueish": "'Trueish'",
		"'a'": "'a'", `"a" 'b'`: "'ab'", `'a\nb'`: "'a\nb'", `r'a\nb'`: `'a\nb'`, `'\x41\101\u00e9'`: "'AAé'",
		`'\q'`: `'\q'`, `'a`: "''a'", `'''a"b'''`: `'a"b'`, "8080 # c": "8080", "a # c": "'a # c'",
		"2020-01-01": "'2020-01-01'",
		"[1, 'x']":   "[1 'x']", "(1,)": "[1]", "(1)": "1", "()": "[]", "1,2": "[1 2]", "{'a': [1]}": "{'a' [1]}",
		"[1": "'[1'", "{1}": "'{1}'", "role,site": "'role,site'", "[a]": "'[a]'", "1+1": "'1+1'", "- 5": "-5",
		strings.Repeat("[", 200): "'" + strings.Repeat("[", 200) + "'",
	} {
		if got := shape(pythonValue(text, 1)); got != want {
			t.Errorf("%s: %s, want %s", text, got, want)
		}
	}
}

func TestExpand(t *testing.T) {
	t.Parallel()
	for pattern, want := range map[string]string{
		"a": "a", "a:22": "a", "[::1]:22": "::1", "2001:db8::1": "2001:db8::1", "fw[1:3]": "fw1 fw2 fw3",
		"fw[08:10]": "fw08 fw09 fw10", "fw[1:5:2].x:2222": "fw1.x fw3.x fw5.x", "[a:c]x": "ax bx cx",
		"[y:B]": "y z A B", "a[1:2]b[3:4]": "a1b3 a1b4 a2b3 a2b4", "n[:2]": "n0 n1 n2", "a-:22": "a-:22",
	} {
		names, port, err := expand(pattern)
		if got := strings.Join(names, " "); err != nil || got != want {
			t.Errorf("%s: %q, %v; want %q", pattern, got, err, want)
		}
		if (port != 0) != slices.Contains([]string{"a:22", "[::1]:22", "fw[1:5:2].x:2222"}, pattern) {
			t.Errorf("%s: port %d", pattern, port)
		}
	}
}

func TestJumpOf(t *testing.T) {
	t.Parallel()
	for command, want := range map[string]string{
		"ssh -W %h:%p bastion":                       "bastion",
		"ssh -q -W %h:%p ops@b -p 2222":              "",
		"ssh -p 2222 -W %h:%p -q ops@b":              "ops@b:2222",
		`/usr/bin/ssh -l ops b -W %h:%p`:             "",
		`ssh -l ops -W "[%h]:%p" b`:                  "ops@b",
		"nc -X 5 %h %p":                              "",
		"ssh b nc %h %p":                             "",
		"ssh -o StrictHostKeyChecking=no -W %h:%p b": "",
	} {
		if got, ok := jumpOf(command); got != want || ok != (want != "") {
			t.Errorf("%s: %q %v, want %q", command, got, ok, want)
		}
	}
}
