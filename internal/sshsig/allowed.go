package sshsig

import (
	"bytes"
	"encoding/base64"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"golang.org/x/crypto/ssh"

	"muster/internal/wording"
)

const (
	// allowedMax is the size of a file of allowed signers, in bytes.
	allowedMax = 1 << 20

	blanks = " \t"

	// timeForm is the form of times in messages.
	timeForm = "2006-01-02 15:04:05 UTC"
)

// Allowed are the keys that may sign, and whose they are, as in a file allowed_signers. The zero
// value allows none.
type Allowed struct {
	entries []entry
}

// entry is a line with a key.
type entry struct {
	line   int
	names  []string
	key    []byte // as on the wire
	limits limits
}

// ParseAllowed reads a file of allowed signers, as ssh-keygen(1) describes it, and reports all
// mistakes at once, each with its line. Principals are names, not patterns, so that each signature
// has a signer. A time without Z is one of the place where muster runs, as it is in winter: there
// OpenSSH does not know summer time.
func ParseAllowed(data []byte) (Allowed, error) { return parseAllowed(data, time.Local) }

func parseAllowed(data []byte, place *time.Location) (Allowed, error) {
	if len(data) > allowedMax {
		return Allowed{}, fmt.Errorf("the allowed signers have %d bytes: want at most %d", len(data),
			allowedMax)
	}
	var a Allowed
	var errs []error
	for i, text := range strings.Split(string(data), "\n") {
		text = strings.Trim(strings.TrimSuffix(text, "\r"), blanks)
		if text == "" || text[0] == '#' {
			continue
		}
		e, mistakes := parseEntry(text, place)
		for _, m := range mistakes {
			errs = append(errs, fmt.Errorf("line %d: %w", i+1, m))
		}
		e.line = i + 1
		a.entries = append(a.entries, e)
	}
	if len(errs) > 0 {
		return Allowed{}, errors.Join(errs...)
	}
	return a, nil
}

// parseEntry reads a line: principals, options if there are some, the type of the key, the key.
func parseEntry(text string, place *time.Location) (e entry, mistakes []error) {
	names, rest := cutField(text)
	if isType(names) {
		return e, []error{errors.New("it begins with the type of a key: want its owner's name there")}
	}
	e.names, mistakes = parseNames(names)
	if word, _ := cutField(rest); !isType(word) && rest != "" {
		end, closed := outside(rest, blanks)
		if !closed {
			return e, append(mistakes, errors.New("the options have a quote without an end: close it"))
		}
		var more []error
		e.limits, more = parseLimits(rest[:end], place)
		mistakes = append(mistakes, more...)
		rest = strings.TrimLeft(rest[end:], blanks)
	}
	key, err := parseKeyFields(rest)
	if err != nil {
		return e, append(mistakes, err)
	}
	e.key = key.Marshal()
	return e, mistakes
}

// cutField returns the first field of a text, and those behind it.
func cutField(text string) (field, rest string) {
	end := strings.IndexAny(text, blanks)
	if end < 0 {
		return text, ""
	}
	return text[:end], strings.TrimLeft(text[end:], blanks)
}

// parseNames reads the principals, with commas between them.
func parseNames(list string) (names []string, mistakes []error) {
	for name := range strings.SplitSeq(list, ",") {
		err := checkName("name in the principals", name)
		switch {
		case err != nil:
			mistakes = append(mistakes, err)
		case strings.ContainsAny(name, "*?!"):
			mistakes = append(mistakes, fmt.Errorf("the principal %s is a pattern, but it must be known "+
				"whose key this is: want names, with commas between them", wording.Quote(name)))
		case strings.Contains(name, `"`):
			mistakes = append(mistakes, fmt.Errorf("the principal %s has a quote: want it without",
				wording.Quote(name)))
		}
		names = append(names, name)
	}
	return names, mistakes
}

// parseKeyFields reads the type of a key and the key. A comment may follow.
func parseKeyFields(text string) (ssh.PublicKey, error) {
	kind, rest := cutField(text)
	if kind == "" {
		return nil, errors.New("it has no key: want the type of a key and the key, as in its file .pub")
	}
	if err := checkType(kind); err != nil {
		return nil, err
	}
	encoded, _ := cutField(rest)
	data, err := base64.StdEncoding.Strict().DecodeString(encoded)
	if err != nil || encoded == "" || strings.Contains(encoded, "\r") {
		return nil, fmt.Errorf("no key in base64 follows the type %s: want both as in the file .pub",
			kind)
	}
	key, err := parseKey(data)
	if err != nil {
		return nil, err
	}
	if key.Type() != kind {
		return nil, fmt.Errorf("the type is %s, but that of the key is %s: want both as in the file .pub",
			kind, key.Type())
	}
	return key, nil
}

// A Line is a line of the file, with a key.
type Line struct {
	Number int
	Names  []string
	Key    string // as KeyText writes it
	Why    string // why its key may not sign; empty: it may
}

// Lines returns the lines, with what is against a signature in a namespace at a time.
func (a Allowed) Lines(namespace string, at time.Time) []Line {
	list := make([]Line, len(a.entries))
	for i, e := range a.entries {
		list[i] = Line{Number: e.line, Names: e.names, Why: e.limits.against(namespace, at)}
		if key, err := ssh.ParsePublicKey(e.key); err == nil { // it was parsed before
			list[i].Key = strings.TrimSpace(string(ssh.MarshalAuthorizedKey(key)))
		}
	}
	return list
}

// Len returns the number of lines with a key.
func (a Allowed) Len() int { return len(a.entries) }

// Same reports whether two names are of one person: they are equal, or stand in one line.
func (a Allowed) Same(name, other string) bool {
	return name == other || slices.ContainsFunc(a.entries, func(e entry) bool {
		return slices.Contains(e.names, name) && slices.Contains(e.names, other)
	})
}

// Principals returns the names of those who sign with this key, in the order of the file, if it may
// sign in this namespace at this time. If there is none, why says for each line of the key what is
// against it, or that it is in no line.
func (a Allowed) Principals(key ssh.PublicKey, namespace string, at time.Time) (names []string,
	why error) {
	data := key.Marshal()
	var against []string
	for _, e := range a.entries {
		if !bytes.Equal(e.key, data) {
			continue
		}
		if not := e.limits.against(namespace, at); not != "" {
			against = append(against, fmt.Sprintf("by line %d %s", e.line, not))
			continue
		}
		for _, name := range e.names {
			if !slices.Contains(names, name) {
				names = append(names, name)
			}
		}
	}
	switch {
	case len(names) > 0:
		return names, nil
	case len(against) == 0:
		return nil, fmt.Errorf("the key %s is in no line of the allowed signers",
			ssh.FingerprintSHA256(key))
	}
	return nil, fmt.Errorf("the key %s is no allowed signer here: %s", ssh.FingerprintSHA256(key),
		strings.Join(against, "; "))
}
