package main

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"mvdan.cc/sh/v3/syntax"

	"muster/fleet"
	"muster/jobs"
)

// shownCommand is a command of muster that a page or a help shows, without the word muster.
type shownCommand struct {
	where string
	words []string
	whole bool // it stands on a line of its own, to be typed as it is
}

var (
	codeSpan = regexp.MustCompile("`([^`]+)`")
	leftOut  = regexp.MustCompile(`…|\.\.\.|^\[|^<`) // of the form of a command
	// onFlag is --on in code, on in YAML.
	onFlag = regexp.MustCompile("(?m)(?:--on |^ +(?:- )?on: |\\{on: )" +
		"(?:'([^']+)'|([a-z][^\\s`'\"}]*))(?:[` ,}]|$)")
	aboutSelectors = regexp.MustCompile(`(?s)\bSelectors: .*?\n\n|\n\| selector \|[^\n]*`)
	takesSelector  = regexp.MustCompile(`^\w+ \S*\[?SELECTOR\]?$`)
	inBrackets     = regexp.MustCompile(`\(([^()]*(?:\([^()]*\))?[^()]*)\)`)
)

// shownCommands are the commands in the pages and in the help of all commands.
func shownCommands(t *testing.T) []shownCommand {
	t.Helper()
	var all []shownCommand
	for name, text := range pageTexts(t) {
		fenced := false
		for line := range strings.Lines(joined(text)) {
			if strings.Contains(line, "──") {
				continue // a picture
			}
			if strings.HasPrefix(strings.TrimSpace(line), "```") {
				fenced = !fenced
				continue
			}
			if fenced || strings.HasPrefix(line, "    ") {
				all = append(all, commandsIn(name, line, true)...)
				continue
			}
			for _, m := range codeSpan.FindAllStringSubmatch(line, -1) {
				all = append(all, commandsIn(name, m[1], false)...)
			}
		}
	}
	walkCommands(newRoot(), func(c *cobra.Command) {
		for line := range strings.Lines(joined(c.Example)) {
			all = append(all, commandsIn(c.CommandPath()+" --help", line, true)...)
		}
	})
	return all
}

func joined(text string) string { return strings.ReplaceAll(text, "\\\n", " ") }

// pageTexts are the pages of the tree, by their names.
func pageTexts(t *testing.T) map[string]string {
	t.Helper()
	texts := map[string]string{}
	for _, pattern := range []string{"README.md", "CONTRIBUTING.md", "docs/*.md"} {
		names, err := filepath.Glob("../../" + pattern)
		if err != nil || len(names) == 0 {
			t.Fatalf("%s: %v, %d pages", pattern, err, len(names))
		}
		for _, name := range names {
			text, err := os.ReadFile(name)
			if err != nil {
				t.Fatal(err)
			}
			texts[strings.TrimPrefix(name, "../../")] = string(text)
		}
	}
	return texts
}

func walkCommands(c *cobra.Command, do func(*cobra.Command)) {
	do(c)
	for _, sub := range c.Commands() {
		walkCommands(sub, do)
	}
}

// commandsIn finds the calls of muster in a line of shell. What is no shell has none.
func commandsIn(where, line string, whole bool) []shownCommand {
	file, err := syntax.NewParser().Parse(strings.NewReader(line), "")
	if err != nil {
		return nil
	}
	var found []shownCommand
	syntax.Walk(file, func(n syntax.Node) bool {
		call, is := n.(*syntax.CallExpr)
		if !is || len(call.Args) == 0 {
			return true
		}
		var words []string
		for _, w := range call.Args {
			words = append(words, plainWord(w))
		}
		if words[0] == "muster" || words[0] == "bin/muster" {
			found = append(found, shownCommand{where, words[1:], whole})
		}
		return true
	})
	return found
}

// plainWord is a word of a shell without its quotes.
func plainWord(w *syntax.Word) string {
	var b strings.Builder
	for _, part := range w.Parts {
		switch part := part.(type) {
		case *syntax.Lit:
			b.WriteString(part.Value)
		case *syntax.SglQuoted:
			b.WriteString(part.Value)
		case *syntax.DblQuoted:
			b.WriteString(plainWord(&syntax.Word{Parts: part.Parts}))
		default:
			b.WriteString("x") // an expansion stands for some word
		}
	}
	return b.String()
}

