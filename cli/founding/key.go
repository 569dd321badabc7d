package founding

import (
	"crypto/rand"
	"fmt"
	"strings"

	"muster/internal/files"
	"muster/internal/serverkey"
)

// keyFile returns the file of a new key of servers: of the installation of another key, in a file,
// or without a path of one with a name that no other one has.
func keyFile(like string) (string, error) {
	var raw [serverkey.Size]byte
	rand.Read(raw[:]) // never fails
	if like == "" {
		const length = 12
		return serverkey.File(strings.ToLower(rand.Text())[:length], raw), nil
	}
	data, _, err := files.Private(like, keyMax)
	if err != nil {
		return "", fmt.Errorf("--like: %w", err)
	}
	k, err := serverkey.Parse(data)
	if err != nil {
		return "", fmt.Errorf("--like %s: it is no key of servers: %w", like, err)
	}
	return k.Next(raw), nil
}
