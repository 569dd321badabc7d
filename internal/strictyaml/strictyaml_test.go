package strictyaml_test

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"go.yaml.in/yaml/v3"

	"muster/fleet"
	"muster/internal/strictyaml"
)

// read reads a file that has a value of each kind.
func read(text string) (map[string]any, error) {
	r := strictyaml.New("f.yaml")
	root := r.Document([]byte(text), "a mapping with values")
	if root == nil {
		return nil, r.Err()
	}
	out := map[string]any{}
	known := strings.Fields("text long name word flag number time path list texts pairs")
	for key, n := range r.Fields(root, "the file", known) {
		switch key {
		case "text":
			out[key], _ = r.Text(n, key)
		case "long":
			out[key], _ = r.Long(n, key)
		case "name":
			out[key] = r.Name(n, key)
		case "word":
			out[key] = r.Word(n, key, []string{"red", "green"})
		case "flag":
			out[key] = r.Flag(n, key)
		case "number":
			out[key] = r.Number(n, key, 2, 5)
		case "time":
			out[key] = r.Duration(n, key, 0, time.Hour)
		case "path":
			out[key] = r.Path(n, key)
		case "list":
			out[key] = len(r.List(n, key))
		case "texts":
			out[key] = strings.Join(strictyaml.Values(r.Texts(n, key, "some words")), "+")
		case "pairs":
			out[key] = keysOf(r.Pairs(n, key))
		}
	}
	return out, r.Err()
}

func keysOf(pairs []strictyaml.Pair) (keys string) {
	for _, p := range pairs {
		keys += p.Key.Value + "=" + p.Value.Value + ";"
	}
	return keys
}

func TestValuesAreRead(t *testing.T) {
	t.Parallel()
	got, err := read(`
text: a b
long: "a\nb"
name: fw-1
word: red
flag: true
number: 5
time: 0
path: /etc/x
list: []
texts: [a, b]
pairs: {a: 1, b: 2}
`)
	want := map[string]any{"text": "a b", "long": "a\nb", "name": "fw-1", "word": "red", "flag": true,
		"number": 5, "time": time.Duration(0), "path": "/etc/x", "list": 0, "texts": "a+b",
		"pairs": "a=1;b=2;"}
	if err != nil || len(got) != len(want) {
		t.Fatalf("%v, %v", got, err)
	}
	for key, value := range want {
		if got[key] != value {
			t.Errorf("%s: %v, want %v", key, got[key], value)
		}
	}
	if one, err := read("texts: a"); err != nil || one["texts"] != "a" {
		t.Errorf("a single text: %v, %v", one, err)
	}
}

func TestMistakesAreNamed(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"":                    "f.yaml:1: the file is empty: want a mapping with values",
		"[a]":                 "f.yaml:1: the file is a list: want a mapping with text, long, name, word",
		"a":                   "f.yaml:1: the file is a single value: want a mapping",
		"\ntexd: a":           `f.yaml:2: unknown key "texd" of the file: did you mean "text"?`,
		"zzzzzzzz: a":         `f.yaml:1: unknown key "zzzzzzzz" of the file: known: text, long`,
		"text: a\ntext: b":    `f.yaml:2: key "text" is there already, at line 1: keep one of them`,
		"[a]: b":              "f.yaml:1: a key of the file is a list: want a word",
		"text:":               "f.yaml:1: text has no value: want a text",
		"text: {a: b}":        "f.yaml:1: text is a mapping: want a text",
		`text: "a\nb"`:        "f.yaml:1: text has a control character: remove it",
		"text: &x a":          `f.yaml:1: text has the anchor "&x": remove it`,
		"text: !!str a":       `f.yaml:1: text has the tag "!!str": remove it`,
		"name: a b":           `f.yaml:1: name "a b": use letters, digits`,
		"word: gren":          `f.yaml:1: word: unknown word "gren": did you mean "green"?`,
		"word: 7":             `f.yaml:1: word: unknown word "7": known: red, green`,
		"flag: yes":           `f.yaml:1: flag: "yes": want true or false`,
		"flag: 'true'":        `f.yaml:1: flag: "true": want true or false`,
		"number: 1":           `f.yaml:1: number: "1": want a number from 2 to 5`,
		"number: 2.5":         `f.yaml:1: number: "2.5": want a number from 2 to 5`,
		"time: 2h":            `f.yaml:1: time: "2h": want a time from 0s to 1h0m0s, such as 30s or 15m`,
		"time: 5":             `f.yaml:1: time: "5": want a time`,
		"path: etc/x":         `f.yaml:1: path: "etc/x": want the absolute path of a file`,
		"list: a":             "f.yaml:1: list is a single value: want a list",
		"texts: []":           "f.yaml:1: texts is empty: want some words",
		"texts:":              "f.yaml:1: texts has no value: want a list",
		"texts: [[a]]":        "f.yaml:1: texts is a list: want a text",
		"pairs: [a]":          "f.yaml:1: pairs is a list: want a mapping",
		"pairs: {a: 1, a: 2}": `f.yaml:1: key "a" is there already, at line 1: keep one of them`,
	} {
		_, err := read(text)
		var wrong fleet.Mistakes
		if !errors.As(err, &wrong) || len(wrong) != 1 || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want the one mistake %s", text, err, want)
		}
	}
}

func TestAnAliasIsAMistakeAsItsAnchorIs(t *testing.T) {
	t.Parallel()
	_, err := read("list: &x []\ntext: *x")
	const want = "f.yaml:1: list has the anchor \"&x\": remove it\n" +
		"f.yaml:2: text is the alias \"*x\": write the value out"
	if err == nil || err.Error() != want {
		t.Errorf("%v, want %s", err, want)
	}
}

// YAML has more than one spelling of true.
func TestEachSpellingOfTrueIsTrue(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]bool{"true": true, "True": true, "TRUE": true, "false": false,
		"False": false} {
		if got, err := read("flag: " + text); err != nil || got["flag"] != want {
			t.Errorf("%s: %v, %v", text, got, err)
		}
	}
}

func TestAllMistakesOfAFileAreNamedInTheOrderOfItsLines(t *testing.T) {
	t.Parallel()
	_, err := read("word: blue\nfoo: 1\nflag: 7\nnumber: x\n")
	var wrong fleet.Mistakes
	if !errors.As(err, &wrong) || len(wrong) != 4 {
		t.Fatalf("error %v", err)
	}
	if !slices.IsSortedFunc(wrong, func(a, b fleet.Mistake) int { return a.Line - b.Line }) {
		t.Errorf("not in order: %v", err)
	}
}

// Whatever a file has, it is read, or a mistake has its name.
func FuzzRead(f *testing.F) {
	for _, text := range []string{"text: a", "text: &x a\nlist: *x", "pairs: {a: {b: c}}", "- a", "? [a]\n: b",
		"flag: !!bool yes", "<<: {text: a}", "texts: [a, ~]"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		values, err := read(text)
		if err != nil && !strings.HasPrefix(err.Error(), "f.yaml:") {
			t.Errorf("%q: %v", text, err)
		}
		if err != nil {
			return
		}
		var all map[string]any
		if wrong := yaml.Unmarshal([]byte(text), &all); wrong != nil || len(all) != len(values) {
			t.Errorf("%q has %v (%v), and %v was read", text, all, wrong, values)
		}
	})
}