// read parses a shownCommand command as the program would, up to what it does.
func (s shownCommand) read() (*cobra.Command, []string, error) {
	c, rest, err := newRoot().Find(s.words)
	if err != nil {
		return nil, nil, err
	}
	c.InitDefaultHelpFlag()
	c.InitDefaultVersionFlag()
	err = c.ParseFlags(rest)
	if err != nil && (s.whole || !strings.HasPrefix(err.Error(), "flag needs an argument")) {
		return c, nil, err
	}
	args := c.Flags().Args()
	if s.whole {
		return c, args, c.ValidateArgs(args)
	}
	if len(args) > 0 && c.HasSubCommands() {
		return c, args, fmt.Errorf("%s has no command %s", c.CommandPath(), args[0])
	}
	return c, args, nil
}

func TestEveryCommandOnAPageIsOne(t *testing.T) {
	t.Parallel()
	all := shownCommands(t)
	for _, s := range all {
		if slices.ContainsFunc(s.words, leftOut.MatchString) {
			continue // a form, not a command
		}
		if _, _, err := s.read(); err != nil {
			t.Errorf("%s: muster %s: %v", s.where, strings.Join(s.words, " "), err)
		}
	}
	if len(all) < 300 {
		t.Errorf("only %d commands were found", len(all))
	}
}

// shownSelectors are the selectors on pages and in helps, with their places.
func shownSelectors(t *testing.T) map[string]string {
	t.Helper()
	found := map[string]string{}
	for _, s := range shownCommands(t) {
		c, args, err := s.read()
		if err != nil {
			continue // the test above says it
		}
		if on := c.Flags().Lookup("on"); on != nil && on.Changed && s.whole {
			found[on.Value.String()] = s.where
		}
		if takesSelector.MatchString(c.Use) && s.whole && len(args) == 1 &&
			!aTaskOrFile(args[0]) {
			found[args[0]] = s.where
		}
	}
	for name, text := range pageTexts(t) {
		for _, m := range onFlag.FindAllStringSubmatch(text, -1) {
			found[m[1]+m[2]] = name
		}
		for _, part := range aboutSelectors.FindAllString(text, -1) {
			for _, m := range codeSpan.FindAllStringSubmatch(part, -1) {
				found[m[1]] = name
			}
		}
	}
	for _, m := range inBrackets.FindAllStringSubmatch(selectorHelp, -1) {
		found[m[1]] = "selectorHelp"
	}
	return found
}

// aTaskOrFile reports whether an argument stands for hosts that no inventory knows.
func aTaskOrFile(text string) bool {
	_, err := jobs.ParseTaskID(text)
	return err == nil || text[0] == '@'
}

// pagesFleet has the hosts of the pages: those that a selector names, in groups of
// Ansible, too.
func pagesFleet(t *testing.T) *fleet.Inventory {
	t.Helper()
	var list strings.Builder
	list.WriteString("defaults: {known_hosts: /k}\nhosts:\n")
	add := func(name, fields string) {
		fmt.Fprintf(&list, "  - {name: %s, address: 192.0.2.1, %s}\n", name, fields)
	}
	for i := 1; i <= 300; i++ {
		add(fmt.Sprintf("fw%03d", i), "customer: acme, labels: {role: fw}")
	}
	add("fw7", "group: acme-edge, labels: {role: fw}")
	add("new-fw1", "labels: {role: branch, fact.os: debian}")
	for _, role := range []string{"db", "web", "lb", "vpn", "dns-primary"} {
		add(role+"1", "labels: {role: "+role+"}")
	}
	add("ns1", "labels: {group.web: true, group.edge: true}")
	add("ns2", "labels: {group.web: true, group.staging: true}")
	inv, err := fleet.Parse(fleet.Source{Name: "pages", Data: []byte(list.String())})
	if err != nil {
		t.Fatal(err)
	}
	return inv.WithLabels(map[string]map[string]string{"fw001": {fleet.Drained: ""}})
}

// A page's selectors are typed as they stand there.
func TestEverySelectorOnAPagePicksHosts(t *testing.T) {
	t.Parallel()
	inv, all := pagesFleet(t), shownSelectors(t)
	for text, where := range all {
		sel, err := fleet.ParseSelector(text)
		if err == nil {
			_, err = inv.Select(sel)
		}
		if err != nil {
			t.Errorf("%s: %v", where, err)
		}
	}
	if len(all) < 25 {
		t.Errorf("only %d selectors were found: %v", len(all), all)
	}
}
