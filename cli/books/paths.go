package books

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"muster/cli"
	"muster/internal/files"
	"muster/scripts"
)

// runbookMax bounds the bytes read of a file; runbooks are smaller.
const runbookMax = 2 << 20

// suiteSuffix ends the names of files with cases.
const suiteSuffix = ".test.yaml"

// IsSuite reports whether a file has cases, by its name.
func IsSuite(path string) bool { return strings.HasSuffix(path, suiteSuffix) }

// runbookFiles returns the files that arguments mean: of a folder all *.yaml, including those with
// cases. want says what an argument may be.
func runbookFiles(args []string, want string) ([]string, error) {
	var files []string
	var errs []error
	for _, arg := range args {
		info, err := os.Stat(arg)
		switch {
		case err != nil:
			errs = append(errs, noRunbook(arg, want, err))
		case info.IsDir():
			found, err := InFolder(arg)
			if err == nil && len(found) == 0 {
				err = fmt.Errorf("%s has no *.yaml: want %s", arg, want)
			}
			errs = append(errs, err)
			files = append(files, found...)
		default:
			files = append(files, arg)
		}
	}
	slices.Sort(files)
	return slices.Compact(files), errors.Join(errs...)
}

// InFolder returns the *.yaml of a folder, including those with cases. A *.yml would not be read as
// a runbook although its author expects that, so it is an error.
func InFolder(dir string) ([]string, error) {
	var found []string
	var errs []error
	list, err := os.ReadDir(dir)
	for _, e := range list {
		path := filepath.Join(dir, e.Name())
		switch ext := filepath.Ext(path); {
		case ext == ".yaml":
			found = append(found, path)
		case strings.HasPrefix(e.Name(), "."), e.IsDir(): // files of an editor, for instance
		case ext == ".yml": // a JSON schema may be in the folder
			errs = append(errs, fmt.Errorf("%s would not be read: call it %s.yaml, or take it "+
				"out of the folder", path, strings.TrimSuffix(path, ext)))
		}
	}
	return found, errors.Join(append(errs, err)...)
}

// noRunbook returns the error for an argument that is no file. It may be the name of a runbook.
func noRunbook(arg, want string, err error) error {
	var path *fs.PathError
	if errors.As(err, &path) {
		err = path.Err
	}
	text := fmt.Sprintf("%s: %s: want %s", arg, err, want)
	if _, builtin := scripts.Builtin(arg); builtin {
		return fmt.Errorf("%s; the built-in runbook is no file: muster runbooks show %s --raw "+
			"prints it", text, arg)
	}
	known, _ := filepath.Glob(filepath.Join(filepath.Dir(arg), "*.yaml"))
	if len(known) == 0 || len(known) > 20 {
		return errors.New(text)
	}
	meant := filepath.Clean(arg)
	if filepath.Ext(meant) == "" {
		meant += ".yaml"
	}
	return fmt.Errorf("%s: %s", text, scripts.Instead(meant, known))
}

// ReadRunbooks reads files, and reports all that cannot be read.
func ReadRunbooks(names []string) ([]scripts.Source, error) {
	var list []scripts.Source
	var errs []error
	for _, name := range names {
		data, err := files.Read(name, runbookMax)
		if err != nil {
			errs = append(errs, err)
			continue
		}
		list = append(list, scripts.Source{File: name, Data: data})
	}
	return list, errors.Join(errs...)
}

// OutputFlag is the flag of commands that talk to no server.
func OutputFlag(c *cobra.Command, output *string) {
	c.Flags().StringVarP(output, "output", "o", cli.OutputTable, "table or json")
	cli.CompleteFlag(c, "output", cli.OutputTable, cli.OutputJSON)
}
