package fleet

import (
	"strings"
	"testing"
)

func TestAForeignFileIsRefusedWithoutAQuote(t *testing.T) {
	t.Parallel()
	for _, text := range []string{
		"root:*:20780:0:99999:7:::\nknot:!:20780::::::\n", "hunter2: {hosts: a}\n", "hunter2:\n", "hunter2: x\nother: y\n",
	} {
		_, err := Parse(Source{"shadow", []byte(text)})
		if err == nil || !strings.HasPrefix(err.Error(), "shadow:1: this is no inventory: ") {
			t.Errorf("%q: %v", text, err)
		}
		for _, word := range []string{"root", "knot", "hunter2", "hosts is missing"} {
			if err != nil && strings.Contains(err.Error(), word) {
				t.Errorf("%q: it repeats %s: %v", text, word, err)
			}
		}
	}
	// A misspelt key is named.
	_, err := Parse(Source{"own", []byte("host: []\n")})
	if err == nil || !strings.Contains(err.Error(), `unknown key "host": did you mean hosts?`) {
		t.Errorf("a slip: %v", err)
	}
}
