package remote

import (
	"bytes"
	"regexp"
	"strings"

	"muster/fleet"
)

// This file quotes words of a host in errors. They always stand in quotes behind a text that
// names their author, so that no host can forge a sentence of muster.

// Missing returns the list of tools that a host lacks for a record; it quotes unknown words.
func Missing(words string) string {
	for word := range strings.FieldsSeq(words) {
		if !fleet.CanLack(word) {
			return "what it calls " + Quote([]byte(words), saidMax)
		}
	}
	return words
}

// lastWords returns the last output of a host, for an error text.
func lastWords(o Output) string {
	text := bytes.TrimSpace(o.Bytes())
	return hostSaid(text[max(0, len(text)-saidMax):])
}

// saidMax bounds how much of a host's words an error quotes, in bytes.
const saidMax = 240

// nameMax bounds a name from a host, in bytes.
const nameMax = 80

// Name returns a name from a host: unchanged if it can be a name, otherwise quoted.
func Name(name string) string {
	if plainName.MatchString(name) {
		return name
	}
	return Quote([]byte(name), nameMax)
}

var plainName = regexp.MustCompile(`^[A-Za-z0-9_./:-]{1,200}$`)

// hostSaid quotes the words of a host so that nobody can mistake them for words of muster.
func hostSaid(text []byte) string { return "the host " + saidWords(text) }

// saidWords is hostSaid without the subject.
func saidWords(text []byte) string {
	if said := Quote(text, saidMax); said != "" {
		return "said: " + said
	}
	return "gave no reason"
}
