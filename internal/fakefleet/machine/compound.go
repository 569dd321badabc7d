package machine

import (
	"fmt"
	"maps"
	"regexp"
	"strings"

	"mvdan.cc/sh/v3/pattern"
	"mvdan.cc/sh/v3/syntax"
)

// depthMax bounds how deep functions call functions.
const depthMax = 50

// define makes a function.
func (s *shell) define(f *syntax.FuncDecl) {
	if f.Name == nil { // the parser takes "() a" for one
		s.beyond(f)
		return
	}
	functions := maps.Clone(s.functions)
	if functions == nil {
		functions = map[string]*syntax.Stmt{}
	}
	functions[f.Name.Value] = f.Body
	s.functions = functions
	s.last = 0
}

// function runs the body of one with its own positions.
func (s *shell) function(body *syntax.Stmt, words []string) Status {
	if s.depth >= depthMax {
		s.refuse(fmt.Errorf("%s: functions call each other too deep", words[0]))
		return *s.end
	}
	args := s.args
	s.args = append([]string{args[0]}, words[1:]...)
	s.depth++
	s.stmt(body)
	s.landed(jumpReturn)
	s.depth--
	s.args = args
	return s.status()
}

func (s *shell) caseClause(c *syntax.CaseClause) {
	word, err := s.text(c.Word)
	if err != nil {
		s.refuse(err)
		return
	}
	s.last = 0
	for _, item := range c.Items {
		for _, p := range item.Patterns {
			fits, err := s.fits(word, p)
			if err != nil {
				s.refuse(err)
				return
			}
			if fits {
				s.list(item.Stmts)
				return
			}
		}
	}
}

// fits holds a word against a pattern; what is quoted in that means itself.
func (s *shell) fits(word string, p *syntax.Word) (bool, error) {
	var b strings.Builder
	for _, part := range p.Parts {
		if lit, ok := part.(*syntax.Lit); ok {
			b.WriteString(lit.Value)
			continue
		}
		text, err := s.expand(part, false)
		if err != nil {
			return false, err
		}
		if _, bare := part.(*syntax.ParamExp); !bare {
			text = pattern.QuoteMeta(text, 0)
		}
		b.WriteString(text)
	}
	expression, err := pattern.Regexp(b.String(), pattern.EntireString)
	if err != nil {
		return false, err
	}
	re, err := regexp.Compile(expression)
	if err != nil {
		return false, err
	}
	return re.MatchString(word), nil
}

// runRead reads one line into variables; the last of them gets what is left.
func runRead(c *call) Status {
	names := c.args
	if len(names) > 0 && names[0] == "-r" {
		names = names[1:]
	}
	if len(names) == 0 {
		return c.fail(2, "want the name of a variable")
	}
	line, ended := c.line()
	for i, name := range names {
		line = strings.TrimLeft(line, " \t")
		value, rest, _ := strings.Cut(line, " ")
		if i == len(names)-1 {
			value = strings.TrimRight(line, " \t")
		}
		c.sh.vars[name], line = value, rest
	}
	return Status{Code: btoi(ended)}
}

// line reads to the end of a line, byte by byte: what follows is for others.
func (c *call) line() (text string, ended bool) {
	var b strings.Builder
	for one := make([]byte, 1); b.Len() < textMax; {
		n, err := c.in.Read(one)
		if err != nil {
			return b.String(), true
		}
		if n == 0 {
			continue
		}
		if one[0] == '\n' {
			break
		}
		b.WriteByte(one[0])
	}
	return b.String(), false
}
