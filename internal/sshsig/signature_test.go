package sshsig

import (
	"bytes"
	"crypto/ed25519"
	"crypto/rand"
	"crypto/rsa"
	"encoding/base64"
	"fmt"
	"net"
	"strings"
	"testing"

	"golang.org/x/crypto/ssh"
	"golang.org/x/crypto/ssh/agent"
)

const space = "muster-test"

var message = []byte("halt the house\n")

// says fails unless an error has this text in it.
func says(t *testing.T, name string, err error, want string) {
	t.Helper()
	if err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("%s: %v, want %q", name, err, want)
	}
}

// blobOf returns a good signature, to be changed and armored.
func blobOf(t testing.TB, s ssh.Signer) blob {
	t.Helper()
	sig, err := s.Sign(rand.Reader, toSign(space, signHash, message))
	if err != nil {
		t.Fatal(err)
	}
	return blob{Magic: magic, Version: version, Key: s.PublicKey().Marshal(), Namespace: space, Hash: signHash,
		Signature: ssh.Marshal(sig)}
}

func TestASignatureHoldsForItsMessageAndNamespaceOnly(t *testing.T) {
	t.Parallel()
	armored, err := Sign(signerOf(t, 1), space, message)
	if err != nil {
		t.Fatal(err)
	}
	s, err := Parse(armored)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(s.Key.Marshal(), signerOf(t, 1).PublicKey().Marshal()) || s.Namespace != space {
		t.Errorf("got %v %q", s.Key, s.Namespace)
	}
	if err := s.Verify(space, message); err != nil {
		t.Error(err)
	}
	if s.UserVerified() {
		t.Error("a key in a file says that it checked its user")
	}
	says(t, "another message", s.Verify(space, append([]byte("x"), message...)), "did not sign this")
	says(t, "another namespace", s.Verify("git", message), `is for the namespace "muster-test", want "git"`)
	says(t, "a part of the namespace", s.Verify(space[:6], message), "is for the namespace")
	says(t, "no namespace", s.Verify("", message), "the namespace is empty")
	s.Key = signerOf(t, 2).PublicKey()
	says(t, "another key", s.Verify(space, message), "did not sign this")
}

func TestSignRefusesWhatNobodyWouldAccept(t *testing.T) {
	t.Parallel()
	good := signerOf(t, 1)
	certified, err := ssh.NewCertSigner(certOf(t, good), good)
	if err != nil {
		t.Fatal(err)
	}
	long, err := rsa.GenerateKey(rand.Reader, rsaMin)
	if err != nil {
		t.Fatal(err)
	}
	old, err := ssh.NewSignerFromKey(long)
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		signer    ssh.Signer
		namespace string
		want      string
	}{
		"no namespace":       {good, "", "the namespace is empty"},
		"a long namespace":   {good, strings.Repeat("n", 256), "has 256 bytes: want at most 255"},
		"a hidden letter":    {good, "a\u200bb", "cannot be seen"},
		"bytes":              {good, "a\xff", "cannot be seen"},
		"a certificate":      {certified, space, "certificates are not supported here"},
		"SHA-1":              {oldSigner{old}, space, "SHA-1 only: want one that can do rsa-sha2-512"},
		"another message":    {wrongSigner{good}, space, "made a signature that does not hold"},
		"no key":             {deadSigner{good}, space, "did not sign: no key"},
		"nobody touched ed":  {tokens(t, 0)[ssh.KeyAlgoSKED25519], space, "nobody touched the security key"},
		"nobody touched ec":  {tokens(t, 0)[ssh.KeyAlgoSKECDSA256], space, "nobody touched the security key"},
		"a PIN but no touch": {tokens(t, 4)[ssh.KeyAlgoSKED25519], space, "nobody touched the security key"},
	} {
		armored, err := Sign(c.signer, c.namespace, message)
		says(t, name, err, c.want)
		if armored != nil {
			t.Errorf("%s: signed all the same", name)
		}
	}
}

// An agent shows its keys in a form of its own, and signs with SHA-1 unless it is told.
func TestAnAgentSigns(t *testing.T) {
	t.Parallel()
	ring := agent.NewKeyring()
	long, err := rsa.GenerateKey(rand.Reader, rsaMin)
	if err != nil {
		t.Fatal(err)
	}
	_, short, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	for _, key := range []any{long, short} {
		if err := ring.Add(agent.AddedKey{PrivateKey: key}); err != nil {
			t.Fatal(err)
		}
	}
	here, there := net.Pipe()
	done := make(chan error)
	go func() { done <- agent.ServeAgent(ring, there) }()
	signers, err := agent.NewClient(here).Signers()
	if err != nil || len(signers) != 2 {
		t.Fatalf("%d signers, %v", len(signers), err)
	}
	for _, signer := range signers {
		if _, err := Sign(signer, space, message); err != nil {
			t.Errorf("%s: %v", signer.PublicKey().Type(), err)
		}
	}
	here.Close()
	<-done
}

