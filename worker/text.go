package worker

import (
	"bytes"
	"errors"
	"strings"
	"unicode/utf8"

	"muster/fleet/remote"
)

const (
	// errorMax bounds the error of a result, in bytes; the queue keeps no more.
	errorMax = 300

	// lastLineMax bounds what is looked at to find the last line of an output.
	lastLineMax = 1 << 10
)

// oneLine makes of any text one line for people: valid UTF-8, harmless on a
// terminal, at most errorMax bytes.
func oneLine(text string) string { return shortened(text, errorMax) }

// shortened is oneLine with another bound.
func shortened(text string, most int) string {
	if len(text) > 4*most {
		text = text[:4*most]
	}
	line := strings.Join(strings.Fields(remote.Printable([]byte(text))), " ")
	if len(line) <= most {
		return line
	}
	const mark = "…"
	cut := most - len(mark)
	for !utf8.RuneStart(line[cut]) {
		cut--
	}
	return line[:cut] + mark
}

// lastLine is the last line of an output that says something; empty: none does.
func lastLine(o remote.Output) string {
	for _, part := range [][]byte{o.Tail, o.Head} {
		part = bytes.TrimSpace(part)
		if len(part) == 0 {
			continue
		}
		part = part[max(0, len(part)-lastLineMax):]
		line := part[bytes.LastIndexByte(part, '\n')+1:]
		return string(bytes.TrimSpace(line))
	}
	return ""
}

// reason is what an error says about a host, without the host's name: that is
// part of the job's.
func reason(err error) string {
	var e *remote.Error
	switch {
	case !errors.As(err, &e):
		return err.Error()
	case e.Op == "connect":
		return "connect " + e.Addr + ": " + e.Err.Error()
	}
	return e.Err.Error()
}

// also puts more words behind a colon, if there are any.
func also(text, more string) string {
	if more == "" {
		return text
	}
	return text + ": " + more
}
