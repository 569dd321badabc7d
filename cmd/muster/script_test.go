package main

import (
	"cmp"
	"os"
	"path/filepath"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"muster/internal/fakefleet"
)

// The scripts in testdata/script are what an operator types. Those below fleet/
// have a whole house around them: a server and a master with ten pretended hosts.
func TestScripts(t *testing.T) {
	t.Parallel()
	testscript.Run(t, testscript.Params{Dir: "testdata/script", Setup: withMuster(bin(t), "")})
}

func TestScriptsOnAFleet(t *testing.T) {
	t.Parallel()
	faults := map[int]fakefleet.Personality{8: fakefleet.Refuse, 9: fakefleet.Fail}
	_, inventory := pretend(t, fakefleet.Config{Hosts: 10,
		Personality: func(i int) fakefleet.Personality { return cmp.Or(faults[i], fakefleet.Normal) }})
	h := newHouse(t, inventory)
	h.master()
	testscript.Run(t, testscript.Params{Dir: "testdata/script/fleet",
		Setup: withMuster(filepath.Dir(h.bin), h.url)})
}

// withMuster puts muster on the path and, if url is not empty, says where its
// server is.
func withMuster(dir, url string) func(*testscript.Env) error {
	return func(e *testscript.Env) error {
		e.Setenv("PATH", dir+string(os.PathListSeparator)+os.Getenv("PATH"))
		e.Setenv("USER", "carol")
		if url == "" {
			url = "http://127.0.0.1:1"
		}
		e.Setenv("MUSTER_URL", url)
		return nil
	}
}
