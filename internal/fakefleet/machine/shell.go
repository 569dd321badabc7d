package machine

import (
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// shell runs commands. It is of one goroutine; a subshell, and what runs aside, is
// a fork of it.
type shell struct {
	machine *Machine
	family  *family
	group   group
	streams
	vars map[string]string
	numbers
	calls
	dir string

	last int     // $?
	end  *Status // set when the shell is over
	signalled
	options

	tested        int  // so many conditions around: a failure does not end a strict shell
	substitutions int  // so many so far: $(…) decides the status of an assignment
	keep          bool // exec changed where the shell itself reads and writes
}

// streams are where a process reads and writes.
type streams struct {
	in       Source
	out, err Sink
}

// numbers are those of processes.
type numbers struct {
	pid, parent int // $$, $PPID
	self        int // the parent of what is started here: the shell, or a timeout

	aside bool // it is the background of another shell
}

// calls are what functions make of a shell.
type calls struct {
	args      []string // $0, $1…
	functions map[string]*syntax.Stmt
	depth     int // functions that called each other
	jump      jump
}

// jump is what makes a shell leave a function or a loop: end is set, too, but not for good.
type jump string

const (
	jumpReturn   jump = "return"
	jumpBreak    jump = "break"
	jumpContinue jump = "continue"
)

// landed ends a jump of one of some kinds; false: there was none.
func (s *shell) landed(kinds ...jump) bool {
	if s.jump == "" || !slices.Contains(kinds, s.jump) {
		return false
	}
	s.last, s.end, s.jump = s.end.seen(), nil, ""
	return true
}

// signalled is what the shell does about signals.
type signalled struct {
	deaf  bool // TERM is ignored
	traps map[string]string
}

// options are what set changes.
type options struct {
	strict    bool // -e: a failure ends the shell
	noclobber bool // -C: > does not overwrite
}

// textMax bounds a script, a variable, the words of a command and what a
// substitution gives, in bytes.
const textMax = 256 << 10

func (m *Machine) newShell(g group, fam *family) *shell {
	pid := m.processes.number()
	return &shell{
		machine: m, family: fam, group: g,
		numbers: numbers{pid: pid, parent: 1, self: pid},
		streams: streams{nowhere{}, nowhere{}, nowhere{}},
		vars: map[string]string{"HOME": "/root", "PATH": "/usr/sbin:/usr/bin:/sbin:/bin",
			"USER": m.config.User, "HOSTNAME": m.config.Name},
		calls: calls{args: []string{"sh"}},
		dir:   "/root",
	}
}

// run runs a script and returns how the shell ended.
func (s *shell) run(script string) Status {
	s.script(script)
	st := s.status()
	if last := s.traps["EXIT"]; last != "" && st.Signal == "" {
		s.traps, s.end, s.last = nil, nil, st.Code
		s.script(last)
		if s.end == nil {
			s.end = &st
		}
	}
	return s.status()
}

func (s *shell) script(text string) {
	file, err := syntax.NewParser(syntax.Variant(syntax.LangPOSIX)).
		Parse(strings.NewReader(text), "")
	if err != nil {
		s.refuse(err)
		return
	}
	s.list(file.Stmts)
}

func (s *shell) status() Status {
	if s.over() {
		return *s.end
	}
	return Status{Code: s.last}
}

// fork is a child that has what its parent has, and changes only its own.
func (s *shell) fork() *shell {
	child := *s
	child.vars = maps.Clone(s.vars)
	child.end, child.traps = nil, nil
	return &child
}

// done is closed when a signal comes that the shell does not ignore.
func (s *shell) done() <-chan struct{} {
	if s.deaf {
		return s.group.kill.Done()
	}
	return s.group.term.Done()
}

// over says that the shell has to stop, and finds out if a signal wants it to.
func (s *shell) over() bool {
	if s.end != nil {
		return true
	}
	select {
	case <-s.done():
	default:
		return false
	}
	trap := s.traps["TERM"]
	if trap == "" || s.group.kill.Err() != nil {
		s.end = s.dead()
		return true
	}
	// A signal comes once: what the trap runs is not hit by it again.
	s.deaf = true
	s.script(trap)
	return s.end != nil
}

func (s *shell) dead() *Status {
	if s.group.kill.Err() != nil {
		return &Status{Signal: "KILL"}
	}
	return &Status{Signal: "TERM"}
}

func (s *shell) complain(format string, args ...any) {
	text := fmt.Sprintf(format, args...)
	_ = s.err.Write(s.done(), fmt.Appendf(nil, "%s: %s\n", path.Base(s.args[0]), text))
}

func (s *shell) list(stmts []*syntax.Stmt) {
	for _, st := range stmts {
		if s.over() {
			return
		}
		s.stmt(st)
	}
}

func (s *shell) stmt(st *syntax.Stmt) {
	if s.family.worn() {
		s.end = &Status{Signal: "KILL"}
		return
	}
	if st.Background {
		child := s.fork()
		child.in, child.aside = nowhere{}, true
		front := *st
		front.Background = false
		s.family.aside(func() { child.stmt(&front) })
		s.last = 0
		return
	}
	before := s.streams
	if err := s.redirect(st.Redirs); err != nil {
		s.complain("%s", err)
		s.last = 2
	} else {
		s.command(st.Cmd)
	}
	if len(st.Redirs) > 0 && !s.keep {
		s.streams = before
	}
	s.keep = false

	if st.Negated {
		s.last = btoi(s.last == 0)
	}
	if s.strict && s.last != 0 && s.tested == 0 && !st.Negated && !isChain(st.Cmd) && s.end == nil {
		s.end = &Status{Code: s.last}
	}
}

// isChain says that a failure of the parts was asked for; the last one of them
// should end a strict shell, but that is more than a pretended machine needs.
func isChain(c syntax.Command) bool {
	b, ok := c.(*syntax.BinaryCmd)
	return ok && b.Op != syntax.Pipe
}

func btoi(b bool) int {
	if b {
		return 1
	}
	return 0
}

func (s *shell) command(c syntax.Command) {
	switch c := c.(type) {
	case nil:
		s.last = 0
	case *syntax.CallExpr:
		s.call(c)
	case *syntax.BinaryCmd:
		s.binary(c)
	case *syntax.Block:
		s.list(c.Stmts)
	case *syntax.Subshell:
		child := s.fork()
		child.list(c.Stmts)
		s.last = child.status().seen()
	case *syntax.IfClause:
		s.ifClause(c)
	case *syntax.WhileClause:
		s.whileClause(c)
	case *syntax.ForClause:
		s.forClause(c)
	case *syntax.CaseClause:
		s.caseClause(c)
	case *syntax.FuncDecl:
		s.define(c)
	default:
		s.beyond(c)
	}
}

// beyond ends the shell: going on without a part of a script would be a lie.
func (s *shell) beyond(n syntax.Node) {
	s.refuse(tooFar(n))
}

func (s *shell) binary(c *syntax.BinaryCmd) {
	if c.Op == syntax.Pipe {
		s.pipe(c)
		return
	}
	s.tested++
	s.stmt(c.X)
	s.tested--
	if !s.over() && (s.last == 0) == (c.Op == syntax.AndStmt) {
		s.stmt(c.Y)
	}
}

func (s *shell) pipe(c *syntax.BinaryCmd) {
	p := NewPipe()
	left, right := s.fork(), s.fork()
	left.out, right.in = p, p

	written := make(chan struct{})
	go func() {
		defer close(written)
		left.stmt(c.X)
		p.CloseWrite()
	}()
	right.stmt(c.Y)
	p.CloseRead()
	<-written
	s.last = right.status().seen()
}

// holds runs a condition.
func (s *shell) holds(cond []*syntax.Stmt) bool {
	s.tested++
	s.list(cond)
	s.tested--
	return s.last == 0
}

func (s *shell) ifClause(c *syntax.IfClause) {
	for ; c != nil; c = c.Else {
		if len(c.Cond) == 0 || s.holds(c.Cond) { // no condition: else
			s.last = 0
			s.list(c.Then)
			return
		}
	}
	s.last = 0
}

func (s *shell) whileClause(c *syntax.WhileClause) {
	last := 0
	for s.holds(c.Cond) != c.Until && !s.over() {
		s.list(c.Do)
		last = s.last
		if s.landed(jumpBreak) {
			break
		}
		s.landed(jumpContinue)
	}
	s.last = last
}

func (s *shell) forClause(c *syntax.ForClause) {
	words, ok := c.Loop.(*syntax.WordIter)
	if !ok {
		s.beyond(c)
		return
	}
	items := s.args[1:]
	if words.InPos.IsValid() {
		var err error
		if items, err = s.fields(words.Items); err != nil {
			s.refuse(err)
			return
		}
	}
	s.last = 0
	for _, item := range items {
		if s.over() {
			return
		}
		s.vars[words.Name.Value] = item
		s.list(c.Do)
		if s.landed(jumpBreak) {
			return
		}
		s.landed(jumpContinue)
	}
}

// refuse ends the shell for what it cannot understand.
func (s *shell) refuse(err error) {
	s.complain("%s", strings.ReplaceAll(err.Error(), "\n", " "))
	s.end = &Status{Code: 2}
}
