package cli

import (
	"errors"
	"io/fs"
	"strings"
	"testing"
)

func TestFilesInSelectors(t *testing.T) {
	t.Parallel()
	files := map[string]string{
		"a.txt":     "fw001\nfw002 # the second\n\n# nothing\nfw003\nvpn1\n",
		"b":         "role=fw\nfw[1-3]!fw2\nall\n",
		"-":         "fw9",
		"empty":     "# nobody\n",
		"bad":       "fw001\nfw[\nfw 2\n",
		"nested":    "@a.txt\n",
		"d/e f.txt": "fw4\r\nfw5\r\n",
	}
	read := func(path string) ([]byte, error) {
		if text, ok := files[path]; ok {
			return []byte(text), nil
		}
		return nil, errors.Join(fs.ErrNotExist, errors.New(path))
	}
	for selector, want := range map[string]string{
		"fw1":                    "fw1",
		"@a.txt":                 "(fw[001-003],vpn1)",
		"all!@a.txt":             "all!(fw[001-003],vpn1)",
		"fw*, @a.txt & vpn*":     "fw*, (fw[001-003],vpn1)& vpn*",
		"@b":                     "((role=fw),(fw[1-3]!fw2),(all))",
		"(@-,fw1)^@a.txt":        "((fw9),fw1)^(fw[001-003],vpn1)",
		"@-!@-":                  "(fw9)!(fw9)",
		"@d/e f.txt":             "(fw[4-5])",
		"role=a@b":               "role=a@b",
		"customer=acme,@-":       "customer=acme,(fw9)",
		"fw[1-3]!task:x/!failed": "fw[1-3]!task:x/!failed",
	} {
		if got, err := WithFiles(selector, read); got != want || err != nil {
			t.Errorf("%s: %s, %v; want %s", selector, got, err, want)
		}
	}
	for selector, wants := range map[string][]string{
		"@nosuch":   {"nosuch"},
		"fw1,@":     {"'@' has no file behind it"},
		"@empty":    {"empty names no host"},
		"fw1!@bad":  {`bad:2: selector "fw[", column 3: '[' is not closed`, "bad:3: ", "has a blank"},
		"@nested":   {"nested:1: ", "only the command line reads a file"},
		"@bad,@bad": {"bad:2"},
	} {
		_, err := WithFiles(selector, read)
		for _, want := range wants {
			if err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%s: %v, want %q", selector, err, want)
			}
		}
	}
}
