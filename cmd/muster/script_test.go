package main

import (
	"cmp"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"muster/internal/fakefleet"
)

// The scripts in testdata/script are commands of an operator. Those below fleet/ have a whole house
// around them: a server and a master with ten pretended hosts.
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

// The script below orders/ stops and starts everything, so it has a house alone. fw0001 and fw0002
// are a pair; the second loses every connection.
func TestScriptsThatGiveOrders(t *testing.T) {
	t.Parallel()
	faults := map[int]fakefleet.Personality{1: fakefleet.Cut, 5: fakefleet.Fail}
	_, inventory := pretend(t, fakefleet.Config{Hosts: 6,
		Personality: func(i int) fakefleet.Personality { return cmp.Or(faults[i], fakefleet.Normal) }})
	for _, name := range []string{"fw0001", "fw0002"} {
		inventory = inGroup(inventory, name, "pair")
	}
	h := newHouse(t, inventory+"limits: {site/x: 2}\n")
	h.master()
	testscript.Run(t, testscript.Params{Dir: "testdata/script/orders",
		Setup: withMuster(filepath.Dir(h.bin), h.url)})
}

// The scripts below times/ define windows and freezes. No job runs.
func TestScriptsAboutTime(t *testing.T) {
	t.Parallel()
	_, inventory := pretend(t, fakefleet.Config{Hosts: 4})
	h := newHouse(t, inventory)
	testscript.Run(t, testscript.Params{Dir: "testdata/script/times",
		Setup: withMuster(filepath.Dir(h.bin), h.url)})
}

// These scripts make likely mistakes about times.
func TestScriptsAboutDoubts(t *testing.T) {
	t.Parallel()
	_, inventory := pretend(t, fakefleet.Config{Hosts: 4})
	h := newHouse(t, inventory)
	testscript.Run(t, testscript.Params{Dir: "testdata/script/doubts",
		Setup: withMuster(filepath.Dir(h.bin), h.url)})
}

// The script below hosts/ drains hosts that other scripts need. fw0010 fails.
func TestScriptsAboutHosts(t *testing.T) {
	t.Parallel()
	_, inventory := pretend(t, fakefleet.Config{Hosts: 10,
		Personality: func(i int) fakefleet.Personality {
			return cmp.Or(map[int]fakefleet.Personality{9: fakefleet.Fail}[i], fakefleet.Normal)
		}})
	h := newHouse(t, inventory)
	h.master()
	testscript.Run(t, testscript.Params{Dir: "testdata/script/hosts",
		Setup: withMuster(filepath.Dir(h.bin), h.url)})
}

// inGroup puts a host of a pretended fleet into a redundancy group.
func inGroup(inventory, host, group string) string {
	line := "  - name: " + host + "\n"
	return strings.Replace(inventory, line, line+"    group: "+group+"\n", 1)
}

// withMuster puts muster on the path and, if url is not empty, sets the address of its server.
func withMuster(dir, url string) func(*testscript.Env) error {
	if url == "" {
		url = "http://127.0.0.1:1"
	}
	return func(e *testscript.Env) error {
		e.Setenv("PATH", dir+string(os.PathListSeparator)+os.Getenv("PATH"))
		e.Setenv("USER", "carol")
		if race := os.Getenv("GORACE"); race != "" { // else each command waits a second before it ends
			e.Setenv("GORACE", race)
		}
		e.Setenv("MUSTER_URL", url)
		return nil
	}
}
