package scripts

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// InlineMax is the largest file that a task should contain itself, in bytes. A larger file
// should be a blob, because every worker reads the whole task.
const InlineMax = 256 << 10

// blobPrefix begins the name of a stored content.
const blobPrefix = "sha256:"

// ParseBlob reads the name of a stored content: sha256: and its sum in 64 hex digits.
// It returns the digits in lower case.
func ParseBlob(name string) (sum string, err error) {
	sum, found := strings.CutPrefix(name, blobPrefix)
	sum = strings.ToLower(sum)
	if raw, err := hex.DecodeString(sum); !found || err != nil || len(raw) != sha256.Size {
		return "", fmt.Errorf("%s is no name of a blob: want sha256: and 64 hex digits, as "+
			"`muster blob ls` shows them", brief(name))
	}
	return sum, nil
}

// BlobName returns the name that ParseBlob reads.
func BlobName(sum string) string { return blobPrefix + sum }

// Blobs returns the contents, by SHA-256 in hex, that must be stored for the runbook with
// these arguments, because steps or arguments of type file name them.
func (r *Runbook) Blobs(args map[string]string) []string {
	need := map[string]bool{}
	for _, s := range r.Steps {
		if s.Upload != nil && s.Upload.Blob != "" {
			need[s.Upload.Blob] = true
		}
	}
	for _, a := range r.Arguments {
		if a.Type != TypeFile {
			continue
		}
		if sum, err := ParseBlob(args[a.Name]); err == nil {
			need[sum] = true
		}
	}
	return slices.Sorted(maps.Keys(need))
}

// bindBlob records the size of a stored content.
func (v *Values) bindBlob(sum string, stored map[string]int64) error {
	size, ok := stored[sum]
	if !ok {
		return fmt.Errorf("blob %s is not there: put it there with `muster blob put FILE`",
			BlobName(sum))
	}
	put(&v.Blobs, sum, size)
	return nil
}
