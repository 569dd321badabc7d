package machine

import (
	"bytes"
	"fmt"
	"strconv"
	"strings"

	"mvdan.cc/sh/v3/expand"
	"mvdan.cc/sh/v3/syntax"
)

// fields expands the words of a command. Names of files are not expanded: a
// pattern stays as it is.
func (s *shell) fields(words []*syntax.Word) ([]string, error) {
	var sp splitter
	for _, w := range words {
		for _, part := range w.Parts {
			if err := s.field(&sp, part); err != nil {
				return nil, err
			}
		}
		sp.cut()
	}
	return sp.fields, nil
}

func (s *shell) field(sp *splitter, part syntax.WordPart) error {
	if isAllArgs(part) {
		for i, arg := range s.args[1:] {
			if i > 0 {
				sp.cut()
			}
			sp.add(arg)
		}
		return sp.err()
	}
	text, err := s.expand(part, false)
	if err != nil {
		return err
	}
	switch part.(type) {
	case *syntax.ParamExp, *syntax.CmdSubst, *syntax.ArithmExp:
		sp.split(text)
	default:
		sp.add(text)
	}
	return sp.err()
}

// isAllArgs says that a part is "$@", the one thing in quotes that gives several
// words.
func isAllArgs(part syntax.WordPart) bool {
	q, ok := part.(*syntax.DblQuoted)
	if !ok || len(q.Parts) != 1 {
		return false
	}
	p, ok := q.Parts[0].(*syntax.ParamExp)
	return ok && p.Param != nil && p.Param.Value == "@" && p.Exp == nil
}

// splitter collects words out of pieces.
type splitter struct {
	fields []string
	word   strings.Builder
	open   bool // the word counts even if it is empty
	size   int
}

func (sp *splitter) add(text string) {
	sp.word.WriteString(text)
	sp.size += len(text)
	sp.open = true
}

// split adds what was not quoted: blanks in it end words.
func (sp *splitter) split(text string) {
	const blanks = " \t\n"
	for text != "" {
		rest := strings.TrimLeft(text, blanks)
		if len(rest) < len(text) {
			sp.cut()
		}
		end := strings.IndexAny(rest, blanks)
		if end < 0 {
			end = len(rest)
		}
		if end > 0 {
			sp.add(rest[:end])
		}
		text = rest[end:]
	}
}

func (sp *splitter) cut() {
	if sp.open {
		sp.fields = append(sp.fields, sp.word.String())
	}
	sp.word.Reset()
	sp.open = false
}

func (sp *splitter) err() error {
	if sp.size > textMax {
		return fmt.Errorf("argument list too long")
	}
	return nil
}

// text expands a word that stays one: a value, the name of a file.
func (s *shell) text(w *syntax.Word) (string, error) {
	if w == nil {
		return "", nil
	}
	return s.join(w.Parts, false)
}

func (s *shell) join(parts []syntax.WordPart, quoted bool) (string, error) {
	var b strings.Builder
	for _, part := range parts {
		text, err := s.expand(part, quoted)
		if err != nil {
			return "", err
		}
		b.WriteString(text)
		if b.Len() > textMax {
			return "", fmt.Errorf("word too long")
		}
	}
	return b.String(), nil
}

func (s *shell) expand(part syntax.WordPart, quoted bool) (string, error) {
	switch p := part.(type) {
	case *syntax.Lit:
		return unescape(p.Value, quoted), nil
	case *syntax.SglQuoted:
		return p.Value, nil
	case *syntax.DblQuoted:
		return s.join(p.Parts, true)
	case *syntax.ParamExp:
		return s.param(p)
	case *syntax.CmdSubst:
		return s.substitute(p)
	case *syntax.ArithmExp:
		return s.reckon(p)
	}
	return "", tooFar(part)
}

