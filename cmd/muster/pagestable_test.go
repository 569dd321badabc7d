package main

import (
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"muster/server/pages"
	"muster/server/pages/frame"
)

// section returns the text of a part of docs/PAGES.md.
func section(t *testing.T, heading string) string {
	t.Helper()
	all, err := os.ReadFile("../../docs/PAGES.md")
	if err != nil {
		t.Fatal(err)
	}
	_, text, found := strings.Cut(string(all), "\n## "+heading+"\n")
	if !found {
		t.Fatalf("docs/PAGES.md has no part %q", heading)
	}
	text, _, _ = strings.Cut(text, "\n## ")
	return text
}

var (
	quoted   = regexp.MustCompile("`([^`]+)`")
	tableRow = regexp.MustCompile(`(?m)^\| (.+?) \| (.+) \|$`)
)

// codes returns the spans of code in a text that begin as told.
func codes(text, begin string) []string {
	var out []string
	for _, m := range quoted.FindAllStringSubmatch(text, -1) {
		if strings.HasPrefix(m[1], begin) {
			out = append(out, m[1])
		}
	}
	return out
}

// leaves lists the commands that do something of their own: those without commands below them.
func leaves(c *cobra.Command, path string) []string {
	var out []string
	for _, sub := range c.Commands() {
		if sub.Name() != "help" && sub.Name() != "completion" {
			out = append(out, leaves(sub, path+" "+sub.Name())...)
		}
	}
	if !c.HasSubCommands() {
		out = append(out, path)
	}
	return out
}

// beforeLogin are addresses that the door answers, before there is a page.
var beforeLogin = []string{"/login"}

// A reader with the command line in mind finds the page of each command, and a reader of the pages
// finds the command of each page.
func TestEachCommandHasItsPageOrAReason(t *testing.T) {
	t.Parallel()
	text := section(t, "Commands and pages")
	addresses := pages.New(frame.Needs{}).Addresses()
	commands := leaves(newRoot(), "muster")
	if len(commands) < 50 || len(addresses) < 30 {
		t.Fatalf("%d commands, %d addresses: the walk misses some", len(commands), len(addresses))
	}
	var named []string
	for _, row := range tableRow.FindAllStringSubmatch(text, -1) {
		list := codes(row[1], "muster ")
		for _, name := range list {
			if slices.Contains(named, name) {
				t.Errorf("%s has two rows", name)
			}
			if !slices.Contains(commands, name) {
				t.Errorf("%s: there is no such command", name)
			}
		}
		named = append(named, list...)
		none := strings.HasPrefix(row[2], "none")
		if len(list) > 0 && len(codes(row[2], "/")) == 0 && !none {
			t.Errorf("%s: neither a page nor `none: …`", row[1])
		}
		if none && !strings.HasPrefix(row[2], "none: ") && !strings.HasPrefix(row[2], "none yet") {
			t.Errorf("%s: %q says no reason", row[1], row[2])
		}
	}
	for _, name := range commands {
		if !slices.Contains(named, name) {
			t.Errorf("%s has no row in docs/PAGES.md, part Commands and pages", name)
		}
	}
	shown := codes(text, "/")
	for _, at := range shown {
		if !slices.Contains(addresses, at) && !slices.Contains(beforeLogin, at) {
			t.Errorf("%s: there is no such page", at)
		}
	}
	for _, at := range addresses {
		if !slices.Contains(shown, at) {
			t.Errorf("the page %s has no row in docs/PAGES.md, part Commands and pages", at)
		}
	}
}

var complaintRow = regexp.MustCompile(`(?m)^\| (\d+) \| (.+?) \| (.+) \|$`)

// Each complaint about the pages of others has a test, a page or a document that answers it, or is
// said to be open. internal/tidy looks for the tests and documents that docs name.
func TestEachComplaintHasAnAnswer(t *testing.T) {
	t.Parallel()
	addresses := pages.New(frame.Needs{}).Addresses()
	rows := complaintRow.FindAllStringSubmatch(section(t, "What users of other pages complained of"), -1)
	const all = 47
	if len(rows) != all {
		t.Errorf("%d complaints, want %d", len(rows), all)
	}
	for i, row := range rows {
		if row[1] != strconv.Itoa(i+1) {
			t.Errorf("complaint %s stands where %d should", row[1], i+1)
		}
		shown := codes(row[3], "/")
		for _, at := range shown {
			if !slices.Contains(addresses, at) {
				t.Errorf("complaint %s: there is no page %s", row[1], at)
			}
		}
		if len(shown)+len(codes(row[3], "Test")) == 0 && !strings.Contains(row[3], "](") &&
			!strings.HasPrefix(row[3], "not answered: ") {
			t.Errorf("complaint %s: %q names no test, no page and no document", row[1], row[3])
		}
	}
}
