package main

import (
	"bytes"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"maps"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// A canary is a text that must be in no place but its own.
type canary struct {
	kind string
	text string
	home string // path of the file that has it by right; empty: there is none
}

// headSize is the number of bytes by which a finder notices a form.
const headSize = 8

// A finder searches for all forms of many canaries in one pass.
type finder struct {
	seen  [1 << 16]bool // by the first two bytes of a form
	heads map[[headSize]byte][]form
}

// form is one way to write a canary, or half of one.
type form struct {
	of   canary
	how  string
	text string
}

func newFinder(list []canary) *finder {
	f := &finder{heads: map[[headSize]byte][]form{}}
	for _, c := range list {
		for how, text := range formsOf(c.text) {
			var head [headSize]byte
			if copy(head[:], text) < headSize {
				continue // such a piece would be found by chance
			}
			f.seen[first(head[:])] = true
			f.heads[head] = append(f.heads[head], form{c, how, text})
		}
	}
	return f
}

func first(data []byte) int { return int(data[0])<<8 | int(data[1]) }

// find returns the forms that are in data.
func (f *finder) find(data []byte) []form {
	var found []form
	for i := 0; i+headSize <= len(data); i++ {
		if !f.seen[first(data[i:])] {
			continue
		}
		for _, one := range f.heads[[headSize]byte(data[i:])] {
			if bytes.HasPrefix(data[i:], []byte(one.text)) {
				found = append(found, one)
			}
		}
	}
	return found
}

// formsOf returns how a text may be written, also in pieces: the halves of long ones count.
func formsOf(text string) map[string]string {
	out := map[string]string{}
	add := func(piece, text string) {
		for how, coded := range written(text) {
			out[piece+how] = coded
		}
	}
	add("", text)
	if len(text) >= 4*headSize {
		add("first half, ", text[:len(text)/2])
		add("second half, ", text[len(text)/2:])
	}
	return out
}

// written returns the forms of a whole text.
func written(text string) map[string]string {
	forms := map[string]string{
		"plain":              text,
		"hex":                hex.EncodeToString([]byte(text)),
		"HEX":                strings.ToUpper(hex.EncodeToString([]byte(text))),
		"in a query":         url.QueryEscape(text),
		"in a path":          url.PathEscape(text),
		"as user of a URL":   strings.TrimPrefix(url.User(text).String(), "//"),
		"quoted as Go does":  unquoted(strconv.Quote(text)),
		"quoted as ASCII":    unquoted(strconv.QuoteToASCII(text)),
		"quoted for a shell": strings.ReplaceAll(text, "'", `'\''`),
		"JSON":               unquoted(asJSON(text, true)),
		"JSON without HTML":  unquoted(asJSON(text, false)),
		"JSON in JSON":       unquoted(asJSON(asJSON(text, true), true)),
	}
	forms["JSON in JSON"] = strings.TrimSuffix(strings.TrimPrefix(forms["JSON in JSON"], `\"`), `\"`)
	for shift := range 3 {
		padded := []byte(strings.Repeat("x", shift) + text)
		for name, coding := range map[string]*base64.Encoding{"base64": base64.RawStdEncoding,
			"base64 for URLs": base64.RawURLEncoding} {
			coded := coding.EncodeToString(padded)
			// The first and the last characters depend on what stands beside the text.
			forms[name+" "+strconv.Itoa(shift)] = coded[(shift*8+5)/6 : len(padded)*8/6]
		}
	}
	return forms
}

func unquoted(text string) string { return text[1 : len(text)-1] }

func asJSON(text string, html bool) string {
	var b strings.Builder
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(html)
	_ = e.Encode(text) // a string always works
	return strings.TrimSuffix(b.String(), "\n")
}

// sample has a character for each of the ways to escape one.
const sample = `Kn4ry of "1932" <b>&'ü+%/~\ and so on`

// Each form is found in the middle of other text, and the encoders of the standard library write
// those forms: a finder that finds nothing would make the test of the house worthless.
func TestTheFinderFindsEachForm(t *testing.T) {
	t.Parallel()
	find := func(data string) []string {
		found := map[string]bool{}
		for _, f := range newFinder([]canary{{kind: "sample", text: sample}}).find([]byte(data)) {
			found[f.how] = true
		}
		return slices.Sorted(maps.Keys(found))
	}
	for how, text := range formsOf(sample) {
		if got := find("a log says " + text + "\x00 and more"); !slices.Contains(got, how) {
			t.Errorf("%s, %q, is found as %q", how, text, got)
		}
	}
	said, err := json.Marshal(map[string]string{"it": "is " + sample + "."})
	if err != nil {
		t.Fatal(err)
	}
	nested, err := json.Marshal(map[string]string{"said": string(said)})
	if err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{
		"base64 behind one byte":    base64.StdEncoding.EncodeToString([]byte("x" + sample + "yz")),
		"base64 behind two bytes":   base64.URLEncoding.EncodeToString([]byte("xy" + sample + "z")),
		"hex in capitals":           strings.ToUpper(hex.EncodeToString([]byte("x" + sample))),
		"JSON":                      string(said),
		"JSON in JSON":              string(nested),
		"the password of a URL":     (&url.URL{Scheme: "redis", User: url.UserPassword("u", sample), Host: "h"}).String(),
		"a query":                   url.Values{"q": {sample}}.Encode(),
		"the beginning of a long":   sample[:len(sample)/2+1],
		"a quoted word of an error": strconv.Quote("exit 1: " + sample),
	} {
		if len(find(text)) == 0 {
			t.Errorf("%s is not found in %s", name, text)
		}
	}
	if got := find("Kn4ry of another year, and nothing else that is of interest"); len(got) > 0 {
		t.Errorf("found %q where nothing is", got)
	}
}
