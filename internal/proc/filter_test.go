package proc

import (
	"bytes"
	"strings"
	"testing"
)

func TestAFilterHearsAndSpeaks(t *testing.T) {
	t.Parallel()
	sh, err := Find("sh")
	if err != nil {
		t.Fatal(err)
	}
	for _, x := range []struct{ script, out, said, words string }{
		{"tr a-z A-Z; echo touch the key >&2", "ORDER", "touch the key", ""},
		{"echo no >&2; exit 3", "", "no", "exit status 3"},
		{"cat; cat /dev/zero | head -c 2000", "", "", "prints more than 1000 bytes"},
	} {
		var said bytes.Buffer
		out, err := Filter(t.Context(), Program{Path: sh, Args: []string{"-c", x.script}, Most: 1000},
			[]byte("order"), &said)
		if string(out) != x.out || strings.TrimSpace(said.String()) != x.said ||
			(err == nil) != (x.words == "") || err != nil && !strings.Contains(err.Error(), x.words) {
			t.Errorf("%s: %q, %q, %v", x.script, out, said.String(), err)
		}
	}
	if _, err := Find("no-such-program"); err == nil || !strings.Contains(err.Error(), "no-such-program") {
		t.Errorf("a program that is missing: %v", err)
	}
}
