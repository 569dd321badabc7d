package waits_test

import (
	"strings"
	"testing"

	"muster/server/waits"
)

func TestErrorsAreComparedWithoutTheirHost(t *testing.T) {
	t.Parallel()
	print := "SHA256:" + strings.Repeat("a", 43)
	for _, c := range []struct{ text, host, address, want string }{
		{"", "fw1", "10.0.0.1:22", ""},
		{"connect 10.0.0.1:22: refused", "fw1", "10.0.0.1:22", "connect ADDRESS: refused"},
		{"connect 10.0.0.1:22: refused", "fw1", "", "connect 10.0.0.1:22: refused"},
		{"no such name: fw1.example", "fw1", "fw1.example:22", "no such name: HOST.example"},
		{"a cat", "a", "", "a cat"},
		{"its host key is ssh-rsa " + print + ", the inventory has ssh-rsa " + print, "fw1", "",
			"its host key is ssh-rsa SHA256:…, the inventory has ssh-rsa SHA256:…"},
	} {
		if got := waits.Impersonal(c.text, c.host, c.address); got != c.want {
			t.Errorf("%q: got %q, want %q", c.text, got, c.want)
		}
	}
}
