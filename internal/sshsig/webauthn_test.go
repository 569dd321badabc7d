package sshsig

import (
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"crypto/x509"
	"encoding/asn1"
	"strings"
	"testing"
	"time"

	"golang.org/x/crypto/ssh"

	"muster/testkit/passkeytest"
)

// A passkey is one of tests, with its public key.
type passkey struct {
	passkeytest.Passkey
	key ssh.PublicKey
}

func newPasskey(t testing.TB, site string) passkey {
	t.Helper()
	p := passkeytest.New(t, site)
	line, err := PasskeyText(p.SPKI(t), site)
	if err != nil {
		t.Fatal(err)
	}
	key, _, _, _, err := ssh.ParseAuthorizedKey([]byte(line))
	if err != nil {
		t.Fatal(err)
	}
	return passkey{p, key}
}

// userWasThere are the flags of an authenticator that saw a touch, and a PIN or a finger.
const userWasThere = passkeytest.Touched | passkeytest.Verified

func client(data []byte, more string) string { return passkeytest.Client(data, more) }

// sign answers as the browser does whose page has asked.
func (p passkey) sign(t testing.TB, clientData string, flags byte, more ...byte) Assertion {
	t.Helper()
	data, sig := p.Sign(t, clientData, flags, more...)
	return Assertion{Client: []byte(clientData), Authenticator: data, Signature: sig}
}