func tooFar(n syntax.Node) error {
	kind := strings.TrimPrefix(fmt.Sprintf("%T", n), "*syntax.")
	return fmt.Errorf("line %d: %s is beyond a pretended machine", n.Pos().Line(), kind)
}

// unescape takes away the backslashes that quote. Between double quotes only
// those before $ ` " and \ do.
func unescape(text string, quoted bool) string {
	if !strings.Contains(text, `\`) {
		return text
	}
	var b strings.Builder
	for i := 0; i < len(text); i++ {
		if text[i] == '\\' && i+1 < len(text) {
			if !quoted || strings.IndexByte("$`\"\\", text[i+1]) >= 0 {
				i++
			}
		}
		b.WriteByte(text[i])
	}
	return b.String()
}

// reckon is $(( )). What it assigns is lost: nobody here counts on it.
func (s *shell) reckon(p *syntax.ArithmExp) (string, error) {
	n, err := expand.Arithm(&expand.Config{Env: expand.FuncEnviron(func(name string) string {
		value, _ := s.value(name)
		return value
	})}, p.X)
	return strconv.Itoa(n), err
}

// param knows $x, ${x}, those with a word (- :- + :+) and those that cut off what fits a
// pattern (# ## % %%).
func (s *shell) param(p *syntax.ParamExp) (string, error) {
	if p.Param == nil || p.Excl || p.Length || p.Index != nil || p.Slice != nil || p.Repl != nil {
		return "", tooFar(p)
	}
	value, set := s.value(p.Param.Value)
	if p.Exp == nil {
		return value, nil
	}
	other := false
	switch p.Exp.Op {
	case syntax.RemSmallPrefix, syntax.RemLargePrefix, syntax.RemSmallSuffix, syntax.RemLargeSuffix:
		return s.trim(value, p.Exp)
	case syntax.DefaultUnset:
		other = !set
	case syntax.DefaultUnsetOrNull:
		other = value == ""
	case syntax.AlternateUnset:
		other, value = set, ""
	case syntax.AlternateUnsetOrNull:
		other, value = value != "", ""
	default:
		return "", tooFar(p)
	}
	if other {
		return s.text(p.Exp.Word)
	}
	return value, nil
}

// trim cuts the shortest or longest beginning or end off a value that fits a pattern.
func (s *shell) trim(value string, e *syntax.Expansion) (string, error) {
	begin := e.Op == syntax.RemSmallPrefix || e.Op == syntax.RemLargePrefix
	shortest := e.Op == syntax.RemSmallPrefix || e.Op == syntax.RemSmallSuffix
	for i := range len(value) + 1 {
		n := i // so much is cut off
		if !shortest {
			n = len(value) - i
		}
		part, rest := value[:n], value[n:]
		if !begin {
			rest, part = value[:len(value)-n], value[len(value)-n:]
		}
		fits, err := s.fits(part, e.Word)
		if fits || err != nil {
			return rest, err
		}
	}
	return value, nil
}

func (s *shell) value(name string) (value string, set bool) {
	switch name {
	case "?":
		return strconv.Itoa(s.last), true
	case "#":
		return strconv.Itoa(len(s.args) - 1), true
	case "@", "*":
		return strings.Join(s.args[1:], " "), len(s.args) > 1
	case "$":
		return strconv.Itoa(s.pid), true
	case "PPID":
		return strconv.Itoa(s.parent), true
	}
	if n, err := strconv.Atoi(name); err == nil {
		if n < 0 || n >= len(s.args) {
			return "", false
		}
		return s.args[n], true
	}
	value, set = s.vars[name]
	return value, set
}

func (s *shell) substitute(p *syntax.CmdSubst) (string, error) {
	var said capture
	child := s.fork()
	child.out = &said
	child.list(p.Stmts)
	s.last = child.status().seen()
	s.substitutions++

	said.mu.Lock()
	defer said.mu.Unlock()
	return string(bytes.TrimRight(said.kept, "\n")), nil
}
