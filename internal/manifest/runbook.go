package manifest

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"muster/internal/wording"
	"muster/scripts"
	"muster/windows"
)

// A Book is a runbook with its text.
type Book struct {
	Runbook *scripts.Runbook
	Text    string         // as a file has it, without the kind
	Source  scripts.Source // the same in the lines of its document
}

func readRunbooks(docs []windows.File, _ Input) (out []Entry, err error) {
	var wrong []error
	for _, f := range docs {
		r, err := scripts.Parse(f.Name, []byte(f.Content))
		var many scripts.Mistakes
		switch {
		case errors.As(err, &many):
			for _, m := range many {
				wrong = append(wrong, mistake{m.File, m.Line, m.Text})
			}
		case err != nil:
			wrong = append(wrong, err)
		default:
			b := Book{r, strings.TrimSpace(f.Content) + "\n", scripts.Source{File: f.Name,
				Data: []byte(f.Content)}}
			out = append(out, Entry{Kind: Runbook, Name: r.Name, Value: b})
		}
	}
	return out, errors.Join(wrong...)
}

func runbookDifferences(is, was Entry) []string {
	old, known := was.Value.(Book)
	if !known {
		return []string{unreadable}
	}
	a, b := keysOf(is.Value.(Book).Text), keysOf(old.Text)
	var out []string
	for _, key := range slices.Sorted(maps.Keys(merged(a, b))) {
		if a[key] != b[key] {
			out = append(out, fmt.Sprintf("%s: %s → %s", key, orNone(wording.OneLine(b[key], 400)),
				orNone(wording.OneLine(a[key], 400))))
		}
	}
	return out
}

// keysOf returns the keys of a runbook, each with its value in one form.
func keysOf(text string) map[string]string {
	var top map[string]any
	out := map[string]string{}
	if err := yaml.Unmarshal([]byte(text), &top); err != nil {
		out["text"] = text // it is compared as it stands
		return out
	}
	for key, value := range top {
		one, err := json.Marshal(value)
		if err != nil {
			one = fmt.Append(nil, value)
		}
		out[key] = string(one)
	}
	return out
}

func merged(a, b map[string]string) map[string]string {
	out := maps.Clone(a)
	maps.Copy(out, b)
	return out
}
