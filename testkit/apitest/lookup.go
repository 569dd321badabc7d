package apitest

import (
	"os"
	"testing"
)

// ShortDir is a folder for sockets, whose path may have 107 bytes.
func ShortDir(t testing.TB) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "api")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	return dir
}
