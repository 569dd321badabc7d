package queue

import (
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"muster/jobs/queue/keys"
)

var update = flag.Bool("update", false, "write the keys into docs/REDIS.md")

func rows(list []keys.Key) string {
	var b strings.Builder
	b.WriteString("| key | type | written by | what |\n|---|---|---|---|\n")
	for _, k := range list {
		b.WriteString("| `" + k.Name + "` | " + k.Type + " | " + k.Writers + " | " + k.What + " |\n")
	}
	return b.String()
}

func TestTheDocShowsTheKeys(t *testing.T) {
	const path = "../../docs/REDIS.md"
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	text := string(data)
	for mark, list := range map[string][]keys.Key{"<!-- zone keys -->\n": keys.ZoneKeys,
		"<!-- hub keys -->\n": keys.HubKeys} {
		head, rest, ok := strings.Cut(text, mark)
		if !ok {
			t.Fatalf("%s lacks %q", path, mark)
		}
		table, tail, _ := strings.Cut(rest, "\n\n")
		if table == strings.TrimSuffix(rows(list), "\n") {
			continue
		}
		if !*update {
			t.Errorf("%s shows other keys: go test ./jobs/queue -run Doc -update", path)
		}
		// If there is no table yet, all text behind the mark is the tail.
		if !strings.HasPrefix(table, "|") {
			tail = strings.TrimPrefix(rest, "\n")
		}
		text = head + mark + rows(list) + "\n" + tail
	}
	if *update {
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

func TestTheDocNamesEveryScript(t *testing.T) {
	data, err := os.ReadFile("../../docs/REDIS.md")
	if err != nil {
		t.Fatal(err)
	}
	shared, err := filepath.Glob("lua/shared/*.lua")
	if err != nil || len(shared) == 0 {
		t.Fatalf("%v, %v", shared, err)
	}
	for _, f := range shared {
		if !strings.Contains(string(data), "`"+filepath.Base(f)+"`") {
			t.Errorf("docs/REDIS.md lacks %s", f)
		}
	}
	files, err := filepath.Glob("lua/*.lua")
	if err != nil || len(files) == 0 {
		t.Fatalf("%v, %v", files, err)
	}
	for _, f := range files {
		name := strings.TrimSuffix(filepath.Base(f), ".lua")
		if !strings.Contains(string(data), "`"+name) {
			t.Errorf("docs/REDIS.md lacks %s", name)
		}
		lua, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		for _, part := range []string{"KEYS 1 zone", "ARGV", "Returns", "Keeps:"} {
			if !strings.Contains(string(lua), part) {
				t.Errorf("%s: its contract lacks %q", f, part)
			}
		}
	}
}
