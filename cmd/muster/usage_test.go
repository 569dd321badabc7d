package main

import (
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"muster/cli"
	"muster/testkit/apitest"
)

// Errors of cobra and the standard library about wrong use are written for programmers.
func TestWrongUseIsSaidInPlainWords(t *testing.T) {
	t.Parallel()
	a := apitest.New(t, nil) // no request may be made
	for line, want := range map[string]string{
		"job":                                    "want muster job JOB: nothing is named",
		"cancel":                                 "want muster cancel TASK | JOB...: nothing is named",
		"job a b":                                `want muster job JOB: it got 2 arguments, "a b"`,
		"health now":                             `muster health takes no argument: leave out "now"`,
		"tasks now":                              `there is no command "muster tasks now"`,
		"runbooks shwo x":                        `there is no command "muster runbooks shwo": did you mean show?`,
		"hosts shwo x":                           "did you mean show?",
		"group zzzzzz":                           `there is no command "muster group zzzzzz"`,
		"tasks --limt 3":                         "muster tasks has no flag --limt: did you mean --limit?",
		"tasks -x":                               "muster tasks has no flag -x",
		"tasks -limit 3":                         "muster tasks has no flag -l: did you mean --limit?",
		"tasks --limit":                          "--limit has no value: want --limit INT, how many at most",
		"tasks --limit x":                        `--limit "x": want a whole number`,
		"wait x --timeout 3":                     `--timeout "3": want a time such as 90s, 30m or 2h`,
		"run exec --on all --wait --detach":      "--detach and --wait exclude each other: give one of them",
		"retry x --failed --wait --dry-run":      "--dry-run and --wait exclude each other",
		"token list --frm x":                     "has no flag --frm",
		"run exec --on all --disruptive=perhaps": `--disruptive "perhaps": want true or false`,
	} {
		url, args := a.URL, strings.Fields(line)
		if line == "tasks --limit" || strings.HasPrefix(line, "group ") {
			url = "" // otherwise the flag of the server would be its value, or is not known there
		}
		code, out, words := muster(t, url, args...)
		if code != cli.ExitUsage || out != "" || !strings.Contains(words, want) {
			t.Errorf("muster %s: exit %d, %q, %q, want %q", line, code, out, words, want)
		}
		for _, raw := range []string{"arg(s)", "shorthand", "unknown flag", "strconv", "invalid argument", "in the group"} {
			if strings.Contains(words, raw) {
				t.Errorf("muster %s: %q is said by a library: %s", line, raw, words)
			}
		}
	}
	code, _, words := muster(t, "", "taks")
	if want := "there is no command \"muster taks\": did you mean task?\nsee muster --help\n"; code != cli.ExitUsage ||
		words != want {
		t.Errorf("muster taks: exit %d, %q, want %q", code, words, want)
	}
	if n := len(a.Requests()); n > 0 {
		t.Errorf("wrong use made requests: %v", a.Requests())
	}
}

func TestEveryLsIsAListToo(t *testing.T) {
	t.Parallel()
	n := 0
	walkCommands(newRoot(), func(c *cobra.Command) {
		if c.Name() != "ls" {
			return
		}
		n++
		if found, rest, err := newRoot().Find(strings.Fields(c.Parent().CommandPath() + " list")[1:]); err != nil ||
			found.Name() != "ls" || len(rest) > 0 {
			t.Errorf("%s list is %s, %v", c.Parent().CommandPath(), found.CommandPath(), err)
		}
	})
	if n < 8 {
		t.Errorf("only %d commands are called ls", n)
	}
}

func TestVersionIsAFlagToo(t *testing.T) {
	t.Parallel()
	for _, args := range [][]string{{"version"}, {"--version"}} {
		if code, out, words := muster(t, "", args...); code != 0 || out != versionText() {
			t.Errorf("muster %s: exit %d, %q, %q", args[0], code, out, words)
		}
	}
}
