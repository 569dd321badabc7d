package sshsig

import (
	"encoding/base64"
	"errors"
	"fmt"
	"strings"
)

const (
	header = "-----BEGIN SSH SIGNATURE-----"
	footer = "-----END SSH SIGNATURE-----"

	// lineLength is that of ssh-keygen. A reader takes any.
	lineLength = 70

	// armoredMax is the longest text of a signature, in bytes. The longest keys that ssh-keygen makes
	// need less than half of it.
	armoredMax = 16 << 10
)

// armor returns the text of a signature.
func armor(data []byte) []byte {
	text := base64.StdEncoding.EncodeToString(data)
	var b strings.Builder
	b.WriteString(header + "\n")
	for len(text) > 0 {
		n := min(lineLength, len(text))
		b.WriteString(text[:n] + "\n")
		text = text[n:]
	}
	b.WriteString(footer + "\n")
	return []byte(b.String())
}

// dearmor returns the bytes of a signature from its text. A line may end as Windows ends it, and
// the last one need not end.
func dearmor(armored []byte) ([]byte, error) {
	if len(armored) > armoredMax {
		return nil, fmt.Errorf("the signature has %d bytes: want at most %d", len(armored), armoredMax)
	}
	text := strings.ReplaceAll(string(armored), "\r\n", "\n")
	text, ok := strings.CutPrefix(text, header+"\n")
	if !ok {
		return nil, errors.New("want a line `" + header + "` at the beginning of the signature, and " +
			"nothing before it")
	}
	text, ok = strings.CutSuffix(strings.TrimSuffix(text, "\n"), "\n"+footer)
	if !ok {
		return nil, errors.New("want a line `" + footer + "` at the end of the signature, and nothing " +
			"behind it")
	}
	// The decoder passes over ends of lines, also where there should be none.
	if strings.Contains(text, "\r") || strings.Contains("\n"+text+"\n", "\n\n") {
		return nil, errors.New("the signature has an empty line, or a line that ends within itself: " +
			"want it as it was made")
	}
	data, err := base64.StdEncoding.Strict().DecodeString(text)
	if err != nil {
		return nil, errors.New("the signature is no base64: want it as it was made, with no spaces and " +
			"nothing left out")
	}
	return data, nil
}
