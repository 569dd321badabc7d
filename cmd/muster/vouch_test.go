package main

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// A key is trusted from the moment it is written, so somebody must have compared it before.
func TestEnrollWritesOnlyWhatWasComparedBefore(t *testing.T) {
	t.Parallel()
	e := newEnrolment(t)
	args := []string{"hosts", "enroll", "fw1", "--inventory", e.inventory, "--write", e.known}
	code, out, words := muster(t, "http://127.0.0.1:1", args...)
	if code != exitUsage || !strings.Contains(out, " new\n"+e.line) ||
		!strings.Contains(words, "1 new key not written") {
		t.Errorf("without a terminal: exit %d, %q, %q", code, out, words)
	}
	if _, err := os.Stat(e.known); err == nil {
		t.Error("it was written all the same")
	}
	for answer, written := range map[string]bool{"y\n": true, "yes": true, "n\n": false, "\n": false, "": false,
		"what?": false} {
		list := []enrolled{{Host: "fw1", Keys: []enrolledKey{
			{Type: "ssh-ed25519", Fingerprint: "SHA256:x", State: keyNew}}}}
		var out bytes.Buffer
		s := &session{nil, &screen{out: &out, err: &out}}
		told, err := s.vouch(t.Context(), list, enrollFlags{write: filepath.Join(t.TempDir(), "k")},
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
