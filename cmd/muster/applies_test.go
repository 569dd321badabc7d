package main

import (
	"path/filepath"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"muster/internal/fakefleet"
)

// The script below applies/ puts files in force and prunes them, so it has a house alone.
func TestScriptsThatApply(t *testing.T) {
	t.Parallel()
	_, inventory := pretend(t, fakefleet.Config{Hosts: 1})
	h := newHouse(t, inventory)
	testscript.Run(t, testscript.Params{Dir: "testdata/script/applies",
		Setup: withMuster(filepath.Dir(h.bin), h.url)})
}
