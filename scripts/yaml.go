package scripts

import (
	"errors"
	"io"
	"regexp"
	"strconv"
	"strings"
	"unicode/utf8"

	"go.yaml.in/yaml/v3"
)

// load parses the YAML of one runbook, or reports why it cannot.
func (p *parser) load(data []byte) (root *yaml.Node) {
	root = p.document(data, "a runbook: it has at least a name and steps")
	if root != nil {
		p.checkPlain(root)
	}
	return root
}

// ReadYAML parses a file that belongs to runbooks. It returns mistakes in the YAML with their
// position, and nil if the file cannot be parsed. want is the message for an empty file.
func ReadYAML(file, want string, data []byte) (*yaml.Node, Mistakes) {
	p := &parser{file: file}
	root := p.document(data, want)
	return root, p.mistakes.sorted()
}

// document parses the only document of a file.
func (p *parser) document(data []byte, want string) (root *yaml.Node) {
	if len(data) > sourceMax {
		p.add(place{1, 1}, "the file has more than %d bytes, which is the most", sourceMax)
		return nil
	}
	p.lines = strings.Split(strings.ReplaceAll(string(data), "\r\n", "\n"), "\n")
	if p.checkCharacters(); len(p.mistakes) > 0 {
		return nil
	}

	docs := yaml.NewDecoder(strings.NewReader(string(data)))
	var doc, second yaml.Node
	switch err := docs.Decode(&doc); {
	case errors.Is(err, io.EOF):
		p.add(place{1, 1}, "the file is empty: want %s", want)
		return nil
	case err != nil:
		p.syntax(err)
		return nil
	}
	switch err := docs.Decode(&second); {
	case err == nil:
		p.add(at(&second), "a second document: write one a file")
	case !errors.Is(err, io.EOF):
		p.syntax(err)
	}
	return doc.Content[0]
}

// checkCharacters reports characters that no YAML file may contain, because the YAML parser
// does not give their position.
func (p *parser) checkCharacters() {
	for i, line := range p.lines {
		col := 0
		for j, r := range line {
			col++
			if r == utf8.RuneError && !strings.HasPrefix(line[j:], "\uFFFD") {
				p.add(place{i + 1, col}, "not UTF-8 from here on: save the file as UTF-8")
				return
			}
			first := i == 0 && j == 0
			if controls(r) || r == '\uFEFF' && !first {
				p.add(place{i + 1, col}, "a control character (%U): remove it", r)
			}
		}
	}
}

// controls reports whether no runbook needs a character. YAML forbids most of these, and
// takes U+0085 and a lone carriage return for a line break.
func controls(r rune) bool {
	return r < ' ' && r != '\t' || 0x7F <= r && r < 0xA0 || r == 0xFFFE || r == 0xFFFF
}

// checkPlain reports anchors, aliases and tags, so that each part of a runbook can be
// understood at its place. An alias can also make a small file endless.
func (p *parser) checkPlain(n *yaml.Node) {
	switch {
	case n.Kind == yaml.AliasNode:
		p.add(at(n), "an alias (*%s): write it out", n.Value)
		return
	case n.Anchor != "":
		p.add(at(n), "an anchor (&%s): runbooks have no aliases", n.Anchor)
	case n.Style&yaml.TaggedStyle != 0:
		p.add(at(n), "a tag (%s): write the value alone", brief(n.Tag))
	}
	for _, c := range n.Content {
		p.checkPlain(c)
	}
}

var yamlLine = regexp.MustCompile(`^line (\d+): `)

// bracesNeedQuotes is the most likely reason for a mapping in place of a text.
const bracesNeedQuotes = ` (a text that begins with "{{" needs quotes, or | and a line of its own)`

var bareBraces = regexp.MustCompile(`[:-] +\{\{`)

// syntax reports an error of the YAML parser.
func (p *parser) syntax(err error) {
	text := strings.TrimPrefix(err.Error(), "yaml: ")
	line := 1
	if m := yamlLine.FindStringSubmatch(text); m != nil {
		line, _ = strconv.Atoi(m[1])
		text = text[len(m[0]):]
		if strings.HasPrefix(text, "did not find") {
			line++ // these errors count lines from 0
		}
	}
	line = min(line, len(p.lines))

	if strings.Contains(text, "cannot start any token") || strings.Contains(text, "tab character") {
		if p.tabs(line) {
			return
		}
	}
	for i, row := range p.lines[line-1:] {
		if bareBraces.MatchString(row) || i == 0 && strings.Contains(row, "{{") {
			line += i
			text += bracesNeedQuotes
			break
		}
	}
	where := place{line, indentOf(p.lines[line-1]) + 1}
	p.add(where, "not YAML: %s, here or in the lines around", text)
}

// tabs reports all lines that are indented by tabs, because the YAML parser stops at the
// first and gives another reason. A tab after the indentation may belong to a text, so there
// only the line of the parser's error counts.
func (p *parser) tabs(line int) (found bool) {
	for i, row := range p.lines {
		blanks := row[:indentOf(row)]
		tab := strings.IndexByte(blanks, '\t')
		if tab == 0 && len(blanks) < len(row) || tab > 0 && i+1 == line {
			p.add(place{i + 1, tab + 1}, "a tab in the indentation: use blanks")
			found = true
		}
	}
	return found
}

func indentOf(row string) int { return len(row) - len(strings.TrimLeft(row, " \t")) }

// within returns the position of a byte of a text. If the file has the text in another form
// (folded, escaped), it returns the position of the whole text.
func (p *parser) within(n *yaml.Node, offset int) place {
	before := n.Value[:offset]
	row := strings.Count(before, "\n")
	inRow := before[strings.LastIndexByte(before, '\n')+1:]

	switch {
	case n.Style&yaml.LiteralStyle != 0:
		text := strings.Split(n.Value, "\n")[row]
		line := n.Line + row // counted from 0, because the text starts below its key
		if line < len(p.lines) && strings.HasSuffix(p.lines[line], text) {
			indent := len(p.lines[line]) - len(text)
			return place{line: line + 1, col: indent + utf8.RuneCountInString(inRow) + 1}
		}
	case n.Line <= len(p.lines) && !strings.Contains(n.Value, "\n"):
		start := n.Column - 1
		if n.Style&(yaml.SingleQuotedStyle|yaml.DoubleQuotedStyle) != 0 {
			start++
		}
		line := []rune(p.lines[n.Line-1])
		if start <= len(line) && strings.HasPrefix(string(line[start:]), n.Value) {
			return place{line: n.Line, col: start + utf8.RuneCountInString(before) + 1}
		}
	}
	return at(n)
}
