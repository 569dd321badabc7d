package machine

import (
	"bytes"
	"fmt"
	"io"
	"maps"
	"math"
	"strconv"
	"strings"
)

// allTools is what every machine can run.
func allTools() map[string]tool {
	tools := map[string]tool{}
	for name, run := range builtins() {
		tools[name] = tool{run, true}
	}
	for _, set := range []map[string]func(*call) Status{flowTools(), systemTools(), fileTools()} {
		for name, run := range set {
			tools[name] = tool{run, false}
		}
	}
	return tools
}

func builtins() map[string]func(*call) Status {
	test := func(c *call) Status { return Status{Code: runTest(c)} }
	return map[string]func(*call) Status{
		":":        func(*call) Status { return Status{} },
		"true":     func(*call) Status { return Status{} },
		"false":    func(*call) Status { return Status{Code: 1} },
		"[":        test,
		"break":    runJump(jumpBreak),
		"cd":       runCd,
		"command":  runCommand,
		"continue": runJump(jumpContinue),
		"echo":     runEcho,
		"eval":     runEval,
		"exec":     runExec,
		"exit":     runExit,
		"export":   runExport,
		"kill":     runKill,
		"printf":   runPrintf,
		"read":     runRead,
		"return":   runJump(jumpReturn),
		"pwd":      func(c *call) Status { return c.say("%s\n", c.sh.dir) },
		"set":      runSet,
		"test":     test,
		"trap":     runTrap,
		"umask":    func(*call) Status { return Status{} },
	}
}

func flowTools() map[string]func(*call) Status {
	return map[string]func(*call) Status{
		"env":     runEnv,
		"flood":   runFlood,
		"nohup":   func(c *call) Status { return c.sh.fork().started(c.args) },
		"setsid":  runSetsid,
		"ps":      runPs,
		"seq":     runSeq,
		"sh":      runSh,
		"sleep":   runSleep,
		"sync":    func(*call) Status { return Status{} },
		"timeout": runTimeout,
		"yes":     runYes,
	}
}

func runCd(c *call) Status {
	dir := c.sh.vars["HOME"]
	if len(c.args) > 0 {
		dir = c.args[0]
	}
	if n, ok := c.sh.machine.disk().stat(c.path(dir)); !ok || !n.dir {
		return c.fail(2, "can't cd to %s", dir)
	}
	c.sh.dir = c.path(dir)
	return Status{}
}

func runEcho(c *call) Status {
	words, end := c.args, "\n"
	if len(words) > 0 && words[0] == "-n" {
		words, end = words[1:], ""
	}
	io.WriteString(c.out, escapes(strings.Join(words, " "))+end)
	return Status{}
}

// runExec replaces the shell, so a signal is seen as such and not as 128 and more.
// Without a command its redirections stay.
func runExec(c *call) Status {
	if len(c.args) == 0 {
		c.sh.keep = true
		return Status{}
	}
	st := c.pass(c.args)
	c.sh.end = &st
	return st
}

func runExit(c *call) Status {
	st := Status{Code: c.sh.last}
	if len(c.args) > 0 {
		n, err := strconv.Atoi(c.args[0])
		if err != nil || n < 0 {
			st = c.fail(2, "Illegal number: %s", c.args[0])
		} else {
			st = Status{Code: n & 255}
		}
	}
	c.sh.end = &st
	return st
}

// runJump leaves a function or a loop; only the innermost one.
func runJump(kind jump) func(*call) Status {
	return func(c *call) Status {
		st := runExit(c)
		if c.sh.end.Signal == "" {
			c.sh.jump = kind
		}
		return st
	}
}

func runEval(c *call) Status {
	c.sh.script(strings.Join(c.args, " "))
	return Status{Code: c.sh.last}
}

// runCommand knows command -v NAME.
func runCommand(c *call) Status {
	if len(c.args) != 2 || c.args[0] != "-v" {
		return c.fail(2, "want -v and a name")
	}
	name := c.args[1]
	_, function := c.sh.functions[name]
	if _, ok := c.sh.machine.config.Model.tools[toolName(name)]; !ok && !function {
		return Status{Code: 127}
	}
	return c.say("%s\n", name)
}

// runSetsid runs a command out of the reach of signals for the group. What is told to do so
// in the background is left alone, also by whoever waits for the end of the exec.
func runSetsid(c *call) Status {
	if c.sh.aside && len(c.args) > 0 {
		c.sh.machine.daemon(c.sh, c.args)
		return Status{}
	}
	child := c.sh.fork()
	child.group = c.sh.family.root
	return child.started(c.args)
}

// started runs a command in this shell, which is a fork for it.
func (s *shell) started(words []string) Status {
	if len(words) == 0 {
		return Status{Code: 125}
	}
	return s.invoke(words)
}

func runExport(c *call) Status {
	for _, a := range c.args {
		if name, value, ok := strings.Cut(a, "="); ok {
			c.sh.vars[name] = value
		}
	}
	return Status{}
}

