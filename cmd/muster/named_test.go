package main

import (
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"muster/cli"
	"muster/scripts"
	"muster/testkit/apitest"
)

// words splits a line as a shell does, up to the end of the command: a comment, a pipe, a
// redirection, another command.
func words(line string) (found []string) {
	var word strings.Builder
	quote, in := rune(0), false
	end := func() {
		if in {
			found = append(found, word.String())
		}
		word.Reset()
		in = false
	}
	for _, r := range line {
		switch {
		case quote != 0 && r == quote:
			quote = 0
		case quote == 0 && (r == '\'' || r == '"'):
			quote, in = r, true
		case quote == 0 && (r == ' ' || r == '\t'):
			end()
		case quote == 0 && (strings.ContainsRune("|<>&;)", r) || r == '#' && !in):
			end()
			return found
		default:
			word.WriteRune(r)
			in = true
		}
	}
	end()
	return found
}

// named returns the mistake in a command that some text shows. A whole command has its arguments,
// too; otherwise only flags and names of commands are checked. N is any number.
func named(line string, whole bool) error {
	args := words(line)[1:]
	for i, a := range args {
		if a == "N" {
			args[i] = "1"
		}
	}
	root := newRoot()
	root.InitDefaultHelpCmd()
	root.InitDefaultCompletionCmd()
	c, rest, err := root.Find(args)
	if err != nil {
		return err
	}
	c.InitDefaultHelpFlag()
	err = c.ParseFlags(rest)
	if err != nil && (whole || !strings.HasPrefix(err.Error(), "flag needs an argument")) {
		return err
	}
	rest = c.Flags().Args()
	sub := regexp.MustCompile(`^[a-z]+$`)
	takes := c.Runnable() && c.ValidateArgs(rest) == nil // as muster jobs TASK, beside muster jobs ls
	if c.HasSubCommands() && !takes && c.Name() != "hosts" && len(rest) > 0 && sub.MatchString(rest[0]) {
		return fmt.Errorf("%s has no command %s", c.CommandPath(), rest[0])
	}
	if !whole {
		return nil
	}
	return errors.Join(c.ValidateArgs(rest), builtin(c, rest))
}

// builtin returns the mistake in the arguments of a built-in runbook.
func builtin(c *cobra.Command, args []string) error {
	if c.Name() != "run" && c.Name() != "plan" || len(args) == 0 {
		return nil
	}
	book, ok := scripts.Builtin(args[0])
	if !ok {
		return nil // a runbook of a user
	}
	var err error
	given := map[string]bool{}
	for _, flag := range []string{"arg", "arg-file"} {
		list, _ := c.Flags().GetStringArray(flag)
		for _, one := range list {
			name, _, _ := strings.Cut(one, "=")
			given[name] = true
		}
	}
	for _, a := range book.Arguments {
		if a.Required && !given[a.Name] {
			err = errors.Join(err, fmt.Errorf("runbook %s needs --arg %s", args[0], a.Name))
		}
		delete(given, a.Name)
	}
	for name := range given {
		err = errors.Join(err, fmt.Errorf("runbook %s has no argument %s", args[0], name))
	}
	return err
}

var (
	inCode    = regexp.MustCompile("`(muster [^`]+)`")
	codeLine  = regexp.MustCompile(`^(?:    |\t)?(?:\$ )?(?:bin/)?(muster [^ ].*)$`)
	codeFence = regexp.MustCompile("^(?:```|~~~)")
)

// shown calls each for the commands on a page, with their lines: commands in a block are whole.
func shown(page string, each func(line int, command string, whole bool)) {
	fenced := false
	for i, line := range strings.Split(strings.ReplaceAll(page, "\\\n", ""), "\n") {
		if codeFence.MatchString(line) {
			fenced = !fenced
		}
		if m := codeLine.FindStringSubmatch(line); m != nil && (fenced || line[0] == ' ') {
			each(i+1, m[1], true)
			continue
		}
		for _, m := range inCode.FindAllStringSubmatch(line, -1) {
			each(i+1, m[1], false)
		}
	}
}