// changed returns a signature of which one thing was changed.
func changed(t *testing.T, change func(b *blob)) string {
	t.Helper()
	b := blobOf(t, signerOf(t, 1))
	change(&b)
	return string(armor(ssh.Marshal(b)))
}

// inner changes the signature proper.
func inner(t *testing.T, change func(s *ssh.Signature)) string {
	t.Helper()
	return changed(t, func(b *blob) {
		var sig ssh.Signature
		if err := ssh.Unmarshal(b.Signature, &sig); err != nil {
			t.Fatal(err)
		}
		change(&sig)
		b.Signature = ssh.Marshal(sig)
	})
}

func TestParseRefusesWhatIsNoSignature(t *testing.T) {
	t.Parallel()
	raw := ssh.Marshal(blobOf(t, signerOf(t, 1)))
	mldsa := ssh.Marshal(struct{ Type, Key string }{"ssh-mldsa-44", "k"})
	cert := certOf(t, signerOf(t, 1)).Marshal()
	for name, c := range map[string]struct{ text, want string }{
		"cut":               {string(armor(raw[:len(raw)-1])), "is cut, or something follows it"},
		"longer":            {string(armor(append(raw, 0))), "is cut, or something follows it"},
		"nothing in it":     {string(armor(nil)), "want a line `-----END"},
		"another magic":     {changed(t, func(b *blob) { b.Magic[5] = 'H' }), "want version 1"},
		"version 0":         {changed(t, func(b *blob) { b.Version = 0 }), "want version 1"},
		"version 2":         {changed(t, func(b *blob) { b.Version = 2 }), "want version 1"},
		"no key":            {changed(t, func(b *blob) { b.Key = nil }), "the key is cut"},
		"a cut key":         {changed(t, func(b *blob) { b.Key = b.Key[:40] }), "the key is damaged"},
		"a longer key":      {changed(t, func(b *blob) { b.Key = append(b.Key, 0) }), "the key is damaged"},
		"a certificate":     {changed(t, func(b *blob) { b.Key = cert }), "certificates are not supported here"},
		"DSA":               {changed(t, func(b *blob) { b.Key = dssKey() }), "one of DSA, which is too weak"},
		"another type":      {changed(t, func(b *blob) { b.Key = mldsa }), `"ssh-mldsa-44" are not supported: want one of`},
		"a short RSA key":   {changed(t, func(b *blob) { b.Key = rsaKey(2047) }), "too short: want 2048 bits or more"},
		"no namespace":      {changed(t, func(b *blob) { b.Namespace = "" }), "the namespace of the signature is empty"},
		"a zero in it":      {changed(t, func(b *blob) { b.Namespace = "git\x00" }), "cannot be seen"},
		"SHA-1 of it":       {changed(t, func(b *blob) { b.Hash = "sha1" }), `has the hash "sha1": want sha512 or sha256`},
		"no hash":           {changed(t, func(b *blob) { b.Hash = "" }), "has the hash"},
		"no signature":      {changed(t, func(b *blob) { b.Signature = nil }), "the signature within is cut"},
		"more behind it":    {inner(t, func(s *ssh.Signature) { s.Rest = []byte{1} }), "ends with 1 byte: want 0"},
		"another algorithm": {inner(t, func(s *ssh.Signature) { s.Format = "ssh-dss" }), `algorithm "ssh-dss": want ssh-ed`},
		"RSA with SHA-1":    {inner(t, func(s *ssh.Signature) { s.Format = "ssh-rsa" }), "because that has the hash SHA-1"},
	} {
		_, err := Parse([]byte(c.text))
		says(t, name, err, c.want)
	}
}

// A security key ends its signatures with flags and a counter: five bytes, no other number.
func TestTheEndOfASecurityKeysSignatureHasItsSize(t *testing.T) {
	t.Parallel()
	for kind, k := range tokens(t, 1) {
		sig, err := k.Sign(nil, toSign(space, signHash, message))
		if err != nil {
			t.Fatal(err)
		}
		for _, size := range []int{0, 4, 6} {
			sig.Rest = make([]byte, size)
			b := blob{Magic: magic, Version: 1, Key: k.public.Marshal(), Namespace: space, Hash: signHash,
				Signature: ssh.Marshal(sig)}
			_, err = Parse(armor(ssh.Marshal(b)))
			says(t, kind, err, fmt.Sprintf("ends with %d byte", size))
		}
		sig.Format = "webauthn-" + kind
		b := blob{Magic: magic, Version: 1, Key: k.public.Marshal(), Namespace: space, Hash: signHash,
			Signature: ssh.Marshal(sig)}
		_, err = Parse(armor(ssh.Marshal(b)))
		want := "want " + kind
		if kind == ssh.KeyAlgoSKECDSA256 {
			want = "the signature of a browser within is cut"
		}
		says(t, kind, err, want)
	}
}

