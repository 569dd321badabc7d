package veil

import (
	"errors"
	"strings"
	"testing"

	"muster/fleet/remote"
	"muster/internal/seal"
)

const swordfish = "swordfish-of-1932"

// A quotation of a host has a backslash before each quote and backslash, and may be cut within
// a secret.
func TestAVeilCoversSecretsInQuotations(t *testing.T) {
	t.Parallel()
	const secret = `sword"fish\of-1932`
	v := Of(map[string]seal.Text{"password": secret})
	said := "a: " + secret + " b: " + strings.Repeat(secret, 9)
	for most := 30; most < 80; most++ {
		text := "exit 1; the host said: " + remote.Quote([]byte(said), most)
		got := v.Error(&remote.Error{Kind: remote.KindFailed, Sent: true, Err: errors.New(text)})
		for _, piece := range []string{"sword", "fish", "1932"} {
			if strings.Contains(got.Error(), piece) {
				t.Fatalf("%s became %s", text, got)
			}
		}
	}
	quoted := "it said: " + remote.Quote([]byte(secret[6:]+" was it"), 99)
	if got := v.quotation(quoted); strings.Contains(got, "1932") {
		t.Errorf("%s became %s", quoted, got)
	}
	if blank := Of(map[string]seal.Text{"password": "          "}); string(blank.Cover([]byte("ab"))) != "ab" {
		t.Error("a secret of blanks covers everything")
	}
}

func TestAVeilCoversPiecesOfSecretsBesideAGap(t *testing.T) {
	t.Parallel()
	v := Of(map[string]seal.Text{"pw": swordfish, "key": "BEGIN\r\nline-one-of-it\nshort\nlineTwoOfIt\n",
		"pin": "1234"})
	for _, c := range []struct {
		name string
		o    remote.Output
		want string
	}{
		{"whole", remote.Output{Head: []byte("a " + swordfish + swordfish + " b")}, "a (secret)(secret) b"},
		{"over the seam", remote.Output{Head: []byte("a sword"), Tail: []byte("fish-of-1932 b")}, "a (secret) b"},
		{"before a gap", remote.Output{Head: []byte("a swordf"), Tail: []byte("b"), Omitted: 9}, "a (secret)b"},
		{"behind a gap", remote.Output{Head: []byte("a "), Tail: []byte("-1932 b"), Omitted: 9}, "a (secret) b"},
		{"a line", remote.Output{Head: []byte("x line-one-of-it y lineTwoOfIt short")}, "x (secret) y (secret) short"},
		{"too short", remote.Output{Head: []byte("pin 1234")}, "pin 1234"},
		{"none", remote.Output{Head: []byte("a"), Tail: []byte("b"), Omitted: 5}, "ab"},
	} {
		o := v.Output(c.o)
		if got := string(o.Head) + string(o.Tail); got != c.want {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
	}
	err := v.Error(&remote.Error{Kind: remote.KindMute, Sent: true, Err: errors.New("it said: " + swordfish)})
	var e *remote.Error
	if !errors.As(err, &e) || e.Kind != remote.KindMute || !e.Sent || strings.Contains(err.Error(), "sword") {
		t.Errorf("fault: %v", err)
	}
}
