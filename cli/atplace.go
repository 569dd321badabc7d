package cli

import (
	"context"
	"fmt"
	"strings"

	"muster/fleet"
)

// filesRead holds the files that a command has read, unchanged: an error about an unknown host
// names the place of the host.
type filesRead struct{ list []fileRead }

type fileRead struct{ path, text string }

// Reader returns a reader of the files of arguments and selectors, "-" for standard input.
func (f *filesRead) Reader(ctx context.Context) func(path string) ([]byte, error) {
	return func(path string) ([]byte, error) {
		content, err := ReadArgFile(ctx, path)
		if err == nil {
			f.list = append(f.list, fileRead{path, string(content)})
		}
		return content, err
	}
}

// place returns the places of unknown hosts, in the order of files and lines. all is false if some
// are in no file.
func (f *filesRead) place(lost []fleet.Lost) (told []string, all bool) {
	if f == nil || len(f.list) == 0 {
		return nil, false
	}
	left := map[string]fleet.Lost{}
	for _, one := range lost {
		left[one.Name] = one
	}
	places := 0
	for _, file := range f.list {
		number := 0
		for line := range strings.Lines(file.text) {
			number++
			for _, one := range lostIn(hostLine(line), lost, left) {
				if places++; places <= mistakesMax {
					told = append(told, fmt.Sprintf("%s:%d: %s is not in the inventory%s", Cell(file.path), number,
						Cell(one.Name), nearestText(one.Nearest)))
				}
			}
		}
	}
	if more := places - mistakesMax; more > 0 {
		told = append(told, fmt.Sprintf("and %d more", more))
	}
	return told, len(left) == 0
}

// lostIn returns the unknown hosts of a line, and removes them from left.
func lostIn(line string, lost []fleet.Lost, left map[string]fleet.Lost) (found []fleet.Lost) {
	if line == "" || len(left) == 0 {
		return nil
	}
	if one, ok := left[line]; ok {
		delete(left, line)
		return []fleet.Lost{one}
	}
	sel, err := fleet.ParseSelector(line)
	if err != nil || fleet.CheckName(line) == nil {
		return nil // not a line of hosts, or a known one
	}
	for _, one := range lost {
		if _, ok := left[one.Name]; ok && sel.NamesHost(one.Name) {
			delete(left, one.Name)
			found = append(found, one)
		}
	}
	return found
}

func nearestText(list []string) string {
	if len(list) == 0 {
		return ""
	}
	return "; nearest: " + Cell(strings.Join(list, ", "))
}
