package manifest

import (
	"cmp"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"

	"muster/internal/wording"
	"muster/windows"
)

// document is one document of a file.
type document struct {
	file string
	at   int // the number of its first line, counted from 1
	kind string
	body []string // its lines
	said int      // the index of the line with its kind
}

// A mistake is one thing that is wrong with a file.
type mistake struct {
	file string
	line int
	text string
}

// Error returns the mistake with its place.
func (m mistake) Error() string { return fmt.Sprintf("%s:%d: %s", m.file, m.line, m.text) }

// split returns the documents of a file. A line "---" ends one and begins the next: YAML allows
// such a line nowhere else.
func split(f windows.File) (docs []document, wrong []error) {
	d := document{file: f.Name, at: 1}
	end := func() {
		if !d.blank() {
			if err := d.head(); err != nil {
				wrong = append(wrong, err)
			} else {
				docs = append(docs, d)
			}
		}
	}
	number := 0
	for line := range strings.SplitSeq(f.Content, "\n") {
		number++
		line = strings.TrimSuffix(line, "\r")
		marker := line == "..." || strings.HasPrefix(line, "... ")
		switch rest, begins := strings.CutPrefix(line, "---"); {
		case begins && (rest == "" || rest[0] == ' ' || rest[0] == '\t'):
			end()
			d = document{file: f.Name, at: number + 1}
			if rest = strings.TrimSpace(rest); rest != "" && rest[0] != '#' {
				wrong = append(wrong, mistake{f.Name, number, "something follows \"---\": begin the " +
					"document on the next line"})
			}
		case marker, strings.HasPrefix(line, "%"):
			wrong = append(wrong, mistake{f.Name, number, "a line of YAML that neither begins nor " +
				"belongs to an entry: want \"---\" between two documents, and nothing else"})
			d.body = append(d.body, "")
		default:
			d.body = append(d.body, line)
		}
	}
	end()
	return docs, wrong
}

// blank reports whether a document has nothing but comments.
func (d document) blank() bool { return !slices.ContainsFunc(d.body, says) }

// says reports whether a line of a document is more than a comment.
func says(line string) bool {
	line = strings.TrimSpace(line)
	return line != "" && line[0] != '#'
}

var yamlLine = regexp.MustCompile(`^yaml: line (\d+): `)

// head reads the kind, which must be the first line, and takes it out of the body.
func (d *document) head() error {
	var root yaml.Node
	if err := yaml.Unmarshal([]byte(strings.Join(d.body, "\n")), &root); err != nil {
		line, text := 1, strings.TrimPrefix(err.Error(), "yaml: ")
		if m := yamlLine.FindStringSubmatch(err.Error()); m != nil {
			line, _ = strconv.Atoi(m[1]) // the pattern matches digits only
			text = err.Error()[len(m[0]):]
		}
		return mistake{d.file, d.at + line - 1, "not YAML: " + text + ", here or in the lines around"}
	}
	first := slices.IndexFunc(d.body, says)
	want := mistake{d.file, d.at + first, "an entry begins with the line \"kind: " +
		wording.Join(Kinds(), "\" or \"kind: ") + "\""}
	if len(root.Content) == 0 || root.Content[0].Kind != yaml.MappingNode ||
		root.Content[0].Style&yaml.FlowStyle != 0 {
		return want
	}
	fields := root.Content[0].Content
	key, value := fields[0], fields[1]
	alone := len(fields) == 2 || fields[2].Line > value.Line
	if key.Value != "kind" || value.Kind != yaml.ScalarNode || key.Column != 1 || !alone ||
		value.Line != key.Line {
		return want
	}
	if _, known := kindOf(value.Value); !known {
		return mistake{d.file, d.at + key.Line - 1, notAKind(value.Value)}
	}
	if len(fields) == 2 {
		return mistake{d.file, d.at + key.Line - 1, "nothing follows the kind: want name: …"}
	}
	d.kind, d.said = value.Value, key.Line-1
	return nil
}

// lists returns the documents of a kind as files with a list, each line where it was: so mistakes
// in it are reported with the place that people know.
func lists(docs []document, k kind) []windows.File {
	if k.each {
		return apart(docs, k)
	}
	var out []windows.File
	texts := map[string][]string{}
	for _, d := range docs {
		if d.kind != k.word {
			continue
		}
		lines, known := texts[d.file]
		if !known {
			out = append(out, windows.File{Name: d.file})
		}
		for len(lines) < d.at-1 {
			lines = append(lines, "")
		}
		begun := false
		for i, line := range d.body {
			switch {
			case i == d.said && known:
				line = ""
			case i == d.said:
				line, known = k.list+":", true
			case says(line) && !begun:
				line, begun = "- "+line, true
			case line != "":
				line = "  " + line
			}
			lines = append(lines, line)
		}
		texts[d.file] = lines
	}
	for i, f := range out {
		out[i].Content = strings.Join(texts[f.Name], "\n") + "\n"
	}
	return out
}

// apart returns each document of a kind as a file of its own, each line where it was.
func apart(docs []document, k kind) (out []windows.File) {
	for _, d := range docs {
		switch {
		case d.kind != k.word:
		case k.list != "":
			k.each = false
			out = append(out, lists([]document{d}, k)...)
		default:
			lines := slices.Clone(d.body)
			lines[d.said] = ""
			out = append(out, windows.File{Name: d.file,
				Content: strings.Repeat("\n", d.at-1) + strings.Join(lines, "\n")})
		}
	}
	return out
}

// inOrder returns mistakes in the order of files and lines.
func inOrder(wrong []error) error {
	place := func(err error) mistake {
		if m, is := err.(mistake); is {
			return m
		}
		file, rest, _ := strings.Cut(err.Error(), ":")
		number, _, _ := strings.Cut(rest, ":")
		line, _ := strconv.Atoi(number) // no number: the whole file
		return mistake{file: file, line: line}
	}
	slices.SortStableFunc(wrong, func(a, b error) int {
		x, y := place(a), place(b)
		return cmp.Or(strings.Compare(x.file, y.file), cmp.Compare(x.line, y.line))
	})
	return errors.Join(wrong...)
}

// An Attachment is a file that an entry names in "ics".
type Attachment struct{ File, Name string }

// Attachments lists the files that the entries of files name in "ics".
func Attachments(files []windows.File) []Attachment {
	var out []Attachment
	for _, f := range files {
		docs, _ := split(f) // Read reports the mistakes
		for _, word := range []string{Window, Freeze} {
			k, _ := kindOf(word)
			for _, list := range lists(docs, k) {
				for _, name := range windows.Attachments(list) {
					out = append(out, Attachment{f.Name, name})
				}
			}
		}
	}
	return out
}
