package serverkey

import (
	"errors"
	"strings"
)

// Vouch returns a text with a MAC in front of it, for a name: what lies under another name is no
// text of this one. Without a key it returns the text alone.
func (k Keys) Vouch(use Use, name, text string) string {
	if k.None() {
		return text
	}
	return k.MAC(use, name, text) + " " + text
}

// Vouched returns a text without its MAC. The error says why no server has vouched for it; the text
// is then a claim of anybody. Without a key there is no error.
func (k Keys) Vouched(use Use, name, kept string) (text string, err error) {
	mac, text, found := strings.Cut(kept, " ")
	if !found || !strings.HasPrefix(mac, version+".") {
		mac, text = "", kept
	}
	if k.None() {
		return text, nil
	}
	if mac == "" {
		return text, errors.New("no server has vouched for it")
	}
	return text, k.Check(use, mac, name, text)
}
