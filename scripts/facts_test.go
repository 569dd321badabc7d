package scripts_test

import (
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"

	"muster/fleet"
	"muster/scripts"
)

// The built-in runbook facts, in every shell that there is.
func TestFactsInEveryShell(t *testing.T) {
	t.Parallel()
	if runtime.GOOS != "linux" {
		t.Skip("it looks at /proc")
	}
	r, ok := scripts.Builtin("facts")
	if !ok {
		t.Fatal("there is no such runbook")
	}
	a, err := r.Freeze(scripts.Values{}).Step(0, fleet.Host{Name: "a"}, scripts.Context{})
	if err != nil {
		t.Fatal(err)
	}
	for _, shell := range [][]string{{"sh"}, {"dash"}, {"bash", "--posix"}, {"mksh"}, {"zsh", "--emulate", "sh"},
		{"busybox", "sh"}} {
		path, err := exec.LookPath(shell[0])
		if err != nil {
			continue
		}
		t.Run(shell[0], func(t *testing.T) {
			t.Parallel()
			for _, env := range [][]string{os.Environ(), {"PATH=/nowhere"}} {
				cmd := exec.Command(path, append(shell[1:], "-c", a.Shell)...)
				cmd.Env = env
				begun := time.Now()
				said, err := cmd.Output()
				if err != nil {
					t.Errorf("%v: %s", err, said)
				}
				facts, err := fleet.ParseFacts(said, begun, time.Now())
				if err != nil {
					t.Errorf("%v: %q", err, said)
				}
				if facts["boot_id"] == "" || facts["uptime"] == "" {
					t.Errorf("too little is known: %q", facts)
				}
				if len(env) == 1 {
					if !strings.Contains(facts["record"], "flock") {
						t.Errorf("without tools it can keep a record: %q", facts["record"])
					}
					continue // without tools it has ended all the same
				}
				if facts["record"] != "yes" {
					t.Errorf("it cannot keep a record: %q", facts["record"])
				}
				offset, err := strconv.Atoi(facts["clock_offset"])
				if err != nil || offset < -60 || offset > 60 {
					t.Errorf("the clock is off by %q", facts["clock_offset"])
				}
				if facts["kernel"] == "" || facts["arch"] == "" || strings.TrimLeft(facts["disk"], "0123456789") != "" {
					t.Errorf("too little is known: %q", facts)
				}
			}
		})
	}
}
