package sessions

import (
	"testing"

	"muster/internal/serverkey"
)

func keysOf(t testing.TB) serverkey.Keys {
	t.Helper()
	k, err := serverkey.Parse([]byte(serverkey.File("i1234", [serverkey.Size]byte{1})))
	if err != nil {
		t.Fatal(err)
	}
	return k
}
