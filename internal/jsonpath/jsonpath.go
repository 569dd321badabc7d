// Package jsonpath finds a value in the JSON that a command printed.
//
// A path selects a value by keys and list indexes, separated by dots. A key that contains a dot or
// a blank stands in double quotes: slots.0."rootfs.0".state.
//
// Floor 0: may import nothing of muster but internal/wording.
package jsonpath

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"

	"muster/internal/wording"
)

// Split splits a path at its dots.
func Split(path string) ([]string, error) {
	var parts []string
	for rest := path; ; {
		if strings.HasPrefix(rest, `"`) {
			end := strings.IndexByte(rest[1:], '"')
			if end < 0 {
				return nil, fmt.Errorf("path %s: a quote has no end", wording.Quote(path))
			}
			parts, rest = append(parts, rest[1:end+1]), rest[end+2:]
		} else {
			end := strings.IndexByte(rest, '.')
			if end < 0 {
				end = len(rest)
			}
			if end == 0 || strings.ContainsAny(rest[:end], `" `) {
				return nil, fmt.Errorf("path %s: want keys and places in lists with dots between them, "+
					`such as slots.0.state or a."b.c"`, wording.Quote(path))
			}
			parts, rest = append(parts, rest[:end]), rest[end:]
		}
		if rest == "" {
			return parts, nil
		}
		if rest[0] != '.' {
			return nil, fmt.Errorf("path %s: want a dot behind the quotes", wording.Quote(path))
		}
		rest = rest[1:]
	}
}

// Parse parses an output that is one JSON value.
func Parse(output []byte) (any, error) {
	d := json.NewDecoder(bytes.NewReader(output))
	d.UseNumber()
	var v any
	if err := d.Decode(&v); err != nil {
		return nil, fmt.Errorf("the output is not JSON: %w", err)
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return nil, errors.New("the output is not JSON alone: something follows it")
	}
	return v, nil
}

// Find returns the value at a path as text; a number keeps its original spelling.
func Find(v any, path string) (string, error) {
	parts, err := Split(path)
	if err != nil {
		return "", err
	}
	for i, part := range parts {
		var ok bool
		switch in := v.(type) {
		case map[string]any:
			v, ok = in[part]
		case []any:
			n, err := strconv.Atoi(part)
			if ok = err == nil && n >= 0 && n < len(in); ok {
				v = in[n]
			}
		}
		if !ok {
			return "", fmt.Errorf("the output has no %s", strings.Join(parts[:i+1], "."))
		}
	}
	switch v := v.(type) {
	case string:
		return v, nil
	case json.Number:
		return v.String(), nil
	}
	text, err := json.Marshal(v)
	return string(text), err
}
