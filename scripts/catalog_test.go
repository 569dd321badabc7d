package scripts_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"muster/scripts"
)

func source(file, name string) scripts.Source {
	return scripts.Source{File: file, Data: []byte("name: " + name + "\nsteps: [{name: a, run: ls}]\n")}
}

func names(list []*scripts.Runbook) []string {
	var all []string
	for _, r := range list {
		all = append(all, r.Name)
	}
	return all
}

func TestBuiltinsAreReadAndSorted(t *testing.T) {
	t.Parallel()
	all := names(scripts.Builtins())
	if !slices.Contains(all, "exec") || !slices.IsSorted(all) {
		t.Errorf("built in are %v: want them sorted, and exec among them", all)
	}
	for _, name := range all {
		if r, ok := scripts.Builtin(name); !ok || r.Name != name {
			t.Errorf("Builtin(%q) = %v, %v", name, r, ok)
		}
	}
	if _, ok := scripts.Builtin("no"); ok {
		t.Error("found a built-in runbook that is not there")
	}
}

func TestCatalogHoldsBuiltinsAndUsers(t *testing.T) {
	t.Parallel()
	c, err := scripts.NewCatalog([]scripts.Source{source("z", "zebra"), source("a", "ant")})
	if err != nil {
		t.Fatal(err)
	}
	want := append(names(scripts.Builtins()), "ant", "zebra")
	slices.Sort(want)
	if diff := cmp.Diff(want, names(c.All())); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	if r, err := c.Lookup("ant"); err != nil || r.Name != "ant" {
		t.Errorf("Lookup(ant) = %v, %v", r, err)
	}
	if _, err := c.Lookup("zebar"); err == nil ||
		err.Error() != `no runbook "zebar": did you mean "zebra"?` {
		t.Errorf("Lookup(zebar) = %v", err)
	}
	if _, err := c.Lookup("teleport"); err == nil ||
		err.Error() != `no runbook "teleport": known: `+strings.Join(want, ", ") {
		t.Errorf("Lookup(teleport) = %v", err)
	}
	c.All()[0] = nil
	if slices.Contains(c.All(), nil) {
		t.Error("a caller changed the catalog")
	}
}

func TestCatalogReportsAllFilesAtOnce(t *testing.T) {
	t.Parallel()
	c, err := scripts.NewCatalog([]scripts.Source{
		source("1.yaml", "one"), source("2.yaml", "one"), source("3.yaml", "exec"),
		{File: "4.yaml", Data: []byte("name: four\n")}, source("5.yaml", "four"), {File: "6.yaml"},
	})
	if c != nil || err == nil {
		t.Fatalf("got %v, %v; want only mistakes", c, err)
	}
	want := []string{
		`2.yaml:1:7: the name "one" is taken (1.yaml): choose another`,
		`3.yaml:1:7: the name "exec" is taken (built in): choose another`,
		`4.yaml:1:1: steps is missing`,
		`5.yaml:1:7: the name "four" is taken (4.yaml): choose another`,
		`6.yaml:1:1: the file is empty: want a runbook: it has at least a name and steps`,
	}
	if diff := cmp.Diff(want, strings.Split(err.Error(), "\n")); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}
