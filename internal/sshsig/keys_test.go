package sshsig

import (
	"bytes"
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"io"
	"math/big"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/crypto/ssh"
)

// signerOf returns an Ed25519 key; another number gives another key.
func signerOf(t testing.TB, n byte) ssh.Signer {
	t.Helper()
	s, err := ssh.NewSignerFromSigner(ed25519.NewKeyFromSeed(bytes.Repeat([]byte{n}, ed25519.SeedSize)))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// dssKey returns a public key of DSA, as it is on the wire.
func dssKey() []byte {
	n := big.NewInt(7)
	return ssh.Marshal(struct {
		Type       string
		P, Q, G, Y *big.Int
	}{dss, n, n, n, n})
}

// rsaKey returns a public key of RSA of so many bits, as it is on the wire. It has no private one.
func rsaKey(bits uint) []byte {
	return ssh.Marshal(struct {
		Type string
		E, N *big.Int
	}{ssh.KeyAlgoRSA, big.NewInt(65537), new(big.Int).Add(new(big.Int).Lsh(big.NewInt(1), bits-1), big.NewInt(1))})
}

// certOf returns the certificate of a key, which the key itself signed.
func certOf(t testing.TB, s ssh.Signer) *ssh.Certificate {
	t.Helper()
	c := &ssh.Certificate{Key: s.PublicKey(), CertType: ssh.UserCert, ValidPrincipals: []string{"alice"},
		ValidBefore: ssh.CertTimeInfinity}
	if err := c.SignCert(rand.Reader, s); err != nil {
		t.Fatal(err)
	}
	return c
}

// publicLine returns a public key as its file .pub has it, without the end of the line.
func publicLine(key ssh.PublicKey) string {
	return strings.TrimSpace(string(ssh.MarshalAuthorizedKey(key)))
}

// token is a security key made of software.
type token struct {
	public ssh.PublicKey
	flags  byte
	sign   func(data []byte) ([]byte, error) // as the device does, in the form of SSH
}

const application = "ssh:"

// tokens makes a security key of each type, whose signatures have these flags.
func tokens(t testing.TB, flags byte) map[string]token {
	t.Helper()
	ed := ed25519.NewKeyFromSeed(bytes.Repeat([]byte{9}, ed25519.SeedSize))
	ec, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	point, err := ec.PublicKey.Bytes()
	if err != nil {
		t.Fatal(err)
	}
	return map[string]token{
		ssh.KeyAlgoSKED25519: {
			public: publicOf(t, ssh.Marshal(struct {
				Type        string
				Key         []byte
				Application string
			}{ssh.KeyAlgoSKED25519, ed.Public().(ed25519.PublicKey), application})),
			flags: flags,
			sign:  func(data []byte) ([]byte, error) { return ed.Sign(nil, data, crypto.Hash(0)) },
		},
		ssh.KeyAlgoSKECDSA256: {
			public: publicOf(t, ssh.Marshal(struct {
				Type, Curve string
				Point       []byte
				Application string
			}{ssh.KeyAlgoSKECDSA256, "nistp256", point, application})),
			flags: flags,
			sign: func(data []byte) ([]byte, error) {
				sum := sha256.Sum256(data)
				r, s, err := ecdsa.Sign(rand.Reader, ec, sum[:])
				return ssh.Marshal(struct{ R, S *big.Int }{r, s}), err
			},
		},
	}
}

func publicOf(t testing.TB, data []byte) ssh.PublicKey {
	t.Helper()
	key, err := ssh.ParsePublicKey(data)
	if err != nil {
		t.Fatal(err)
	}
	return key
}

func (k token) PublicKey() ssh.PublicKey { return k.public }

func (k token) Sign(_ io.Reader, data []byte) (*ssh.Signature, error) {
	purpose, message := sha256.Sum256([]byte(application)), sha256.Sum256(data)
	end := binary.BigEndian.AppendUint32([]byte{k.flags}, 5)
	sig, err := k.sign(slices.Concat(purpose[:], end, message[:]))
	return &ssh.Signature{Format: k.public.Type(), Blob: sig, Rest: end}, err
}

// oldSigner is a key of RSA that can sign with SHA-1 only, as an old library makes it.
type oldSigner struct{ ssh.Signer }

// wrongSigner signs something else.
type wrongSigner struct{ ssh.Signer }

func (s wrongSigner) Sign(chance io.Reader, data []byte) (*ssh.Signature, error) {
	return s.Signer.Sign(chance, append(data, 'x'))
}

// deadSigner has lost its key.
type deadSigner struct{ ssh.Signer }

func (deadSigner) Sign(io.Reader, []byte) (*ssh.Signature, error) { return nil, errors.New("no key") }

// keygen is the real ssh-keygen, in a folder of its own.
type keygen struct {
	t   *testing.T
	dir string
	env []string
}

func newKeygen(t *testing.T) keygen {
	t.Helper()
	if _, err := exec.LookPath("ssh-keygen"); err != nil {
		t.Fatal("there is no ssh-keygen: apt-get install openssh-client")
	}
	return keygen{t: t, dir: t.TempDir()}
}

// run calls ssh-keygen, and returns what it wrote.
func (k keygen) run(input []byte, args ...string) (string, error) {
	k.t.Helper()
	c := exec.CommandContext(k.t.Context(), "ssh-keygen", args...)
	c.Dir, c.Stdin, c.Env = k.dir, bytes.NewReader(input), append(os.Environ(), k.env...)
	out, err := c.CombinedOutput()
	return string(out), err
}

func (k keygen) write(name string, data []byte) {
	k.t.Helper()
	if err := os.WriteFile(filepath.Join(k.dir, name), data, 0o600); err != nil {
		k.t.Fatal(err)
	}
}

func (k keygen) read(name string) []byte {
	k.t.Helper()
	data, err := os.ReadFile(filepath.Join(k.dir, name))
	if err != nil {
		k.t.Fatal(err)
	}
	return data
}

// makeKey makes a key in the file of this name.
func (k keygen) makeKey(name string, args ...string) ssh.Signer {
	k.t.Helper()
	if out, err := k.run(nil, append([]string{"-q", "-N", "", "-f", name}, args...)...); err != nil {
		k.t.Fatalf("%v: %s", err, out)
	}
	s, err := ssh.ParsePrivateKey(k.read(name))
	if err != nil {
		k.t.Fatal(err)
	}
	return s
}
