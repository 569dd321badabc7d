package sshsig

import (
	"bytes"
	"crypto/ed25519"

	"golang.org/x/crypto/ssh"
)

// SignEd25519 is Sign with a key that is at hand.
func SignEd25519(key ed25519.PrivateKey, namespace string, message []byte) ([]byte, error) {
	signer, err := ssh.NewSignerFromKey(key)
	if err != nil {
		return nil, err
	}
	return Sign(signer, namespace, message)
}

// KeyText returns a public key as it stands in allowed_signers: its type and its base64.
func KeyText(key ed25519.PublicKey) (string, error) {
	public, err := ssh.NewPublicKey(key)
	if err != nil {
		return "", err
	}
	return string(bytes.TrimSpace(ssh.MarshalAuthorizedKey(public))), nil
}

// Fingerprint returns the name of the key that signed, such as SHA256:….
func (s *Signature) Fingerprint() string { return ssh.FingerprintSHA256(s.Key) }
