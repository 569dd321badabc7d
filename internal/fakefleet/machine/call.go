package machine

import (
	"fmt"
	"io"
	"path"

	"mvdan.cc/sh/v3/syntax"
)

func (s *shell) call(c *syntax.CallExpr) {
	words, err := s.fields(c.Args)
	if err != nil {
		s.refuse(err)
		return
	}
	if len(words) == 0 {
		s.assign(c.Assigns)
		return
	}
	target := s
	if len(c.Assigns) > 0 {
		target = s.fork() // assignments before a command are for it alone
		target.assign(c.Assigns)
	}
	if s.over() {
		return
	}
	switch body, ok := s.functions[words[0]]; {
	case target.end != nil:
	case ok:
		s.last = target.function(body, words).seen()
	default:
		s.last = target.invoke(words).seen()
	}
	if s.end == nil {
		s.end = target.end
	}
}

// assign sets variables. Its status is that of the last substitution, if any.
func (s *shell) assign(assigns []*syntax.Assign) {
	before := s.substitutions
	for _, a := range assigns {
		value, err := s.text(a.Value)
		if err != nil {
			s.refuse(err)
			return
		}
		s.vars[a.Name.Value] = value
	}
	if s.substitutions == before {
		s.last = 0
	}
}

// invoke runs one command and returns how it ended. What kills it while it
// belongs to the group of the shell kills the shell as well.
func (s *shell) invoke(words []string) Status {
	t, ok := s.machine.config.Model.tools[toolName(words[0])]
	if !ok {
		s.complain("%s: not found", words[0])
		return Status{Code: 127}
	}
	c := &call{sh: s, name: words[0], args: words[1:]}
	c.in, c.out, c.err = input{c}, output{c, s.out}, output{c, s.err}
	st := t.run(c)
	switch c.broken {
	case ErrKilled:
		st = *s.dead()
	case ErrNoReader:
		st = Status{Signal: "PIPE"}
		if t.builtin {
			s.end = &st
		}
	}
	return st
}

// toolName accepts a tool by its path, too.
func toolName(word string) string {
	switch dir, name := path.Split(word); dir {
	case "/bin/", "/sbin/", "/usr/bin/", "/usr/sbin/":
		return name
	}
	return word
}

// call is one run of a tool.
type call struct {
	sh       *shell
	name     string
	args     []string
	in       io.Reader
	out, err io.Writer
	broken   error // why reading, writing or waiting ended: killed, or nobody reads
}

func (c *call) path(name string) string { return c.sh.path(name) }

func (c *call) say(format string, args ...any) Status {
	fmt.Fprintf(c.out, format, args...)
	return Status{}
}

// pass runs another command instead, as a child.
func (c *call) pass(words []string) Status {
	if len(words) == 0 {
		return c.fail(125, "missing operand")
	}
	return c.sh.fork().invoke(words)
}

// tool is a command that hosts have. A builtin runs inside the shell.
type tool struct {
	run     func(c *call) Status
	builtin bool
}

type input struct{ c *call }

// Read and Write are where a tool can be killed, also one that never waits.
func (i input) Read(p []byte) (int, error) {
	if i.c.killed() {
		return 0, ErrKilled
	}
	n, err := i.c.sh.in.Read(i.c.sh.done(), p)
	return n, i.c.note(err)
}

type output struct {
	c  *call
	to Sink
}

func (o output) Write(p []byte) (int, error) {
	if o.c.killed() {
		return 0, ErrKilled
	}
	if err := o.c.note(o.to.Write(o.c.sh.done(), p)); err != nil {
		return 0, err
	}
	return len(p), nil
}

func (c *call) killed() bool {
	select {
	case <-c.sh.done():
		c.broken = ErrKilled
	default:
	}
	return c.broken == ErrKilled
}

func (c *call) note(err error) error {
	if err == ErrKilled || err == ErrNoReader {
		c.broken = err
	}
	return err
}

// fail says on stderr what went wrong.
func (c *call) fail(code int, format string, args ...any) Status {
	fmt.Fprintf(c.err, "%s: %s\n", c.name, fmt.Sprintf(format, args...))
	return Status{Code: code}
}

// path makes a name absolute.
func (s *shell) path(name string) string {
	if !path.IsAbs(name) {
		name = path.Join(s.dir, name)
	}
	return path.Clean(name)
}
