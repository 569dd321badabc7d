package windows

import (
	"strings"
	"testing"
)

// secondDocuments are texts after a valid file, with the error for each.
var secondDocuments = []struct{ name, more, want string }{
	{"with freezes", "---\nfreezes: []\n", "f.yaml:2: a second YAML document begins here"},
	{"of nothing", "---\n", "f.yaml:2: a second YAML document begins here"},
	{"behind the end of the first", "...\nfreezes: []\n", "f.yaml:3: not YAML: something follows the end"},
	{"that is broken", "---\nfreezes: [\n", "f.yaml:4: not YAML: "},
	{"that begins behind the end", "...\n---\nfreezes: []\n", "f.yaml:3: a second YAML document begins"},
	{"that is rubbish", "---\n}{\n", "f.yaml:3: not YAML: "},
}

// A freeze behind "---" froze nothing, and nobody learned of it.
func TestASecondDocumentIsRefused(t *testing.T) {
	t.Parallel()
	for _, first := range []string{"windows: []\n", "schedules: []\n"} {
		parse := func(text string) error {
			if strings.HasPrefix(first, "schedules") {
				_, err := ParseSchedules([]File{{"f.yaml", text}}, nil)
				return err
			}
			_, err := Parse([]File{{"f.yaml", text}}, nil)
			return err
		}
		for _, good := range []string{"", "...\n", "# ---\n"} {
			if err := parse("---\n" + first + good); err != nil {
				t.Errorf("%q: %v", first+good, err)
			}
		}
		for _, test := range secondDocuments {
			if err := parse(first + test.more); err == nil || !strings.HasPrefix(err.Error(), test.want) {
				t.Errorf("%s, %s: %v, want %s", first, test.name, err, test.want)
			}
		}
	}
}

func TestMistakesInYAMLHaveTheirLine(t *testing.T) {
	t.Parallel()
	for _, test := range []struct{ name, text, want string }{
		{"a tab", "windows:\n\t- {}\n", "f.yaml:2: not YAML: found character that cannot start any token"},
		{"an open list", "windows: [\n", "f.yaml:2: not YAML: "},
		{"a NUL", "windows: []\n# a\x00b\n", "f.yaml:2: not YAML: control characters are not allowed"},
		{"no UTF-8", "windows: []\n\n# a\xff\n", "f.yaml:3: not YAML: "},
		{"nothing", "# nothing\n", "f.yaml: it is empty: want windows or freezes"},
		{"an alias", "windows: &a []\nfreezes: *a\n", "f.yaml:2: freezes: want a list"},
		{"an alias as a key", "windows: &freezes []\n*freezes : []\n", "f.yaml:2: a key must be a word"},
		{"a merge", "freezes: []\nx: &x {windows: []}\n<<: *x\n", `f.yaml:2: unknown key "x"`},
		{"a list as a key", "freezes: []\n? [windows]\n: []\n", "f.yaml:2: a key must be a word"},
	} {
		_, err := Parse([]File{{"f.yaml", test.text}}, nil)
		if err == nil || !strings.HasPrefix(err.Error(), test.want) {
			t.Errorf("%s: %v, want %s", test.name, err, test.want)
		}
	}
}
