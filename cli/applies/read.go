package applies

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"muster/api"
	"muster/cli"
	"muster/internal/files"
	"muster/internal/manifest"
	"muster/jobs"
	"muster/windows"
)

// filesMax bounds the files of a folder.
const filesMax = 10_000

// paths returns the files that people name: of a folder all files *.yaml in it and in the folders
// below, except in those that begin with a dot.
func paths(named []string) ([]string, error) {
	var out []string
	for _, name := range named {
		info, err := os.Stat(name)
		if files.Stream(name) || err != nil || !info.IsDir() {
			out = append(out, name) // whoever reads it says what is wrong with it
			continue
		}
		err = filepath.WalkDir(name, func(path string, d fs.DirEntry, err error) error {
			switch {
			case err != nil:
				return err
			case d.IsDir() && path != name && strings.HasPrefix(d.Name(), "."):
				return filepath.SkipDir
			case d.IsDir():
				return nil
			case filepath.Ext(path) == ".yml":
				return fmt.Errorf("%s: name it *.yaml: else somebody takes it for a file in force", path)
			case filepath.Ext(path) != ".yaml":
				return nil
			case len(out) == filesMax:
				return fmt.Errorf("%s: more than %d files", name, filesMax)
			}
			out = append(out, path)
			return nil
		})
		if err != nil {
			return nil, err
		}
	}
	return out, nil
}

// read reads the files, and the files that they name, and reports all mistakes before anything is
// sent.
func read(ctx context.Context, named []string) (api.ApplyRequest, error) {
	var body api.ApplyRequest
	list, err := paths(named)
	errs := []error{err}
	for _, path := range list {
		text, err := cli.ReadArgFile(ctx, path)
		if err != nil {
			errs = append(errs, err)
			continue
		}
		body.Files = append(body.Files, windows.File{Name: path, Content: string(text)})
	}
	known := map[string]bool{}
	for _, ics := range manifest.Attachments(body.Files) {
		path := windows.Attached(ics.File, ics.Name)
		if known[path] {
			continue
		}
		known[path] = true
		text, err := files.Read(path, cli.ArgFileMax)
		if err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", ics.File, err))
			continue
		}
		body.Attached = append(body.Attached, windows.File{Name: path, Content: string(text)})
	}
	if err := errors.Join(errs...); err != nil {
		return body, err
	}
	_, err = manifest.Read(manifest.Input{Files: body.Files, Attached: body.Attached,
		Rollout: jobs.CheckRollout})
	return body, err
}