func allowed(t testing.TB, text string) Allowed {
	t.Helper()
	a, err := ParseAllowed([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// OpenSSH takes the signature of a passkey as we do, and refuses what we refuse.
func TestOpenSSHTakesWhatAPasskeySigned(t *testing.T) {
	t.Parallel()
	k := newKeygen(t)
	other, mine := newPasskey(t, "muster.example"), newPasskey(t, "muster.example")
	a := allowed(t, "alice "+publicLine(other.key)+"\nbob "+publicLine(other.key)+"\nalice "+publicLine(mine.key)+"\n")
	for _, more := range []string{"", `,"crossOrigin":false`, `,"crossOrigin":false,"other":"keys may come"`} {
		said := client(Challenge(space, message), more)
		text, err := a.FromPasskey("alice", space, message, mine.sign(t, said, userWasThere))
		if err != nil {
			t.Fatalf("%s: %v", more, err)
		}
		k.crossCheck(mine.key, []byte(text))
		s, err := Parse([]byte(text))
		if err != nil || !s.UserVerified() {
			t.Errorf("the user was verified: %v", err)
		}
	}
}

func TestAPasskeySignsForItsOwnerAndItsMessageAlone(t *testing.T) {
	t.Parallel()
	mine, stranger := newPasskey(t, "muster.example"), newPasskey(t, "muster.example")
	elsewhere := mine
	elsewhere.Site = "evil.example"
	a := allowed(t, "alice "+publicLine(mine.key)+"\nbob "+publicLine(signerOf(t, 1).PublicKey())+"\n")
	right := client(Challenge(space, message), "")
	by := func(said string, flags byte, more ...byte) Assertion { return mine.sign(t, said, flags, more...) }
	other := func(namespace string, message []byte) Assertion {
		return by(client(Challenge(namespace, message), ""), userWasThere)
	}
	changed := func(from, to string) Assertion { return by(strings.Replace(right, from, to, 1), userWasThere) }
	const another, finger = "asked to sign something else", "for a PIN or a finger"
	for name, c := range map[string]struct {
		by        Assertion
		who, want string
	}{
		"another message":       {other(space, message[1:]), "", another},
		"another namespace":     {other("git", message), "", another},
		"not for a signature":   {changed("webauthn.get", "webauthn.create"), "", another},
		"a key before":          {changed("{", `{"a":1,`), "", another},
		"an origin with quotes": {changed(`"https:`, `"\"https:`), "", "has a quote"},
		"a name below the site": {changed("//muster", "//evil.muster"), "", "is for \"muster.example\""},
		"no site":               {changed("https://muster.example", "null"), "", "a page of \"null\""},
		"in a frame":            {changed("}", `,"crossOrigin":true}`), "", "another site has asked"},
		"no JSON":               {changed("}", ""), "", "are no JSON"},
		"more behind it":        {changed("}", "}x"), "", "are no JSON"},
		"nobody touched it":     {by(right, flagVerified), "", finger},
		"no PIN, no finger":     {by(right, flagPresent), "", finger},
		"extensions":            {by(right, userWasThere|0x80, 0xa0), "", "38 bytes: want 37"},
		"a flag of extensions":  {by(right, userWasThere|0x80), "", "has added extensions"},
		"a flag of a key":       {by(right, userWasThere|0x40), "", "has added extensions"},
		"of another site":       {elsewhere.sign(t, right, userWasThere), "", "does not fit the key"},
		"of somebody else":      {stranger.sign(t, right, userWasThere), "", "does not fit the key"},
		"no passkey of bob":     {by(right, userWasThere), "bob", `have no passkey of "bob"`},
		"no passkey of eve":     {by(right, userWasThere), "eve", `have no passkey of "eve"`},
		"nothing":               {Assertion{}, "", "0 bytes: want 37"},
		"no signature": {Assertion{Client: []byte(right), Authenticator: make([]byte, 37)}, "",
			"none of ECDSA in ASN.1"},
	} {
		if c.who == "" {
			c.who = "alice"
		}
		text, err := a.FromPasskey(c.who, space, message, c.by)
		says(t, name, err, c.want)
		if text != "" {
			t.Errorf("%s: there is a text", name)
		}
	}
}

// A node sees the text alone, which anybody may have made: it must find by itself what is wrong.
func TestANodeChecksThePasskeyAnew(t *testing.T) {
	t.Parallel()
	mine := newPasskey(t, "muster.example")
	textOf := func(by Assertion) []byte {
		inner, err := by.inner()
		if err != nil {
			t.Fatal(err)
		}
		return armor(ssh.Marshal(blob{Magic: magic, Version: version, Key: mine.key.Marshal(), Namespace: space,
			Hash: signHash, Signature: ssh.Marshal(inner)}))
	}
	right := client(Challenge(space, message), "")
	for name, c := range map[string]struct {
		by   Assertion
		want string
	}{
		"another message": {mine.sign(t, client(Challenge(space, message[1:]), ""), userWasThere), "something else"},
		"in a frame": {mine.sign(t, client(Challenge(space, message), `,"crossOrigin":true`), userWasThere),
			"in a frame"},
		"no PIN, no finger": {mine.sign(t, right, flagPresent), "for a PIN or a finger"},
		"nobody touched it": {mine.sign(t, right, 0), "nobody touched the security key"},
	} {
		s, err := Parse(textOf(c.by))
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		says(t, name, s.Verify(space, message), c.want)
	}
	good := textOf(mine.sign(t, right, userWasThere))
	s, err := Parse(good)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Verify(space, message); err != nil {
		t.Error(err)
	}
	says(t, "another message", s.Verify(space, message[1:]), "something else")
	names, why := allowed(t, "alice "+publicLine(mine.key)).Principals(s.Key, space, time.Now())
	if why != nil || names[0] != "alice" {
		t.Errorf("%q, %v", names, why)
	}
}

// A program that speaks to a security key itself gets the signature of a passkey without a browser,
// and without a finger. OpenSSH takes it.
func TestTheKeyOfASiteSignsInBrowsersOnly(t *testing.T) {
	t.Parallel()
	mine := newPasskey(t, "muster.example")
	data, asn := mine.Sign(t, string(Challenge(space, message)), passkeytest.Touched)
	var pair wireECDSA
	if _, err := asn1.Unmarshal(asn, &pair); err != nil {
		t.Fatal(err)
	}
	text := armor(ssh.Marshal(blob{Magic: magic, Version: version, Key: mine.key.Marshal(), Namespace: space,
		Hash: signHash, Signature: ssh.Marshal(&ssh.Signature{Format: ssh.KeyAlgoSKECDSA256, Blob: ssh.Marshal(pair),
			Rest: data[sha256.Size:]})}))
	ours, theirs := newKeygen(t).ask(question{allowed: "alice " + publicLine(mine.key) + "\n", armored: text,
		message: message, namespace: space, at: time.Now()})
	says(t, "without a browser", ours, "no browser has made the signature")
	if theirs != nil {
		t.Errorf("the signature is wrong, so this proves nothing: %v", theirs)
	}
}

func TestThePublicKeyOfAPasskeyIsOneOfP256(t *testing.T) {
	t.Parallel()
	spkiOf := func(key any) []byte {
		spki, err := x509.MarshalPKIXPublicKey(key)
		if err != nil {
			t.Fatal(err)
		}
		return spki
	}
	long, err := ecdsa.GenerateKey(elliptic.P384(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	mine, keyOfSeed := newPasskey(t, "muster.example"), ed25519.NewKeyFromSeed(make([]byte, ed25519.SeedSize))
	for name, c := range map[string]struct {
		spki       []byte
		site, want string
	}{
		"no key":       {nil, "muster.example", "is damaged"},
		"Ed25519":      {spkiOf(keyOfSeed.Public()), "muster.example", "of another kind"},
		"P-384":        {spkiOf(&long.PublicKey), "muster.example", "of another kind"},
		"no site":      {mine.SPKI(t), "", `the site is ""`},
		"two lines":    {mine.SPKI(t), "a\nb", `the site is "a\nb"`},
		"a long site":  {mine.SPKI(t), strings.Repeat("a", 256), "the name of the site"},
		"more than it": {append(mine.SPKI(t), 0), "muster.example", "is damaged"},
	} {
		_, err := PasskeyText(c.spki, c.site)
		says(t, name, err, c.want)
	}
}

func FuzzFromPasskey(f *testing.F) {
	mine := newPasskey(f, "muster.example")
	a := allowed(f, "alice "+publicLine(mine.key))
	right := mine.sign(f, client(Challenge(space, message), ""), userWasThere)
	f.Add(right.Client, right.Authenticator, right.Signature)
	f.Add([]byte(`{}`), []byte{}, []byte{0x30, 0x06, 2, 1, 1, 2, 1, 1})
	f.Fuzz(func(t *testing.T, clientData, authenticator, signature []byte) {
		text, err := a.FromPasskey("alice", space, message, Assertion{clientData, authenticator, signature})
		if err != nil {
			return
		}
		s, err := Parse([]byte(text))
		if err == nil {
			err = s.Verify(space, message)
		}
		if err != nil {
			t.Errorf("it was taken from the browser, and not afterwards: %v", err)
		}
	})
}
