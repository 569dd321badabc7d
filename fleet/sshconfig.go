package fleet

import (
	"fmt"
	"path"
	"slices"
	"strings"
)

// This file parses the configuration of OpenSSH (ssh_config(5)) into directives, and
// finds the directives that apply to a host.

// Limits for the configuration.
const (
	sshConfigMax  = 16 << 20 // bytes of all files
	sshIncludeMax = 16       // depth of Include, as in OpenSSH
)

// directive is one line and its position.
type directive struct {
	keyword string // in lower case
	args    []string
	when    []condition // it applies if all of these hold
	file    string
	line    int
}

// condition is a line Host, or a line Match, which is unsupported and never holds.
type condition struct {
	patterns []string
	never    bool
}

// holds reports whether the condition holds for the host name. If a pattern with '!'
// matches, it does not.
func (c condition) holds(name string) bool {
	held := false
	for _, p := range c.patterns {
		bare, not := strings.CutPrefix(p, "!")
		if !matchGlob(bare, name) {
			continue
		}
		if not {
			return false
		}
		held = true
	}
	return held && !c.never
}

// matchGlob reports whether s matches a pattern; '*' stands for any bytes and '?' for one.
func matchGlob(pattern, s string) bool {
	star, mark := -1, 0
	p, i := 0, 0
	for i < len(s) {
		switch {
		case p < len(pattern) && pattern[p] == '*':
			star, mark = p, i
			p++
		case p < len(pattern) && (pattern[p] == '?' || pattern[p] == s[i]):
			p++
			i++
		case star >= 0:
			mark++
			p, i = star+1, mark
		default:
			return false
		}
	}
	return strings.Trim(pattern[p:], "*") == ""
}

// sshReader reads configuration files and the files that they include.
type sshReader struct {
	include func(pattern string) ([]Source, error)
	home    string
	lines   []directive
	notes   Mistakes
	bytes   int
}

func (r *sshReader) note(file string, line int, format string, args ...any) {
	r.notes = append(r.notes, Mistake{file, line, fmt.Sprintf(format, args...)})
}

// read reads a file that applies only where the outer conditions hold.
func (r *sshReader) read(s Source, outer []condition, depth int) {
	r.bytes += len(s.Data)
	switch {
	case r.bytes > sshConfigMax:
		r.note(s.Name, 1, "all files together have more than %d bytes: it was not read", sshConfigMax)
		return
	case depth > sshIncludeMax:
		r.note(s.Name, 1, "it is included %d files deep: it was not read", depth)
		return
	}
	when := outer
	for i, text := range strings.Split(string(s.Data), "\n") {
		d := directive{file: s.Name, line: i + 1}
		words, err := sshWords(text)
		switch {
		case err != nil:
			r.note(d.file, d.line, "%v: the line was left out", err)
			continue
		case len(words) == 0:
			continue
		}
		d.keyword, d.args, d.when = strings.ToLower(words[0]), words[1:], when
		switch {
		case len(d.args) == 0 || d.args[0] == "":
			r.note(d.file, d.line, "%s has no value: the line was left out", abbreviate(words[0]))
		case d.keyword == "host":
			when = append(slices.Clip(outer), condition{patterns: d.args})
			d.when = when
			r.lines = append(r.lines, d)
		case d.keyword == "match":
			r.note(d.file, d.line, "Match is not supported: its lines, up to the next Host, were left "+
				"out; use Host")
			when = append(slices.Clip(outer), condition{never: true})
		case d.keyword == "include":
			r.follow(d, depth)
		default:
			r.lines = append(r.lines, d)
		}
	}
}

func (r *sshReader) follow(d directive, depth int) {
	for _, pattern := range d.args {
		if rest, found := strings.CutPrefix(pattern, "~/"); found {
			pattern = path.Join(r.home, rest)
		} else if !path.IsAbs(pattern) {
			pattern = path.Join(r.home, ".ssh", pattern)
		}
		if r.include == nil {
			r.note(d.file, d.line, "Include %s was not followed", abbreviate(pattern))
			continue
		}
		files, err := r.include(pattern)
		if err != nil {
			r.note(d.file, d.line, "Include %s: %v", abbreviate(pattern), err)
		}
		for _, s := range files {
			r.read(s, d.when, depth+1)
		}
	}
}

// sshWords splits a line into its keyword and arguments. An '=' may separate them.
// Quotes protect blanks, and '#' at the start of a word begins a comment.
func sshWords(text string) ([]string, error) {
	rest := strings.Trim(text, " \t\r\f")
	if rest == "" || rest[0] == '#' {
		return nil, nil
	}
	end := strings.IndexAny(rest, " \t=")
	if end < 0 {
		return []string{rest}, nil
	}
	words := []string{strings.Trim(rest[:end], `"`)}
	rest = strings.TrimLeft(rest[end:], " \t")
	rest = strings.TrimLeft(strings.TrimPrefix(rest, "="), " \t")
	for rest != "" && rest[0] != '#' {
		word, after, err := sshWord(rest)
		if err != nil {
			return nil, err
		}
		words = append(words, word)
		rest = strings.TrimLeft(after, " \t")
	}
	return words, nil
}

// sshWord splits the first word off a text that starts with a word.
func sshWord(text string) (word, rest string, err error) {
	var b strings.Builder
	quote := byte(0)
	for i := 0; i < len(text); i++ {
		c := text[i]
		next := byte(0)
		if i+1 < len(text) {
			next = text[i+1]
		}
		switch {
		case c == '\\' && (next == '"' || next == '\'' || next == '\\' || quote == 0 && next == ' '):
			b.WriteByte(next)
			i++
		case quote == 0 && (c == ' ' || c == '\t'):
			return b.String(), text[i:], nil
		case quote == 0 && (c == '"' || c == '\''):
			quote = c
		case quote != 0 && c == quote:
			quote = 0
		default:
			b.WriteByte(c)
		}
	}
	if quote != 0 {
		return "", "", fmt.Errorf("a quote %c is not closed", quote)
	}
	return b.String(), "", nil
}
