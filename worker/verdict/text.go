package verdict

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"
	"unicode/utf8"

	"muster/fleet/remote"
)

const (
	// errorMax bounds the error of a result, in bytes; the queue keeps no more.
	errorMax = 300

	// lastLineMax bounds the part of an output in which the last line is searched, in bytes.
	lastLineMax = 1 << 10
)

// OneLine returns a text of muster as one line for people: valid UTF-8, harmless on a terminal, at
// most errorMax bytes. The text quotes the words of hosts already.
func OneLine(text string) string { return Shortened(text, errorMax) }

// Shortened is OneLine with another bound. Where it cuts within quotes it ends them: the words
// that follow must not be taken for words of the host.
func Shortened(text string, most int) string {
	if len(text) > 4*most {
		text = text[:4*most]
	}
	line := strings.Join(strings.Fields(remote.Harmless(text)), " ")
	if len(line) <= most {
		return line
	}
	cut := most - len(`"…`)
	for !utf8.RuneStart(line[cut]) {
		cut--
	}
	open, escaped := inQuotes(line[:cut])
	if escaped {
		cut--
	}
	if line = line[:cut]; open {
		line += `"`
	}
	return line + "…"
}

// inQuotes reports whether a text ends within quotes, and whether right behind a backslash there.
func inQuotes(text string) (open, escaped bool) {
	for i := range len(text) {
		switch {
		case escaped:
			escaped = false
		case text[i] == '"':
			open = !open
		case text[i] == '\\':
			escaped = open
		}
	}
	return open, escaped
}

// quoteMax bounds the words of a host in a text, in bytes. It leaves room for the words of muster.
const quoteMax = 160

// HostSaid puts the last line of a host after a text of muster, in quotes and with the name of its
// speaker, so that no host can forge a sentence of muster there.
func HostSaid(text, words string) string {
	said := remote.Quote([]byte(words), quoteMax)
	switch {
	case said == "":
		return text
	case text == "":
		return "the host said: " + said
	}
	return text + "; the host said: " + said
}

// LastLine returns the last line of an output that is not blank.
func LastLine(o remote.Output) string {
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

// Reason returns the text of an error without the name of the host, which the id of the job has.
func Reason(err error) string {
	var e *remote.Error
	switch {
	case !errors.As(err, &e):
		return err.Error()
	case e.Op == "connect":
		return "connect " + e.Addr + ": " + e.Err.Error()
	}
	return e.Err.Error()
}

// NoAnswer returns why a question to Redis, which had the time within, got no answer. It returns
// any other error unchanged.
func NoAnswer(err error, within time.Duration) error {
	switch {
	case errors.Is(err, context.DeadlineExceeded):
		return fmt.Errorf("no answer from Redis within %s", within.Round(time.Millisecond))
	case errors.Is(err, context.Canceled):
		return errors.New("the question to Redis was called off")
	}
	return err
}

// Also puts more words after a text and a colon, if there are any.
func Also(text, more string) string {
	if more == "" {
		return text
	}
	return text + ": " + more
}
