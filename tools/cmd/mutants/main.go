// Command mutants breaks the tree on purpose and looks whether the tests see it. Each
// patch in tools/mutants takes one promise away and says which tests must fail then.
//
//	mutants [-only REGEXP] [-list] [-compile] [ROOT]
//
// It copies the tree below ROOT (default: this folder) into a temporary folder, runs
// the named tests there, which must pass, and then with one patch at a time, when
// each of them must fail. A tree that does not compile is no catch. It prints a line
// for each mutant and ends with 1 if one survived, if a patch does not apply any
// more, or if a test that it names is not there. With -compile it applies and compiles each
// mutant, and runs no test: a move of code breaks patches so, and the tests take much longer.
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"time"
)

func main() {
	var o options
	flag.StringVar(&o.only, "only", "", "a `regexp`: only mutants whose name it matches")
	flag.BoolVar(&o.list, "list", false, "print what each mutant breaks, and run nothing")
	flag.BoolVar(&o.compile, "compile", false, "apply and compile each mutant, and run no test")
	flag.Parse()
	root := "."
	if flag.NArg() > 0 {
		root = flag.Arg(0)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Stdout, root, o); err != nil {
		fmt.Fprintln(os.Stderr, "mutants:", err)
		stop()
		os.Exit(1)
	}
}

// options are the flags.
type options struct {
	only          string
	list, compile bool
}

func run(ctx context.Context, w io.Writer, root string, o options) error {
	chosen, err := regexp.Compile(o.only)
	if err != nil {
		return fmt.Errorf("-only: %w", err)
	}
	all, err := readMutants(filepath.Join(root, "tools", "mutants"), chosen)
	if err != nil {
		return err
	}
	if o.list {
		for _, m := range all {
			fmt.Fprintf(w, "%-28s %s\n", m.name, m.breaks)
		}
		return nil
	}
	dir, err := os.MkdirTemp("", "mutants-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	if err := copyTree(root, dir); err != nil {
		return err
	}
	if o.compile {
		return compileAll(ctx, w, dir, all)
	}
	return judge(ctx, w, dir, all)
}

// compileAll applies and compiles one mutant at a time.
func compileAll(ctx context.Context, w io.Writer, dir string, all []mutant) error {
	broken := 0
	for _, m := range all {
		err := m.compile(ctx, dir)
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if err != nil {
			broken++
			fmt.Fprintf(w, "%-28s %v\n", m.name, err)
		}
	}
	fmt.Fprintf(w, "%d mutants, %d compile, %d not\n", len(all), len(all)-broken, broken)
	if broken > 0 {
		return fmt.Errorf("%d of %d mutants do not compile", broken, len(all))
	}
	return nil
}

// judge runs the tests on the sound tree, then on each mutant.
func judge(ctx context.Context, w io.Writer, dir string, all []mutant) error {
	began := time.Now()
	if err := sound(ctx, dir, all); err != nil {
		return err
	}
	fmt.Fprintf(w, "%-28s %-9s %7.1f s\n", "(none)", "pass", time.Since(began).Seconds())
	survived := 0
	for _, m := range all {
		began := time.Now()
		err := m.try(ctx, dir)
		took := time.Since(began).Seconds()
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if err != nil {
			survived++
			fmt.Fprintf(w, "%-28s %-9s %7.1f s  %v\n", m.name, "SURVIVES", took, err)
			continue
		}
		fmt.Fprintf(w, "%-28s %-9s %7.1f s  by %s\n", m.name, "caught", took, m.words())
	}
	fmt.Fprintf(w, "%d mutants, %d caught, %d not, in %.0f s\n", len(all), len(all)-survived,
		survived, time.Since(began).Seconds())
	if survived > 0 {
		return fmt.Errorf("%d of %d mutants were not caught", survived, len(all))
	}
	return nil
}

// copyTree copies what tests can see of a tree: all but what git and make keep.
func copyTree(from, to string) error {
	return filepath.WalkDir(from, func(name string, d os.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(from, name)
		if err != nil {
			return err
		}
		target := filepath.Join(to, rel)
		switch {
		case rel == ".git" || rel == "bin":
			if d.IsDir() {
				return filepath.SkipDir
			}
			return nil
		case d.IsDir():
			return os.MkdirAll(target, 0o755)
		case !d.Type().IsRegular():
			return nil
		}
		return copyFile(name, target)
	})
}

func copyFile(from, to string) error {
	info, err := os.Stat(from)
	if err != nil {
		return err
	}
	text, err := os.ReadFile(from)
	if err != nil {
		return err
	}
	return os.WriteFile(to, text, info.Mode().Perm())
}

// words are the tests of a mutant as one reads them.
func (m mutant) words() string {
	var parts []string
	for _, c := range m.catchers {
		parts = append(parts, c.pkg+" "+strings.Join(c.tests, ", "))
	}
	return strings.Join(parts, "; ")
}
