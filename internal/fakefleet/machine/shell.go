package machine

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"regexp"
	"strings"
	"time"

	"mvdan.cc/sh/v3/expand"
	"mvdan.cc/sh/v3/interp"
	"mvdan.cc/sh/v3/syntax"
)

// A script is a text for sh: nobody knows in advance what an operator will try on pretended hosts,
// so a library interprets it. The files that it opens are on the pretended disk and the commands
// that it calls are our tools.
type script struct {
	text string
	args []string // $1, $2…
	streams
	dir string
	env expand.Environ // nil: the environment of a login
}

// streams are the input and output of a process. A nil in is the input of the whole command.
type streams struct {
	in       io.Reader
	out, err io.Writer
}

// sh runs a script to its end. Background processes of the script are noted with the process.
func (p *process) sh(ctx context.Context, s script) Status {
	// The library runs export only as the bash keyword.
	file, err := syntax.NewParser(syntax.Variant(syntax.LangBash)).
		Parse(strings.NewReader(s.text), "")
	background := false
	if err == nil {
		background, err = adapt(file)
	}
	if err != nil {
		fmt.Fprintf(s.err, "sh: %s\n", strings.ReplaceAll(err.Error(), "\n", " "))
		return Status{Code: 2}
	}
	r, err := p.newRunner(s)
	if err != nil {
		fmt.Fprintf(s.err, "sh: %s\n", err)
		return Status{Code: 2}
	}
	st := statusOf(ctx, r.Run(ctx, file))
	if background {
		p.asides.run(func() { _ = r.Run(ctx, waitForAll) })
	}
	return st
}

// waitForAll is the command wait.
var waitForAll = &syntax.CallExpr{Args: []*syntax.Word{{Parts: []syntax.WordPart{
	&syntax.Lit{Value: "wait"}}}}}

// adapt removes descriptors above 2, which the library cannot handle, and reports whether the
// script starts a background process. It refuses scripts that would make files on this machine.
func adapt(file *syntax.File) (background bool, err error) {
	syntax.Walk(file, func(n syntax.Node) bool {
		switch n := n.(type) {
		case *syntax.ProcSubst:
			err = errors.New("<( ) is beyond a pretended machine")
		case *syntax.Assign:
			quoteEscapes(n.Value)
		case *syntax.Stmt:
			background = background || n.Background
			kept := n.Redirs[:0]
			for _, r := range n.Redirs {
				if r.N == nil || r.N.Value <= "2" {
					kept = append(kept, r)
				}
			}
			n.Redirs = kept
		}
		return true
	})
	return background, err
}

