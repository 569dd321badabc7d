package machine

import (
	"context"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"time"

	"mvdan.cc/sh/v3/expand"
	"mvdan.cc/sh/v3/syntax"
)

// This file recognizes the lines that package remote sends. A machine answers them itself, as their
// scripts would; the text of the command remains.

// The marks by which lines and scripts of a client are recognized.
const (
	recordMark = ": muster-record"
	markerMark = ": muster-marker"
	stopMark   = ": muster-stop"
	uploadMark = ": muster-upload"
)

// Looks reports whether a line stops a command or asks about one. A line that begins a recorded
// step looks the same, until Command.Began is called.
func Looks(line string) bool {
	return strings.Contains(line, recordMark) || strings.Contains(line, markerMark) ||
		strings.Contains(line, "muster-stop")
}

// login runs a line as the login shell.
func (p *process) login(line string) Status {
	out, err := writer{p.ctx, p, p.cmd.Out}, writer{p.ctx, p, p.cmd.Err}
	if p.cmd.Flood > 0 {
		c := call{process: p, ctx: p.ctx, streams: streams{nil, out, err}}
		c.repeat(floodLine, p.cmd.Flood)
	}
	if strings.Contains(line, recordMark) {
		return p.recorded()
	}
	words := plainWords(line)
	if len(words) > 0 && words[0] == "exec" {
		words = words[1:]
	}
	if len(words) == 0 || words[0] != "timeout" {
		return p.sh(p.ctx, script{text: line, streams: streams{nil, out, err}})
	}
	b, rest, wrong := parseBound(words[1:])
	if wrong != nil {
		fmt.Fprintf(err, "timeout: %s\n", wrong)
		return Status{Code: 125}
	}
	return p.bounded(p.ctx, b, func(ctx context.Context) Status {
		out, err := writer{ctx, p, p.cmd.Out}, writer{ctx, p, p.cmd.Err}
		if t, ok := marked(rest); ok {
			fmt.Fprintf(out, "%s %d %d\n", t.nonce, p.pid+1, p.pid)
			return p.command(ctx, t.text, nil, streams{nil, out, out})
		}
		c := call{process: p, ctx: ctx, dir: "/root", streams: streams{nil, out, err}}
		return c.invoke(rest)
	})
}

// plainWords splits a line that is one command without expansions, else it returns nil.
func plainWords(line string) []string {
	file, err := syntax.NewParser(syntax.Variant(syntax.LangPOSIX)).
		Parse(strings.NewReader(line), "")
	if err != nil || len(file.Stmts) != 1 || len(file.Stmts[0].Redirs) > 0 ||
		file.Stmts[0].Background || file.Stmts[0].Negated {
		return nil
	}
	c, ok := file.Stmts[0].Cmd.(*syntax.CallExpr)
	if !ok || len(c.Assigns) > 0 {
		return nil
	}
	for _, w := range c.Args {
		for _, part := range w.Parts {
			switch part.(type) {
			case *syntax.Lit, *syntax.SglQuoted:
			default:
				return nil
			}
		}
	}
	words, err := expand.Fields(&expand.Config{}, c.Args...)
	if err != nil {
		return nil
	}
	return words
}

// markedText is a command that prints its process number before it begins.
type markedText struct{ nonce, text string }

var markedScript = regexp.MustCompile(`(?s)^exec 2>&1; echo (\S+(?: mark)?) \$\$ \$PPID; (.*)$`)

// unpacking is the text of a command whose real text follows, for printf %b.
const unpacking = `exec sh -c "$(printf %b "$1")"`

// marked parses sh -c SCRIPT [sh PACKED].
func marked(words []string) (markedText, bool) {
	if len(words) < 3 || words[0] != "sh" || words[1] != "-c" {
		return markedText{}, false
	}
	m := markedScript.FindStringSubmatch(words[2])
	if m == nil {
		return markedText{}, false
	}
	t := markedText{m[1], m[2]}
	if t.text == unpacking && len(words) == 5 {
		t.text = unescape(words[4])
	}
	return t, true
}

var escaped = regexp.MustCompile(`\\0[0-7]{3}`)

// unescape reverses the escapes of a client for printf %b.
func unescape(text string) string {
	return escaped.ReplaceAllStringFunc(text, func(e string) string {
		n, _ := strconv.ParseUint(e[2:], 8, 8) // three octal digits
		return string([]byte{byte(n)})
	})
}

// command runs the text of a command: one that a machine answers itself, or a script.
func (p *process) command(ctx context.Context, text string, args []string, s streams) Status {
	switch {
	case strings.Contains(text, stopMark):
		return p.stop(ctx, text, s)
	case strings.Contains(text, uploadMark):
		return p.upload(ctx, text, args, s)
	case strings.Contains(text, markerMark):
		return p.marker(s)
	}
	return p.sh(ctx, script{text: text, args: args, streams: s})
}

// The time for a process to end after TERM, and then after KILL, before its stopper looks again.
const (
	softPatience = 2050 * time.Millisecond
	hardPatience = 950 * time.Millisecond
)

// end ends a process, with TERM first. It reports whether nothing of it is left.
func (p *process) end() bool {
	p.kill(sigTerm)
	if p.gone(softPatience) {
		return true
	}
	p.kill(sigKill)
	return p.gone(hardPatience)
}

var stopWords = regexp.MustCompile(`^set -- \d+ (\d+) (\S+)\n`)

// stop answers the script that stops a command by its mark.
func (p *process) stop(_ context.Context, text string, s streams) Status {
	m := stopWords.FindStringSubmatch(text)
	if m == nil {
		return Status{Code: 2}
	}
	pid, _ := strconv.Atoi(m[1]) // digits
	other := p.machine.processes.find(pid)
	switch {
	case other == nil:
		fmt.Fprintln(s.out, "ended")
	case !other.end():
		fmt.Fprintf(s.out, "left %d\n", pid)
	default:
		if litter := strings.Trim(m[2], "'"); litter != "" {
			_ = p.machine.disk().remove(litter, false) // mostly there is none
		}
		fmt.Fprintln(s.out, "gone")
	}
	return Status{}
}
