package jobs

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"
	"unicode/utf8"
)

// Ran records what a task runs, for later questions. It never holds a secret, not even sealed.
type Ran struct {
	Version   string     `json:"version,omitempty"` // version of the runbook, in its author's words
	SHA256    string     `json:"sha256"`            // of the runbook's text, in hex
	Work      string     `json:"work"`              // equal for equal work, see WorkOf
	Arguments []Argument `json:"arguments"`         // sorted by name
	Trace     string     `json:"trace,omitempty"`   // traceparent of the caller; empty: none
}

// Argument is one argument of a task. A long value is cut: Value is then its beginning, and Bytes
// and SHA256 describe the whole. A file that is not text has no beginning.
type Argument struct {
	Name   string `json:"name"`
	Value  string `json:"value"`
	Secret bool   `json:"secret,omitempty"` // only the name is kept
	File   bool   `json:"file,omitempty"`   // Value is the content of the file
	Cut    bool   `json:"cut,omitempty"`    // Value is only the beginning, or empty
	Bytes  int64  `json:"bytes,omitempty"`  // length of the whole, of a cut value or a file
	SHA256 string `json:"sha256,omitempty"` // likewise, in hex
}

// The bounds of stored arguments. A task has one row of them, however many hosts it has.
const (
	argumentHead  = 4 << 10  // bytes of one value
	argumentHeads = 16 << 10 // bytes of all values of a task
)

// NewRan cuts long arguments. They must be sorted by name.
func NewRan(version, hash string, arguments []Argument) *Ran {
	r := &Ran{Version: version, SHA256: hash, Arguments: make([]Argument, 0, len(arguments))}
	room := argumentHeads
	for _, a := range arguments {
		if a.Secret {
			a = Argument{Name: a.Name, Secret: true}
		}
		most := min(room, argumentHead)
		if a.SHA256 == "" && (a.File || len(a.Value) > most) {
			sum := sha256.Sum256([]byte(a.Value))
			a.Bytes, a.SHA256 = int64(len(a.Value)), hex.EncodeToString(sum[:])
		}
		if a.File && !utf8.ValidString(a.Value) {
			a.Value = ""
		}
		a.Cut = a.Bytes > 0 && (len(a.Value) > most || int64(len(a.Value)) < a.Bytes)
		a.Value = head(a.Value, most)
		room -= len(a.Value)
		r.Arguments = append(r.Arguments, a)
	}
	return r
}

// head returns the beginning of a text, in a form that JSON and SQL accept.
func head(text string, most int) string {
	most = min(most, len(text))
	for range utf8.UTFMax - 1 { // so that no character is cut in two
		if most == 0 || most == len(text) || utf8.RuneStart(text[most]) {
			break
		}
		most--
	}
	return strings.ToValidUTF8(strings.ReplaceAll(text[:most], "\x00", "\uFFFD"), "\uFFFD")
}

// Text returns the argument for people: name='value', as a shell would read it.
func (a Argument) Text() string {
	switch {
	case a.Secret:
		return a.Name + "=(secret)"
	case a.File && a.Cut:
		return fmt.Sprintf("%s=(file of %d bytes, sha256 %s)", a.Name, a.Bytes, a.SHA256)
	case a.Cut:
		return fmt.Sprintf("%s=%s… (%d bytes, sha256 %s)", a.Name, quoted(a.Value), a.Bytes, a.SHA256)
	case a.File:
		return fmt.Sprintf("%s=%s (file, sha256 %s)", a.Name, quoted(a.Value), a.SHA256)
	}
	return a.Name + "=" + quoted(a.Value)
}

// Text returns all arguments in one line; empty if there are none, or if r is nil.
func (r *Ran) Text() string {
	if r == nil {
		return ""
	}
	words := make([]string, len(r.Arguments))
	for i, a := range r.Arguments {
		words[i] = a.Text()
	}
	return strings.Join(words, " ")
}

// Brief returns at most so many bytes of a text, and marks a cut.
func Brief(text string, most int) string {
	if len(text) <= most {
		return text
	}
	return head(text, most) + "…"
}

// quoted returns a text as one word of a shell.
func quoted(text string) string {
	plain := func(c rune) bool {
		return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' ||
			strings.ContainsRune("_-./:@%+,=", c)
	}
	if text != "" && strings.TrimFunc(text, plain) == "" {
		return text
	}
	return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'"
}

// WorkOf returns a name for the work of a task on a host. Two tasks have the same name if the
// runbook's name and text and all arguments are equal. A secret counts by its name alone, so that
// nobody can find its value by trying.
func WorkOf(runbook, hash string, arguments []Argument) string {
	h := sha256.New()
	fmt.Fprintf(h, "%q %q\n", runbook, hash)
	for _, a := range arguments {
		if a.Secret {
			a = Argument{Name: a.Name, Secret: true}
		}
		if a.SHA256 != "" {
			a.Value = ""
		}
		fmt.Fprintf(h, "%q %q %q %t\n", a.Name, a.Value, a.SHA256, a.Secret)
	}
	return hex.EncodeToString(h.Sum(nil)[:16])
}
