package watch

import (
	"fmt"
	"maps"
	"strings"

	"muster/api"
	"muster/cli"
	"muster/jobs"
)

// EventLine shows an event in one line.
func EventLine(h jobs.Happening) string {
	at := "-"
	if !h.At.IsZero() {
		at = h.At.UTC().Format("15:04:05.000Z")
	}
	line := fmt.Sprintf("%s  %-10s %-9s %s", at, cli.Cell(h.Zone), cli.Cell(h.Event),
		cli.Cell(h.Object))
	note, rest := splitNote(h.Detail)
	if m, ok := rest.(map[string]any); ok && m["proof"] == string(api.NotProven) {
		line += "  NOT PROVEN"
	}
	if note != "" {
		line += "  " + cli.Cell(note)
	}
	if rest != nil {
		if text, err := cli.Encode(rest, ""); err == nil {
			line += "  " + strings.TrimSpace(text)
		}
	}
	return strings.TrimRight(line, " ") + "\n"
}

// splitNote takes the part for people out of a detail: the note of an order says who gave it, and
// why.
func splitNote(detail any) (note string, rest any) {
	m, ok := detail.(map[string]any)
	if !ok {
		return "", detail
	}
	if note, ok = m["note"].(string); !ok {
		return "", detail
	}
	if len(m) == 1 {
		return note, nil
	}
	m = maps.Clone(m)
	delete(m, "note")
	return note, m
}