// runSet knows -e and -C; other options change nothing that could be seen here.
func runSet(c *call) Status {
	for i, a := range c.args {
		switch {
		case a == "--":
			c.sh.args = append([]string{c.sh.args[0]}, c.args[i+1:]...)
			return Status{}
		case strings.HasPrefix(a, "-") || strings.HasPrefix(a, "+"):
			c.sh.change(a)
		}
	}
	return Status{}
}

// change takes options such as -eu and +e.
func (o *options) change(letters string) {
	on := letters[0] == '-'
	if strings.Contains(letters, "e") {
		o.strict = on
	}
	if strings.Contains(letters, "C") {
		o.noclobber = on
	}
}

// runTrap knows TERM and EXIT; other signals never come.
func runTrap(c *call) Status {
	if len(c.args) < 2 {
		return c.fail(2, "want a command and a signal")
	}
	traps := maps.Clone(c.sh.traps)
	if traps == nil {
		traps = map[string]string{}
	}
	for _, sig := range c.args[1:] {
		switch name := strings.TrimPrefix(sig, "SIG"); name {
		case "TERM", "15":
			c.sh.deaf = c.args[0] == ""
			traps["TERM"] = strings.TrimPrefix(c.args[0], "-")
		case "EXIT", "0":
			traps["EXIT"] = strings.TrimPrefix(c.args[0], "-")
		}
	}
	c.sh.traps = traps
	return Status{}
}

func runEnv(c *call) Status {
	child := c.sh.fork()
	words := c.args
	for ; len(words) > 0; words = words[1:] {
		name, value, ok := strings.Cut(words[0], "=")
		if !ok {
			return child.invoke(words)
		}
		child.vars[name] = value
	}
	return Status{}
}

func runSh(c *call) Status {
	child := c.sh.fork()
	table := &c.sh.machine.processes
	child.pid, child.parent = table.number(), c.sh.self
	child.self, child.functions = child.pid, nil
	table.add(child.pid, process{group: child.group.id, family: c.sh.family})
	defer table.drop(child.pid)
	words, fromWord, fromStdin := c.args, false, false
	for len(words) > 0 && strings.HasPrefix(words[0], "-") && words[0] != "-" {
		fromWord = fromWord || strings.Contains(words[0], "c")
		fromStdin = fromStdin || strings.Contains(words[0], "s")
		child.change(words[0])
		words = words[1:]
	}
	child.args = []string{"sh"}
	switch {
	case fromWord && len(words) == 0:
		return c.fail(2, "-c requires an argument")
	case fromWord:
		if len(words) > 1 {
			child.args = words[1:]
		}
		return child.run(words[0])
	case fromStdin || len(words) == 0:
		child.args = append(child.args, words...)
		script, err := io.ReadAll(io.LimitReader(c.in, textMax+1))
		if err == nil && len(script) > textMax {
			err = fmt.Errorf("script has more than %d bytes", textMax)
		}
		if err != nil {
			return c.fail(2, "%s", err)
		}
		return child.run(string(script))
	}
	script, err := c.sh.machine.disk().read(c.path(words[0]))
	if err != nil {
		return c.fail(2, "cannot open %s: %s", words[0], err)
	}
	child.args = words
	return child.run(string(script))
}

func runSeq(c *call) Status {
	first, last := 1, 0
	var err error
	if len(c.args) == 2 {
		first, err = strconv.Atoi(c.args[0])
	}
	if err == nil && len(c.args) > 0 {
		last, err = strconv.Atoi(c.args[len(c.args)-1])
	}
	if err != nil || len(c.args) < 1 || len(c.args) > 2 {
		return c.fail(1, "want one or two whole numbers")
	}
	for i := first; i <= last; i++ {
		if _, err := fmt.Fprintln(c.out, i); err != nil {
			break
		}
	}
	return Status{}
}

func runYes(c *call) Status {
	word := "y"
	if len(c.args) > 0 {
		word = strings.Join(c.args, " ")
	}
	return c.repeat(word+"\n", math.MaxInt64)
}

// runFlood prints so many bytes of plain lines.
func runFlood(c *call) Status {
	if len(c.args) != 1 {
		return c.fail(1, "want a number of bytes")
	}
	n, err := strconv.ParseInt(c.args[0], 10, 64)
	if err != nil || n < 0 {
		return c.fail(1, "invalid number '%s'", c.args[0])
	}
	return c.repeat(floodLine, n)
}

// floodLine has 64 bytes.
const floodLine = "all work and no play makes a firewall a very very dull machine.\n"

// repeat prints a line over and over, n bytes in all.
func (c *call) repeat(line string, n int64) Status {
	block := bytes.Repeat([]byte(line), chunkMax/len(line)+1)
	for n > 0 {
		part := block[:min(n, int64(len(block)))]
		if c.sh.family.worn() {
			return Status{Signal: "KILL"}
		}
		if _, err := c.out.Write(part); err != nil {
			return Status{Code: 1}
		}
		n -= int64(len(part))
	}
	return Status{}
}