// TestEveryCommandThatIsNamedIsThere compares the commands that pages, help and messages tell
// people to type with the real ones.
func TestEveryCommandThatIsNamedIsThere(t *testing.T) {
	t.Parallel()
	seen := 0
	check := func(where, command string, whole bool) {
		seen++
		if err := named(command, whole); err != nil {
			t.Errorf("%s: %s: %v", where, command, err)
		}
	}
	err := filepath.WalkDir("../..", func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && strings.HasPrefix(d.Name(), ".") && d.Name() != "..":
			return fs.SkipDir
		case d.IsDir() || strings.HasSuffix(path, "_test.go") || d.Name() == "CHANGELOG.md":
		case filepath.Ext(path) == ".go":
			return messages(path, check)
		case filepath.Ext(path) == ".md":
			text, err := os.ReadFile(path)
			shown(string(text), func(line int, command string, whole bool) {
				check(fmt.Sprintf("%s:%d", path, line), command, whole)
			})
			return err
		}
		return nil
	})
	var walk func(c *cobra.Command)
	walk = func(c *cobra.Command) {
		for line := range strings.Lines(strings.ReplaceAll(c.Example, "\\\n", "")) {
			if line = strings.TrimSpace(line); strings.HasPrefix(line, "muster ") {
				check(c.CommandPath()+" --help", line, true)
			}
		}
		for _, sub := range c.Commands() {
			walk(sub)
		}
	}
	walk(newRoot())
	if err != nil || seen < 400 {
		t.Errorf("%d commands seen, %v, want more than 400: does the test still find them?", seen, err)
	}
}

// messages finds the commands in the strings of a file. It skips half a command whose string
// continues on the next line.
func messages(path string, check func(where, command string, whole bool)) error {
	set := token.NewFileSet()
	f, err := parser.ParseFile(set, path, nil, 0)
	if err != nil {
		return err
	}
	for n := range ast.Preorder(f) {
		lit, ok := n.(*ast.BasicLit)
		if !ok || lit.Kind != token.STRING || lit.Value[0] != '"' {
			continue
		}
		text, err := strconv.Unquote(lit.Value)
		if err != nil {
			return err
		}
		for _, m := range inCode.FindAllStringSubmatch(text, -1) {
			check(set.Position(lit.Pos()).String(), m[1], false)
		}
	}
	return nil
}

// TestACommandThatIsNotThereIsSeen feeds mistakes to the other test.
func TestACommandThatIsNotThereIsSeen(t *testing.T) {
	t.Parallel()
	var got []string
	shown("`muster tsks` muster\n    muster run exec --on 'a b' --arg cdm=x # why\n```\n$ muster wait\n"+
		"bin/muster tasks | head\nmuster plan exec --onn all\n```\n`muster nodes thow`\n`muster run … --check`\n",
		func(line int, command string, whole bool) {
			if err := named(command, whole); err != nil {
				got = append(got, fmt.Sprintf("%d: %s", line, strings.ReplaceAll(err.Error(), "\n", "; ")))
			}
		})
	want := []string{"1: muster has no command tsks",
		"2: runbook exec needs --arg cmd; runbook exec has no argument cdm",
		"4: want muster wait TASK: nothing is named", "6: unknown flag: --onn",
		"8: muster nodes has no command thow"}
	if len(got) != len(want) {
		t.Fatalf("got %q", got)
	}
	for i := range want {
		if !strings.HasPrefix(got[i], want[i]) {
			t.Errorf("got %q, want a beginning of %q", got[i], want[i])
		}
	}
}

func TestWrongUseSaysWhatIsExpected(t *testing.T) {
	t.Parallel()
	for line, want := range map[string]string{
		"wait":                                   "want muster wait TASK: nothing is named",
		"cancel":                                 "want muster cancel TASK | JOB...: nothing is named",
		"wait " + apitest.ATask + " --timeout x": "want a time such as 90s, 30m or 2h",
		"tasks --limit x":                        "want a whole number",
		"tasks --no-headers=x":                   "want true or false",
		"health x":                               `muster health takes no argument: leave out "x"`,
		"tasks x":                                `there is no command "muster tasks x"`,
	} {
		code, _, words := muster(t, "", strings.Fields(line)...)
		if code != cli.ExitUsage || !strings.Contains(words, want) {
			t.Errorf("muster %s: exit %d, %q, want %q", line, code, words, want)
		}
	}
}
