package fakefleet

import (
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/sha256"
	"encoding/binary"
	"encoding/pem"
	"strings"

	"golang.org/x/crypto/ssh"
)

// Signer returns the key that opens every host of the fleet.
func (f *Fleet) Signer() ssh.Signer { return signer(f.login) }

// PrivateKey returns the same key in the format of OpenSSH.
func (f *Fleet) PrivateKey() ([]byte, error) {
	block, err := ssh.MarshalPrivateKey(f.login, "pretended fleet")
	if err != nil {
		return nil, err
	}
	return pem.EncodeToMemory(block), nil
}

func (f *Fleet) makeLogin() error {
	f.login = f.ed25519Key("login", 0)
	public, err := ssh.NewPublicKey(f.login.Public())
	if err != nil {
		return err
	}
	f.allowed = public.Marshal()
	return nil
}

// digest derives pseudo-random bytes from the seed: the same for the same purpose and host.
func (f *Fleet) digest(purpose string, index int) [sha256.Size]byte {
	b := binary.BigEndian.AppendUint64([]byte(purpose), f.config.Seed)
	return sha256.Sum256(binary.BigEndian.AppendUint64(b, uint64(index)))
}

func (f *Fleet) ed25519Key(purpose string, index int) ed25519.PrivateKey {
	seed := f.digest(purpose, index)
	return ed25519.NewKeyFromSeed(seed[:])
}

// makeKey derives the key that the host shows. That takes some 20 µs, so it is done at the first
// visit and not for thousands at the start.
func (h *host) makeKey() ssh.Signer {
	switch h.personality {
	case WrongKey:
		return signer(h.fleet.ed25519Key("another host key", h.index))
	case UnknownKeyType:
		return signer(h.fleet.ecdsaKey("host key", h.index))
	}
	return signer(h.fleet.ed25519Key("host key", h.index))
}

// keyLine returns the host key for the inventory; some personalities show another one.
func (h *host) keyLine() string {
	key := h.key()
	if h.personality == WrongKey || h.personality == UnknownKeyType {
		key = signer(h.fleet.ed25519Key("host key", h.index))
	}
	return strings.TrimSpace(string(ssh.MarshalAuthorizedKey(key.PublicKey())))
}

func (f *Fleet) ecdsaKey(purpose string, index int) *ecdsa.PrivateKey {
	for d := f.digest(purpose, index); ; d = sha256.Sum256(d[:]) {
		// One digest in 2^32 is no private key of this curve.
		if k, err := ecdsa.ParseRawPrivateKey(elliptic.P256(), d[:]); err == nil {
			return k
		}
	}
}

// signer cannot fail: both types of key are supported.
func signer(key any) ssh.Signer {
	s, err := ssh.NewSignerFromKey(key)
	if err != nil {
		panic(err)
	}
	return s
}
