package gitsource_test

import (
	"io/fs"
	"os"
	"strings"
	"testing"

	"muster/internal/gitsource"
	"muster/testkit/gittest"
)

// A repository of small pushes over years: each fetch leaves files of its own, which together are
// larger than the copy may be. Its history is not.
func TestACopyIsPackedBeforeItIsTooBig(t *testing.T) {
	t.Parallel()
	r := gittest.New(t)
	c := copyOf(t, r)
	c.Bounds.Copy, c.Bounds.Loose = 1<<20, 30
	noise := []byte(random(100 << 10))
	var first gitsource.Commit
	most := 0
	for i := range 24 {
		noise[i]++
		r.Write("noise", string(noise))
		r.Commit("change")
		got, err := c.Fetch(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if i == 0 {
			first = got
			if err := c.Remember(t.Context(), got.ID); err != nil {
				t.Fatal(err)
			}
		}
		most = max(most, filesIn(t, c.Dir))
		if i == 23 {
			if err := c.Descends(t.Context(), got, first.ID); err != nil {
				t.Error(err)
			}
		}
	}
	if now, err := c.InForce(t.Context()); err != nil || now != first.ID {
		t.Errorf("in force is %q, %v", now, err)
	}
	if most > c.Bounds.Loose+10 {
		t.Errorf("the copy had %d files", most)
	}
	if n := size(t, c.Dir); n > c.Bounds.Copy {
		t.Errorf("the copy has %d bytes", n)
	}
}

func filesIn(t *testing.T, dir string) (n int) {
	t.Helper()
	err := fs.WalkDir(os.DirFS(dir), ".", func(_ string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			n++
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// random returns a text that git cannot compress, the same each time.
func random(bytes int) string {
	var b strings.Builder
	for x := uint32(1); b.Len() < bytes; {
		x ^= x << 13
		x ^= x >> 17
		x ^= x << 5
		b.WriteByte(byte(x))
	}
	return b.String()
}