func TestTheArmorIsExact(t *testing.T) {
	t.Parallel()
	armored, err := Sign(signerOf(t, 1), space, message)
	if err != nil {
		t.Fatal(err)
	}
	text := string(armored)
	lines := strings.SplitAfter(text, "\n")
	body := strings.Join(lines[1:len(lines)-2], "")
	oneLine := header + "\n" + strings.ReplaceAll(body, "\n", "") + "\n" + footer
	for name, good := range map[string]string{"as it is": text, "no end of the last line": strings.TrimSuffix(text, "\n"),
		"from Windows": strings.ReplaceAll(text, "\n", "\r\n"), "one line": oneLine} {
		if _, err := Parse([]byte(good)); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	const begin, end, lost, no64 = "at the beginning of the", "at the end of the", "has an empty line", "is no base64"
	for name, c := range map[string]struct{ text, want string }{
		"empty":                {"", begin},
		"something before it":  {"\n" + text, begin},
		"no header":            {text[1:], begin},
		"another header":       {strings.Replace(text, "SSH SIG", "PGP SIG", 1), begin},
		"a blank in the first": {strings.Replace(text, "\n", " \n", 1), begin},
		"something behind it":  {text + "\n", end},
		"two":                  {text + text, no64},
		"no footer":            {strings.TrimSuffix(text, footer+"\n"), end},
		"footer in the line":   {strings.Replace(text, "\n"+footer, footer, 1), end},
		"only the two":         {header + "\n" + footer, end},
		"an empty line":        {strings.Replace(text, "\n", "\n\n", 1), lost},
		"an empty body":        {header + "\n\n" + footer, lost},
		"a return in a line":   {strings.Replace(text, "U1N", "U1\rN", 1), lost},
		"a blank":              {strings.Replace(text, "U1N", "U1 N", 1), no64},
		"a letter less":        {strings.Replace(text, "U1N", "U1", 1), no64},
		"another alphabet":     {strings.Replace(text, "U1N", "U1_", 1), no64},
		"long":                 {header + strings.Repeat("\nAAAA", 4000) + "\n" + footer, "want at most 16384"},
	} {
		_, err := Parse([]byte(c.text))
		says(t, name, err, c.want)
	}
	// The last letter of base64 can have bits that mean nothing.
	raw := append(ssh.Marshal(blobOf(t, signerOf(t, 1))), 0)
	loose := []byte(base64.StdEncoding.EncodeToString(raw[:len(raw)/3*3-1]))
	loose[len(loose)-2]++
	_, err = Parse([]byte(header + "\n" + string(loose) + "\n" + footer))
	says(t, "loose bits", err, no64)
}

func TestSecurityKeysSayIfTheyCheckedTheirUser(t *testing.T) {
	t.Parallel()
	for flags, want := range map[byte]bool{1: false, 5: true, 0xc1: false, 0xc5: true} {
		for kind, k := range tokens(t, flags) {
			armored, err := Sign(k, space, message)
			if err != nil {
				t.Errorf("%s, flags %d: %v", kind, flags, err)
				continue
			}
			s, err := Parse(armored)
			if err != nil {
				t.Fatal(err)
			}
			if s.UserVerified() != want {
				t.Errorf("%s, flags %d: %v, want %v", kind, flags, s.UserVerified(), want)
			}
			says(t, kind, s.Verify(space, message[1:]), "did not sign this")
			// Nobody can set the flag afterwards.
			s.sig.Rest[0] ^= flagVerified
			says(t, kind, s.Verify(space, message), "did not sign this")
			s.sig.Rest[0] = 0
			says(t, kind, s.Verify(space, message), "nobody touched")
		}
	}
}

// Each byte of a signature is checked, or else it is one of the reserved field.
func TestNoByteOfASignatureCanBeChanged(t *testing.T) {
	t.Parallel()
	b := blobOf(t, signerOf(t, 1))
	raw := ssh.Marshal(b)
	for i := range raw {
		for _, bit := range []byte{1, 0x80} {
			other := bytes.Clone(raw)
			other[i] ^= bit
			s, err := Parse(armor(other))
			if err == nil {
				err = s.Verify(space, message)
			}
			if err == nil {
				t.Errorf("byte %d of %d changed, and it holds", i, len(raw))
			}
		}
	}
	b.Reserved = "of a later version"
	s, err := Parse(armor(ssh.Marshal(b)))
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Verify(space, message); err != nil {
		t.Errorf("the reserved field is not ignored: %v", err)
	}
}

func FuzzParse(f *testing.F) {
	raw := ssh.Marshal(blobOf(f, signerOf(f, 1)))
	f.Add(raw, true)
	f.Add(armor(raw), false)
	f.Add([]byte(header+"\nAAAA\n"+footer), false)
	for _, k := range tokens(f, 1) {
		armored, err := Sign(k, space, message)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(armored, false)
	}
	f.Fuzz(func(t *testing.T, data []byte, bare bool) {
		if bare { // so that it comes past base64 more often
			data = armor(data)
		}
		s, err := Parse(data)
		if err != nil {
			return
		}
		if checkType(s.Key.Type()) != nil || s.Namespace == "" || len(data) > armoredMax {
			t.Errorf("%q is taken", data)
		}
		// Neither may panic. A made up key can be one for which each signature holds.
		_, _ = s.Verify(s.Namespace, message), s.UserVerified()
	})
}
