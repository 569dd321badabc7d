package rehearse

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"muster/fleet"
	"muster/jobs"
	"muster/scripts"
)

// Suite is the cases of one runbook.
type Suite struct {
	File    string
	Runbook string // path, from the folder of the file; empty: beside it, of its own name
	Cases   []Case
}

// Case is one rehearsal.
type Case struct {
	Name    string              `yaml:"name"`
	Args    map[string]string   `yaml:"args"`
	Secrets map[string]string   `yaml:"secrets"`
	Files   map[string]string   `yaml:"files"` // contents
	Only    string              `yaml:"only"`  // check or diff: a dry run
	Host    Host                `yaml:"host"`
	Answers map[string][]Answer `yaml:"-"` // by step; the last one is given again and again
	Want    Want                `yaml:"want"`

	Line int `yaml:"-"`

	named map[string]*yaml.Node // where steps are named, by their names
}

// Host holds the facts about its host that the runbook may use.
type Host struct {
	Name     string            `yaml:"name"`
	Address  string            `yaml:"address"`
	Customer string            `yaml:"customer"`
	Labels   map[string]string `yaml:"labels"`
}

// Answer is the reaction of the host to a step. The zero Answer succeeds without output.
type Answer struct {
	Output      string `yaml:"output"`
	Exit        int    `yaml:"exit"`
	Unreachable bool   `yaml:"unreachable"` // or lost, if it was connected with already
}

// Want is the expected result. Empty fields are not checked.
type Want struct {
	Outcome jobs.Outcome      `yaml:"outcome"`
	Class   jobs.Class        `yaml:"class"`
	Error   string            `yaml:"error"`   // a pattern
	Refused string            `yaml:"refused"` // a pattern: it is refused before it is queued
	Steps   []string          `yaml:"steps"`   // that came to the host, in their order
	Saved   map[string]string `yaml:"saved"`
	Runs    map[string]string `yaml:"runs"` // patterns of the text that a step ran last
}

// reader gathers mistakes with their places.
type reader struct {
	file     string
	mistakes scripts.Mistakes
}

func (r *reader) add(n *yaml.Node, format string, args ...any) {
	r.mistakes = append(r.mistakes, scripts.Mistake{File: r.file, Line: max(n.Line, 1),
		Col: max(n.Column, 1), Text: fmt.Sprintf(format, args...)})
}

// Parse reads a file of cases. It reports all mistakes at once, as scripts.Mistakes; what could be
// read comes with them, nil if nothing could.
func Parse(file string, data []byte) (*Suite, error) {
	root, wrong := scripts.ReadYAML(file, "a mapping with cases", data)
	if root == nil {
		return nil, wrong
	}
	r := &reader{file: file, mistakes: wrong}
	s := &Suite{File: file}
	if root.Kind != yaml.MappingNode {
		r.add(root, "want a mapping with cases, and runbook if it is not beside this file")
	}
	known := []string{"runbook", "cases"}
	if fleet.Foreign(root, known) {
		r.add(root, "this is no file of cases: it has no known key: want cases, and runbook if it "+
			"is not beside this file")
		return nil, r.mistakes
	}
	for key, v := range r.pairs(root, known...) {
		switch {
		case key == "runbook":
			r.decode(v, &s.Runbook)
		case v.Kind != yaml.SequenceNode || len(v.Content) == 0:
			r.add(v, "cases: want a list with at least one case")
		default:
			for _, one := range v.Content {
				s.Cases = append(s.Cases, r.readCase(one))
			}
		}
	}
	if len(s.Cases) == 0 && len(r.mistakes) == 0 {
		r.add(root, "cases is missing")
	}
	if len(r.mistakes) > 0 {
		return s, r.mistakes
	}
	return s, nil
}

// pairs gives the values of a mapping by key. Others than the known keys are mistakes.
func (r *reader) pairs(n *yaml.Node, known ...string) func(func(string, *yaml.Node) bool) {
	return func(yield func(string, *yaml.Node) bool) {
		if n.Kind != yaml.MappingNode {
			return
		}
		seen := map[string]bool{}
		for i := 0; i+1 < len(n.Content); i += 2 {
			k := n.Content[i]
			switch {
			case len(known) > 0 && !slices.Contains(known, k.Value):
				r.add(k, "unknown key %q: known: %s", fleet.Word(k.Value), strings.Join(known, ", "))
			case seen[k.Value]:
				r.add(k, "key %q is there twice", k.Value)
			case !yield(k.Value, n.Content[i+1]):
				return
			}
			seen[k.Value] = true
		}
	}
}

