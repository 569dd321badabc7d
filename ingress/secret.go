package ingress

import (
	"encoding/base64"
	"errors"
	"fmt"
	"strings"
)

// A Secret is what a source and its sender share.
type Secret []byte

// Format writes no secret, whatever the verb is.
func (Secret) Format(f fmt.State, _ rune) { fmt.Fprint(f, "(a secret)") }

const (
	// SecretsMax bounds a file of secrets.
	SecretsMax = 4 << 10 // bytes

	secretMin = 16 // bytes
	secrets   = 2  // the new one and the old one
	whsec     = "whsec_"
)

// ParseSecrets reads the file of a source: one secret a line, and while it is changed two. Blank
// lines do not count. No error repeats a secret.
func ParseSecrets(data []byte, p Proof) ([]Secret, error) {
	var list []Secret
	for i, line := range strings.Split(string(data), "\n") {
		line = strings.TrimSuffix(line, "\r")
		if strings.TrimSpace(line) == "" {
			continue
		}
		raw := Secret(line)
		if text, marked := strings.CutPrefix(line, whsec); marked && p == Signed {
			var err error
			if raw, err = base64.StdEncoding.DecodeString(text); err != nil {
				return nil, fmt.Errorf("line %d: want base64 behind whsec_", i+1)
			}
		}
		if len(raw) < secretMin {
			return nil, fmt.Errorf("line %d: the secret has %d bytes, which somebody may guess: want "+
				"%d or more, such as `openssl rand -hex 32` makes", i+1, len(raw), secretMin)
		}
		list = append(list, raw)
	}
	switch {
	case len(list) == 0:
		return nil, errors.New("it has no secret: want one a line")
	case len(list) > secrets:
		return nil, fmt.Errorf("it has %d secrets: want one, or two while the secret is changed",
			len(list))
	}
	return list, nil
}
