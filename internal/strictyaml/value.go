package strictyaml

import (
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"

	"muster/fleet"
	"muster/internal/wording"
	"muster/scripts"
)

// Long returns a text of any number of lines, and reports whether there is one.
func (r *Reader) Long(n *yaml.Node, what string) (string, bool) {
	if !r.Is(n, yaml.ScalarNode, what, "a text") {
		return "", false
	}
	return n.Value, true
}

// Text returns one line of text, and reports whether there is one.
func (r *Reader) Text(n *yaml.Node, what string) (string, bool) {
	text, ok := r.Long(n, what)
	if ok && strings.ContainsFunc(text, func(c rune) bool { return c < ' ' || c == 0x7f }) {
		r.Wrong(n.Line, "%s has a control character: remove it", what)
		return "", false
	}
	return text, ok
}

// Texts returns the items of a list of texts, one at least; a single text counts as a list of one.
func (r *Reader) Texts(n *yaml.Node, what, want string) (list []*yaml.Node) {
	items := []*yaml.Node{n}
	if n.Kind != yaml.ScalarNode || n.ShortTag() == "!!null" {
		items = r.Filled(n, what, want)
	}
	for _, item := range items {
		if _, ok := r.Text(item, what); ok {
			list = append(list, item)
		}
	}
	return list
}

// Values returns the values of nodes.
func Values(list []*yaml.Node) []string {
	out := make([]string, len(list))
	for i, n := range list {
		out[i] = n.Value
	}
	return out
}

// Word returns one of the known words.
func (r *Reader) Word(n *yaml.Node, what string, known []string) string {
	text, ok := r.Text(n, what)
	if ok && !slices.Contains(known, text) {
		r.Wrong(n.Line, "%s: unknown word %s: %s", what, wording.Quote(text),
			scripts.Instead(text, known))
		return ""
	}
	return text
}

// Name returns a name, as hosts and customers have it.
func (r *Reader) Name(n *yaml.Node, what string) string {
	text, ok := r.Text(n, what)
	if ok && fleet.CheckName(text) != nil {
		r.Wrong(n.Line, "%s %s: use letters, digits, '.', '-' and '_'", what, wording.Quote(text))
		return ""
	}
	return text
}

// Like returns a text of a form; want says which.
func (r *Reader) Like(n *yaml.Node, what string, form *regexp.Regexp, want string) string {
	text, ok := r.Text(n, what)
	if ok && !form.MatchString(text) {
		r.Wrong(n.Line, "%s: %s: want %s", what, wording.Quote(text), want)
		return ""
	}
	return text
}

// Flag returns true or false.
func (r *Reader) Flag(n *yaml.Node, what string) bool {
	if !r.Is(n, yaml.ScalarNode, what, "true or false") {
		return false
	}
	var yes bool
	if n.ShortTag() != "!!bool" || n.Decode(&yes) != nil {
		r.Wrong(n.Line, "%s: %s: want true or false", what, wording.Quote(n.Value))
	}
	return yes
}

// Number returns a whole number from least to most.
func (r *Reader) Number(n *yaml.Node, what string, least, most int) int {
	text, ok := r.Text(n, what)
	number, err := strconv.Atoi(text)
	if ok && (err != nil || number < least || number > most) {
		r.Wrong(n.Line, "%s: %s: want a number from %d to %d", what, wording.Quote(text), least, most)
	}
	return number
}

// Duration returns a time from least to most.
func (r *Reader) Duration(n *yaml.Node, what string, least, most time.Duration) time.Duration {
	text, ok := r.Text(n, what)
	if !ok {
		return 0
	}
	d, err := time.ParseDuration(text)
	if err != nil || d < least || d > most {
		r.Wrong(n.Line, "%s: %s: want a time from %s to %s, such as 30s or 15m", what,
			wording.Quote(text), least, most)
	}
	return d
}

// Path returns the absolute path of a file.
func (r *Reader) Path(n *yaml.Node, what string) string {
	text, ok := r.Text(n, what)
	if ok && !filepath.IsAbs(text) {
		r.Wrong(n.Line, "%s: %s: want the absolute path of a file", what, wording.Quote(text))
	}
	return text
}
