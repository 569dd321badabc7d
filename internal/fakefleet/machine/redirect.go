package machine

import (
	"fmt"
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// redirect changes where a statement reads and writes. The caller restores it.
func (s *shell) redirect(redirs []*syntax.Redirect) error {
	for _, r := range redirs {
		if err := s.redirectOne(r); err != nil {
			return err
		}
	}
	return nil
}

func (s *shell) redirectOne(r *syntax.Redirect) error {
	text, err := s.text(r.Word)
	if err != nil {
		return err
	}
	switch r.Op {
	case syntax.RdrIn:
		return s.readFrom(text)
	case syntax.Hdoc, syntax.DashHdoc:
		return s.readText(r)
	case syntax.RdrOut, syntax.RdrClob, syntax.AppOut:
		to, err := s.open(text, r.Op)
		if err != nil {
			return err
		}
		return s.point(r, to)
	case syntax.DplOut:
		switch text {
		case "-":
			if r.N != nil && r.N.Value > "2" {
				return nil // it was never open
			}
		case "1":
			return s.point(r, s.out)
		case "2":
			return s.point(r, s.err)
		}
	}
	return tooFar(r)
}

// point sends stdout, or what a number before the operator names, elsewhere.
func (s *shell) point(r *syntax.Redirect, to Sink) error {
	switch {
	case r.N == nil || r.N.Value == "1":
		s.out = to
	case r.N.Value == "2":
		s.err = to
	default:
		return tooFar(r)
	}
	return nil
}

func (s *shell) open(name string, how syntax.RedirOperator) (Sink, error) {
	if name == "/dev/null" {
		return nowhere{}, nil
	}
	d := s.machine.disk()
	if _, there := d.stat(s.path(name)); there && s.noclobber && how == syntax.RdrOut {
		return nil, fmt.Errorf("cannot create %s: %w", name, hasEntry)
	}
	n, err := d.create(s.path(name), how == syntax.AppOut, 0o644)
	if err != nil {
		return nil, fmt.Errorf("cannot create %s: %w", name, err)
	}
	return onDisk{d, n}, nil
}

func (s *shell) readFrom(name string) error {
	if name == "/dev/null" {
		s.in = nowhere{}
		return nil
	}
	data, err := s.machine.disk().read(s.path(name))
	if err != nil {
		return fmt.Errorf("cannot open %s: %w", name, err)
	}
	s.in = &content{data}
	return nil
}

// readText reads a here-document. If its delimiter is quoted, nothing in it is
// expanded.
func (s *shell) readText(r *syntax.Redirect) error {
	if r.Hdoc == nil {
		s.in = nowhere{}
		return nil
	}
	parts := r.Hdoc.Parts
	if r.Op == syntax.DashHdoc {
		parts = withoutTabs(parts)
	}
	if lit, ok := parts[0].(*syntax.Lit); ok && isQuoted(r.Word) {
		s.in = &content{[]byte(lit.Value)}
		return nil
	}
	text, err := s.join(parts, true)
	if err != nil {
		return err
	}
	s.in = &content{[]byte(text)}
	return nil
}

// withoutTabs takes the tabs off the beginning of each line of a text.
func withoutTabs(parts []syntax.WordPart) []syntax.WordPart {
	list, begin := slices.Clone(parts), true
	for i, part := range list {
		lit, ok := part.(*syntax.Lit)
		if !ok {
			begin = false
			continue
		}
		bare := *lit
		bare.Value = ""
		for line := range strings.Lines(lit.Value) {
			if begin {
				line = strings.TrimLeft(line, "\t")
			}
			bare.Value += line
			begin = strings.HasSuffix(line, "\n")
		}
		list[i] = &bare
	}
	return list
}

func isQuoted(w *syntax.Word) bool {
	lit, ok := w.Parts[0].(*syntax.Lit)
	return !ok || len(w.Parts) > 1 || strings.Contains(lit.Value, `\\`)
}
