package bundle

import (
	"bytes"
	"encoding/json"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"muster/internal/seal"
)

// secretMin is the length of the shortest text that is covered because it is a known secret. A
// shorter one also stands where it is none, and a mask there would tell it.
const secretMin = 8 // bytes

// looks are the forms by which a secret is known that nobody has named. The text of the first
// group stays.
var looks = []*regexp.Regexp{
	regexp.MustCompile(`(?s)()-----BEGIN [A-Z0-9 ]*PRIVATE KEY-----.*?` +
		`(?:-----END [A-Z0-9 ]*KEY-----|\z)`),
	regexp.MustCompile(`()AGE-SECRET-KEY-[0-9A-Za-z]+`),
	regexp.MustCompile(`(\bmst_)[0-9A-Za-z]+_[0-9A-Za-z_-]+`),
	regexp.MustCompile(`(\b[a-zA-Z][a-zA-Z0-9+.-]*://)[^/\s"'<>]*@`),
	regexp.MustCompile(`(\b[a-zA-Z][a-zA-Z0-9+.-]*://[^\s"'?<>]+\?)[^\s"'<>]+`),
	regexp.MustCompile(`(?i)(\b(?:proxy-)?(?:authorization|cookie)["']?\s*[:=]\s*)[^\r\n]+`),
	regexp.MustCompile(`(?i)(\b(?:bearer|basic)\s+)[a-z0-9._~+/=-]{8,}`),
	regexp.MustCompile(`(?i)(\b[a-z0-9_.-]*(?:password|passwd|passphrase|secret|token|api[_-]?key)` +
		`["']?\s*[:=]\s*["']?)[^\s"',;&]+`),
}

// standing is the form in which texts of muster give the reason of an order that is in force.
var standing = regexp.MustCompile(
	`(\b(?:halted|paused|stopped|cancelled|drained|refused) by (?:[a-z]+:)?[^\s:]+: )[^\n]+`)

// told is a field of a log that has words of people: of one line, or of several behind bars.
var told = regexp.MustCompile(`(\b(?:arguments|reason|words|note)["']?[:=][ \t]*)` +
	`(?:"(?:[^"\\\n]|\\.)*"?|[^\s",]+|(?:\n[ \t]*\|[^\n]*)+)`)

// mailbox is the address of a person. The name of its host stays: a user of SSH looks like that.
var mailbox = regexp.MustCompile(`[\pL\pN._%+-]+@((?:[\pL\pN-]+\.)+\pL{2,})`)

// A scrubber covers secrets in texts.
type scrubber struct {
	words   []string // the longest first
	covered int
}

// newScrubber covers the secrets, their lines, and both as Go quotes them.
func newScrubber(secrets []string) *scrubber {
	s := &scrubber{}
	for _, text := range secrets {
		for _, word := range append(strings.Split(text, "\n"), text) {
			word = strings.TrimSpace(word)
			quoted := strconv.Quote(word)
			for _, form := range []string{word, quoted[1 : len(quoted)-1]} {
				if len(form) >= secretMin && !slices.Contains(s.words, form) {
					s.words = append(s.words, form)
				}
			}
		}
	}
	slices.SortStableFunc(s.words, func(a, b string) int { return len(b) - len(a) })
	return s
}

// text covers the secrets in a text.
func (s *scrubber) text(text string) string {
	for _, word := range s.words {
		if n := strings.Count(text, word); n > 0 {
			s.covered += n
			text = strings.ReplaceAll(text, word, seal.Mask)
		}
	}
	for _, look := range append(slices.Clone(looks), standing) {
		text = look.ReplaceAllStringFunc(text, func(found string) string {
			s.covered++
			return look.FindStringSubmatch(found)[1] + seal.Mask
		})
	}
	return mailbox.ReplaceAllStringFunc(text, func(found string) string {
		s.covered++
		return seal.Mask + "@" + mailbox.FindStringSubmatch(found)[1]
	})
}

// json returns a value as JSON whose texts are covered. They are covered before they are written:
// JSON has other forms of some characters.
func (s *scrubber) json(v any) ([]byte, error) {
	raw, err := json.Marshal(v)
	if err != nil {
		return nil, err
	}
	var tree any
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	if err := d.Decode(&tree); err != nil {
		return nil, err
	}
	out, err := json.MarshalIndent(s.walk(tree), "", "  ")
	return append(out, '\n'), err
}

func (s *scrubber) walk(v any) any {
	switch v := v.(type) {
	case string:
		return s.text(v)
	case []any:
		for i := range v {
			v[i] = s.walk(v[i])
		}
	case map[string]any:
		out := make(map[string]any, len(v))
		for key, value := range v {
			out[s.text(key)] = s.walk(value)
		}
		return out
	}
	return v
}
