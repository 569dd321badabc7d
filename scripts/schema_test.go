package scripts_test

import (
	"encoding/json"
	"flag"
	"os"
	"testing"

	"github.com/google/go-cmp/cmp"

	"muster/scripts"
)

var update = flag.Bool("update", false, "write what is printed")

func TestTheSchemaIsThatOfTheParser(t *testing.T) {
	t.Parallel()
	const file = "../etc/runbook.schema.json"
	if *update {
		if err := os.WriteFile(file, scripts.Schema(), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	have, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(scripts.Schema()), string(have)); diff != "" {
		t.Errorf("%s is not what the parser reads: go test ./scripts -run Schema -update\n%s", file, diff)
	}
	var schema struct {
		Properties map[string]any
		Defs       map[string]struct{ Properties map[string]any } `json:"$defs"`
	}
	if err := json.Unmarshal(have, &schema); err != nil {
		t.Fatal(err)
	}
	for _, key := range []string{"name", "steps", "library", "window"} {
		if schema.Properties[key] == nil {
			t.Errorf("no %s", key)
		}
	}
	for _, key := range []string{"run", "confirm", "gate", "on_fail", "preflight"} {
		if schema.Defs["step"].Properties[key] == nil {
			t.Errorf("no %s of a step", key)
		}
	}
}

func TestTheSkeletonIsARunbook(t *testing.T) {
	t.Parallel()
	r := mustParse(t, scripts.Skeleton("mine"))
	if r.Name != "mine" || len(r.Steps) != 4 {
		t.Errorf("%+v", r)
	}
}
