package enroll

import (
	"bytes"
	"context"
	"path/filepath"
	"strings"
	"testing"

	"muster/cli"
)

// A key is trusted as soon as it is written, so a person must have compared it before.
func TestEnrollWritesOnlyWhatWasComparedBefore(t *testing.T) {
	t.Parallel()
	for answer, written := range map[string]bool{"y\n": true, "yes": true, "n\n": false, "\n": false, "": false,
		"what?": false} {
		list := []enrolled{{Host: "fw1", Keys: []enrolledKey{
			{Type: "ssh-ed25519", Fingerprint: "SHA256:x", State: keyNew}}}}
		var out bytes.Buffer
		s := &cli.Session{Client: nil, Screen: &cli.Screen{Out: &out, Err: &out}}
		told, err := vouchFor(t.Context(), s.Screen, list, enrollFlags{write: filepath.Join(t.TempDir(), "k")},
			func(_ context.Context, question string) (string, error) {
				if !strings.Contains(out.String(), "SHA256:x") || !strings.Contains(question, "Write 1 new key to ") {
					t.Errorf("asked %q behind %q", question, out.String())
				}
				return answer, nil
			})
		if !told || (err == nil) != written {
			t.Errorf("answer %q: %v, written %v wanted", answer, err, written)
		}
	}
}
