package cli

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"strings"
	"time"
	"unicode/utf16"
	"unicode/utf8"

	"muster/fleet/remote"
	"muster/internal/wording"
	"muster/jobs"
)

// Say writes one line to err, for the person who waits. The line is no result, so a failure to
// write it is ignored.
func (s *Screen) Say(format string, args ...any) {
	fmt.Fprintf(s.Err, format+"\n", args...)
}

// Write writes a result.
func (s *Screen) Write(text string) error {
	if _, err := io.WriteString(s.Out, text); err != nil {
		return fmt.Errorf("write the result: %w", err)
	}
	return nil
}

// WriteJSON writes a value as one indented JSON text.
func (s *Screen) WriteJSON(v any) error {
	text, err := Encode(v, "  ")
	if err != nil {
		return err
	}
	return s.Write(text)
}

// List shows a list of things: JSON shows values, a table the grid. If the list is empty it prints
// none.
func (s *Screen) List(values any, g Grid, none string) error {
	if s.JSON {
		return s.WriteJSON(values)
	}
	if len(g.Rows) == 0 {
		s.Say("%s", none)
		return nil
	}
	return s.Write(g.Render(s.TableWidth(), !s.Headless))
}

// Encode returns JSON that is harmless on a terminal, too.
func Encode(v any, indent string) (string, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	e.SetIndent("", indent)
	if err := e.Encode(v); err != nil {
		return "", err
	}
	return EscapeJSON(b.Bytes()), nil
}

// EscapeJSON writes characters that a terminal would obey, or an eye would miss, as \u…. They occur
// only inside the strings of a JSON text, so its value stays the same.
func EscapeJSON(text []byte) string {
	var b strings.Builder
	b.Grow(len(text))
	for len(text) > 0 {
		r, size := utf8.DecodeRune(text)
		switch {
		case r < utf8.RuneSelf && (r >= ' ' && r != 0x7f || r == '\n'):
			b.WriteByte(byte(r))
		case r >= utf8.RuneSelf && remote.Harmless(string(text[:size])) == string(text[:size]):
			b.Write(text[:size])
		case r > 0xffff:
			high, low := utf16.EncodeRune(r)
			fmt.Fprintf(&b, `\u%04x\u%04x`, high, low)
		default:
			fmt.Fprintf(&b, `\u%04x`, r)
		}
		text = text[size:]
	}
	return b.String()
}

// Cell turns a text of muster into one harmless line. Output of a host in it is printable or quoted
// already, so backslashes stay.
func Cell(text string) string {
	return lineBreaks.Replace(strings.TrimSpace(remote.Harmless(text)))
}

// SaidCell turns output of a host into one harmless line.
func SaidCell(text string) string {
	return Cell(strings.ReplaceAll(remote.Printable([]byte(text)), "\n", `\x0a`))
}

var lineBreaks = strings.NewReplacer("\n", `\n`, "\t", " ")

// OrDash returns a dash for an empty text.
func OrDash(text string) string {
	if text == "" {
		return "-"
	}
	return text
}

// Count returns a number with its noun.
func Count(n int, noun string) string { return wording.Count(n, noun) }

// Moment returns an instant for people, to the second.
func Moment(t jobs.Time) string {
	if t.IsZero() {
		return "-"
	}
	return t.UTC().Format("2006-01-02 15:04:05Z")
}

// Ago returns how long ago t was, for people.
func Ago(t jobs.Time, now time.Time) string {
	if t.IsZero() {
		return "-"
	}
	return Span(max(0, now.Sub(t.Time))) + " ago"
}

// Took returns the time between two instants; if the second is not set, the time until now.
func Took(from, to jobs.Time, now time.Time) string {
	switch {
	case from.IsZero():
		return "-"
	case to.IsZero():
		return Span(max(0, now.Sub(from.Time)))
	}
	return Span(max(0, to.Sub(from.Time)))
}

// Seconds converts a number from the network, which may be anything, to a duration.
func Seconds(s float64) time.Duration {
	if math.IsNaN(s) || s < 0 {
		return 0
	}
	return time.Duration(min(s, math.MaxInt32) * float64(time.Second))
}

// Span returns a duration with two significant figures.
func Span(d time.Duration) string {
	const day = 24 * time.Hour
	switch {
	case d < 9950*time.Millisecond:
		return fmt.Sprintf("%.1fs", d.Seconds())
	case d < time.Minute-time.Second/2:
		return fmt.Sprintf("%.0fs", d.Seconds())
	case d < time.Hour-time.Second/2:
		d = d.Round(time.Second)
		return fmt.Sprintf("%dm%02ds", d/time.Minute, d%time.Minute/time.Second)
	case d < day-time.Minute/2:
		d = d.Round(time.Minute)
		return fmt.Sprintf("%dh%02dm", d/time.Hour, d%time.Hour/time.Minute)
	}
	d = d.Round(time.Hour)
	return fmt.Sprintf("%dd%02dh", d/day, d%day/time.Hour)
}
