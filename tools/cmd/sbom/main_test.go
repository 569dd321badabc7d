package main

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func TestAListNamesWhatIsLinkedAndIsTheSameTwice(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	var one, two bytes.Buffer
	for _, w := range []*bytes.Buffer{&one, &two} {
		if err := write(w, self, "1.2.0", time.Unix(1790000000, 0)); err != nil {
			t.Fatal(err)
		}
	}
	if one.String() != two.String() {
		t.Error("two lists of one program differ")
	}
	var b bom
	if err := json.Unmarshal(one.Bytes(), &b); err != nil {
		t.Fatal(err)
	}
	if b.Metadata.Component.Version != "1.2.0" || b.Metadata.Timestamp != "2026-09-21T14:13:20Z" {
		t.Errorf("the program is %+v", b.Metadata)
	}
	if len(b.Components) == 0 || b.Components[0].Name != "std" || !strings.HasPrefix(b.Components[0].Version, "1.") {
		t.Errorf("the library of Go is missing: %+v", b.Components)
	}
	if len(b.Dependencies) != 1 || len(b.Dependencies[0].On) != len(b.Components) {
		t.Errorf("dependencies: %+v", b.Dependencies)
	}
}

func TestWhatIsNoProgramIsRefused(t *testing.T) {
	path := filepath.Join(t.TempDir(), "text")
	if err := os.WriteFile(path, []byte("text"), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := write(&bytes.Buffer{}, path, "1", time.Now()); err == nil || !strings.Contains(err.Error(), "no Go program") {
		t.Errorf("a text file: %v", err)
	}
}
