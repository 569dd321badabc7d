package main

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"muster/cli"
	"muster/fleet"
	"muster/jobs"
)

var (
	codeSpan = regexp.MustCompile("`([^`]+)`")
	// onFlag is --on in code, and on in YAML.
	onFlag = regexp.MustCompile("(?m)(?:--on |^ +(?:- )?on: |\\{on: )" +
		"(?:'([^']+)'|([a-z][^\\s`'\"}]*))(?:[` ,}]|$)")
	aboutSelectors = regexp.MustCompile(`(?s)\bSelectors: .*?\n\n|\n\| selector \|[^\n]*`)
	takesSelector  = regexp.MustCompile(`^\w+ \S*\[?SELECTOR\]?$`)
	inBrackets     = regexp.MustCompile(`\(([^()]*(?:\([^()]*\))?[^()]*)\)`)
)

// shownSelectors returns the selectors on pages and in help texts, with their places.
func shownSelectors(t *testing.T) map[string]string {
	t.Helper()
	found := map[string]string{}
	add := func(where, command string) {
		for _, text := range selectorsOf(command) {
			found[text] = where
		}
	}
	for name, text := range pageTexts(t) {
		shown(text, func(_ int, command string, whole bool) {
			if whole {
				add(name, command)
			}
		})
		for _, m := range onFlag.FindAllStringSubmatch(text, -1) {
			found[m[1]+m[2]] = name
		}
		for _, part := range aboutSelectors.FindAllString(text, -1) {
			for _, m := range codeSpan.FindAllStringSubmatch(part, -1) {
				found[m[1]] = name
			}
		}
	}
	walkCommands(newRoot(), func(c *cobra.Command) {
		for line := range strings.Lines(strings.ReplaceAll(c.Example, "\\\n", "")) {
			if line = strings.TrimSpace(line); strings.HasPrefix(line, "muster ") {
				add(c.CommandPath()+" --help", line)
			}
		}
	})
	for _, m := range inBrackets.FindAllStringSubmatch(cli.SelectorHelp, -1) {
		found[m[1]] = "selectorHelp"
	}
	return found
}

// selectorsOf returns the selectors of a command. Another test checks the command itself.
func selectorsOf(command string) (found []string) {
	c, rest, err := newRoot().Find(words(command)[1:])
	if err != nil || c.ParseFlags(rest) != nil {
		return nil
	}
	args := c.Flags().Args()
	if on := c.Flags().Lookup("on"); on != nil && on.Changed {
		found = append(found, on.Value.String())
	}
	if takesSelector.MatchString(c.Use) && len(args) == 1 && !aTaskOrFile(args[0]) {
		found = append(found, args[0])
	}
	return found
}

// pageTexts returns the pages of the tree, by their names.
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

// aTaskOrFile reports whether an argument stands for hosts that no inventory knows.
func aTaskOrFile(text string) bool {
	_, err := jobs.ParseTaskID(text)
	return err == nil || text[0] == '@'
}

// pagesFleet has the hosts of the pages: all that a selector names, also in groups of Ansible.
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

// Readers type a page's selectors as they are written.
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
