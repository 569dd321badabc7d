package scripts

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
)

// A path selects a value in JSON by keys and list indexes, separated by dots. A key that
// contains a dot or a blank stands in double quotes: slots.0."rootfs.0".state.

// splitPath splits a path at its dots.
func splitPath(path string) ([]string, error) {
	var parts []string
	for rest := path; ; {
		if strings.HasPrefix(rest, `"`) {
			end := strings.IndexByte(rest[1:], '"')
			if end < 0 {
				return nil, fmt.Errorf("path %s: a quote has no end", brief(path))
			}
			parts, rest = append(parts, rest[1:end+1]), rest[end+2:]
		} else {
			end := strings.IndexByte(rest, '.')
			if end < 0 {
				end = len(rest)
			}
			if end == 0 || strings.ContainsAny(rest[:end], `" `) {
				return nil, fmt.Errorf("path %s: want keys and places in lists with dots between them, "+
					`such as slots.0.state or a."b.c"`, brief(path))
			}
			parts, rest = append(parts, rest[:end]), rest[end:]
		}
		if rest == "" {
			return parts, nil
		}
		if rest[0] != '.' {
			return nil, fmt.Errorf("path %s: want a dot behind the quotes", brief(path))
		}
		rest = rest[1:]
	}
}

// readJSON parses an output that is one JSON value.
func readJSON(output []byte) (any, error) {
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

// follow returns the value at a path as text; a number keeps its original spelling.
func follow(v any, path string) (string, error) {
	parts, err := splitPath(path)
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
