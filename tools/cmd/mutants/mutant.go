package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// A mutant is a patch that takes a promise away. Its head has a line "Breaks: …" for
// people, and lines "Caught by: PACKAGE TEST TEST…".
type mutant struct {
	name     string // of the file, without .patch
	file     string
	breaks   string
	catchers []catcher
}

// A catcher is what must fail in one package.
type catcher struct {
	pkg   string // its folder
	tests []string
}

const (
	breaksMark = "Breaks: "
	caughtMark = "Caught by: "
)

// readMutants reads the patches of a folder whose names match. All that is wrong with
// them is said at once.
func readMutants(dir string, chosen *regexp.Regexp) ([]mutant, error) {
	files, err := filepath.Glob(filepath.Join(dir, "*.patch"))
	if err != nil {
		return nil, err
	}
	var all []mutant
	var errs []error
	for _, file := range files {
		name := strings.TrimSuffix(filepath.Base(file), ".patch")
		if !chosen.MatchString(name) {
			continue
		}
		text, err := os.ReadFile(file)
		if err != nil {
			return nil, err
		}
		m, err := parseMutant(string(text))
		if err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", file, err))
		}
		if m.file, err = filepath.Abs(file); err != nil {
			return nil, err
		}
		m.name = name
		all = append(all, m)
	}
	if len(all) == 0 {
		errs = append(errs, fmt.Errorf("no patch in %s has a name that matches %q", dir, chosen))
	}
	return all, errors.Join(errs...)
}

// parseMutant reads the head of a patch.
func parseMutant(text string) (mutant, error) {
	var m mutant
	var errs []error
	head, _, isPatch := strings.Cut("\n"+text, "\n--- ")
	if !isPatch {
		errs = append(errs, errors.New("it is no patch: no line begins with ---"))
	}
	for line := range strings.Lines(head) {
		line = strings.TrimSpace(line)
		if words, ok := strings.CutPrefix(line, breaksMark); ok {
			m.breaks = words
		}
		words, ok := strings.CutPrefix(line, caughtMark)
		if !ok {
			continue
		}
		f := strings.Fields(words)
		if len(f) < 2 || strings.HasPrefix(f[0], "Test") {
			errs = append(errs, fmt.Errorf("%q: want a package, then tests of it", line))
			continue
		}
		m.catchers = append(m.catchers, catcher{f[0], f[1:]})
	}
	if m.breaks == "" {
		errs = append(errs, fmt.Errorf("no line %q says what it breaks", breaksMark+"…"))
	}
	if len(m.catchers) == 0 && len(errs) == 0 {
		errs = append(errs, fmt.Errorf("no line %q says which tests see it",
			caughtMark+"PACKAGE TEST…"))
	}
	return m, errors.Join(errs...)
}

// sound tells whether all named tests are there and pass without a mutant.
func sound(ctx context.Context, dir string, all []mutant) error {
	named := map[string][]string{}
	var pkgs []string
	for _, m := range all {
		for _, c := range m.catchers {
			if named[c.pkg] == nil {
				pkgs = append(pkgs, c.pkg)
			}
			named[c.pkg] = append(named[c.pkg], c.tests...)
		}
	}
	var errs []error
	for _, pkg := range pkgs {
		tests := slices.Compact(slices.Sorted(slices.Values(named[pkg])))
		got := runTests(ctx, dir, pkg, tests, soundTime)
		for _, test := range tests {
			if got.of[test] != "pass" {
				errs = append(errs, fmt.Errorf("without a mutant %s of %s does not pass (%s): %s", test, pkg,
					got.how(test), got.tail()))
			}
		}
	}
	return errors.Join(errs...)
}

// try is nil if every named test fails with the patch.
func (m mutant) try(ctx context.Context, dir string) error {
	if err := patch(ctx, dir, m.file); err != nil {
		return fmt.Errorf("the patch does not apply any more: %w", err)
	}
	var errs []error
	for _, c := range m.catchers {
		got := runTests(ctx, dir, c.pkg, c.tests, mutantTime)
		for _, test := range c.tests {
			if got.of[test] != "fail" {
				errs = append(errs, fmt.Errorf("%s of %s: %s", test, c.pkg, got.how(test)))
			}
		}
		if got.broken {
			errs = append(errs, errors.New(got.tail()))
		}
	}
	if err := patch(context.WithoutCancel(ctx), dir, m.file, "--reverse"); err != nil {
		errs = append(errs, fmt.Errorf("the patch cannot be taken away: %w", err))
	}
	return errors.Join(errs...)
}

// compile returns nil if the packages that the patch changes compile with it.
func (m mutant) compile(ctx context.Context, dir string) error {
	pkgs, err := changedPackages(m.file)
	if err != nil {
		return err
	}
	if err := patch(ctx, dir, m.file); err != nil {
		return fmt.Errorf("the patch does not apply any more: %w", err)
	}
	var errs []error
	if len(pkgs) > 0 {
		build := exec.CommandContext(ctx, "go", append([]string{"build"}, pkgs...)...)
		build.Dir = dir
		build.Env = append(os.Environ(), "GOWORK=off", "GIT_CEILING_DIRECTORIES="+dir)
		if out, err := build.CombinedOutput(); err != nil {
			errs = append(errs, fmt.Errorf("it does not compile: %w: %s", err,
				strings.TrimSpace(string(out))))
		}
	}
	errs = append(errs, patch(context.WithoutCancel(ctx), dir, m.file, "--reverse"))
	return errors.Join(errs...)
}

// changedPackages returns the folders of the Go files that a patch changes.
func changedPackages(file string) ([]string, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	var list []string
	for line := range strings.Lines(string(text)) {
		if name, ok := strings.CutPrefix(strings.TrimSpace(line), "+++ b/"); ok && path.Ext(name) == ".go" {
			list = append(list, "./"+path.Dir(name))
		}
	}
	slices.Sort(list)
	return slices.Compact(list), nil
}

// patch changes the tree in dir. Lines may have moved, but must be the same.
func patch(ctx context.Context, dir, file string, how ...string) error {
	cmd := exec.CommandContext(ctx, "git", append(append([]string{"apply"}, how...), file)...)
	cmd.Dir = dir
	// In a repository git would apply nothing to what is not in it, and say nothing.
	cmd.Env = append(os.Environ(), "GIT_CEILING_DIRECTORIES="+filepath.Dir(dir))
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%w: %s", err, strings.TrimSpace(string(out)))
	}
	return nil
}
