package ingress

import (
	"encoding/json"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"
)

// A Program prints events on its standard output, one a line.
type Program struct {
	Command []string // the program by its absolute path, and its arguments
	Text    bool     // a line is any text; else it is JSON
	// Each means that each line is an event. Else a line is dropped that an event of the source has
	// already, so that a program may print all that there is, again and again.
	Each  bool
	Every time.Duration // from its end without a failure to its next begin
}

// programPreset is the preset of programs.
const programPreset = "program"

// programKeys are the keys of a source that only programs have.
const programKeys = "command lines repeated every"

// The bounds of programs.
const (
	everyUsual = time.Minute
	everyMin   = time.Second
	everyMax   = 24 * time.Hour
	wordsMax   = 100 // of a command
	// LineMax bounds a line.
	LineMax = 64 << 10 // bytes
)

// programOf returns the program of a preset before its keys are read; nil: it has none.
func programOf(preset string) *Program {
	if preset != programPreset {
		return nil
	}
	return &Program{Every: everyUsual}
}

// program reads the keys that only programs have.
func (r *reader) program(s *Source, p field) bool {
	if !slices.Contains(strings.Fields(programKeys), p.key) {
		return false
	}
	if s.Program == nil {
		if s.Preset != "" {
			r.in.Wrong(p.value.Line, "%s has no effect with preset %s: remove it", p.key, s.Preset)
		}
		return true
	}
	switch p.key {
	case "command":
		s.Program.Command = r.command(p)
	case "lines":
		s.Program.Text = r.in.Word(p.value, "lines", []string{"json", "text"}) == "text"
	case "repeated":
		s.Program.Each = r.in.Word(p.value, "repeated", []string{"drop", "keep"}) == "keep"
	case "every":
		s.Program.Every = r.in.Duration(p.value, p.key, everyMin, everyMax)
	}
	return true
}

func (r *reader) command(p field) (words []string) {
	for _, n := range r.in.List(p.value, p.key) {
		words = append(words, r.text(field{"command", n}))
	}
	if p.value.Kind != yaml.SequenceNode {
		return nil
	}
	if len(words) == 0 || len(words) > wordsMax || !filepath.IsAbs(words[0]) {
		r.in.Wrong(p.value.Line, "command: want the absolute path of a program, and at most %d arguments",
			wordsMax-1)
		return nil
	}
	return words
}

// wholeProgram refuses a program that lacks something, and keys that mean nothing for one.
func (r *reader) wholeProgram(s Source, has map[string]*yaml.Node) {
	if has["command"] == nil {
		r.in.Wrong(s.Line, "preset %s needs a command", programPreset)
	}
	for _, key := range strings.Fields("secret_file user header prefix hash encoding id time " +
		"tolerance kind") {
		if has[key] != nil {
			r.in.Wrong(s.Line, "%s has no effect with preset %s: remove it", key, programPreset)
		}
	}
	if s.Program.Text && (s.CustomerAt != "" || len(s.Form.KindAt) > 0) {
		r.in.Wrong(s.Line, "customer_at and kind_at have no effect with lines: text: remove them, or "+
			"let the program print JSON")
	}
}

// Line returns the body of the event that a line is; ok is false for an empty one.
func (p Program) Line(line []byte) (body []byte, ok bool) {
	text := strings.TrimSpace(string(line))
	if text == "" {
		return nil, false
	}
	if !p.Text {
		return []byte(text), true
	}
	// A text is always JSON: bytes that are no characters become U+FFFD.
	body, _ = json.Marshal(map[string]string{"line": strings.ToValidUTF8(text, "\uFFFD")})
	return body, true
}