// decode reads a value of a Go type.
func (r *reader) decode(n *yaml.Node, into any) {
	var wrong *yaml.TypeError
	switch err := n.Decode(into); {
	case errors.As(err, &wrong):
		for _, text := range wrong.Errors {
			_, rest, _ := strings.Cut(text, ": ")
			r.add(n, "%s", rest)
		}
	case err != nil:
		r.add(n, "%s", err)
	}
}

func (r *reader) readCase(n *yaml.Node) Case {
	c := Case{Line: n.Line, named: map[string]*yaml.Node{}}
	if n.Kind != yaml.MappingNode {
		r.add(n, "a case: want a mapping")
		return c
	}
	for key, v := range r.pairs(n, "name", "args", "secrets", "files", "only", "host", "answers",
		"want") {
		switch key {
		case "answers":
			c.Answers = r.readAnswers(v)
			c.note(v)
		case "want":
			r.readWant(v, &c.Want)
			for i := 0; i+1 < len(v.Content); i += 2 {
				if key := v.Content[i].Value; key == "steps" || key == "runs" {
					c.note(v.Content[i+1])
				}
			}
		case "host":
			for range r.pairs(v, "name", "address", "customer", "labels") {
			}
			r.decode(v, &c.Host)
		case "only":
			if r.decode(v, &c.Only); c.Only != scripts.OnlyCheck && c.Only != scripts.OnlyDiff {
				r.add(v, "only is %q: want %s or %s", c.Only, scripts.OnlyCheck, scripts.OnlyDiff)
			}
		case "name":
			r.decode(v, &c.Name)
		default:
			r.decode(v, map[string]any{"args": &c.Args, "secrets": &c.Secrets, "files": &c.Files}[key])
		}
	}
	if c.Name == "" {
		r.add(n, "the case has no name")
	}
	return c
}

// note keeps the places of the steps that are the keys of a mapping, or the items of a list.
func (c *Case) note(n *yaml.Node) {
	by := 1
	if n.Kind == yaml.MappingNode {
		by = 2
	}
	for i := 0; i < len(n.Content); i += by {
		if name := n.Content[i].Value; c.named[name] == nil {
			c.named[name] = n.Content[i]
		}
	}
}

// readAnswers reads what the host answers, by step: a text, a mapping, or a list of them.
func (r *reader) readAnswers(n *yaml.Node) map[string][]Answer {
	all := map[string][]Answer{}
	if n.Kind != yaml.MappingNode {
		r.add(n, "answers: want a mapping by step")
	}
	for step, v := range r.pairs(n) {
		list := []*yaml.Node{v}
		if v.Kind == yaml.SequenceNode {
			list = v.Content
		}
		for _, one := range list {
			var a Answer
			if one.Kind == yaml.MappingNode {
				for range r.pairs(one, "output", "exit", "unreachable") {
				}
				r.decode(one, &a)
			} else {
				r.decode(one, &a.Output)
			}
			if a.Exit < 0 || a.Exit > 255 {
				r.add(one, "exit is %d: want 0 to 255", a.Exit)
			}
			all[step] = append(all[step], a)
		}
	}
	return all
}

func (r *reader) readWant(n *yaml.Node, w *Want) {
	if n.Kind != yaml.MappingNode {
		r.add(n, "want: want a mapping")
	}
	patterns := func(n *yaml.Node, list ...string) {
		for _, text := range list {
			if _, err := regexp.Compile(text); err != nil {
				r.add(n, "pattern %q: %s", text, err)
			}
		}
	}
	r.decode(n, w)
	for key, v := range r.pairs(n, "outcome", "class", "error", "refused", "steps", "saved", "runs") {
		switch {
		case key == "outcome" && !w.Outcome.Valid():
			r.add(v, "outcome is %q: want one of %v", w.Outcome, jobs.Outcomes())
		case key == "error":
			patterns(v, w.Error)
		case key == "refused":
			patterns(v, w.Refused)
		case key == "runs":
			for _, text := range w.Runs {
				patterns(v, text)
			}
		}
	}
}
