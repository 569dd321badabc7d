package kinds

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"muster/fleet/remote"
	"muster/scripts"
)

// A listener gets the progress of a large file in the same lines that the result keeps.
func TestProgressOfAnUpload(t *testing.T) {
	t.Parallel()
	var live bytes.Buffer
	w := watch{to: "/x", live: &live}
	const size = 10 << 20
	for sent := int64(0); sent <= size; sent += 32 << 10 {
		w.note(remote.Progress{Size: size, Sent: sent})
	}
	said := string(w.end())
	if n := strings.Count(said, "\n"); n != 10 || said != live.String() ||
		!strings.HasPrefix(said, "/x: sent 1.0 MB of 10 MB\n") ||
		!strings.HasSuffix(said, "/x: sent 10 MB of 10 MB\n") {
		t.Errorf("%d lines, live %d bytes: %s", n, live.Len(), said)
	}
	// The first file was there already, and the upload of the second one never began.
	there, none := watch{to: "/x"}, watch{to: "/x"}
	there.note(remote.Progress{Size: size, Had: size})
	if said := string(there.end()); said != "/x: 10 MB were there already\n" {
		t.Errorf("it says %q", said)
	}
	if said := none.end(); said != nil {
		t.Errorf("it says %q", said)
	}
}

// A text that cannot be a checksum is a mistake in muster, and nothing is sent.
func TestAnUploadWithoutASumIsRefused(t *testing.T) {
	t.Parallel()
	for _, sum := range []string{"", "xyz", strings.Repeat("ab", 31), strings.Repeat("ab", 33)} {
		_, err := uploadStep{}.upload(t.Context(), scripts.Action{Kind: scripts.KindUpload,
			Upload: &scripts.Upload{To: "/x", SHA256: sum}}, remote.Command{Bound: time.Minute})
		if remote.KindOf(err) != remote.KindInvalid {
			t.Errorf("sha256 %q: %v", sum, err)
		}
	}
}
