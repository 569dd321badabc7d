package windows

import (
	"errors"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"go.yaml.in/yaml/v3"
)

// document returns the only YAML document of a file; nil if there is none, which is reported.
func (r *reader) document(f File, want string) *yaml.Node {
	r.file = f.Name
	docs := yaml.NewDecoder(strings.NewReader(f.Content))
	var doc, second yaml.Node
	err := docs.Decode(&doc)
	switch {
	case errors.Is(err, io.EOF), err == nil && len(doc.Content) == 0:
		r.errs = append(r.errs, fmt.Errorf("%s: it is empty: want %s", f.Name, want))
		return nil
	case err != nil:
		r.errs = append(r.errs, notYAML(f, err))
		return nil
	}
	switch err = docs.Decode(&second); {
	case errors.Is(err, io.EOF):
		return doc.Content[0]
	case err == nil:
		err = fmt.Errorf("%s:%d: a second YAML document begins here: a file is one document, so "+
			"remove the line \"---\", or make it a file of its own", f.Name, max(1, second.Line))
	default:
		err = notYAML(f, err)
	}
	r.errs = append(r.errs, err)
	return doc.Content[0]
}

var yamlLine = regexp.MustCompile(`^line (\d+): `)

// notYAML returns an error of the YAML library with its place.
func notYAML(f File, err error) error {
	text := strings.TrimPrefix(err.Error(), "yaml: ")
	line := 1 + strings.Count(f.Content[:unreadable(f.Content)], "\n")
	if m := yamlLine.FindStringSubmatch(text); m != nil {
		text = text[len(m[0]):]
		line, _ = strconv.Atoi(m[1]) // the pattern matches digits only
		if strings.HasPrefix(text, "did not find") {
			line++ // the library counts these lines from 0
		}
		if strings.HasSuffix(text, "<document start>") {
			text = "something follows the end of the document"
		}
	}
	return fmt.Errorf("%s:%d: not YAML: %s, here or in the lines around", f.Name, line, text)
}

// unreadable returns the position of the first character that is forbidden in YAML, because the
// library does not name its line. It returns 0 if there is none.
func unreadable(text string) int {
	for i, c := range text {
		broken := c == utf8.RuneError && !strings.HasPrefix(text[i:], "\uFFFD")
		if broken || unicode.IsControl(c) && !strings.ContainsRune("\t\r\n", c) {
			return i
		}
	}
	return 0
}

// Attachments lists the files that a file names in "ics".
func Attachments(f File) []string {
	var doc yaml.Node
	if yaml.Unmarshal([]byte(f.Content), &doc) != nil || len(doc.Content) == 0 {
		return nil // Parse reports the mistake
	}
	var names []string
	for _, list := range valuesOf(doc.Content[0], "windows", "freezes") {
		for _, entry := range list.Content {
			for _, n := range valuesOf(entry, "ics") {
				if n.Kind == yaml.ScalarNode && n.Value != "" {
					names = append(names, n.Value)
				}
			}
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// valuesOf returns the values of some keys of a mapping; none if the node is no mapping.
func valuesOf(n *yaml.Node, keys ...string) []*yaml.Node {
	var values []*yaml.Node
	for i := 0; n.Kind == yaml.MappingNode && i+1 < len(n.Content); i += 2 {
		if slices.Contains(keys, n.Content[i].Value) {
			values = append(values, n.Content[i+1])
		}
	}
	return values
}
