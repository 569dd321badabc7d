package main

import (
	"path/filepath"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"muster/internal/fakefleet"
)

// bring is a runbook that brings a file.
const bring = `
name: bring
arguments:
  image: {type: file, description: what to bring}
timeout: 1m
steps:
  - {name: bring, upload: {from: image, to: /tmp/image}}
`

// withRunbook starts a house that has a runbook of its own.
func withRunbook(t *testing.T, inventory, runbook string) *house {
	t.Helper()
	h := newCellar(t, inventory)
	h.write("own.yaml", runbook)
	h.configure(map[string]any{"runbooks": []string{h.file("own.yaml")}})
	h.server = h.start("server", "--config", h.file("muster.yaml"))
	h.server.await("server listens")
	h.master()
	return h
}

// The scripts below files/ have a runbook that brings a file.
func TestScriptsWithFiles(t *testing.T) {
	t.Parallel()
	_, inventory := pretend(t, fakefleet.Config{Hosts: 6, DiskBytes: 4 << 20})
	h := withRunbook(t, inventory, bring)
	testscript.Run(t, testscript.Params{Dir: "testdata/script/files",
		Setup: withMuster(filepath.Dir(h.bin), h.url)})
}
