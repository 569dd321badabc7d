package remote

import (
	"bytes"
	"regexp"
	"strings"

	"muster/fleet"
)

// This file repeats words of a host in errors. They stand in quotes behind words that say whose
// they are, so that no host can put a sentence of muster into an error.

// Missing is what a host says that it lacks to keep a record. What else it says is quoted.
func Missing(words string) string {
	for word := range strings.FieldsSeq(words) {
		if !fleet.CanLack(word) {
			return "what it calls " + Quote([]byte(words), saidMax)
		}
	}
	return words
}

// lastWords is what a host said in the end, for an error text.
func lastWords(o Output) string {
	text := bytes.TrimSpace(o.Bytes())
	return hostSaid(text[max(0, len(text)-saidMax):])
}

// saidMax bounds what an error repeats of what a host said, in bytes.
const saidMax = 240

// nameMax bounds a name that a host said, in bytes.
const nameMax = 80

// Name is a name that a host said. One that can be a name stands as it is, any other is quoted.
func Name(name string) string {
	if plainName.MatchString(name) {
		return name
	}
	return Quote([]byte(name), nameMax)
}

var plainName = regexp.MustCompile(`^[A-Za-z0-9_./:-]{1,200}$`)

// hostSaid repeats what a host said, such that it cannot be taken for words of muster.
func hostSaid(text []byte) string { return "the host " + saidWords(text) }

// saidWords is hostSaid without who it was.
func saidWords(text []byte) string {
	if said := Quote(text, saidMax); said != "" {
		return "said: " + said
	}
	return "gave no reason"
}
