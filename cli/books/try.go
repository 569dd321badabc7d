package books

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"muster/cli"
	"muster/internal/rehearse"
	"muster/scripts"
)

// testFlags are the flags of runbooks test.
type testFlags struct{ only, output string }

func newRunbooksTest() *cobra.Command {
	var f testFlags
	c := &cobra.Command{
		Use:   "test DIR|FILE…",
		Short: "Run runbooks against a pretended host with scripted answers",
		Long: `test runs the cases in NAME.test.yaml beside a runbook. A case says what the host answers
to each step, and which result is wanted. The same code reads and runs the runbook as for
real hosts, in pretended time; only the host is pretended. test connects to nothing.

A case can check the outcome, class and error of the job, the steps that reached the
host, the values that they saved and the text that they ran. It cannot check what the
shell of a host does with a text: the answers stand for that.

Exit codes: 0 all cases are as wanted, 1 some are not, 2 a file has mistakes.`,
		Example: `  muster runbooks test /etc/muster/runbooks
  muster runbooks test apt-upgrade.test.yaml --run reboot
  muster runbooks test . -o json`,
		Args: cobra.MinimumNArgs(1),
	}
	c.Flags().StringVar(&f.only, "run", "", "only cases whose name matches this `pattern`")
	OutputFlag(c, &f.output)
	c.Annotations = map[string]string{cli.Offline: "yes"}
	c.RunE = func(c *cobra.Command, args []string) error {
		return f.test(c.Context(), c.OutOrStdout(), args)
	}
	return c
}

// test runs the cases and prints the results.
func (f testFlags) test(ctx context.Context, out io.Writer, args []string) error {
	only, err := regexp.Compile(f.only)
	if err != nil {
		err = fmt.Errorf("--run %q: %w", f.only, err)
	}
	files, bad := suiteFiles(args)
	if err = errors.Join(err, cli.CheckOutput(f.output), bad); err != nil {
		return cli.Exit(cli.ExitUsage, err)
	}
	results, err := runSuites(ctx, files, only)
	if err != nil {
		return cli.Exit(cli.ExitUsage, err)
	}
	failed := slices.ContainsFunc(results, func(r rehearse.Result) bool { return !r.OK })
	if f.output == cli.OutputJSON {
		if err := cli.PrintJSON(out, results); err != nil {
			return cli.Exit(cli.ExitNotAll, err)
		}
	} else {
		fmt.Fprint(out, rehearsed(results))
	}
	if failed {
		return cli.Exit(cli.ExitNotAll, nil)
	}
	return nil
}

// runSuites runs all cases, after it has checked all files.
func runSuites(ctx context.Context, files []string, only *regexp.Regexp) ([]rehearse.Result,
	error) {
	type pair struct {
		suite *rehearse.Suite
		book  *scripts.Runbook
	}
	var pairs []pair
	var errs []error
	for _, file := range files {
		s, r, err := readSuite(file)
		errs = append(errs, err)
		pairs = append(pairs, pair{s, r})
	}
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	results := []rehearse.Result{}
	for _, p := range pairs {
		for _, c := range p.suite.Cases {
			if !only.MatchString(c.Name) {
				continue
			}
			r, err := p.suite.Run(ctx, p.book, c)
			if err != nil {
				return nil, err
			}
			results = append(results, r)
		}
	}
	if len(results) == 0 {
		return nil, fmt.Errorf("no case is called like %q", only)
	}
	return results, nil
}

// suiteFiles returns the files with cases that arguments mean: of a folder all, of a runbook the
// file beside it.
func suiteFiles(args []string) ([]string, error) {
	var files []string
	var errs []error
	for _, arg := range args {
		found, err := runbookFiles([]string{arg}, "a runbook (NAME.yaml, its cases in "+
			"NAME.test.yaml beside it), a file with cases, or a folder with such")
		suites := slices.DeleteFunc(slices.Clone(found), func(f string) bool { return !IsSuite(f) })
		switch {
		case err != nil:
			errs = append(errs, err)
		case len(suites) > 0:
			files = append(files, suites...)
		case len(found) == 1 && found[0] == arg:
			files = append(files, strings.TrimSuffix(arg, filepath.Ext(arg))+suiteSuffix)
		default:
			errs = append(errs, fmt.Errorf("%s has no *%s", arg, suiteSuffix))
		}
	}
	slices.Sort(files)
	return slices.Compact(files), errors.Join(errs...)
}

// readSuite reads cases and their runbook.
func readSuite(file string) (*rehearse.Suite, *scripts.Runbook, error) {
	data, err := ReadRunbooks([]string{file})
	if err != nil {
		return nil, nil, err
	}
	s, wrong := rehearse.Parse(file, data[0].Data)
	if s == nil {
		return nil, nil, wrong
	}
	path := strings.TrimSuffix(file, suiteSuffix) + ".yaml"
	if s.Runbook != "" {
		path = filepath.Join(filepath.Dir(file), s.Runbook)
	}
	text, err := ReadRunbooks([]string{path})
	if err != nil {
		return nil, nil, errors.Join(wrong, fmt.Errorf("%s: its runbook: %w", file, err))
	}
	r, err := scripts.Parse(path, text[0].Data)
	if err != nil {
		return nil, nil, errors.Join(wrong, err)
	}
	return s, r, errors.Join(wrong, s.Check(r))
}

// rehearsed returns the results of cases for people.
func rehearsed(results []rehearse.Result) string {
	var b strings.Builder
	good := 0
	for _, r := range results {
		word := "ok  "
		if !r.OK {
			word = "FAIL"
		} else {
			good++
		}
		fmt.Fprintf(&b, "%s  %s:%d  %s\n", word, cli.Cell(r.File), r.Line, cli.Cell(r.Case))
		for _, wrong := range r.Wrong {
			for line := range strings.SplitSeq(wrong, "\n") {
				b.WriteString("        " + cli.Cell(line) + "\n")
			}
		}
	}
	fmt.Fprintf(&b, "%s, %d as wanted\n", cli.Count(len(results), "case"), good)
	return b.String()
}
