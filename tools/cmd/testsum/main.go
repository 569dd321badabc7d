// Command testsum runs go test and says what came of it: a line a package, the
// output of what failed in full, what was skipped and why, and as the last line
// how many tests, with their subtests, passed, failed and were skipped.
//
//	testsum [-name NAME] [-tally FILE] -- ARGUMENTS OF GO TEST…
//
// It ends with 1 if anything failed. On Debian as root a skipped test is a failure
// too, because everything that a test may need can be installed there. The one
// exception are tests that give -short as their reason in a run with -short.
//
// With -tally it appends NAME and the three numbers to a file, for a sum over
// several runs, and puts the name before its last line.
package main

import (
	"bufio"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
)

func main() {
	name := flag.String("name", "", "what this run is called in the tally")
	tally := flag.String("tally", "", "`file` to append the numbers to")
	flag.Usage = func() {
		fmt.Fprintln(flag.CommandLine.Output(), "usage: testsum [flags] -- arguments of go test")
		flag.PrintDefaults()
	}
	flag.Parse()
	if flag.NArg() == 0 {
		flag.Usage()
		os.Exit(2)
	}

	s, err := runTests(flag.Args(), os.Stdout)
	if err == nil && *tally != "" {
		err = appendLine(*tally, fmt.Sprintln(*name, s.passed, s.failed, len(s.skipped)))
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "testsum:", err)
		os.Exit(1)
	}
	s.printSkipped(os.Stdout, isDebianRoot())
	if *name != "" {
		fmt.Printf("%s: ", *name)
	}
	fmt.Println(s)
	if s.failed > 0 || len(s.skipped) > 0 && isDebianRoot() {
		os.Exit(1)
	}
}

// runTests runs go test and shows its events as they come. An error says that it
// could not be run; failed tests are in the summary.
func runTests(args []string, w io.Writer) (*summary, error) {
	s := newSummary(w, slices.Contains(args, "-short"))
	cmd := exec.Command("go", append([]string{"test", "-json"}, args...)...)
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	readErr := s.readAll(bufio.NewReader(out))
	err = cmd.Wait()
	if readErr != nil {
		return nil, fmt.Errorf("read what go test says: %w", readErr)
	}
	if err != nil && s.failed == 0 {
		fmt.Fprintf(w, "FAIL\tgo test itself: %v\n", err)
		s.failed++
	}
	return s, nil
}

func appendLine(name, line string) error {
	f, err := os.OpenFile(name, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	if _, err := f.WriteString(line); err != nil {
		f.Close()
		return err
	}
	return f.Close()
}

func isDebianRoot() bool {
	_, err := os.Stat("/etc/debian_version")
	return err == nil && os.Geteuid() == 0
}
