package main

import (
	"os"
	"strings"
	"testing"

	"muster/cli"
)

// Without a terminal nobody can compare a key.
func TestEnrollWritesNothingWithoutATerminal(t *testing.T) {
	t.Parallel()
	e := newEnrolment(t)
	args := []string{"hosts", "enroll", "fw1", "--inventory", e.inventory, "--write", e.known}
	code, out, words := muster(t, "http://127.0.0.1:1", args...)
	if code != cli.ExitUsage || !strings.Contains(out, " new\n"+e.line) ||
		!strings.Contains(words, "1 new key not written") {
		t.Errorf("without a terminal: exit %d, %q, %q", code, out, words)
	}
	if _, err := os.Stat(e.known); err == nil {
		t.Error("it was written all the same")
	}
}
