// Package veil covers secrets in what a host says.
//
// It is pure. Floor 2: may import fleet/remote, internal/seal.
package veil

import (
	"bytes"
	"errors"
	"maps"
	"slices"
	"strings"

	"muster/fleet/remote"
	"muster/internal/seal"
)

const (
	// secretMin is the length of the shortest secret, or line of one, that is covered in output.
	// A shorter text also stands in places where it is no secret.
	secretMin = 8 // bytes

	// edgeMin is the length of the shortest piece of a secret that is covered where an output was
	// cut.
	edgeMin = 4 // bytes
)

// A Veil holds the texts to cover, the longest first.
type Veil []string

// Of returns the veil for secrets: it covers their lines, also in the form of quotations.
func Of(texts map[string]seal.Text) Veil {
	words := map[string]bool{}
	for _, text := range texts {
		all := string(text)
		for _, word := range append(strings.Split(all, "\n"), all, strings.TrimSpace(all)) {
			if word = strings.TrimRight(word, "\r"); len(word) >= secretMin {
				words[word] = true
				if quoted := asQuoted(word); len(quoted) >= secretMin {
					words[quoted] = true
				}
			}
		}
	}
	return slices.SortedFunc(maps.Keys(words), func(a, b string) int {
		if len(a) != len(b) {
			return len(b) - len(a)
		}
		return strings.Compare(a, b)
	})
}

// asQuoted returns a text in the form that it has in an error which quotes the host.
func asQuoted(text string) string {
	quoted := remote.Quote([]byte(text), 4*len(text)+len(`""…`))
	return strings.TrimSuffix(strings.TrimPrefix(quoted, `"`), `"`)
}

// Cover replaces each of the texts by a mask.
func (v Veil) Cover(p []byte) []byte {
	for _, word := range v {
		if bytes.Contains(p, []byte(word)) {
			p = bytes.ReplaceAll(p, []byte(word), []byte(seal.Mask))
		}
	}
	return p
}

// Output covers the output of a host. On either side of a gap there may be a piece of a
// secret.
func (v Veil) Output(o remote.Output) remote.Output {
	if len(v) == 0 {
		return o
	}
	if o.Omitted == 0 {
		return remote.Output{Head: v.Cover(slices.Concat(o.Head, o.Tail))}
	}
	o.Head, o.Tail = v.Cover(o.Head), v.Cover(o.Tail)
	for _, word := range v {
		for n := len(word) - 1; n >= edgeMin; n-- {
			if bytes.HasSuffix(o.Head, []byte(word[:n])) {
				o.Head = append(slices.Clone(o.Head[:len(o.Head)-n]), seal.Mask...)
			}
			if bytes.HasPrefix(o.Tail, []byte(word[len(word)-n:])) {
				o.Tail = append([]byte(seal.Mask), o.Tail[n:]...)
			}
		}
	}
	return o
}

// quotation covers pieces of secrets where a quotation of a host begins or was cut.
func (v Veil) quotation(text string) string {
	for _, word := range v {
		for n := len(word) - 1; n >= edgeMin; n-- {
			text = strings.ReplaceAll(text, word[:n]+`"…`, seal.Mask+`"…`)
			text = strings.ReplaceAll(text, ` "`+word[len(word)-n:], ` "`+seal.Mask)
		}
	}
	return text
}

// Error covers the words of a host that an error repeats.
func (v Veil) Error(err error) error {
	var e *remote.Error
	if !errors.As(err, &e) || e.Err == nil {
		return err
	}
	text := e.Err.Error()
	covered := v.quotation(string(v.Cover([]byte(text))))
	if covered == text {
		return err
	}
	other := *e
	other.Err = errors.New(covered)
	return &other
}
