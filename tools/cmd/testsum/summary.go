package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"regexp"
	"slices"
	"strings"
)

// event is a line of go test -json.
type event struct {
	Action  string
	Package string
	Test    string
	Output  string
}

// A summary counts what go test says and shows what a person wants to see of it.
type summary struct {
	w       io.Writer
	short   bool // the run has -short
	passed  int
	failed  int
	skipped []skip
	leftOut int // skipped because of -short
	open    map[string]*pkg
}

type skip struct {
	pkg, test, reason string
}

// pkg is a package whose tests have not all ended.
type pkg struct {
	output  []string            // what belongs to no test
	running map[string][]string // output by test
	failed  int
}

func newSummary(w io.Writer, short bool) *summary {
	return &summary{w: w, short: short, open: map[string]*pkg{}}
}

// readAll takes in everything up to the end of r.
func (s *summary) readAll(r *bufio.Reader) error {
	for {
		line, err := r.ReadBytes('\n')
		if len(line) > 0 {
			s.readLine(line)
		}
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

func (s *summary) readLine(line []byte) {
	var e event
	switch err := json.Unmarshal(line, &e); {
	case err != nil:
		s.w.Write(line) // something below go test spoke by itself
	case e.Action == "build-output":
		fmt.Fprint(s.w, e.Output)
	case e.Package == "":
	case e.Test == "":
		s.packageEvent(e)
	default:
		s.testEvent(e)
	}
}

func (s *summary) pkg(name string) *pkg {
	if s.open[name] == nil {
		s.open[name] = &pkg{running: map[string][]string{}}
	}
	return s.open[name]
}

func (s *summary) testEvent(e event) {
	p := s.pkg(e.Package)
	output := p.running[e.Test]
	switch e.Action {
	case "run":
		p.running[e.Test] = nil
	case "output":
		if !strings.HasPrefix(e.Output, "=== ") {
			p.running[e.Test] = append(output, e.Output)
		}
	case "pass":
		s.passed++
		delete(p.running, e.Test)
	case "skip":
		s.skip(skip{e.Package, e.Test, reason(output)})
		delete(p.running, e.Test)
	case "fail":
		s.fail(p, e, "")
	}
}

func (s *summary) packageEvent(e event) {
	p := s.pkg(e.Package)
	switch e.Action {
	case "output":
		p.output = append(p.output, e.Output)
	case "pass", "skip":
		s.printLast(p)
		delete(s.open, e.Package)
	case "fail":
		for _, test := range slices.Sorted(maps.Keys(p.running)) {
			s.fail(p, event{Package: e.Package, Test: test}, ", which did not end")
		}
		if p.failed == 0 {
			s.failed++ // it was not built, or went wrong outside of its tests
		}
		fmt.Fprint(s.w, strings.Join(p.output, ""))
		delete(s.open, e.Package)
	}
}

// fail shows all that a failed test has said.
func (s *summary) fail(p *pkg, e event, remark string) {
	s.failed++
	p.failed++
	fmt.Fprintf(s.w, "--- FAIL: %s %s%s\n", e.Package, e.Test, remark)
	for _, line := range p.running[e.Test] {
		if !strings.HasPrefix(strings.TrimSpace(line), "--- FAIL: ") {
			fmt.Fprint(s.w, line)
		}
	}
	delete(p.running, e.Test)
}

// printLast shows the line that go test ends a package with.
func (s *summary) printLast(p *pkg) {
	if len(p.output) > 0 {
		fmt.Fprint(s.w, p.output[len(p.output)-1])
	}
}

var saysShort = regexp.MustCompile(`\bshort\b`)

func (s *summary) skip(k skip) {
	if s.short && saysShort.MatchString(k.reason) {
		s.leftOut++
		return
	}
	s.skipped = append(s.skipped, k)
}

// reason is what a skipped test said, without its closing line.
func reason(output []string) string {
	var said []string
	for _, line := range output {
		line = strings.TrimSpace(line)
		if !strings.HasPrefix(line, "--- SKIP: ") {
			said = append(said, line)
		}
	}
	if len(said) == 0 {
		return "it gives no reason"
	}
	return strings.Join(said, " ")
}

// printSkipped lists what did not run. If it counts as a failure, it says why.
func (s *summary) printSkipped(w io.Writer, isFailure bool) {
	if s.leftOut > 0 {
		fmt.Fprintf(w, "%d left out by -short\n", s.leftOut)
	}
	if len(s.skipped) == 0 {
		return
	}
	if isFailure {
		fmt.Fprintln(w, "FAIL: skipped, though root on Debian can install whatever they need:")
	} else {
		fmt.Fprintln(w, "skipped:")
	}
	for _, k := range s.skipped {
		fmt.Fprintf(w, "    %s %s: %s\n", k.pkg, k.test, k.reason)
	}
}

// String is the closing line.
func (s *summary) String() string {
	return fmt.Sprintf("%d passed, %d failed, %d skipped", s.passed, s.failed, len(s.skipped))
}
