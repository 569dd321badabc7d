package fleet

import (
	"strings"
	"testing"
)

func TestAMessageQuotesAtMostOneWordOfAForeignFile(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{"prot": "prot", "root:$6$salt$hash:19000:0": "root…", "<<": "<<",
		"just a sentence": "just…", strings.Repeat("a", 50): strings.Repeat("a", 40) + "…"} {
		if got := Word(text); got != want {
			t.Errorf("of %q it repeats %q, want %q", text, got, want)
		}
	}
}
