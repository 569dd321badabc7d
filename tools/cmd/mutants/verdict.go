package main

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"strings"
	"time"
)

// verdict is what go test says of the tests of one package.
type verdict struct {
	of     map[string]string // test to pass, fail or skip; without an entry it never began
	broken bool              // the package was not compiled
	output []string          // of it all
}

// event is a line of go test -json.
type event struct {
	Action string
	Test   string
	Output string
}

// How long the tests of a package may take. A mutant may well hang; a sound tree is slow at
// most, on a busy machine.
const (
	mutantTime = 3 * time.Minute
	soundTime  = 10 * time.Minute
)

// runTests runs some tests of a package, with a bound.
func runTests(ctx context.Context, dir, pkg string, tests []string, most time.Duration) verdict {
	cmd := exec.CommandContext(ctx, "go", "test", "-json", "-count=1", "-vet=off",
		"-timeout="+most.String(), "-run", "^("+strings.Join(tests, "|")+")$", "./"+pkg)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "GOWORK=off", "GIT_CEILING_DIRECTORIES="+dir)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	v := read(string(out))
	if len(v.of) == 0 && err != nil {
		v.broken = true
		v.output = append(v.output, stderr.String(), err.Error())
	}
	return v
}

// read understands what go test -json says. A test that began and did not end, because
// something panicked or the time was over, has failed.
func read(out string) verdict {
	v := verdict{of: map[string]string{}}
	for line := range strings.Lines(out) {
		var e event
		if json.Unmarshal([]byte(line), &e) != nil {
			v.output = append(v.output, line) // something below go test spoke by itself
			continue
		}
		switch e.Action {
		case "output", "build-output":
			v.output = append(v.output, e.Output)
		case "build-fail":
			v.broken = true
		case "run":
			v.of[e.Test] = "fail"
		case "pass", "fail", "skip":
			if e.Test != "" {
				v.of[e.Test] = e.Action
			}
		}
	}
	return v
}

// how says what became of a test, for people.
func (v verdict) how(test string) string {
	if v.broken {
		return "it does not compile, which is no catch"
	}
	return cmp.Or(v.of[test], "there is no such test")
}

// tail is the end of the output, which has the reason.
func (v verdict) tail() string {
	const most = 20
	lines := v.output
	if len(lines) > most {
		lines = lines[len(lines)-most:]
	}
	return strings.TrimSpace(strings.Join(lines, ""))
}
