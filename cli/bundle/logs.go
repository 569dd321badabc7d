package bundle

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"muster/internal/files"
	"muster/internal/proc"
	"muster/internal/seal"
)

// The bounds of the logs.
const (
	logMax      = 512 << 10 // bytes of a file
	logLineMax  = 2000      // bytes
	logLines    = "3000"
	journalMax  = 8 << 20 // bytes
	journalTime = 20 * time.Second
)

// units are the services of the packages.
var units = []string{"muster-server", "muster-master"}

// logs returns the last lines of the named files, or else those that systemd has of the units.
func (p site) logs(ctx context.Context) (any, error) {
	if len(p.flags.logs) == 0 {
		text, err := journal(ctx)
		return told.ReplaceAllString(text, "${1}"+seal.Mask), err
	}
	var out strings.Builder
	var errs []error
	for _, path := range p.flags.logs {
		text, err := tail(path)
		if err != nil {
			errs = append(errs, fmt.Errorf("--log: %w", err))
			continue
		}
		fmt.Fprintf(&out, "== %s\n%s", path, short(text))
	}
	if len(errs) > 0 {
		return nil, errors.Join(errs...)
	}
	return told.ReplaceAllString(out.String(), "${1}"+seal.Mask), nil
}

// tail returns the last whole lines of a file.
func tail(path string) (string, error) {
	f, info, err := files.Open(path)
	if err != nil {
		return "", err
	}
	defer f.Close()
	from := max(info.Size()-logMax, 0)
	text, err := io.ReadAll(io.NewSectionReader(f, from, logMax))
	if err != nil {
		return "", err
	}
	all := string(text)
	if from > 0 {
		_, all, _ = strings.Cut(all, "\n")
	}
	return all, nil
}

// journal asks systemd.
func journal(ctx context.Context) (string, error) {
	const name = "name the files of the logs with --log"
	path, err := proc.Find("journalctl")
	if err != nil {
		return "", fmt.Errorf("there is no journalctl here: %s", name)
	}
	ctx, cancel := context.WithTimeout(ctx, journalTime)
	defer cancel()
	args := []string{"--no-pager", "--quiet", "--output=short-iso", "--lines=" + logLines}
	for _, unit := range units {
		args = append(args, "--unit="+unit)
	}
	text, err := proc.Output(ctx, proc.Program{Path: path, Args: args, Env: proc.ChildEnv(),
		Most: journalMax})
	if err != nil {
		return "", fmt.Errorf("journalctl: %w: %s", err, name)
	}
	if len(text) == 0 {
		return "", fmt.Errorf("the journal has nothing of %s that you may read: %s",
			strings.Join(units, " and "), name)
	}
	return short(string(text)), nil
}

// short cuts long lines.
func short(text string) string {
	var out strings.Builder
	for line := range strings.Lines(text) {
		line = strings.TrimRight(line, "\n")
		if len(line) > logLineMax {
			line = strings.ToValidUTF8(line[:logLineMax], "") + " …"
		}
		out.WriteString(line + "\n")
	}
	return out.String()
}
