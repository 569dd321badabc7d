package main

import (
	"bytes"
	"flag"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/cobra"

	"muster/cli"
)

var updateHelp = flag.Bool("update-help", false, "write testdata/help.txt anew")

// A file stores the text that --help prints for every command, so that a review shows each change
// of it, and code can move without a change for readers.
func TestTheHelpOfEveryCommandIsAsItWas(t *testing.T) {
	for _, name := range []string{"MUSTER_URL", "MUSTER_AS", "MUSTER_CONFIG"} { // defaults of flags
		t.Setenv(name, "")
	}
	const golden = "testdata/help.txt"
	var all strings.Builder
	var visit func(c *cobra.Command, path []string)
	visit = func(c *cobra.Command, path []string) {
		all.WriteString("== " + strings.Join(path, " ") + "\n" + helpOf(t, path[1:]))
		for _, sub := range c.Commands() {
			visit(sub, append(path[:len(path):len(path)], sub.Name()))
		}
	}
	visit(newRoot(), []string{"muster"})
	if *updateHelp {
		if err := os.WriteFile(golden, []byte(all.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), all.String()); diff != "" {
		t.Errorf("help differs (go test ./cmd/muster -run Help -update-help writes it anew):\n%s", diff)
	}
}

// helpOf returns the text that a command prints with --help.
func helpOf(t *testing.T, args []string) string {
	t.Helper()
	var out bytes.Buffer
	root := newRoot()
	root.SetOut(&out)
	root.SetErr(&out)
	root.SetArgs(append(args[:len(args):len(args)], "--help"))
	if _, err := cli.Execute(t.Context(), root); err != nil {
		t.Errorf("muster %s --help: %v", strings.Join(args, " "), err)
	}
	return out.String()
}
