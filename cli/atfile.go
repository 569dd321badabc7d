package cli

import (
	"errors"
	"fmt"
	"strings"

	"muster/fleet"
)

// WithFiles puts the hosts in files into a selector. The operand @FILE is the union of the names or
// selectors in the file, one a line; # begins a comment, and @- is standard input. The server never
// reads a file that a client names.
func WithFiles(selector string, read func(path string) ([]byte, error)) (string, error) {
	var b strings.Builder
	var errs []error
	for {
		start := atSign(selector)
		if start < 0 {
			b.WriteString(selector)
			return b.String(), errors.Join(errs...)
		}
		path := selector[start+1:]
		if end := strings.IndexAny(path, ",!&^)"); end >= 0 {
			path = path[:end]
		}
		hosts, err := hostsInFile(strings.TrimSpace(path), read)
		if err != nil {
			errs = append(errs, err)
		}
		b.WriteString(selector[:start] + hosts)
		selector = selector[start+1+len(path):]
		if selector == "" || errs != nil {
			return b.String() + selector, errors.Join(errs...)
		}
		// The inserted text ends an operand, and so does the letter that stands for it here.
		b.WriteByte(selector[0])
		selector = selector[1:]
	}
}

// atSign returns the index of the '@' of the next file, or -1 if there is none. It begins an
// operand.
func atSign(selector string) int {
	before := byte(',')
	for i := range len(selector) {
		switch c := selector[i]; {
		case c == '@' && strings.IndexByte(",!&^(", before) >= 0:
			return i
		case c != ' ':
			before = c
		}
	}
	return -1
}

// hostsInFile returns the content of a file as one operand.
func hostsInFile(path string, read func(path string) ([]byte, error)) (string, error) {
	if path == "" {
		return "", errors.New("'@' has no file behind it: want @FILE, or @- for standard input")
	}
	content, err := read(path)
	if err != nil {
		return "", err
	}
	var names, selectors []string
	var errs []error
	number := 0
	for line := range strings.Lines(string(content)) {
		number++
		if line = hostLine(line); line == "" {
			continue
		}
		if _, err := fleet.ParseSelector(line); err != nil {
			if len(errs) < mistakesMax {
				errs = append(errs, fmt.Errorf("%s:%d: %w", path, number, err))
			}
			continue
		}
		if fleet.CheckName(line) == nil && line != "all" {
			names = append(names, line)
			continue
		}
		selectors = append(selectors, "("+line+")")
	}
	if len(names)+len(selectors)+len(errs) == 0 {
		errs = append(errs, fmt.Errorf("%s names no host: want one name or selector a line", path))
	}
	if len(names) > 0 {
		selectors = append(selectors, fleet.Fold(names))
	}
	return "(" + strings.Join(selectors, ",") + ")", errors.Join(errs...)
}

// hostLine returns a line without its comment.
func hostLine(line string) string {
	line, _, _ = strings.Cut(line, "#")
	return strings.TrimSpace(line)
}

// mistakesMax bounds the mistakes of a file that are reported.
const mistakesMax = 20
