package sshsig

import (
	"crypto/rand"
	"fmt"

	"golang.org/x/crypto/ssh"
)

// signHash is the hash in signatures that are made here.
const signHash = "sha512"

// Sign returns the text of a signature of the message for a namespace. The signer may be one of an
// agent. Its signature is checked before it is returned, so that one which nobody would accept is
// an error here.
func Sign(signer ssh.Signer, namespace string, message []byte) ([]byte, error) {
	if err := checkName("namespace", namespace); err != nil {
		return nil, err
	}
	key, err := parseKey(signer.PublicKey().Marshal()) // an agent's own form hides the length
	if err != nil {
		return nil, err
	}
	sig, err := signBytes(signer, toSign(namespace, signHash, message))
	if err != nil {
		return nil, fmt.Errorf("the key %s did not sign: %w", ssh.FingerprintSHA256(key), err)
	}
	armored := armor(ssh.Marshal(blob{Magic: magic, Version: version, Key: key.Marshal(),
		Namespace: namespace, Hash: signHash, Signature: ssh.Marshal(sig)}))
	made, err := Parse(armored)
	if err == nil {
		err = made.Verify(namespace, message)
	}
	if err != nil {
		return nil, fmt.Errorf("the key %s made a signature that does not hold: %w",
			ssh.FingerprintSHA256(key), err)
	}
	return armored, nil
}

// signBytes signs with the first algorithm for the key, because a key of RSA would take SHA-1 if it
// were not told.
func signBytes(signer ssh.Signer, data []byte) (*ssh.Signature, error) {
	kind := signer.PublicKey().Type()
	if kind != ssh.KeyAlgoRSA {
		return signer.Sign(rand.Reader, data)
	}
	able, ok := signer.(ssh.AlgorithmSigner)
	if !ok {
		return nil, fmt.Errorf("it signs with SHA-1 only: want one that can do %s", algorithms[kind][0])
	}
	return able.SignWithAlgorithm(rand.Reader, data, algorithms[kind][0])
}