// quoteEscapes replaces a backslash by quotes: the library keeps the backslash in the value of a
// variable, so that a='it'\”s' would have one too many.
func quoteEscapes(w *syntax.Word) {
	if w == nil {
		return
	}
	for i, part := range w.Parts {
		lit, ok := part.(*syntax.Lit)
		if !ok || !strings.Contains(lit.Value, `\`) {
			continue
		}
		plain := strings.ReplaceAll(lit.Value, "\\\n", "")
		w.Parts[i] = &syntax.SglQuoted{Value: backslashed.ReplaceAllString(plain, "$1")}
	}
}

var backslashed = regexp.MustCompile(`\\(.)`)

func statusOf(ctx context.Context, err error) Status {
	var code interp.ExitStatus
	switch s := diedOf(ctx); {
	case s != "":
		return Status{Signal: s}
	case err == nil:
		return Status{}
	case errors.Is(err, errWorn):
		return Status{Signal: sigKill}
	case errors.As(err, &code):
		return Status{Code: int(code)}
	}
	return Status{Code: 2}
}

func (p *process) newRunner(s script) (*interp.Runner, error) {
	if s.env == nil {
		s.env = expand.ListEnviron("HOME=/root", "PATH=/usr/sbin:/usr/bin:/sbin:/bin",
			"USER="+p.machine.config.User, "HOSTNAME="+p.machine.config.Name)
	}
	d := p.machine.disk()
	r, err := interp.New(
		interp.Env(s.env),
		interp.Dir("/"), // the library checks that it exists
		interp.Params(append([]string{"--"}, s.args...)...),
		interp.StdIO(s.in, s.out, s.err),
		interp.CallHandler(p.calls),
		interp.ExecHandlers(func(interp.ExecHandlerFunc) interp.ExecHandlerFunc { return p.exec }),
		interp.OpenHandler(func(ctx context.Context, name string, flags int, _ os.FileMode,
		) (io.ReadWriteCloser, error) {
			return d.open(absolute(interp.HandlerCtx(ctx).Dir, name), flags)
		}),
		interp.StatHandler(func(_ context.Context, name string, _ bool) (fs.FileInfo, error) {
			return d.info(path.Clean(name))
		}),
		interp.AccessHandler(func(_ context.Context, name string, mode interp.AccessMode) error {
			info, err := d.info(path.Clean(name))
			if err == nil && mode == interp.AccessExec && info.Mode()&0o111 == 0 {
				err = fs.ErrPermission
			}
			return err
		}),
		interp.ReadDirHandler2(func(_ context.Context, name string) ([]fs.DirEntry, error) {
			return d.entries(path.Clean(name)), nil
		}),
	)
	if err != nil {
		return nil, err
	}
	r.Dir = "/root"
	if s.dir != "" {
		r.Dir = s.dir
	}
	return r, nil
}

var errWorn = errors.New("more commands than a pretended machine runs")

// calls inspects each call before it is made. It bounds their number, and replaces those that the
// library would make on the real machine or not at all.
func (p *process) calls(_ context.Context, args []string) ([]string, error) {
	if p.steps.Add(1) > stepsMax {
		return nil, errWorn
	}
	switch {
	case args[0] == "command" && len(args) > 2 && args[1] == "-v":
		return append([]string{"which"}, args[2:]...), nil
	case args[0] == "umask", args[0] == "trap" && args[len(args)-1] != "EXIT":
		return []string{":"}, nil
	case args[0] == "[" || args[0] == "test":
		for i, a := range args {
			if a == "-O" { // all files there belong to the user
				args[i] = "-e"
			}
		}
	}
	return args, nil
}

// exec runs one of our tools.
func (p *process) exec(ctx context.Context, args []string) error {
	hc := interp.HandlerCtx(ctx)
	c := &call{process: p, ctx: ctx, name: args[0], args: args[1:], dir: hc.Dir, env: hc.Env,
		streams: streams{hc.Stdin, hc.Stdout, hc.Stderr}}
	if st := c.invoke(args); st != (Status{}) {
		return interp.ExitStatus(st.seen())
	}
	return nil
}

// call is one run of a tool.
type call struct {
	*process
	streams
	ctx  context.Context
	name string
	args []string
	dir  string
	env  expand.Environ
}

// invoke runs a tool by its name, or its path.
func (c *call) invoke(words []string) Status {
	t, ok := c.machine.config.Model.tools[toolName(words[0])]
	if !ok {
		fmt.Fprintf(c.err, "sh: %s: not found\n", words[0])
		return Status{Code: 127}
	}
	one := *c
	one.name, one.args = words[0], words[1:]
	if s, ok := c.in.(*os.File); ok && s != nil { // a pipe within the script
		defer context.AfterFunc(c.ctx, func() { _ = s.SetReadDeadline(time.Now()) })()
	} else {
		one.in = reader{c.ctx, c.cmd.In}
	}
	st := t(&one)
	if s := diedOf(c.ctx); s != "" {
		return Status{Signal: s}
	}
	return st
}

// toolName also accepts a tool by its path.
func toolName(word string) string {
	switch dir, name := path.Split(word); dir {
	case "/bin/", "/sbin/", "/usr/bin/", "/usr/sbin/":
		return name
	}
	return word
}

func (c *call) say(format string, args ...any) Status {
	fmt.Fprintf(c.out, format, args...)
	return Status{}
}

// fail prints an error to stderr.
func (c *call) fail(code int, format string, args ...any) Status {
	fmt.Fprintf(c.err, "%s: %s\n", c.name, fmt.Sprintf(format, args...))
	return Status{Code: code}
}

// path makes a name absolute.
func (c *call) path(name string) string { return absolute(c.dir, name) }

func absolute(dir, name string) string {
	if !path.IsAbs(name) {
		name = path.Join(dir, name)
	}
	return path.Clean(name)
}

// reader reads from a source until its context ends.
type reader struct {
	ctx context.Context
	src Source
}

func (r reader) Read(p []byte) (int, error) {
	if r.ctx.Err() != nil {
		return 0, ErrKilled
	}
	return r.src.Read(r.ctx.Done(), p)
}

// writer writes to a sink until its context ends. Without a reader, the process dies of it.
type writer struct {
	ctx context.Context
	p   *process
	to  Sink
}

func (w writer) Write(b []byte) (int, error) {
	if w.ctx.Err() != nil {
		return 0, ErrKilled
	}
	err := w.to.Write(w.ctx.Done(), b)
	if err == ErrNoReader {
		w.p.die(signal(sigPipe))
	}
	if err != nil {
		return 0, err
	}
	return len(b), nil
}
