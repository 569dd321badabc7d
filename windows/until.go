package windows

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"
)

// This file is about `until: 2027-12-31`, which means to the end of that day. An older muster took
// it for the first moment of the day, and what it took stays as it was: so a file is kept with the
// instant in place of the day, which all versions read alike, and a day without a time in a file
// that is kept is of an older muster.

// until is the first reading that is out.
func (r *reader) until(n *yaml.Node, of string) Wall {
	w := r.wall(n)
	if w == 0 || !isDay(n.Value) {
		return w
	}
	if r.kept {
		r.outdated(of, fmt.Sprintf("%s:%d: until %s is the first moment of that day, as an older muster "+
			"read it; applied anew it is the end of the day", r.file, n.Line, n.Value))
		return w
	}
	return endOfDay(w)
}

// endOfDay is the first reading behind a day. The year 9999 has no later one that can be written.
func endOfDay(first Wall) Wall {
	if end := first + day; len(end.String()) == len("2006-01-02 15:04") {
		return end
	}
	return first + day - 1
}

func isDay(text string) bool {
	_, err := time.Parse(time.DateOnly, text)
	return err == nil
}

// plainUntil is the file as it is kept: with the instant in place of each day in `until`.
func (f File) plainUntil() (File, error) {
	var doc yaml.Node
	if err := yaml.Unmarshal([]byte(f.Content), &doc); err != nil || len(doc.Content) == 0 {
		return f, err
	}
	var days []*yaml.Node
	for _, list := range valuesOf(doc.Content[0], "windows", "freezes") {
		for _, entry := range list.Content {
			for _, n := range valuesOf(entry, "until") {
				if n.Kind == yaml.ScalarNode && isDay(n.Value) {
					days = append(days, n)
				}
			}
		}
	}
	// From the end, so that the places of the others stay what they are.
	slices.Reverse(days)
	lines := strings.Split(f.Content, "\n")
	var errs []error
	for _, n := range days {
		if !putInstant(lines, n) {
			errs = append(errs, fmt.Errorf("%s:%d: until: write %s without a tag or an anchor, on the line "+
				"of its key", f.Name, n.Line, n.Value))
		}
	}
	f.Content = strings.Join(lines, "\n")
	return f, errors.Join(errs...)
}

// putInstant writes the end of a day where the day stands; false: it is not found there.
func putInstant(lines []string, n *yaml.Node) bool {
	if n.Line < 1 || n.Line > len(lines) {
		return false
	}
	w, err := ParseWall(n.Value)
	line := []rune(lines[n.Line-1])
	at := n.Column - 1
	if err != nil || at < 0 || at > len(line) {
		return false
	}
	rest := string(line[at:])
	for _, quote := range []string{"", `"`, "'"} {
		if behind, ok := strings.CutPrefix(rest, quote+n.Value+quote); ok {
			lines[n.Line-1] = string(line[:at]) + `"` + endOfDay(w).String() + `"` + behind
			return true
		}
	}
	return false
}
