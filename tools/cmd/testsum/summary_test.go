package main

import (
	"bufio"
	"strings"
	"testing"
)

// say makes events of lines such as "fail p TestA": action, package, test and, after
// a colon, output.
func say(lines ...string) string {
	var b strings.Builder
	for _, line := range lines {
		line, output, _ := strings.Cut(line, ": ")
		f := append(strings.Fields(line), "", "", "")
		b.WriteString(`{"Action":"` + f[0] + `","Package":"` + f[1] + `","Test":"` + f[2] +
			`","Output":"` + output + `\n"}` + "\n")
	}
	return b.String()
}

func TestSummary(t *testing.T) {
	for _, c := range []struct {
		name   string
		short  bool
		in     string
		counts string
		out    string
	}{
		{
			name: "passed, with a subtest; its output is left out",
			in: say("run p TestA", "output p TestA: noise", "run p TestA/b", "pass p TestA/b", "pass p TestA",
				"output p: PASS", "output p: ok p 0.1s", "pass p"),
			counts: "2 passed, 0 failed, 0 skipped",
			out:    "ok p 0.1s\n",
		},
		{
			name: "failed, with all that it said",
			in: say("run p TestA", "output p TestA: === RUN TestA", "output p TestA: got 1",
				"output p TestA: --- FAIL: TestA", "fail p TestA", "output p: FAIL p 0.1s", "fail p"),
			counts: "0 passed, 1 failed, 0 skipped",
			out:    "--- FAIL: p TestA\ngot 1\nFAIL p 0.1s\n",
		},
		{
			name:   "failed outside of its tests",
			in:     say("run p TestA", "pass p TestA", "output p: exit status 3", "fail p"),
			counts: "1 passed, 1 failed, 0 skipped",
			out:    "exit status 3\n",
		},
		{
			name:   "not built",
			in:     say("build-output: a.go:1: undefined", "output p: FAIL p [build failed]", "fail p"),
			counts: "0 passed, 1 failed, 0 skipped",
			out:    "a.go:1: undefined\nFAIL p [build failed]\n",
		},
		{
			name:   "never ended",
			in:     say("run p TestA", "output p TestA: waiting", "output p: FAIL p", "fail p"),
			counts: "0 passed, 1 failed, 0 skipped",
			out:    "--- FAIL: p TestA, which did not end\nwaiting\nFAIL p\n",
		},
		{
			name: "skipped, and why",
			in: say("run p TestA", "output p TestA: a.go:1: no sshd", "output p TestA: --- SKIP: TestA",
				"skip p TestA", "run p TestB", "skip p TestB", "pass p"),
			counts: "0 passed, 0 failed, 2 skipped",
			out:    "skipped:\n    p TestA: a.go:1: no sshd\n    p TestB: it gives no reason\n",
		},
		{
			name:  "left out by -short is not skipped",
			short: true,
			in: say("output p TestA: -short: a minute of load", "skip p TestA", "output p TestB: no shortcut",
				"skip p TestB", "pass p"),
			counts: "0 passed, 0 failed, 1 skipped",
			out:    "1 left out by -short\nskipped:\n    p TestB: no shortcut\n",
		},
		{
			name:   "without -short it is",
			in:     say("output p TestA: -short", "skip p TestA", "pass p"),
			counts: "0 passed, 0 failed, 1 skipped",
			out:    "skipped:\n    p TestA: -short\n",
		},
		{
			name:   "a package without tests, and words that are no event",
			in:     "hello\n" + say("output p: ? p [no test files]", "skip p"),
			counts: "0 passed, 0 failed, 0 skipped",
			out:    "hello\n? p [no test files]\n",
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			var out strings.Builder
			s := newSummary(&out, c.short)
			if err := s.readAll(bufio.NewReader(strings.NewReader(c.in))); err != nil {
				t.Fatal(err)
			}
			s.printSkipped(&out, false)
			if s.String() != c.counts {
				t.Errorf("counted %q, want %q", s, c.counts)
			}
			if out.String() != c.out {
				t.Errorf("printed\n%s\nwant\n%s", out.String(), c.out)
			}
		})
	}
}

func TestSkipThatIsAFailureSaysSo(t *testing.T) {
	var out strings.Builder
	s := newSummary(&out, false)
	s.skip(skip{"p", "TestA", "no sshd"})
	s.printSkipped(&out, true)
	if !strings.HasPrefix(out.String(), "FAIL: skipped, though root on Debian") {
		t.Errorf("printed %q", out.String())
	}
}
