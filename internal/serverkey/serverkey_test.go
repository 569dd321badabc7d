package serverkey

import (
	"bytes"
	"crypto/ed25519"
	"encoding/hex"
	"fmt"
	"strings"
	"testing"

	"muster/internal/seal"
)

// keysOf returns the keys that begin with these bytes, of the installation i1234.
func keysOf(t testing.TB, first byte, more ...byte) Keys {
	t.Helper()
	text := File("i1234", [Size]byte{first})
	for _, b := range more {
		text += seal.FormatKey([seal.KeySize]byte{b})
	}
	k, err := Parse([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return k
}

func TestAMACHoldsForItsPartsOnly(t *testing.T) {
	t.Parallel()
	k := keysOf(t, 1)
	mac := k.MAC(Tokens, "ab", "c", "")
	if err := k.Check(Tokens, mac, "ab", "c", ""); err != nil {
		t.Fatal(err)
	}
	other, err := Parse([]byte(File("i1235", [Size]byte{1})))
	if err != nil {
		t.Fatal(err)
	}
	const changed = "it is not what a server wrote"
	for name, c := range map[string]struct {
		keys  Keys
		use   Use
		mac   string
		parts []string
		want  string
	}{
		"another part":         {k, Tokens, mac, []string{"ab", "d", ""}, changed},
		"another order":        {k, Tokens, mac, []string{"c", "ab", ""}, changed},
		"another border":       {k, Tokens, mac, []string{"a", "bc", ""}, changed},
		"one part less":        {k, Tokens, mac, []string{"ab", "c"}, changed},
		"one part more":        {k, Tokens, mac, []string{"ab", "c", "", ""}, changed},
		"another use":          {k, Audit, mac, []string{"ab", "c", ""}, changed},
		"another installation": {other, Tokens, mac, []string{"ab", "c", ""}, changed},
		"another key":          {keysOf(t, 2), Tokens, mac, []string{"ab", "c", ""}, "a key that this server does not have"},
		"no key":               {Keys{}, Tokens, mac, []string{"ab", "c", ""}, "a key that this server does not have"},
		"no MAC":               {k, Tokens, "", []string{"ab", "c", ""}, "no server has vouched for it"},
		"cut":                  {k, Tokens, mac[:len(mac)-2], []string{"ab", "c", ""}, "no form that is known"},
		"no text of base64":    {k, Tokens, mac[:len(mac)-2] + "!!", []string{"ab", "c", ""}, "no form that is known"},
		"another version":      {k, Tokens, "m2" + mac[2:], []string{"ab", "c", ""}, "no form that is known"},
		"no key named":         {k, Tokens, "m1.abc", []string{"ab", "c", ""}, "no form that is known"},
	} {
		err := c.keys.Check(c.use, c.mac, c.parts...)
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
	}
	if got := (Keys{}).MAC(Tokens, "ab"); got != "" {
		t.Errorf("without a key: %q", got)
	}
}

// While the key is changed, what either key made holds.
func TestAllKeysCheckAndTheFirstMakes(t *testing.T) {
	t.Parallel()
	old, both, next := keysOf(t, 1), keysOf(t, 2, 1), keysOf(t, 2)
	was, is := old.MAC(Tokens, "x"), both.MAC(Tokens, "x")
	for name, err := range map[string]error{"old by both": both.Check(Tokens, was, "x"),
		"new by both": both.Check(Tokens, is, "x"), "new by new": next.Check(Tokens, is, "x")} {
		if err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	if next.Check(Tokens, was, "x") == nil || old.Check(Tokens, is, "x") == nil {
		t.Error("a key holds that is not there")
	}
	pubs := both.Publics(Audit)
	if len(pubs) != 2 || !both.Signer(Audit).Public().(ed25519.PublicKey).Equal(pubs[0]) ||
		!old.Signer(Audit).Public().(ed25519.PublicKey).Equal(pubs[1]) {
		t.Error("the public keys are not those of the lines, in order")
	}
	if old.Signer(Audit).Equal(old.Signer(Tokens)) {
		t.Error("two uses have one key")
	}
	if (Keys{}).Signer(Audit) != nil {
		t.Error("no key signs")
	}
}

// A key makes the same in every version of muster. Otherwise an upgrade would end all tokens.
func TestWhatAKeyMakesStays(t *testing.T) {
	t.Parallel()
	k := keysOf(t, 1)
	got := k.MAC(Tokens, "a", "b") + " " + hex.EncodeToString(k.Publics(Audit)[0])
	const want = "m1.e6a2a49b.Bp_OEGwUM3rqdDt6jZTTred7WTwZz08jA7TE5zQkWpw " +
		"80c48a0602e3bc33f7c85b94fe65b1e708690faf0c8b151ff9bb7d029bddbf45"
	if got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

func TestMistakesOfTheFileAreAllToldAndNoKeyIsRepeated(t *testing.T) {
	t.Parallel()
	good := File("i1234", [Size]byte{7})
	const short = "c2hvcnQ"
	for name, c := range map[string]struct{ text, want string }{
		"empty":             {"", "there is no key in it: make one with `muster init`"},
		"no installation":   {seal.FormatKey([seal.KeySize]byte{7}), "does not name the installation"},
		"two installations": {good + "installation other\n", "line 6: a second name"},
		"a bad name":        {strings.Replace(good, "i1234", "I 1", 1), "line 4: installation: want 4 to 40"},
		"a short key":       {good + short + "\n", "line 6: the key has 5 bytes: want 32"},
		"no key":            {good + "!!" + short + "\n", "line 6: no key: want 32 random bytes"},
		"a key of secrets":  {seal.FormatKey([seal.KeySize]byte{1}), "want a line `installation NAME`"},
		"all at once":       {short + "\ninstallation -\n", "line 1: the key"},
		"all at once, 2":    {short + "\ninstallation -\n", "line 2: installation"},
	} {
		_, err := Parse([]byte(c.text))
		if err == nil || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), short) {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
	}
}

func TestKeysAreNeverPrinted(t *testing.T) {
	t.Parallel()
	k := keysOf(t, 'K')
	for _, form := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x"} {
		if got := fmt.Sprintf(form, k); strings.Contains(got, "K") || strings.Contains(got, "4b") ||
			strings.Contains(got, "75") {
			t.Errorf("%s: %s", form, got)
		}
	}
}

func FuzzParse(f *testing.F) {
	f.Add([]byte(File("i1234", [Size]byte{1})))
	f.Add([]byte("installation \n\nabc="))
	f.Fuzz(func(t *testing.T, data []byte) {
		k, err := Parse(data)
		if err != nil {
			return
		}
		if k.None() || k.Installation() == "" || k.Check(Tokens, k.MAC(Tokens, "x"), "x") != nil {
			t.Errorf("%q is taken, and makes nothing that holds", data)
		}
	})
}

func FuzzCheck(f *testing.F) {
	k := keysOf(f, 1)
	right := k.MAC(Tokens, "x")
	f.Add(right)
	f.Add("m1..")
	f.Fuzz(func(t *testing.T, mac string) {
		if err := k.Check(Tokens, mac, "x"); err == nil && !bytes.Equal([]byte(mac), []byte(right)) {
			t.Errorf("%q holds", mac)
		}
	})
}

// A text is believed under the name, for the use and with the key with which a server kept it.
func TestVouchedTexts(t *testing.T) {
	t.Parallel()
	k, other := keysOf(t, 1), keysOf(t, 2)
	kept := k.Vouch(Chains, "a", `{"x": 1}`)
	if text, err := k.Vouched(Chains, "a", kept); err != nil || text != `{"x": 1}` {
		t.Errorf("%q: %v", text, err)
	}
	for name, wrong := range map[string]func() (string, error){
		"another name": func() (string, error) { return k.Vouched(Chains, "b", kept) },
		"another use":  func() (string, error) { return k.Vouched(Schedules, "a", kept) },
		"another key":  func() (string, error) { return other.Vouched(Chains, "a", kept) },
		"another text": func() (string, error) {
			return k.Vouched(Chains, "a", strings.Replace(kept, "1}", "2}", 1))
		},
		"no MAC":       func() (string, error) { return k.Vouched(Chains, "a", `{"x": 1}`) },
		"no MAC again": func() (string, error) { return k.Vouched(Chains, "a", `m1.x`) },
	} {
		if text, err := wrong(); err == nil || text == "" {
			t.Errorf("%s: %q, %v", name, text, err)
		}
	}
	var none Keys
	if text, err := none.Vouched(Chains, "a", none.Vouch(Chains, "a", "{}")); err != nil || text != "{}" {
		t.Errorf("without a key: %q, %v", text, err)
	}
	if text, err := none.Vouched(Chains, "a", kept); err != nil || text != `{"x": 1}` {
		t.Errorf("without a key any more: %q, %v", text, err)
	}
}

// A key that was given up makes and proves nothing any more, but what the audit log has of it can be
// read.
func TestTheNextKeyKnowsWhoSignedTheAuditLog(t *testing.T) {
	t.Parallel()
	old, err := Parse([]byte(File("house", [Size]byte{1})))
	if err != nil {
		t.Fatal(err)
	}
	next, err := Parse([]byte(old.Next([Size]byte{2})))
	if err != nil {
		t.Fatal(err)
	}
	third, err := Parse([]byte(next.Next([Size]byte{3})))
	if err != nil {
		t.Fatal(err)
	}
	was, is := old.Publics(Audit), third.Publics(Audit)
	if third.Installation() != "house" || len(is) != 3 || !is[2].Equal(was[0]) || is[0].Equal(was[0]) {
		t.Errorf("installation %q, audit keys %v, was %v", third.Installation(), is, was)
	}
	mac := old.MAC(Tokens, "x")
	if len(third.Publics(Orders)) != 1 || third.Check(Tokens, mac, "x") == nil {
		t.Error("the old key counts for other things than the audit log")
	}
	bad := strings.Replace(old.Next([Size]byte{2}), "\naudit ", "\naudit x", 1)
	if _, err := Parse([]byte(bad)); err == nil || !strings.Contains(err.Error(), "audit: want a public key") {
		t.Errorf("a mistake: %v", err)
	}
}
