package jobs

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"
	"unicode/utf8"
)

// Ran is what a task runs, as it is kept for those who ask later. It holds no text of a
// secret, neither plain nor sealed.
type Ran struct {
	Version   string     `json:"version,omitempty"` // of the runbook, in its author's words
	SHA256    string     `json:"sha256"`            // of the runbook's text, in hex
	Work      string     `json:"work"`              // equal where the same work is done, see WorkOf
	Arguments []Argument `json:"arguments"`         // by name
}

// Argument is one argument of a task. What is long is cut: Value is its beginning, and Bytes
// and SHA256 are those of all of it. Of a file that holds no text there is no beginning.
type Argument struct {
	Name   string `json:"name"`
	Value  string `json:"value"`
	Secret bool   `json:"secret,omitempty"` // nothing else is kept of it
	File   bool   `json:"file,omitempty"`   // Value is what the file holds
	Cut    bool   `json:"cut,omitempty"`    // Value is the beginning only, or nothing
	Bytes  int64  `json:"bytes,omitempty"`  // of all of it, where it is cut or a file
	SHA256 string `json:"sha256,omitempty"` // likewise, in hex
}

// The bounds of what is kept of arguments. A task has one row of it, whatever the number
// of its hosts.
const (
	argumentHead  = 4 << 10  // bytes of one value
	argumentHeads = 16 << 10 // bytes of all values of a task
)

// NewRan bounds the arguments, which must be sorted by name.
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

// head is the beginning of a text, as one that JSON and SQL take.
func head(text string, most int) string {
	most = min(most, len(text))
	for range utf8.UTFMax - 1 { // a letter is not cut in two
		if most == 0 || most == len(text) || utf8.RuneStart(text[most]) {
			break
		}
		most--
	}
	return strings.ToValidUTF8(strings.ReplaceAll(text[:most], "\x00", "\uFFFD"), "\uFFFD")
}

// Text is the argument as people read it: name='value', as a shell would take it.
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

// Text is all arguments in one line; empty if there are none, or if r is nil.
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

// Brief is a text of at most so many bytes; where it is cut, it says so.
func Brief(text string, most int) string {
	if len(text) <= most {
		return text
	}
	return head(text, most) + "…"
}

// quoted is a text as one word of a shell.
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

// WorkOf is a name for what a task does on a host: equal where the runbook's name and text
// and all arguments are. A secret counts by its name alone, so that nobody can find it by
// trying.
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
