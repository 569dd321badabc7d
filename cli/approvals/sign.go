package approvals

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"muster/internal/proc"
	"muster/trust"
)

// signatureMax bounds what ssh-keygen may print.
const signatureMax = 64 << 10 // bytes

// usualKeys are the names of the keys that sign, below ~/.ssh. The first one that exists counts.
func usualKeys() []string {
	return []string{"id_ed25519_sk", "id_ed25519", "id_ecdsa_sk", "id_ecdsa"}
}

// A Signer signs orders with the key of a person, by ssh-keygen.
type Signer struct{ program, key string }

// NewSigner returns the signer with a key; an empty name stands for the usual one.
func NewSigner(key string) (Signer, error) {
	program, err := proc.Find("ssh-keygen")
	if err != nil {
		err = errors.New("ssh-keygen, which signs, is not there: install the client of OpenSSH, 8.1 or " +
			"later")
	}
	if key == "" {
		key = os.Getenv("MUSTER_SIGN_KEY")
	}
	if key == "" {
		home, _ := os.UserHomeDir() // without one no key is found
		key = usualKey(filepath.Join(home, ".ssh"))
	}
	if key == "" {
		err = errors.Join(err, fmt.Errorf("there is no key to sign with: want one of %s in ~/.ssh; or "+
			"name another by --key or MUSTER_SIGN_KEY", strings.Join(usualKeys(), ", ")))
	} else if _, wrong := os.Stat(key); wrong != nil {
		err = errors.Join(err, fmt.Errorf("there is no key to sign with: %w", wrong))
	}
	return Signer{program, key}, err
}

// usualKey returns the path of the key in a folder that signs; empty: there is none.
func usualKey(dir string) string {
	for _, name := range usualKeys() {
		if _, err := os.Stat(filepath.Join(dir, name)); err == nil {
			return filepath.Join(dir, name)
		}
	}
	return ""
}

// sign returns the signature of an order. said hears ssh-keygen, which asks for a touch there.
func (k Signer) sign(ctx context.Context, order []byte, said io.Writer) ([]byte, error) {
	text, err := proc.Filter(ctx, proc.Program{Path: k.program, Most: signatureMax, Env: os.Environ(),
		Args: []string{"-Y", "sign", "-f", k.key, "-n", trust.NamespaceOrder}}, order, said)
	if err != nil {
		return nil, fmt.Errorf("ssh-keygen has not signed with %s: %w", k.key, err)
	}
	return text, nil
}
