package triggers

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"muster/events"
	"muster/internal/jsonpath"
	"muster/internal/wording"
)

// A Field finds values in an event: in its body by a path, as internal/jsonpath has them, or among
// what is known of the event itself. A step * of a path means each item of a list.
type Field struct {
	Path   string
	About  string // source, kind, customer or id of the event; empty: the path counts
	Before string // of a value, only the text before the first such text counts

	parts []string
}

// abouts lists what is known of an event itself.
func abouts() []string { return []string{"source", "kind", "customer", "id"} }

// String returns the field for messages.
func (f Field) String() string {
	if f.About != "" {
		return "event." + f.About
	}
	return f.Path
}

// Spreads reports whether the field may have several values.
func (f Field) Spreads() bool { return slices.Contains(f.parts, "*") }

// newField returns the field of a path.
func newField(path string) (Field, error) {
	parts, err := jsonpath.Split(path)
	return Field{Path: path, parts: parts}, err
}

// The bounds of values.
const (
	valuesMax = 1000      // of one field
	boundMax  = 64 << 10  // bytes of all values that are bound
	bodyMax   = 1<<20 + 1 // bytes of an event
)

// readBody parses the body of an event.
func readBody(body []byte) (any, error) {
	if len(body) > bodyMax {
		return nil, fmt.Errorf("the body of the event has %d bytes: at most 1 MiB", len(body))
	}
	d := json.NewDecoder(bytes.NewReader(body))
	d.UseNumber()
	var v any
	if err := d.Decode(&v); err != nil {
		return nil, errors.New("the body of the event is not JSON: " + wording.Clip(err.Error()))
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return nil, errors.New("the body of the event is not JSON alone: something follows it")
	}
	return v, nil
}

// seen is an event with its body as it was parsed.
type seen struct {
	event events.Event
	body  any
	wrong error // why the body cannot be read
}

// see parses the body of an event.
func see(e events.Event) seen {
	body, err := readBody(e.Body)
	return seen{e, body, err}
}

// values returns the values of a field as texts, in their order. The error says why there is none.
func (s seen) values(f Field) ([]string, error) {
	if f.About != "" {
		return s.about(f)
	}
	if s.wrong != nil {
		return nil, s.wrong
	}
	found, err := find(s.body, f.parts, 0)
	if err != nil {
		return nil, err
	}
	if len(found) == 0 {
		return nil, fmt.Errorf("the event has an empty list at %s", f)
	}
	if len(found) > valuesMax {
		return nil, fmt.Errorf("the event has more than %d values at %s", valuesMax, f)
	}
	out := make([]string, len(found))
	for i, v := range found {
		if out[i], err = textOf(v); err != nil {
			return nil, fmt.Errorf("%s of the event %w", f, err)
		}
		out[i] = f.cut(out[i])
	}
	return out, nil
}

func (s seen) about(f Field) ([]string, error) {
	text := map[string]string{"source": s.event.Source, "kind": s.event.Kind,
		"customer": s.event.Customer, "id": s.event.ID}[f.About]
	if text == "" {
		return nil, fmt.Errorf("the event has no %s", f.About)
	}
	return []string{f.cut(text)}, nil
}

func (f Field) cut(text string) string {
	if f.Before == "" {
		return text
	}
	text, _, _ = strings.Cut(text, f.Before)
	return text
}

// has reports whether an event has a field at all, also an empty or a composed one.
func (s seen) has(f Field) bool {
	if f.About != "" {
		_, err := s.about(f)
		return err == nil
	}
	found, err := find(s.body, f.parts, 0)
	return s.wrong == nil && err == nil && len(found) > 0
}

// find returns the values at a path, from the step at an index on.
func find(v any, parts []string, at int) ([]any, error) {
	if at == len(parts) {
		return []any{v}, nil
	}
	if list, ok := v.([]any); ok && parts[at] == "*" {
		var out []any
		for _, item := range list {
			found, err := find(item, parts, at+1)
			if err != nil {
				return nil, err
			}
			if out = append(out, found...); len(out) > valuesMax {
				break
			}
		}
		return out, nil
	}
	ok := false
	switch in := v.(type) {
	case map[string]any:
		v, ok = in[parts[at]]
	case []any:
		n, err := strconv.Atoi(parts[at])
		if ok = err == nil && n >= 0 && n < len(in); ok {
			v = in[n]
		}
	}
	if !ok {
		return nil, fmt.Errorf("the event has no %s", strings.Join(parts[:at+1], "."))
	}
	return find(v, parts, at+1)
}

// textOf returns a value as a text; a number keeps its spelling.
func textOf(v any) (string, error) {
	switch v := v.(type) {
	case string:
		return v, nil
	case json.Number:
		return v.String(), nil
	case bool:
		return strconv.FormatBool(v), nil
	case nil:
		return "", errors.New("is null: want a text, a number, true or false")
	case []any:
		return "", errors.New("is a list: want a text, a number, true or false")
	}
	return "", errors.New("is an object: want a text, a number, true or false")
}

// fits reports whether a text fits a glob: * is any text, ? one character, all else is itself.
func fits(glob, text string) bool {
	g, t := []rune(glob), []rune(text)
	star, mark, i, j := -1, 0, 0, 0
	for j < len(t) {
		switch {
		case i < len(g) && g[i] == '*':
			star, mark, i = i, j, i+1
		case i < len(g) && (g[i] == '?' || g[i] == t[j]):
			i, j = i+1, j+1
		case star >= 0:
			mark++
			i, j = star+1, mark
		default:
			return false
		}
	}
	for i < len(g) && g[i] == '*' {
		i++
	}
	return i == len(g)
}

// fitsAny reports whether a text fits one of some globs.
func fitsAny(globs []string, text string) bool {
	return slices.ContainsFunc(globs, func(g string) bool { return fits(g, text) })
}
